//! Backups while rows come in; what is restored is what was acknowledged before, and some of what came meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use stoa_testkit::PostgresServer;

use crate::harness::{Place, Server, post_sql};

fn counted(server: &Server, sql: &str) -> u64 {
    let (status, body) = server.post_sql(sql).unwrap();
    assert_eq!(status, 200, "{sql}: {body}");
    body.lines().nth(1).unwrap().parse().unwrap()
}

fn sent(server: &Server, sql: &str) {
    let (status, body) = server.post_sql(sql).unwrap();
    assert_eq!(status, 200, "{sql}: {body}");
}

fn started(place: &Place, warehouse: &str) -> Server {
    let ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "0"];
    Server::run(place.command(&[&["server", "--warehouse", warehouse], &ports[..]].concat()))
}

#[test]
fn a_backup_under_load_holds_what_was_acknowledged_before() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    sent(&server, "CREATE TABLE t (a bigint NOT NULL, s text)");
    sent(&server, "CREATE SCHEMA sales");
    sent(&server, "CREATE TABLE sales.u (a int)");
    sent(&server, "INSERT INTO sales.u VALUES (7)");
    sent(&server, "CREATE VIEW v AS SELECT count(*) AS n FROM t");
    let (port, url) = (server.http_port(), server.http_url());
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (before, ids) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let next = acknowledged.load(Ordering::SeqCst);
                let insert = format!("INSERT INTO t VALUES ({next}, 'row {next}')");
                assert_eq!(post_sql(port, &insert).unwrap().0, 200);
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut before = Vec::new();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let at_least = before.last().copied().unwrap_or(0) + 5;
            while acknowledged.load(Ordering::SeqCst) < at_least {
                std::thread::yield_now();
            }
            before.push(acknowledged.load(Ordering::SeqCst));
            let taken =
                place.ok(&["backup", "backup", "--warehouse", "w", "--url", &url, "--json"]);
            let taken: Value = serde_json::from_str(&taken).unwrap();
            assert_eq!(taken["relations"], 3, "{taken}");
            ids.push(taken["backup"].as_str().unwrap().to_owned());
        }
        is_over.store(true, Ordering::SeqCst);
        (before, ids)
    });
    let all = acknowledged.load(Ordering::SeqCst);
    let listed = place.ok(&["backup", "backup", "--list"]);
    assert_eq!(listed.lines().collect::<Vec<_>>(), ids);
    // Without its server, what is in its log would be missing.
    let refused = place.run(&["backup", "other", "--warehouse", "w"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--url"), "{}", refused.stderr);
    drop(server);
    for (id, before) in ids.iter().zip(before) {
        let verified = place.ok(&["backup", "backup", "--verify", "--id", id]);
        assert!(verified.contains("is whole"), "{verified}");
        let warehouse = format!("restored-{id}");
        let restored = place.ok(&["restore", "backup", "--id", id, "--warehouse", &warehouse]);
        assert!(restored.contains("2 tables checked"), "{restored}");
        let other = started(&place, &warehouse);
        let count = counted(&other, "SELECT count(*) FROM t");
        assert!((before..=all).contains(&count), "{before} ≤ {count} ≤ {all}");
        // One writer: what is there is the first rows, each once.
        assert_eq!(counted(&other, "SELECT count(DISTINCT a) FROM t"), count);
        assert_eq!(counted(&other, "SELECT max(a) + 1 FROM t"), count);
        assert_eq!(counted(&other, "SELECT n FROM v"), count);
        assert_eq!(counted(&other, "SELECT a FROM sales.u"), 7);
        sent(&other, "INSERT INTO t VALUES (-1, NULL)");
        sent(&other, "FLUSH TABLE t");
        assert_eq!(counted(&other, "SELECT count(*) FROM t"), count + 1);
    }
    let again = place.run(&["restore", "backup", "--warehouse", &format!("restored-{}", ids[0])]);
    assert!(again.code == Some(1) && again.stderr.contains("empty place"), "{}", again.stderr);
}

#[test]
fn a_backup_of_a_cluster_holds_the_rows_of_all_daemons() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let catalog = postgres.database();
    let daemon = |_| Server::start(&place, &["--catalog", &catalog, "--access-control"]);
    let create = ["sql", "--warehouse", "w", "--catalog", &catalog, "-c"];
    let sql = |sql: &str| place.ok(&[&create[..], &[sql]].concat());
    sql("CREATE ROLE keeper LOGIN SUPERUSER PASSWORD 'sec:ret'");
    sql("CREATE USER visitor PASSWORD 'pencil'");
    sql("CREATE TABLE t (a int)");
    let daemons = [1, 2, 3].map(daemon);
    let url = |daemon: usize, who: &str| {
        format!("http://{who}@127.0.0.1:{}", daemons[daemon].http_port())
    };
    for daemon in 0..daemons.len() {
        let insert =
            format!("INSERT INTO t SELECT n FROM generate_series(1, {}) AS g(n)", 10 + daemon);
        place.ok(&["sql", "--url", &url(daemon, "keeper:sec%3Aret"), "-c", &insert]);
    }
    let backup = |who: &str| {
        let url = url(1, who);
        place.run(&["backup", "b", "--warehouse", "w", "--catalog", &catalog, "--url", &url])
    };
    let refused = backup("visitor:pencil");
    assert!(refused.code == Some(1) && refused.stderr.contains("42501"), "{}", refused.stderr);
    let taken = backup("keeper:sec%3Aret");
    assert_eq!(taken.code, Some(0), "{}", taken.stderr);
    drop(daemons);
    place.ok(&["restore", "b", "--warehouse", "restored"]);
    let count = ["sql", "--warehouse", "restored", "-c", "SELECT count(*) AS n FROM t"];
    let count = place.ok(&count);
    assert!(count.contains("33"), "{count}");
}
