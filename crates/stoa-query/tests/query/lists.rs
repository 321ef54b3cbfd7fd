//! Lists of values, as literals and as arrays: whatever their length, statements of one form are planned once, and answer
//! as if each had been planned. (`clients/oracle/shapes.py` compares them with PostgreSQL.)

use std::sync::Arc;

use crate::statements::{Home, answer, literal};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stoa_query::{Engine, EngineOptions, QueryPath, ScalarValue, Session, SessionOptions};

/// So often a form is asked before it is sure to be on the short path.
const PLANNED_FIRST: usize = 2;

/// A report, and a statement that computes on one; a condition comes in place of `{}`.
const FORMS: [&str; 2] = [
    "SELECT region, sum(clicks), count(*), sum(cost) FROM events WHERE {} GROUP BY region ORDER BY region",
    "SELECT region, sum(clicks) + 1, count(*) * 2.0 FROM events WHERE {} GROUP BY region ORDER BY region",
];

fn was_short(home: &Home) -> bool {
    home.engine.queries().recent().first().is_some_and(|asked| asked.path == QueryPath::Short)
}

/// Asks all ways of answering, and gives whether the first was short.
async fn agree(home: &Home, sql: &str, parameters: &[ScalarValue]) -> bool {
    let short = answer(&home.short, sql, parameters, true).await;
    let is_short = was_short(home);
    let shown: String = sql.chars().take(300).collect();
    assert_eq!(short, answer(&home.long, sql, parameters, true).await, "{shown} {parameters:?}");
    let templated = answer(&home.templated, sql, parameters, true).await;
    assert_eq!(short, templated, "templated: {shown} {parameters:?}");
    is_short
}

#[test]
fn lists_of_any_length_are_one_form() {
    let (runtime, home) = Home::filled();
    // Numbers near each other and far apart, texts with quotes, days; lists of one, with values twice, negative ones.
    for (column, is_short) in [
        ("account", true),
        ("clicks", true),
        ("region", true),
        ("day", true),
        ("account + 0", false),
        ("lower(region)", false),
    ] {
        for (form, negated) in [(0, false), (1, false), (0, true), (1, true)] {
            let of = column.split(' ').next().unwrap().trim_start_matches("lower(");
            let of: &'static str = if of.starts_with("region") { "region" } else { of };
            let mut runner = TestRunner::new(Config { cases: 7, ..Config::default() });
            let asked = std::cell::Cell::new(0);
            let drawn = (prop::collection::vec(literal(of), 1..30), 1_usize..60);
            runner
                .run(&drawn, |(mut values, times)| {
                    // One kind of literals: the last one draws others, too.
                    values.retain(|value| !value.contains('.') && !value.starts_with("DATE"));
                    if values.is_empty() {
                        return Ok(());
                    }
                    let values: Vec<_> = values.iter().cycle().take(values.len() * times).collect();
                    let list: Vec<String> = values.iter().map(ToString::to_string).collect();
                    let not = if negated { "NOT " } else { "" };
                    let condition = format!(
                        "day > DATE '2026-01-03' AND {column} {not}IN ({})",
                        list.join(", ")
                    );
                    let sql = FORMS[form].replace("{}", &condition);
                    let was_short = runtime.block_on(agree(&home, &sql, &[]));
                    asked.set(asked.get() + 1);
                    let is_known = asked.get() > PLANNED_FIRST;
                    // A text that days are compared with is none of them.
                    let must_be = is_short && of != "day" && is_known;
                    prop_assert!(was_short || !must_be, "planned: {}", sql);
                    Ok(())
                })
                .unwrap();
        }
    }
}

