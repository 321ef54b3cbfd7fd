//! The reader returns what was asked for, whatever the plan and whatever the store does.
#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use proptest::prelude::*;
use stoa_env::timer;
use stoa_error::ErrorKind;
use stoa_rangeio::throttle::{Throttle, ThrottledStore};
use stoa_rangeio::{HedgeOptions, Pin, RangeReader, ReaderOptions, StoreProfile};

const PATH: &str = "file";

fn content(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

async fn store(bytes: u32) -> Arc<dyn ObjectStore> {
    let store = InMemory::new();
    store.put(&Path::from(PATH), content(bytes).into()).await.unwrap();
    Arc::new(store)
}

async fn slow_store(bytes: u32, throttle: Throttle) -> Arc<ThrottledStore> {
    Arc::new(ThrottledStore::new(store(bytes).await, throttle))
}

/// Every range is whole in one chunk, with the right bytes.
fn check(chunks: &[(u64, Bytes)], ranges: &[Range<u64>], content: &[u8]) {
    assert!(chunks.windows(2).all(|pair| pair[0].0 + pair[0].1.len() as u64 <= pair[1].0));
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let (offset, bytes) = chunks
            .iter()
            .find(|(at, bytes)| *at <= range.start && range.end <= at + bytes.len() as u64)
            .unwrap_or_else(|| panic!("{range:?} is not inside one chunk"));
        let got = &bytes[(range.start - offset) as usize..(range.end - offset) as usize];
        assert_eq!(got, &content[range.start as usize..range.end as usize], "{range:?}");
    }
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_range_comes_back_whole(
        ranges in prop::collection::vec((0u64..9000, 0u64..1000).prop_map(|(at, n)| at..at + n), 0..30),
        preset in 0..3usize,
        min_seek_size in 0u64..500,
        max_read_bytes in 1u64..3000,
        tolerance in 0.0..3.0f64,
        adaptive in any::<bool>(),
        parallelism in 1usize..8,
        failure_every in prop::sample::select(vec![0u64, 3, 7]),
        straggler_every in prop::sample::select(vec![0u64, 4]),
    ) {
        let mut options =
            [ReaderOptions::memory(), ReaderOptions::local_file(), ReaderOptions::object_store()]
                [preset]
                .clone();
        options.plan.min_seek_size = min_seek_size;
        options.plan.max_read_bytes = max_read_bytes;
        options.plan.tolerance = tolerance;
        options.plan.profile = adaptive.then(StoreProfile::default);
        options.parallelism = parallelism;
        options.retries = 100;
        let throttle = Throttle {
            latency: Duration::from_millis(10),
            bandwidth: Some(1e6),
            straggler_every,
            straggle: Duration::from_secs(10),
            failure_every: if options.one_call { 0 } else { failure_every },
            ..Throttle::default()
        };
        paused().block_on(async {
            let reader = RangeReader::new(slow_store(10_000, throttle).await, options);
            let chunks = reader.read(&Path::from(PATH), &ranges).await.unwrap();
            check(&chunks, &ranges, &content(10_000));
            let counts = reader.metrics().counts();
            assert!(counts.bytes_read >= counts.bytes_needed);
            assert_eq!(counts.calls, 1);
        });
    }
}

