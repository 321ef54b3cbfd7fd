//! Three daemons over one catalog in a real PostgreSQL are one server: also while one is killed, one is frozen
//! and one drained.

use std::collections::BTreeSet;

use rustix::process::Signal;
use stoa_testkit::PostgresServer;

use crate::harness::{Place, Server, wait_for};

/// The lines of an answer but for its head.
fn rows(server: &Server, sql: &str) -> Vec<String> {
    let (status, body) = server.post_sql(sql).unwrap_or_else(|| panic!("nobody answers {sql}"));
    assert_eq!(status, 200, "{sql}: {body}");
    body.lines().skip(1).map(str::to_owned).collect()
}

fn sent(server: &Server, sql: &str) {
    rows(server, sql);
}

/// All ids that a daemon shows; none twice.
fn ids(server: &Server) -> BTreeSet<i64> {
    let ids = rows(server, "SELECT id FROM t ORDER BY id");
    let distinct: BTreeSet<i64> = ids.iter().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), distinct.len(), "a row is there twice: {ids:?}");
    distinct
}

fn states(server: &Server) -> Vec<String> {
    rows(server, "SELECT state FROM system.daemons ORDER BY state")
}

fn log_count(server: &Server) -> String {
    rows(server, "SELECT logs FROM system.cluster").concat()
}

#[test]
fn three_daemons_are_one_server() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = || Server::start(&place, &["--catalog", &url]);
    let (one, two, three) = (start(), start(), start());
    sent(&one, "CREATE TABLE t (id bigint, d text)");
    let mut expected = BTreeSet::new();
    for round in 0..10 {
        for (nth, server) in [&one, &two, &three].into_iter().enumerate() {
            let id = round * 10 + nth as i64;
            sent(server, &format!("INSERT INTO t VALUES ({id}, 'x')"));
            expected.insert(id);
            for reader in [&one, &two, &three] {
                assert_eq!(ids(reader), expected, "after {id}");
            }
        }
    }
    // Rows that are in the logs of all daemons, and in no file.
    sent(&two, "DELETE FROM t WHERE id < 30");
    expected.retain(|id| *id >= 30);
    sent(&three, "UPDATE t SET d = 'y' WHERE id % 10 = 1");
    for reader in [&one, &two, &three] {
        assert_eq!(ids(reader), expected);
        assert_eq!(rows(reader, "SELECT count(*) FROM t WHERE d = 'y'"), ["7"]);
    }
    wait_for("all are up", || (states(&one) == ["up"; 3]).then_some(()));
    let listed = place.ok(&["daemons", "list", "--warehouse", "w", "--catalog", &url]);
    assert_eq!(listed.matches(" up ").count(), 3, "{listed}");

    // Killed: its rows stay visible, appends wait until it is dead, its log comes into files.
    sent(&three, "INSERT INTO t VALUES (1000, 'x')");
    expected.insert(1000);
    three.signal(Signal::KILL);
    three.wait();
    assert_eq!(ids(&one), expected);
    sent(&one, "INSERT INTO t VALUES (1001, 'x')");
    expected.insert(1001);
    assert_eq!(ids(&two), expected);
    wait_for("its log is taken over", || (log_count(&one) == "2").then_some(()));
    assert_eq!(states(&one), ["dead", "up", "up"]);
    let three = start();
    assert_eq!(ids(&three), expected);
    wait_for("it is up again", || (states(&one) == ["up"; 3]).then_some(()));

    // Frozen: the others go on without it, and when it wakes it answers nothing.
    sent(&two, "INSERT INTO t VALUES (1002, 'x')");
    expected.insert(1002);
    two.signal(Signal::STOP);
    sent(&one, "INSERT INTO t VALUES (1003, 'x')");
    expected.insert(1003);
    for reader in [&one, &three] {
        assert_eq!(ids(reader), expected);
    }
    wait_for("it is dead", || states(&one).contains(&"dead".to_owned()).then_some(()));
    two.signal(Signal::CONT);
    let (status, log) = two.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("declared this one dead"), "{log}");
    wait_for("its log is taken over", || (log_count(&one) == "2").then_some(()));
    for reader in [&one, &three] {
        assert_eq!(ids(reader), expected);
    }

    // Drained by an operator while it is written to: no request fails.
    let id = rows(&three, "SELECT daemon FROM system.daemons WHERE is_this").concat();
    let drained = place.ok(&["daemons", "drain", &id, "--warehouse", "w", "--catalog", &url]);
    assert!(drained.contains(&id), "{drained}");
    let (status, log) = three.wait();
    assert!(status.success(), "{log}");
    assert_eq!(ids(&one), expected);
    sent(&one, "INSERT INTO t VALUES (1004, 'x')");
    expected.insert(1004);
    assert_eq!(ids(&one), expected);
    for id in rows(&one, "SELECT daemon FROM system.daemons WHERE state = 'dead'") {
        place.ok(&["daemons", "remove", &id, "--warehouse", "w", "--catalog", &url]);
    }
    wait_for("the dead are removed", || (states(&one) == ["up"]).then_some(()));
    let alive = rows(&one, "SELECT daemon FROM system.daemons").concat();
    let refused = place.run(&["daemons", "remove", &alive, "--warehouse", "w", "--catalog", &url]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("is not dead"),
        "{}",
        refused.stderr
    );
    one.signal(Signal::TERM);
    let (status, log) = one.wait();
    assert!(status.success(), "{log}");

    // All in files: a daemon that starts alone has them all.
    let again = start();
    assert_eq!(ids(&again), expected);
}
