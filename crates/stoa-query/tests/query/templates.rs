//! Plans that are used again with other values against plans made anew: the same answers.

use crate::statements::{Home, answer, literal};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stoa_query::ScalarValue;

/// Values that a form is asked with, one after another.
const TURNS: usize = 4;

/// One condition with other values each turn.
fn condition() -> impl Strategy<Value = Vec<String>> {
    let columns = vec!["account", "account", "day", "region", "clicks", "cost", "at", "added"];
    let operators = vec!["=", "=", "<", "<=", ">", ">=", "<>", "between", "in", "not in", "+ 1 ="];
    (prop::sample::select(columns), prop::sample::select(operators)).prop_flat_map(
        |(column, operator)| {
            let values = (literal(column), literal(column));
            prop::collection::vec(values, TURNS).prop_map(move |turns| {
                let turns = turns.iter().map(|(one, other)| match operator {
                    "between" => format!("{column} BETWEEN {one} AND {other}"),
                    "in" => format!("{column} IN ({one}, {other})"),
                    "not in" => format!("{column} NOT IN ({one}, {other})"),
                    "+ 1 =" => format!("account + 1 = {one} OR {column} IS NULL")
                        .replace(&format!("= {one}"), "= 7"),
                    _ => format!("{column} {operator} {one}"),
                });
                turns.collect()
            })
        },
    )
}

/// A statement with other values each turn.
fn statement() -> impl Strategy<Value = Vec<String>> {
    (condition(), condition(), 0_usize..9).prop_map(|(one, other, form)| {
        let turns = one.iter().zip(&other).map(|(a, b)| match form {
            0 => format!("SELECT account, day, clicks FROM events WHERE {a} AND {b}"),
            1 => format!("SELECT DISTINCT region FROM events WHERE {a} OR {b}"),
            2 => format!(
                "SELECT region, sum(cost) + 1, count(DISTINCT account) FROM events WHERE {a} \
                 GROUP BY region HAVING count(*) > 3"
            ),
            3 => format!(
                "SELECT count(*), max(d) FROM events JOIN (SELECT account AS a, max(day) AS d \
                 FROM events WHERE {a} GROUP BY account) AS x ON account = a WHERE {b}"
            ),
            4 => format!(
                "SELECT count(*) FROM events WHERE {a} AND account IN \
                 (SELECT account FROM events WHERE {b})"
            ),
            5 => format!(
                "SELECT upper(region), CASE WHEN clicks > 5 THEN 'many' ELSE 'few' END, cost * 2 \
                 FROM events WHERE NOT ({a}) AND {b}"
            ),
            6 => format!(
                "SELECT account, n FROM (SELECT account, row_number() OVER \
                 (PARTITION BY account ORDER BY day, cost, clicks) AS n FROM events WHERE {a}) AS x \
                 WHERE n <= 2"
            ),
            7 => format!("SELECT count(*) FROM events WHERE {a} UNION ALL SELECT 1 FROM events WHERE {b}"),
            _ => format!(
                "SELECT date_trunc('month', day), sum(clicks) FROM events \
                 WHERE {a} AND ({b} OR account = 5) GROUP BY 1"
            ),
        });
        turns.collect()
    })
}

#[test]
fn templates_answer_as_plans_made_anew_do() {
    let (runtime, home) = Home::filled();
    let mut runner = TestRunner::new(Config { cases: 120, ..Config::default() });
    runner
        .run(&statement(), |turns| {
            for sql in turns {
                let (templated, long) = runtime.block_on(async {
                    let templated = answer(&home.templated, &sql, &[], false).await;
                    (templated, answer(&home.long, &sql, &[], false).await)
                });
                prop_assert_eq!(templated, long, "{}", sql);
            }
            Ok(())
        })
        .unwrap();
    assert!(home.engine.plan_templates_known() > 40, "{}", home.engine.plan_templates_known());
    assert!(home.engine.plan_templates_used() > 100, "{}", home.engine.plan_templates_used());
}

