//! What is kept for later statements is kept by meaning: by values, by options, by what is named.

use crate::statements::{Home, answer};
use arrow::datatypes::DataType;
use stoa_query::{Outcome, ScalarValue, Session, SessionOptions};

fn texts(values: &[&str]) -> ScalarValue {
    let values: Vec<ScalarValue> = values.iter().map(|value| ScalarValue::from(*value)).collect();
    ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8))
}

async fn shown(session: &Session, name: &str) -> String {
    answer(session, &format!("SHOW {name}"), &[], false).await.remove(0)
}

async fn set(session: &Session, sql: &str) {
    let Outcome::Done(_) = session.sql(sql).await.unwrap() else { panic!("{sql} gives rows") };
}

/// The first column of the only row.
async fn first_cell(session: &Session, sql: &str) -> String {
    let Outcome::Rows(rows) = session.sql(sql).await.unwrap() else { panic!("{sql}: no rows") };
    let batch = rows.collect().await.unwrap().remove(0);
    arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap()
}

/// A small table whose texts look like more than one.
async fn words() -> Home {
    let home = Home::new().await;
    home.run("CREATE TABLE words (word text, n int)").await;
    home.run("INSERT INTO words VALUES ('a, b', 1), ('a', 2), ('b', 4), (NULL, 8)").await;
    home
}

#[tokio::test]
async fn parameters_that_print_alike_are_other_parameters() {
    let home = words().await;
    let session = home.engine.session(SessionOptions::default());
    // The short path keeps no results.
    session.set("short_path", Some("off")).unwrap();
    for sql in [
        "SELECT sum(n) FROM words WHERE word = ANY($1)",
        "SELECT sum(n) + 0 FROM words WHERE word = ANY($1) AND n > 0",
    ] {
        for _ in 0..2 {
            for (list, sum) in [(vec!["a, b"], "1"), (vec!["a", "b"], "6"), (vec!["a"], "2")] {
                let found = answer(&session, sql, &[texts(&list)], false).await;
                assert_eq!(found, [sum], "{sql} {list:?}");
            }
        }
    }
    assert!(home.engine.results_reused() >= 6, "{}", home.engine.results_reused());
    // The same digits, of another type.
    let sql = "SELECT $1";
    for (of, value, shown) in [
        (DataType::Int64, ScalarValue::Int64(Some(5)), "5"),
        (DataType::Float64, ScalarValue::Float64(Some(5.0)), "5.0"),
        (DataType::Float64, ScalarValue::Int64(Some(5)), "5.0"),
        (DataType::Int64, ScalarValue::Int64(Some(5)), "5"),
    ] {
        let statement = session.parse(sql).await.unwrap().swap_remove(0);
        let prepared = session.prepare(statement, vec![Some(of.clone())]).await.unwrap();
        let Outcome::Rows(rows) = session.execute(&prepared, vec![value]).await.unwrap() else {
            panic!("{sql} gives no rows")
        };
        let batch = rows.collect().await.unwrap().remove(0);
        let text = arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap();
        assert_eq!(text, shown, "{of}");
    }
}

const ORDERED: &str = "SELECT word FROM words WHERE n > 1 ORDER BY word LIMIT 1";
const NULLS: &str = "datafusion.sql_parser.default_null_ordering";

#[tokio::test]
async fn options_of_one_session_are_not_anothers() {
    let home = words().await;
    let session = || home.engine.session(SessionOptions::default());
    let (odd, plain) = (session(), session());
    let nulls_first = || format!("SET {NULLS} = 'nulls_min'");
    for sql in [ORDERED, "SELECT upper(word) FROM words WHERE n > 1 ORDER BY 1 LIMIT 1"] {
        let first = if sql == ORDERED { "a" } else { "A" };
        for turn in 0..4 {
            set(&odd, &nulls_first()).await;
            if turn % 2 == 1 {
                // Whatever is switched on again is so for this session's options.
                for name in ["short_path", "plan_templates", "result_reuse"] {
                    set(&odd, &format!("SET {name} = on")).await;
                }
            }
            for _ in 0..3 {
                assert_eq!(answer(&odd, sql, &[], true).await, ["NULL"], "{sql} {turn}");
                assert_eq!(answer(&plain, sql, &[], true).await, [first], "{sql} {turn}");
                assert_eq!(answer(&session(), sql, &[], true).await, [first], "{sql} {turn}");
            }
            set(&odd, "RESET ALL").await;
            assert_eq!(answer(&odd, sql, &[], true).await, [first], "{sql} {turn}");
        }
    }
}

