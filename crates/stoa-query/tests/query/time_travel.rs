//! Earlier versions of tables, by id and by time, for those who may read the table, and in prepared statements.

use crate::guarded::{Home, said};
use stoa_query::{Outcome, Session};

async fn rows(session: &Session, sql: &str) -> Vec<String> {
    let told = said(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let cells = told.lines().filter(|line| line.starts_with('|')).skip(1);
    cells
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned())
        .collect()
}

async fn code(session: &Session, sql: &str) -> String {
    said(session, sql).await.err().map_or("ok".to_owned(), |error| error.sqlstate().to_owned())
}

/// Four versions: `values[n]` is what the table holds at the snapshot `ids[n]`, made at `times[n]`.
struct Versions {
    home: Home,
    ids: Vec<String>,
    times: Vec<String>,
}

async fn versions() -> Versions {
    let home = Home::new(&["reader", "stranger"]).await;
    home.run("CREATE TABLE t (k int, secret text)").await;
    for n in 1..=4 {
        home.run(&format!("INSERT INTO t VALUES ({n}, 's{n}')")).await;
        home.run("FLUSH TABLE t").await;
    }
    let ids =
        rows(&home.root, "SELECT snapshot_id FROM \"t$history\" ORDER BY made_current_at").await;
    let times =
        rows(&home.root, "SELECT made_current_at FROM \"t$history\" ORDER BY made_current_at")
            .await;
    assert_eq!((ids.len(), times.len()), (4, 4));
    Versions { home, ids, times }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_snapshot_has_the_rows_that_were_there() {
    let Versions { home, ids, times } = versions().await;
    for (place, (id, time)) in ids.iter().zip(&times).enumerate() {
        let expected = vec![(place + 1).to_string()];
        for from in [
            format!("t FOR VERSION AS OF {id}"),
            format!("t FOR SYSTEM_VERSION AS OF {id} AS x"),
            format!("t@{id}"),
            format!("\"t@{id}\""),
            format!("t FOR TIMESTAMP AS OF '{time}'"),
        ] {
            let sql = format!("SELECT count(*) FROM {from}");
            assert_eq!(rows(&home.root, &sql).await, expected, "{sql}");
            // Again: answers and plans of one version are not those of another.
            assert_eq!(rows(&home.root, &sql).await, expected, "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_those_of_the_session() {
    let Versions { home, times, .. } = versions().await;
    let session = home.engine.session(stoa_query::SessionOptions {
        is_trusted: true,
        ..stoa_query::SessionOptions::default()
    });
    let local =
        |zone: &str| format!("SELECT ('{}'::timestamptz AT TIME ZONE '{zone}')::text", times[1]);
    for zone in ["Asia/Tokyo", "America/New_York", "UTC"] {
        let written = rows(&home.root, &local(zone)).await.remove(0);
        said(&session, &format!("SET timezone = '{zone}'")).await.unwrap();
        let sql = format!("SELECT count(*) FROM t FOR TIMESTAMP AS OF '{written}'");
        assert_eq!(rows(&session, &sql).await, ["2"], "{zone}: {written}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_those_on_the_table() {
    let Versions { home, ids, .. } = versions().await;
    home.run("GRANT SELECT (k) ON t TO reader").await;
    let (reader, stranger) = (home.session_of("reader"), home.session_of("stranger"));
    let id = &ids[1];
    assert_eq!(rows(&reader, &format!("SELECT sum(k) FROM t@{id}")).await, ["3"]);
    for sql in [
        format!("SELECT secret FROM t@{id}"),
        format!("SELECT * FROM t FOR VERSION AS OF {id}"),
        format!("SELECT k FROM t@{id} WHERE secret = 's1'"),
        format!("SELECT count(*) FROM t@{id} WHERE secret LIKE 's%'"),
        "SELECT * FROM \"t$files\"".to_owned(),
        "SELECT * FROM \"t$partitions\"".to_owned(),
    ] {
        assert_eq!(code(&reader, &sql).await, "42501", "{sql}");
    }
    assert_eq!(code(&reader, "SELECT * FROM \"t$snapshots\"").await, "ok");
    // Who must know nothing of the table is not told whether a version of it exists.
    for sql in [
        format!("SELECT k FROM t@{id}"),
        "SELECT k FROM t@1".to_owned(),
        "SELECT k FROM t@'no such tag'".to_owned(),
        "SELECT * FROM \"t$snapshots\"".to_owned(),
        "SELECT * FROM \"t$refs\"".to_owned(),
        "ALTER TABLE t CREATE TAG mine".to_owned(),
    ] {
        assert_eq!(code(&stranger, &sql).await, "42501", "{sql}");
    }
    assert_eq!(code(&reader, "ALTER TABLE t CREATE TAG mine").await, "42501");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_reads_what_its_name_means_when_it_runs() {
    let Versions { home, ids, .. } = versions().await;
    let session = &home.root;
    home.run(&format!("ALTER TABLE t CREATE TAG fixed AS OF VERSION {}", ids[0])).await;
    let statement = session.parse("SELECT count(*) FROM t@'fixed'").await.unwrap().remove(0);
    let prepared = session.prepare(statement, Vec::new()).await.unwrap();
    let counted = async || match session.execute(&prepared, Vec::new()).await {
        Ok(Outcome::Rows(rows)) => match rows.collect().await {
            Ok(batches) => format!("{:?}", batches[0].column(0)),
            Err(error) => error.sqlstate().to_owned(),
        },
        Ok(_) => "no rows".to_owned(),
        Err(error) => error.sqlstate().to_owned(),
    };
    let first = counted().await;
    assert!(first.contains("  1,"), "{first}");
    home.run("ALTER TABLE t DROP TAG fixed").await;
    home.run(&format!("ALTER TABLE t CREATE TAG fixed AS OF VERSION {}", ids[2])).await;
    let moved = counted().await;
    assert!(moved.contains("  3,"), "{moved}");
    home.run("ALTER TABLE t DROP TAG fixed").await;
    assert_eq!(counted().await, "42704");
    home.run("DROP TABLE t").await;
    assert_eq!(counted().await, "42P01");
    home.run("CREATE TABLE t (k int, secret text)").await;
    home.run("INSERT INTO t VALUES (1, 'x')").await;
    home.run("ALTER TABLE t CREATE TAG fixed").await;
    // Another table with the name: the statement is planned again.
    let other = counted().await;
    assert!(other.contains("  1,"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_is_read_after_its_rows_are_gone() {
    let Versions { home, ids, .. } = versions().await;
    home.run(&format!("ALTER TABLE t CREATE TAG kept AS OF VERSION {}", ids[0])).await;
    home.run("ALTER TABLE t SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')").await;
    home.run("DELETE FROM t").await;
    home.run("EXPIRE SNAPSHOTS FROM t").await;
    assert_eq!(rows(&home.root, "SELECT count(*) FROM t@'kept'").await, ["1"]);
    assert_eq!(rows(&home.root, "SELECT count(*) FROM t").await, ["0"]);
}
