//! What clients see when the disk under the commit log fails, and what is there afterwards.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Place, Server, wait_for};

fn insert(server: &Server, id: i64) -> (u16, String) {
    server.post_sql(&format!("INSERT INTO t VALUES ({id}, repeat('x', 2000))")).unwrap()
}

fn count(server: &Server) -> String {
    let (status, body) =
        server.post_sql("SELECT count(*) AS n, count(DISTINCT id) AS ids FROM t").unwrap();
    assert_eq!(status, 200, "{body}");
    body
}

fn code(body: &str) -> String {
    let problem: Value = serde_json::from_str(body).unwrap_or_default();
    problem["error"]["code"].as_str().unwrap_or(body).to_owned()
}

fn restarted(place: &Place, server: Server) -> Server {
    server.signal(Signal::KILL);
    server.wait();
    Server::start(place, &[])
}

/// A sync that fails at the fourth insert: written, but nobody knows whether it will stay.
#[test]
fn a_failed_sync_stops_writes_but_not_reports() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    assert_eq!(server.post_sql("CREATE TABLE t (id bigint, v text)").unwrap().0, 200);
    server.signal(Signal::TERM);
    server.wait();
    let mut command = place.command(&[
        "server",
        "--warehouse",
        "w",
        "--http-port",
        "0",
        "--pg-port",
        "0",
        "--flight-port",
        "0",
    ]);
    command.env("STOA_FAILPOINTS", "log.synced=error@4");
    let server = Server::run(command);
    for id in 0..3 {
        assert_eq!(insert(&server, id).0, 200);
    }
    let (status, in_doubt) = insert(&server, 3);
    assert_eq!((status, code(&in_doubt).as_str()), (503, "08007"), "{in_doubt}");
    assert!(in_doubt.contains("\"retryable\":false"), "a repetition may double it: {in_doubt}");
    let (status, refused) = insert(&server, 4);
    assert_eq!((status, code(&refused).as_str()), (503, "58030"), "{refused}");
    assert!(count(&server).contains("3,3"), "acknowledged rows are still read");
    let metrics = server.get("/metrics").unwrap().1;
    assert!(metrics.contains("stoa_log_stopped 1"), "{metrics}");
    assert!(metrics.contains("stoa_process_ready 0"), "{metrics}");
    let (status, reason) = server.get("/ready").unwrap();
    assert_eq!(status, 503);
    assert!(reason.contains("the commit log has stopped"), "{reason}");
    let status = server.get("/v1/status").unwrap().1;
    assert!(status.contains("\"ready\":false") && status.contains("log has stopped"), "{status}");
    wait_for("the alert is on", || {
        let metrics = server.get("/metrics").unwrap().1;
        metrics.contains("stoa_alert_on{alert=\"log_stopped\",about=\"\"} 1").then_some(())
    });

    let server = restarted(&place, server);
    let after = count(&server);
    assert!(after.contains("3,3") || after.contains("4,4"), "{after}");
    assert_eq!(insert(&server, 5).0, 200);
    assert_eq!(server.get("/ready").unwrap().0, 200);
}

/// The system refuses to make a file longer: what a full disk does, without a disk to fill.
#[test]
fn a_disk_that_takes_no_more_loses_nothing() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    assert_eq!(server.post_sql("CREATE TABLE t (id bigint, v text)").unwrap().0, 200);
    server.signal(Signal::TERM);
    server.wait();
    let mut command = place.command_of(Path::new("sh"));
    command.args(["-c", "trap '' XFSZ; ulimit -f 256; exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_stoa"), "server", "--warehouse", "w"]);
    command.args([
        "--http-port",
        "0",
        "--pg-port",
        "0",
        "--flight-port",
        "0",
        "--hive-port",
        "none",
    ]);
    let server = Server::run(command);
    let mut acknowledged = 0;
    let refused = loop {
        let (status, body) = insert(&server, acknowledged);
        if status != 200 {
            assert_eq!(status, 503, "{body}");
            break body;
        }
        acknowledged += 1;
        assert!(acknowledged < 1000, "no limit was met");
    };
    assert!(["08007", "58030", "53100"].contains(&code(&refused).as_str()), "{refused}");
    assert!(refused.contains("_log"), "it names the place: {refused}");
    assert!(acknowledged > 10, "{acknowledged}");
    assert!(count(&server).contains(&format!("{acknowledged},{acknowledged}")));

    // With room again, all of it is there, and writes are taken.
    let server = restarted(&place, server);
    let after = count(&server);
    let possible = [acknowledged, acknowledged + 1].map(|n| format!("{n},{n}"));
    assert!(possible.iter().any(|rows| after.contains(rows)), "{after}, not {possible:?}");
    assert_eq!(insert(&server, 100_000).0, 200);
}
