//! Merging of range reads, and cold reports, on simulated stores: a smaller table than the command's.
#![allow(clippy::unwrap_used)]

use stoa_bench::AdReportSpec;
use stoa_bench::seek::{Rule, SeekOptions, run};

#[test]
fn the_adaptive_plan_is_never_slower_and_a_cold_report_takes_two_round_trips() {
    let options = SeekOptions {
        columns: 48,
        rows: 8_192,
        report_table: AdReportSpec { rows: 200_000, accounts: 5_000, seed: 3 },
    };
    let result = run(&options, &mut |_| {}).unwrap();
    for rules in result.wide().chunks(3) {
        let [apart, fixed, adaptive] = rules else { panic!("three rules, not {rules:?}") };
        assert_eq!((apart.rule, adaptive.rule), (Rule::NoMerging, Rule::Adaptive));
        let best = apart.seconds.min(fixed.seconds);
        // Timers count in milliseconds.
        assert!(adaptive.seconds <= best + 0.005, "{adaptive:?} against {best}");
    }
    for reports in result.cold() {
        assert!(reports.round_trips_max <= 2, "{reports:?}");
        if reports.parallelism > 1 {
            let two_round_trips = 2.0 * reports.latency_ms as f64 / 1e3;
            let flow = reports.bytes_read_mean / reports.bandwidth;
            assert!(reports.seconds_mean <= two_round_trips + flow + 0.005, "{reports:?}");
        }
        assert!(reports.bytes_read_mean < reports.file_bytes as f64, "{reports:?}");
    }
    assert!(result.table().contains("no merging"));
    let json: serde_json::Value = serde_json::from_str(&result.json().unwrap()).unwrap();
    assert_eq!(json["wide"].as_array().unwrap().len(), 48);
}