#[tokio::test]
async fn thousands_of_values_take_the_short_path() {
    let home = Home::new().await;
    home.fill().await;
    let list = |count: i64, step: i64| {
        let values: Vec<String> = (0..count).map(|value| (value * step - 7).to_string()).collect();
        values.join(", ")
    };
    let days = "DATE '2026-01-05', DATE '2026-01-06', DATE '2026-01-07'";
    let texts: Vec<String> = (0..3000).map(|n| format!("'it''s {n}'")).collect();
    let conditions = |count: i64| {
        [
            format!(
                "account IN ({}) AND day BETWEEN '2026-01-02' AND '2026-01-20'",
                list(count, 1)
            ),
            format!("account = ANY (ARRAY[{}])", list(count, 2)),
            format!("account NOT IN ({})", list(count, 3)),
            format!("clicks IN ({}) AND day IN ({days})", list(count, 1_000_003)),
            format!("region IN ({}, 'eu')", texts[..count as usize].join(",")),
            format!("region NOT IN ({}, 'eu')", texts[..count as usize].join(",")),
            format!("region = ANY (ARRAY[{}, 'eu'])", texts[..count as usize].join(",")),
        ]
    };
    for form in FORMS {
        for number in 0..conditions(1).len() {
            // Texts in an array stay in the plan of a statement that computes on a report.
            let is_last = number == conditions(1).len() - 1;
            for (asked, count) in [1, 2000, 3, 2999, 700].into_iter().enumerate() {
                let sql = form.replace("{}", &conditions(count)[number]);
                let was_short = agree(&home, &sql, &[]).await;
                assert!(
                    was_short || asked < PLANNED_FIRST || is_last && form == FORMS[1],
                    "planned: {}",
                    &sql[..300]
                );
            }
        }
    }
}

#[tokio::test]
async fn beyond_their_bound_lists_are_planned() {
    let home = Home::new().await;
    home.fill().await;
    let list: Vec<String> = (0..20_000).map(|value| value.to_string()).collect();
    for form in FORMS {
        for values in [&list[..16_384], &list[..]] {
            let sql = form.replace("{}", &format!("account IN ({})", values.join(",")));
            for asked in 0..4 {
                let short = answer(&home.short, &sql, &[], true).await;
                assert!(short.len() > 1, "{short:?}");
                let (is_short, is_within) = (was_short(&home), values.len() <= 16_384);
                assert!(is_within || !is_short);
                assert!(is_short || !is_within || asked < PLANNED_FIRST);
            }
        }
    }
}

#[tokio::test]
async fn null_and_other_kinds_in_a_list_are_planned_as_ever() {
    let home = Home::new().await;
    home.fill().await;
    for form in FORMS {
        for condition in [
            "account IN (1, NULL, 2)",
            "account NOT IN (1, NULL, 2)",
            "account NOT IN (1, 2) AND clicks NOT IN (5, -5)",
            "account IN (1, 2.0, 2.5)",
            "cost IN (1, 2, 3)",
            "cost IN (1.25, 2.50)",
            "day IN ('2026-01-05', '2026-01-06')",
            "day NOT IN ('2026-01-05'::date, '2026-01-06')",
            "clicks IN (3000000000, 5, -9223372036854775808)",
            "rate IN (1, 2, 50)",
            "rate NOT IN (1, 2, 50)",
            "at IN ('2026-01-02 03:30:00', '2026-01-02 04:00:00')",
            "region IN ('eu') OR account IN (1, 2, 3, 4, 5)",
            "account IN (1, 2, 3) OR account IN (4, 5) OR account = 6",
            "NOT (account IN (1, 2, 3) AND region IN ('eu', 'us'))",
            "account IN (1, 2, 3, 4, 5) AND account IN (2, 3, 9) AND account NOT IN (3, 7)",
            "(region IN ('eu', 'us')) IS NULL",
            "coalesce(clicks IN (1, 2, 3), true)",
            "account + 1 IN (2, 3)",
            "(account, region) IN ((1, 'eu'), (2, 'us'))",
            "position('u' IN (region)) > 0",
        ] {
            for _ in 0..4 {
                agree(&home, &form.replace("{}", condition), &[]).await;
            }
        }
    }
}

fn array(of: &DataType, values: &[ScalarValue]) -> ScalarValue {
    ScalarValue::List(ScalarValue::new_list_nullable(values, of))
}