#[tokio::test]
async fn a_statement_prepared_under_other_options_is_planned_anew() {
    let home = words().await;
    let session = home.engine.session(SessionOptions::default());
    set(&session, &format!("SET {NULLS} = 'nulls_min'")).await;
    let ordered = format!("{ORDERED} OFFSET 0");
    let statement = session.parse(&ordered).await.unwrap().swap_remove(0);
    let prepared = session.prepare(statement, Vec::new()).await.unwrap();
    let ask = async || {
        let Outcome::Rows(rows) = session.execute(&prepared, Vec::new()).await.unwrap() else {
            panic!("no rows")
        };
        let batch = rows.collect().await.unwrap().remove(0);
        arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap()
    };
    assert_eq!(ask().await, "");
    set(&session, "RESET ALL").await;
    assert_eq!(ask().await, "a");
    let other = home.engine.session(SessionOptions::default());
    assert_eq!(answer(&other, &ordered, &[], true).await, ["a"]);
}

#[tokio::test]
async fn reset_all_goes_back_to_what_the_connection_began_with() {
    let home = words().await;
    home.run("CREATE SCHEMA other").await;
    home.run("CREATE TABLE other.words (word text)").await;
    home.run("INSERT INTO other.words VALUES ('other')").await;
    let options = SessionOptions { application: "report".to_owned(), ..SessionOptions::default() };
    let session = home.engine.session(options);
    session.begin_with("search_path", "other").unwrap();
    session.begin_with("IntervalStyle", "iso_8601").unwrap();
    session.begin_with("timezone", "+02:00").unwrap();
    session.begin_with(NULLS, "nulls_min").unwrap();
    let began = async || {
        assert_eq!(shown(&session, "search_path").await, "other");
        assert_eq!(shown(&session, "application_name").await, "report");
        assert_eq!(shown(&session, "IntervalStyle").await, "iso_8601");
        assert_eq!(shown(&session, "timezone").await, "<-02>+02");
        assert_eq!(shown(&session, NULLS).await, "nulls_min");
        assert_eq!(shown(&session, "datafusion.execution.batch_size").await, "8192");
        assert_eq!(answer(&session, "SELECT word FROM words", &[], false).await, ["other"]);
    };
    began().await;
    for reset in ["RESET ALL", "DISCARD ALL"] {
        for change in [
            "SET search_path = public",
            "SET application_name = 'x'",
            "SET DateStyle = 'ISO, MDY'",
            "SET TIME ZONE 'UTC'",
            "SET datafusion.sql_parser.default_null_ordering = 'nulls_max'",
            "SET datafusion.execution.batch_size = 17",
            "SET plan_templates = off",
        ] {
            set(&session, change).await;
        }
        assert_eq!(shown(&session, "datafusion.execution.batch_size").await, "17");
        assert_eq!(shown(&session, "search_path").await, "public");
        set(&session, reset).await;
        began().await;
        assert_eq!(shown(&session, "plan_templates").await, "on");
    }
    // One at a time.
    set(&session, "SET datafusion.execution.batch_size = 17").await;
    set(&session, "RESET datafusion.execution.batch_size").await;
    set(&session, "SET search_path TO public").await;
    set(&session, "RESET search_path").await;
    began().await;
    // What does not fit changes nothing.
    assert!(session.set("datafusion.execution.batch_size", Some("many")).is_err());
    assert!(session.set("datafusion.no.such", Some("1")).is_err());
    let refused = session.set("datafusion.catalog.default_schema", Some("x")).unwrap_err();
    assert_eq!(refused.sqlstate(), "42501");
    began().await;
    // Two names of one option.
    set(&session, "SET datafusion.execution.time_zone = '-03:00'").await;
    assert_eq!(shown(&session, "timezone").await, "<-03>+03");
}

