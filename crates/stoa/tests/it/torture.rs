//! Servers that are killed while they are written to.

use serde_json::Value;
use stoa_testkit::PostgresServer;

use crate::harness::Place;

#[test]
fn killed_servers_lose_nothing_that_was_acknowledged() {
    let place = Place::new();
    let ran = place.run(&[
        "bench",
        "torture",
        "--kills",
        "20",
        "--seed",
        "7",
        "--dir",
        "warehouse",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(result["deaths"].as_u64().unwrap() >= 20);
    let by_itself = result["died_at"].as_object().unwrap();
    assert!(!by_itself.is_empty(), "no fail point was reached: {result}");
    assert!(result["killed_serving"].as_u64().unwrap() > 0, "{result}");
    assert!(result["parcels"].as_u64().unwrap() > 20, "{result}");
    assert!(result["checks"].as_u64().unwrap() >= 20, "{result}");
    assert!(!place.path("warehouse").exists());
}

/// What one daemon has acknowledged, all show, although one at a time is hurt.
#[test]
fn hurt_daemons_lose_nothing_that_was_acknowledged() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let catalog = postgres.database();
    let ran = place.run(&[
        "bench",
        "torture",
        "--daemons",
        "3",
        "--catalog",
        &catalog,
        "--kills",
        "6",
        "--seed",
        "7",
        "--dir",
        "warehouse",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["faults"], 6, "{result}");
    for what in ["killed", "failed", "parcels", "statements"] {
        assert!(result[what].as_u64().unwrap() > 0, "{what}: {result}");
    }
    assert!(result["frozen"][0].as_u64().unwrap() > 0, "{result}");
    assert!(result["checks"].as_u64().unwrap() > 60, "{result}");
    assert!(!place.path("warehouse").exists());
}

/// What sessions on two servers saw of each other's statements fits together, also over kills.
#[test]
fn histories_of_sessions_can_be_explained() {
    let place = Place::new();
    let arguments =
        ["bench", "torture", "--histories", "--statements", "600", "--kills", "2", "--plain"];
    let ran =
        place.run(&[&arguments[..], &["--seed", "7", "--dir", "warehouse", "--json"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(result["statements"].as_u64().unwrap() >= 600, "{result}");
    assert_eq!(result["kills"], 2, "{result}");
    for what in ["rows_read", "increments", "rows_named"] {
        assert!(result[what].as_u64().unwrap() > 0, "{what}: {result}");
    }
    assert!(!place.path("warehouse").exists());
}

#[test]
fn a_fail_point_that_cannot_be_read_is_named() {
    let place = Place::new();
    let mut command = place.command(&["server"]);
    let output = command.env("STOA_FAILPOINTS", "log.written=explode").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("STOA_FAILPOINTS") && stderr.contains("log.written=explode"),
        "{stderr}"
    );
}