#[tokio::test]
async fn arrays_as_parameters_take_the_short_path() {
    let home = Home::new().await;
    home.fill().await;
    let ints = |values: &[Option<i64>]| {
        let values: Vec<_> = values.iter().map(|value| ScalarValue::Int64(*value)).collect();
        array(&DataType::Int64, &values)
    };
    let many: Vec<Option<i64>> = (0..5000).map(|value| Some(value * 2)).collect();
    let texts = |values: &[&str]| {
        let values: Vec<_> = values.iter().map(|value| ScalarValue::from(*value)).collect();
        array(&DataType::Utf8, &values)
    };
    let null = || ScalarValue::try_new_null(&ints(&[]).data_type()).unwrap();
    for form in FORMS {
        for (condition, arrays, is_short) in [
            (
                "account = ANY ($1)",
                vec![
                    ints(&[Some(3)]),
                    ints(&many),
                    ints(&[None, Some(-1), Some(4), Some(4)]),
                    ints(&[]),
                    null(),
                ],
                true,
            ),
            (
                "region = ANY ($1)",
                vec![texts(&["eu", "us"]), texts(&["it's"]), texts(&["eu"])],
                true,
            ),
            (
                "account <> ALL ($1)",
                vec![ints(&[Some(3)]), ints(&many), ints(&[None, Some(4)]), ints(&[]), null()],
                false,
            ),
            (
                "account = ANY ($1::bigint[]) AND clicks > 5",
                vec![ints(&many), ints(&[Some(1)])],
                true,
            ),
        ] {
            let sql = form.replace("{}", condition);
            for asked in 0..3 {
                for array in &arrays {
                    let was_short = agree(&home, &sql, std::slice::from_ref(array)).await;
                    let is_empty = array.is_null() || *array == ints(&[]);
                    let is_known = asked > 0 && !is_empty;
                    assert!(was_short || !is_short || !is_known, "planned: {sql} {array:?}");
                }
            }
        }
        // Integers of another size than the column's.
        let sql = form.replace("{}", "account = ANY ($1) OR clicks = 7");
        let few = [ScalarValue::Int32(Some(4)), ScalarValue::Int32(Some(5))];
        agree(&home, &sql, &[array(&DataType::Int32, &few)]).await;
        let sql = form.replace("{}", "clicks = ANY ($1)");
        for _ in 0..3 {
            agree(&home, &sql, &[ints(&[Some(3_000_000_000), Some(5)])]).await;
            let halves =
                [ScalarValue::Decimal128(Some(15), 2, 1), ScalarValue::Decimal128(Some(50), 2, 1)];
            agree(&home, &sql, &[array(&DataType::Decimal128(2, 1), &halves)]).await;
        }
    }
}

/// Statements without a name, as drivers send them: parsed with each execution.
#[tokio::test]
async fn statements_with_parameters_are_found_by_their_text() {
    let home = Home::new().await;
    home.fill().await;
    let values =
        |account: i64| vec![ScalarValue::Int64(Some(account)), ScalarValue::Date32(Some(20_465))];
    for sql in [
        "SELECT day, sum(cost) / nullif(sum(clicks), 0) FROM events WHERE account = $1 AND day >= $2 GROUP BY day ORDER BY 1",
        "SELECT day, sum(clicks) FROM events WHERE account = $1 AND day >= $2 GROUP BY day ORDER BY 1",
        "SELECT day, sum(clicks) * 2 FROM events WHERE day >= $2 AND account = $1 AND region IN ('eu', 'us') AND clicks < 900 \
         GROUP BY day ORDER BY 1",
    ] {
        for account in 0..6 {
            let was_short = agree(&home, sql, &values(account)).await;
            assert!(was_short || account < PLANNED_FIRST as i64, "planned: {sql}");
        }
    }
    // What is lifted differs from statement to statement, and so do the answers.
    for clicks in 0..5 {
        let sql = format!(
            "SELECT region, sum(clicks) * 2 FROM events WHERE account = $1 AND day >= $2 AND clicks > {} GROUP BY region ORDER BY 1",
            clicks * 100
        );
        assert!(agree(&home, &sql, &values(7)).await || clicks < PLANNED_FIRST as i64);
    }
    // With as many values as it has parameters, not more, and not fewer.
    let sql = "SELECT sum(clicks) * 2 FROM events WHERE account = $1";
    for _ in 0..3 {
        let statement = home.short.parse(sql).await.unwrap().swap_remove(0);
        let prepared = home.short.prepare(statement, Vec::new()).await.unwrap();
        assert_eq!(prepared.parameter_types(), [DataType::Int64]);
        for wrong in [vec![], values(7)] {
            let error = home.short.execute(&prepared, wrong).await.err().unwrap();
            assert_eq!(error.sqlstate(), "08P01");
        }
        // Two types are declared, of which the statement uses one.
        let statement = home.short.parse(sql).await.unwrap().swap_remove(0);
        let declared = vec![Some(DataType::Int64), Some(DataType::Date32)];
        let prepared = home.short.prepare(statement, declared).await.unwrap();
        assert_eq!(prepared.parameter_types(), [DataType::Int64, DataType::Date32]);
        assert!(home.short.execute(&prepared, values(7)).await.is_ok());
    }
}