#[tokio::test]
async fn words_within_names_and_literals_mean_nothing() {
    let home = Home::new().await;
    home.run("CREATE TABLE things (known int, jpg_size double, note text, pg_rate int)").await;
    home.run("INSERT INTO things VALUES (1, 2e2, 'current_user', 3)").await;
    let session = home.engine.session(SessionOptions::default());
    // A number is typed alike whatever is beside it.
    for beside in ["jpg_size", "'pg_class'", "'now'", "pg_rate", "'regclass'"] {
        let sql = format!("SELECT 1e2, {beside} FROM things");
        let statement = session.parse(&sql).await.unwrap().swap_remove(0);
        let prepared = session.prepare(statement, Vec::new()).await.unwrap();
        let schema = prepared.schema().unwrap();
        assert_eq!(*schema.field(0).data_type(), DataType::Float64, "{sql}");
    }
    let typed =
        answer(&session, "SELECT 1e2 + 0.5, count(*) FROM pg_class WHERE relname = 'x'", &[], true);
    assert_eq!(typed.await, ["100.5|0"]);
    // Nor are its answers kept from others.
    session.set("short_path", Some("off")).unwrap();
    for sql in [
        "SELECT known + 1 FROM things",
        "SELECT known + 2 FROM things WHERE note = 'current_user'",
        "SELECT known + 3, 'session_user now() pg_catalog.pg_class' FROM things",
        "SELECT known + 4 AS current_things FROM things",
    ] {
        let reused = home.engine.results_reused();
        for _ in 0..3 {
            assert_eq!(answer(&session, sql, &[], true).await.len(), 1, "{sql}");
        }
        assert_eq!(home.engine.results_reused(), reused + 2, "{sql}");
    }
    // Those who ask for the time or for themselves are answered anew.
    let reused = home.engine.results_reused();
    for name in ["ann", "bob", "ann"] {
        let options = SessionOptions { user: name.to_owned(), ..SessionOptions::default() };
        let session = home.engine.session(options);
        for sql in ["SELECT current_user", "SELECT session_user", "SELECT session_user FROM things"]
        {
            assert_eq!(first_cell(&session, sql).await, name, "{sql}");
        }
    }
    let mut times = std::collections::BTreeSet::new();
    for _ in 0..3 {
        times.insert(first_cell(&session, "SELECT now(), known FROM things").await);
    }
    assert_eq!((times.len(), home.engine.results_reused()), (3, reused));
    // A table of one's own may begin as those of the catalog do.
    home.run("CREATE TABLE pg_daily (n int)").await;
    home.run("INSERT INTO pg_daily VALUES (7)").await;
    assert_eq!(answer(&session, "SELECT n, 1e0 FROM pg_daily", &[], true).await, ["7|1.0"]);
}

#[tokio::test]
async fn a_failed_statement_is_shown_unless_it_sets_a_password() {
    let home = words().await;
    let session = &home.short;
    let last = async |sql: &str| {
        assert!(session.parse(sql).await.is_err(), "{sql}");
        home.engine.queries().recent().remove(0).sql
    };
    for secret in [
        "CREATE ROLE x PASSWORD 'ppp' 'qqq'",
        "ALTER USER x WITH \"password\" 'ppp b",
        "SET password 'ppp",
    ] {
        let shown = last(secret).await;
        assert!(shown.contains('…'), "{shown}");
        assert!(!shown.contains("ppp") && !shown.contains("qqq"), "{shown}");
    }
    for shown in ["SELECT 'password' FRM x y z", "SELECT password_age FRM x y z"] {
        assert_eq!(last(shown).await, shown);
    }
}
