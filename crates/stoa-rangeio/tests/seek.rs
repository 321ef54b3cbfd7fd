//! ORC-1136's experiment on a throttled store: 128 columns of 65,536 longs, all or every second
//! one. The adaptive plan is never slower than the best fixed rule. Time is tokio's, paused: the
//! figures are exact and take no time.
#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use stoa_env::timer;
use stoa_rangeio::throttle::{Throttle, ThrottledStore};
use stoa_rangeio::{PlanOptions, RangeReader, ReaderOptions, StoreProfile};

const COLUMNS: u64 = 128;
const COLUMN_BYTES: u64 = 65_536 * 9;

/// (seconds, requests) of reading `ranges` under `plan`.
async fn run(plan: PlanOptions, profile: StoreProfile, ranges: &[Range<u64>]) -> (f64, u64) {
    let inner = Arc::new(InMemory::new());
    let path = Path::from("wide.orc");
    inner.put(&path, vec![0; (COLUMNS * COLUMN_BYTES) as usize].into()).await.unwrap();
    let throttle = Throttle {
        latency: profile.latency,
        bandwidth: Some(profile.bandwidth),
        bandwidth_total: Some(profile.bandwidth_total),
        ..Throttle::default()
    };
    let options = ReaderOptions {
        plan,
        parallelism: profile.parallelism,
        hedge: None,
        ..ReaderOptions::object_store()
    };
    let reader = RangeReader::new(Arc::new(ThrottledStore::new(inner, throttle)), options);
    let started = timer::now();
    reader.read(&path, ranges).await.unwrap();
    (started.elapsed().as_secs_f64(), reader.metrics().counts().requests)
}

#[tokio::test(start_paused = true)]
async fn adaptive_is_never_slower_than_the_best_fixed_rule() {
    for every in [1, 2] {
        let ranges: Vec<Range<u64>> = (0..COLUMNS)
            .step_by(every)
            .map(|column| column * COLUMN_BYTES..(column + 1) * COLUMN_BYTES - 1)
            .collect();
        for latency_ms in [30, 80] {
            for bandwidth in [50e6, 90e6, 100e6] {
                for parallelism in [1, 10] {
                    let profile = StoreProfile {
                        latency: Duration::from_millis(latency_ms),
                        bandwidth,
                        parallelism,
                        ..StoreProfile::default()
                    };
                    let unmerged = PlanOptions::orc_1136(0, 0.0);
                    let orc_1136 = PlanOptions::orc_1136(4 << 20, 10.0);
                    let adaptive =
                        PlanOptions { profile: Some(profile), ..PlanOptions::object_store() };
                    let (apart, _) = run(unmerged, profile, &ranges).await;
                    let (merged, _) = run(orc_1136, profile, &ranges).await;
                    let (chosen, requests) = run(adaptive, profile, &ranges).await;
                    let row = format!(
                        "every {every}, {latency_ms} ms, {bandwidth} B/s, K {parallelism}: \
                         apart {apart:.3}, merged {merged:.3}, adaptive {chosen:.3} ({requests})"
                    );
                    println!("{row}");
                    // Timers count in milliseconds.
                    assert!(chosen <= apart.min(merged) + 0.005, "{row}");
                    if parallelism == 1 && latency_ms == 80 && bandwidth == 50e6 && every == 2 {
                        assert!(chosen <= 0.35 * apart, "{row}");
                    }
                }
            }
        }
    }
}
