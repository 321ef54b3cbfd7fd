//! `stoa bench report`, small.

use serde_json::Value;

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
