//! `stoa bench report`, small.

use serde_json::Value;
use stoa_testkit::PostgresServer;

use crate::harness::Place;

#[test]
fn reports_are_measured_and_checked_in_every_mode() {
    let place = Place::new();
    let text = place.ok(&[
        "bench",
        "report",
        "--warehouse",
        "w",
        "--rows",
        "50000",
        "--accounts",
        "500",
        "--mode",
        "prepared,extended,simple",
        "--clients",
        "1,4",
        "--reports",
        "40",
        "--warm-up",
        "0s",
        "--check-every",
        "1",
        "--json",
    ]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["table"]["rows"], 50_000);
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6);
    for run in runs {
        assert_eq!(
            (&run["reports"], &run["failed"], &run["checked"]),
            (&40.into(), &0.into(), &40.into()),
            "{run}"
        );
        assert!(run["reports_per_hour"].as_f64().unwrap() > 0.0);
        assert!(run["p99_us"].as_u64().unwrap() >= run["p50_us"].as_u64().unwrap());
        assert!(run["server_cpu_us_per_report"].as_f64().is_some());
        assert!(run["bytes_read_per_report"].as_f64().is_some());
        assert!(run["server_peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
    }
}

#[test]
fn a_table_of_other_rows_is_noticed() {
    let place = Place::new();
    let generate = ["bench", "generate", "--warehouse", "w", "--rows", "1000", "--accounts", "50"];
    place.ok(&generate);
    let again = place.run(&generate);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("--recreate"), "{}", again.stderr);
    let more = place.run(&["bench", "report", "--warehouse", "w", "--rows", "2000"]);
    assert_eq!(more.code, Some(1));
    assert!(more.stderr.contains("has 1000 rows, not 2000"), "{}", more.stderr);
    // As many rows, but other ones: the check of the answers says so.
    let other = place.run(&[
        "bench",
        "report",
        "--warehouse",
        "w",
        "--rows",
        "1000",
        "--accounts",
        "50",
        "--seed",
        "9",
        "--reports",
        "50",
        "--check-every",
        "1",
        "--clients",
        "1",
        "--warm-up",
        "0s",
    ]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("error: wrong answer: account "), "{}", other.stderr);
    assert_eq!(place.query("SELECT count(*) FROM ad_report"), "1000\n");
}

/// Every answer of a random daemon is right, and nobody sees that one is killed, except those who wait.
#[test]
fn reports_of_a_cluster_survive_a_killed_daemon() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let catalog = postgres.database();
    let size = ["--rows", "20000", "--accounts", "500", "--clients", "3", "--duration", "1s"];
    let arguments = ["bench", "cluster", "--catalog", &catalog, "--dir", "w", "--json"];
    let ran = place.run(&[&arguments[..], &size, &["--check-every", "3"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    for steady in result["steady"].as_array().unwrap() {
        assert!(steady["checked"].as_u64().unwrap() > 0, "{result}");
    }
    let steady = |number: usize| {
        let steady = &result["steady"][number];
        (steady["apart"].as_bool(), steady["daemons"].as_u64())
    };
    let all = [(Some(true), Some(3)), (Some(false), Some(1)), (Some(false), Some(3))];
    assert_eq!([0, 1, 2].map(steady), all, "{result}");
    let changes = result["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2, "{result}");
    assert!(changes.iter().all(|change| change["lost"] == 0), "{result}");
    assert_eq!(changes[0]["repeated"], 0, "joining fails no report: {result}");
    assert!(!place.path("w").exists());
}
