//! A catalog in PostgreSQL: copied there and back, shared by two servers, and away for a while.

use serde_json::Value;
use stoa_testkit::PostgresServer;

use crate::harness::{Place, Server, wait_for};

/// The first column of an answer, values apart by commas.
fn rows(server: &Server, sql: &str) -> String {
    let (status, body) = server.post_sql(sql).unwrap();
    assert_eq!(status, 200, "{sql}: {body}");
    body.lines().skip(1).collect::<Vec<_>>().join(",")
}

fn sent(server: &Server, sql: &str) {
    let (status, body) = server.post_sql(sql).unwrap();
    assert_eq!(status, 200, "{sql}: {body}");
}

/// What `/ready` says of the catalog; where the daemon is not ready, nothing.
fn reachable(server: &Server) -> Option<bool> {
    let (status, body) = server.get("/ready").unwrap();
    let reachable = || serde_json::from_str::<Value>(&body).unwrap()["catalog_reachable"].as_bool();
    (status == 200).then(|| reachable().unwrap())
}

#[test]
fn two_servers_share_a_catalog_that_goes_away_and_comes_back() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    for sql in [
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1), (2)",
        "CREATE VIEW v AS SELECT a FROM t WHERE a > 1",
    ] {
        place.ok(&["sql", "--warehouse", "w", "-c", sql]);
    }
    let copied = place.ok(&["catalog", "migrate", "--warehouse", "w", &url]);
    assert!(copied.contains("2 rows of iceberg_tables"), "{copied}");
    let again = place.run(&["catalog", "migrate", "--warehouse", "w", &url]);
    assert!(again.code == Some(1) && again.stderr.contains("is not empty"), "{}", again.stderr);

    let one = Server::start(&place, &["--catalog", &url]);
    let other = Server::start(&place, &["--catalog", &url]);
    sent(&one, "INSERT INTO t VALUES (3)");
    sent(&one, "FLUSH TABLE t");
    assert_eq!(rows(&other, "SELECT a FROM t ORDER BY a"), "1,2,3");
    sent(&other, "CREATE TABLE u (a int)");
    assert_eq!(rows(&one, "SELECT count(*) FROM u"), "0");
    assert_eq!(rows(&one, "SELECT count(*) FROM t"), "3");
    assert_eq!(rows(&one, "SELECT a FROM v ORDER BY a"), "2,3");
    let is_reachable = || (reachable(&one) == Some(true)).then_some(());
    wait_for("the catalog to answer", is_reachable);

    postgres.kill();
    assert_eq!(rows(&one, "SELECT count(*) FROM t"), "3");
    sent(&one, "INSERT INTO t VALUES (4)");
    assert_eq!(rows(&one, "SELECT a FROM t ORDER BY a"), "1,2,3,4");
    assert_eq!(rows(&one, "SELECT a FROM v ORDER BY a"), "2,3,4");
    let (status, refused) = one.post_sql("CREATE TABLE z (a int)").unwrap();
    assert!(status == 503 && refused.contains("57P03"), "{status}: {refused}");
    assert_eq!(reachable(&one), Some(false));
    assert_eq!(rows(&one, "SELECT reachable FROM system.catalog"), "false");

    postgres.begin();
    wait_for("the catalog to answer again", is_reachable);
    sent(&one, "FLUSH TABLE t");
    sent(&one, "CREATE TABLE z (a int)");
    assert_eq!(rows(&other, "SELECT a FROM t ORDER BY a"), "1,2,3,4");
    assert_eq!(rows(&other, "SELECT count(*) FROM z"), "0");
    for server in [one, other] {
        server.signal(rustix::process::Signal::TERM);
        let (status, log) = server.wait();
        assert!(status.success(), "{log}");
    }

    place.ok(&["catalog", "migrate", "--warehouse", "w", "--catalog", &url, "back.db"]);
    let count = ["sql", "--warehouse", "w", "--catalog", "back.db", "-c", "SELECT count(*) FROM t"];
    assert!(place.ok(&count).contains('4'));
}
