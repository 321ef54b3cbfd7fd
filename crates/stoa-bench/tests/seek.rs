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
    for rules in result.wide().chunks(5) {
        let [apart, split, fixed, told, learnt] = rules else {
            panic!("five rules, not {rules:?}")
        };
        assert_eq!((apart.rule, told.rule), (Rule::NoMerging, Rule::Adaptive));
        assert_eq!((split.rule, learnt.rule), (Rule::Split, Rule::Learnt));
        let best = apart.seconds.min(fixed.seconds).min(split.seconds);
        // Timers count in milliseconds. A plan knows how long requests take on average; with jitter, luck decides as well.
        let luck = 4.0 * told.jitter_ms as f64 / 1e3 * told.stripes as f64;
        for adaptive in [told, learnt] {
            assert!(adaptive.seconds <= 1.05 * best + 0.005 + luck, "{adaptive:?} against {best}");
        }
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
    assert_eq!(json["wide"].as_array().unwrap().len(), 5 * 2 * (8 + 4 + 4 + 4));
}