#[tokio::test]
async fn local_files_are_read_in_one_call() {
    let folder = std::env::temp_dir().join(format!("stoa-rangeio-{}", stoa_env::random::uuid()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(PATH), content(300_000)).unwrap();
    let store = Arc::new(LocalFileSystem::new_with_prefix(&folder).unwrap());
    let reader = RangeReader::new(store, ReaderOptions::local_file());
    let ranges = [0..10, 70_000..80_000, 200_000..300_000];
    let chunks = reader.read(&Path::from(PATH), &ranges).await.unwrap();
    check(&chunks, &ranges, &content(300_000));
    assert_eq!(reader.metrics().counts().requests, 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(start_paused = true)]
async fn tolerance_decides_what_is_kept() {
    let ranges = [0..100, 300..400];
    for (tolerance, expected) in [(0.99, vec![(0, 100), (300, 100)]), (1.0, vec![(0, 400)])] {
        let mut options = ReaderOptions::object_store();
        options.plan.profile = None;
        options.plan.tolerance = tolerance;
        let reader = RangeReader::new(store(1000).await, options);
        let chunks = reader.read(&Path::from(PATH), &ranges).await.unwrap();
        let got: Vec<(u64, usize)> = chunks.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(got, expected, "tolerance {tolerance}");
        let counts = reader.metrics().counts();
        assert_eq!((counts.requests, counts.bytes_needed, counts.bytes_read), (1, 200, 400));
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_requests_run_at_once() {
    let throttle = Throttle { latency: Duration::from_millis(100), ..Throttle::default() };
    let ranges: Vec<Range<u64>> = (0..10).map(|at| at * 100..at * 100 + 10).collect();
    let mut options = ReaderOptions::object_store();
    options.plan.profile = None;
    options.plan.min_seek_size = 0;
    for (parallelism, in_flight_max, rounds) in
        [(1, 256, 10), (5, 256, 2), (10, 5, 2), (10, 256, 1)]
    {
        let options = ReaderOptions { parallelism, in_flight_max, ..options.clone() };
        let reader = RangeReader::new(slow_store(2000, throttle).await, options);
        let started = timer::now();
        reader.read(&Path::from(PATH), &ranges).await.unwrap();
        let took = started.elapsed().as_millis();
        assert!((rounds * 100..rounds * 100 + 50).contains(&took), "{parallelism}: {took} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_straggler_is_asked_twice() {
    let throttle = Throttle {
        latency: Duration::from_millis(30),
        straggler_every: 5,
        straggle: Duration::from_secs(60),
        ..Throttle::default()
    };
    let mut options = ReaderOptions::object_store();
    options.hedge = Some(HedgeOptions { share_max: 0.3, ..HedgeOptions::default() });
    let reader = RangeReader::new(slow_store(1000, throttle).await, options);
    let started = timer::now();
    for _ in 0..20 {
        reader.read_one(&Path::from(PATH), 0..10).await.unwrap();
    }
    let counts = reader.metrics().counts();
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert!((4..=6).contains(&counts.hedges), "{counts:?}");
    // Hedges have a limit: a store that is slow altogether is not asked twice for everything.
    let all_slow = Throttle { latency: Duration::from_secs(5), ..Throttle::default() };
    let reader = RangeReader::new(slow_store(1000, all_slow).await, ReaderOptions::object_store());
    let mut hedges = 0;
    for _ in 0..50 {
        // Also where each read has counters of its own, as queries and files have.
        let own = reader.clone().with_metrics(Arc::default());
        own.read_one(&Path::from(PATH), 0..10).await.unwrap();
        hedges += own.metrics().counts().hedges;
    }
    assert!((1..=6).contains(&hedges), "{hedges}");
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_then_reported() {
    let once = Throttle { failure_every: 2, ..Throttle::default() };
    let reader = RangeReader::new(slow_store(1000, once).await, ReaderOptions::object_store());
    for _ in 0..10 {
        reader.read_one(&Path::from(PATH), 5..50).await.unwrap();
    }
    let counts = reader.metrics().counts();
    assert_eq!((counts.requests, counts.retries), (19, 9));

    let always = Throttle { failure_every: 1, ..Throttle::default() };
    let store = slow_store(1000, always).await;
    let reader = RangeReader::new(store.clone(), ReaderOptions::object_store());
    let error = reader.read_one(&Path::from(PATH), 5..50).await.unwrap_err();
    assert_eq!((error.kind(), store.requests()), (ErrorKind::Unavailable, 4));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_said_at_once() {
    for options in
        [ReaderOptions::memory(), ReaderOptions::local_file(), ReaderOptions::object_store()]
    {
        let store = slow_store(1000, Throttle::default()).await;
        let reader = RangeReader::new(store, options);
        let error = reader.read_one(&Path::from("other"), 0..10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = reader.read_one(&Path::from(PATH), 990..1010).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        assert!(reader.read_one(&Path::from(PATH), 10..10).await.unwrap().is_empty());
        assert!(reader.read(&Path::from(PATH), &[]).await.unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn measured_latency_changes_the_plan() {
    let throttle =
        Throttle { latency: Duration::from_millis(1), bandwidth: Some(1e6), ..Throttle::default() };
    let mut options = ReaderOptions::object_store();
    options.parallelism = 1;
    if let Some(profile) = &mut options.plan.profile {
        profile.request_price = Duration::ZERO;
    }
    let reader = RangeReader::new(slow_store(4 << 20, throttle).await, options);
    let ranges: Vec<Range<u64>> = (0..4).map(|at| at << 20..(at << 20) + (512 << 10)).collect();
    assert_eq!(reader.plan(&ranges).len(), 1, "the preset takes the store for S3");
    for _ in 0..50 {
        reader.read(&Path::from(PATH), &ranges[..1]).await.unwrap();
    }
    assert_eq!(reader.plan(&ranges).len(), 4, "{:?}", reader.profile());
}

#[tokio::test]
async fn a_pinned_reader_refuses_an_object_that_was_overwritten() {
    for options in [ReaderOptions::memory(), ReaderOptions::object_store()] {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let path = Path::from("x");
        store.put(&path, vec![1_u8; 100].into()).await.unwrap();
        let pin = Arc::new(Pin::default());
        let unpinned = RangeReader::new(store.clone(), options);
        let reader = unpinned.clone().with_pin(pin.clone());
        assert_eq!(pin.tag(), None);
        reader.read_one(&path, 0..10).await.unwrap();
        reader.read_one(&path, 10..20).await.unwrap();
        assert!(pin.tag().is_some() && !pin.is_broken());
        store.put(&path, vec![2_u8; 100].into()).await.unwrap();
        let error = reader.read_one(&path, 0..10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(pin.is_broken());
        assert_eq!(unpinned.read_one(&path, 0..10).await.unwrap(), vec![2_u8; 10]);
    }
}