/// A session of a user who must not read `secret`, beside one who may everything.
async fn with_rights(directory: &std::path::Path) -> (Arc<Engine>, Arc<Session>, Arc<Session>) {
    let url = |name: &str| url::Url::from_directory_path(directory.join(name)).unwrap();
    let options = EngineOptions {
        logs: Some(url("log")),
        access_control: true,
        ..EngineOptions::new(url("warehouse"))
    };
    let engine = Engine::open(options).await.unwrap();
    let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
    for sql in [
        "CREATE TABLE t (k int, n bigint, secret bigint, region text)",
        "INSERT INTO t VALUES (7, 1, 1, 'eu'), (7, 10, 2, 'us'), (8, 100, 3, 'eu')",
        "CREATE USER ann PASSWORD 'pencil'",
        "GRANT SELECT (k, n, region) ON t TO ann",
    ] {
        root.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let ann =
        engine.session(SessionOptions { user: "ann".to_owned(), ..SessionOptions::default() });
    (engine, root, ann)
}

async fn refused(session: &Session, sql: &str, parameters: &[ScalarValue]) -> Option<String> {
    let statement = session.parse(sql).await.unwrap().swap_remove(0);
    let asked = async {
        let prepared = session.prepare(statement, Vec::new()).await?;
        session.execute(&prepared, parameters.to_vec()).await
    };
    asked.await.err().map(|error| error.sqlstate().to_owned())
}

#[tokio::test]
async fn what_is_kept_asks_for_the_rights_of_whoever_uses_it() {
    let directory = tempfile::tempdir().unwrap();
    let (_engine, root, ann) = with_rights(directory.path()).await;
    let sevens = array(&DataType::Int32, &[ScalarValue::Int32(Some(7)), ScalarValue::Int32(None)]);
    let seven = || vec![ScalarValue::Int32(Some(7))];
    for (allowed, secret, parameters) in [
        (
            "SELECT sum(n) FROM t WHERE k IN (7, 9)",
            "SELECT sum(n) FROM t WHERE secret IN (1, 2)",
            vec![],
        ),
        (
            "SELECT sum(n) * 2 FROM t WHERE k IN (7, 9)",
            "SELECT sum(n) * 2 FROM t WHERE k IN (7, 9) AND secret NOT IN (9, 8)",
            vec![],
        ),
        (
            "SELECT sum(n) FROM t WHERE k = ANY ($1)",
            "SELECT sum(secret) FROM t WHERE k = ANY ($1)",
            vec![sevens.clone()],
        ),
        (
            "SELECT sum(n) * 2 FROM t WHERE k = ANY ($1)",
            "SELECT sum(n) * 2 FROM t WHERE k = ANY ($1) AND secret < 5",
            vec![sevens],
        ),
        (
            "SELECT sum(n) * 2 FROM t WHERE k = $1",
            "SELECT sum(n) * 2 FROM t WHERE secret = $1",
            seven(),
        ),
        (
            "SELECT upper(region) FROM t WHERE k = $1 ORDER BY n LIMIT 1",
            "SELECT upper(region) FROM t WHERE k = $1 ORDER BY secret LIMIT 1",
            seven(),
        ),
    ] {
        let parameters = parameters.as_slice();
        for _ in 0..4 {
            assert_eq!(refused(&root, allowed, parameters).await, None, "{allowed}");
            assert_eq!(refused(&ann, allowed, parameters).await, None, "{allowed}");
            assert_eq!(refused(&root, secret, parameters).await, None, "{secret}");
            let code = refused(&ann, secret, parameters).await;
            assert_eq!(code.as_deref(), Some("42501"), "{secret}");
        }
        assert_eq!(
            answer(&ann, allowed, parameters, true).await,
            answer(&root, allowed, parameters, true).await
        );
        root.sql("REVOKE SELECT (n, region) ON t FROM ann").await.unwrap();
        let code = refused(&ann, allowed, parameters).await;
        assert_eq!(code.as_deref(), Some("42501"), "revoked: {allowed}");
        root.sql("GRANT SELECT (n, region) ON t TO ann").await.unwrap();
    }
}