#[tokio::test]
async fn parameters_are_put_into_the_optimised_plan() {
    let home = Home::new().await;
    home.fill().await;
    let sql = "SELECT upper(region), count(*) FROM events \
               WHERE account = $1 AND day >= $2 GROUP BY 1 LIMIT $3";
    for account in 0..20 {
        let parameters = [
            ScalarValue::Int64(Some(account)),
            ScalarValue::Date32(Some(20_460 + account as i32)),
            ScalarValue::Int64(Some(100)),
        ];
        let templated = answer(&home.templated, sql, &parameters, false).await;
        assert_eq!(templated, answer(&home.long, sql, &parameters, false).await);
        assert!(!templated.is_empty());
    }
    assert_eq!(home.engine.plan_templates_used(), 20);
    // A value that does not fit the column, and none at all.
    for value in [ScalarValue::Int64(None), ScalarValue::Float64(Some(1.5))] {
        let parameters = [value, ScalarValue::Date32(Some(0)), ScalarValue::Int64(Some(100))];
        assert!(answer(&home.templated, sql, &parameters, false).await.is_empty());
    }
}

#[tokio::test]
async fn a_limit_of_no_rows_is_one() {
    let home = Home::new().await;
    home.fill().await;
    let sql = "SELECT region FROM events WHERE account = $1 ORDER BY 1 LIMIT $2";
    for (limit, rows) in [(3, 3), (0, 0), (1, 1)] {
        let parameters = [ScalarValue::Int64(Some(1)), ScalarValue::Int64(Some(limit))];
        let templated = answer(&home.templated, sql, &parameters, false).await;
        assert!(templated.len() <= rows, "{templated:?}");
        assert_eq!(templated, answer(&home.long, sql, &parameters, false).await);
    }
    assert!(home.engine.plan_templates_used() > 0);
}

#[tokio::test]
async fn a_template_sees_what_changed_since_the_last() {
    let home = Home::new().await;
    let ask = async |k: u32| {
        let sql = format!("SELECT 2 * sum(n) FROM t WHERE k = {k}");
        let answer = answer(&home.templated, &sql, &[], false).await;
        answer.into_iter().next().unwrap()
    };
    home.run("CREATE TABLE t (k int, n bigint)").await;
    for n in 1..5 {
        home.run("INSERT INTO t VALUES (7, 1), (8, 100)").await;
        assert_eq!(ask(7).await, (2 * n).to_string());
        assert_eq!(ask(8).await, (200 * n).to_string());
    }
    let used = home.engine.plan_templates_used();
    assert!(used > 4, "{used}");
    home.run("FLUSH TABLE t").await;
    for _ in 0..2 {
        answer(&home.short, "SELECT sum(n) FROM t WHERE k = 7", &[], false).await;
    }
    home.run("DELETE FROM t WHERE k = 8").await;
    assert_eq!((ask(7).await.as_str(), ask(8).await.as_str()), ("8", "NULL"));
    // Another table of the same name: other columns, other types.
    home.run("DROP TABLE t").await;
    let gone = home.templated.sql("SELECT 2 * sum(n) FROM t WHERE k = 3").await;
    assert_eq!(gone.err().unwrap().sqlstate(), "42P01");
    home.run("CREATE TABLE t (n decimal(10,2), k bigint)").await;
    home.run("INSERT INTO t VALUES (1.25, 7)").await;
    let first = answer(&home.short, "SELECT sum(n) FROM t WHERE k = 7", &[], false).await;
    assert_eq!(first, ["1.25"]);
    for _ in 0..3 {
        assert_eq!((ask(7).await.as_str(), ask(8).await.as_str()), ("2.50", "NULL"));
    }
    // Another zone makes another plan.
    home.run("CREATE TABLE z (at timestamptz, n int)").await;
    home.run("INSERT INTO z VALUES ('2026-01-01 00:30:00+00', 1)").await;
    let sql = "SELECT count(*) + 0, max(date_trunc('day', at)) FROM z WHERE n = 1";
    for zone in ["UTC", "UTC", "UTC", "+01:00", "-01:00"] {
        for session in [&home.templated, &home.long] {
            session.set("timezone", Some(zone)).unwrap();
        }
        let templated = answer(&home.templated, sql, &[], false).await;
        assert_eq!(templated, answer(&home.long, sql, &[], false).await, "{zone}");
    }
}
