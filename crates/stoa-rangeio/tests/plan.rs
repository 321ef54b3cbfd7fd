//! A plan covers its ranges exactly once and respects its caps.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;
use stoa_rangeio::{PlanOptions, PlannedRead, StoreProfile, plan};

/// Which bytes below `end` some range holds.
fn bitmap<'a>(ranges: impl Iterator<Item = &'a Range<u64>>, end: usize) -> Vec<u8> {
    let mut bytes = vec![0; end];
    for range in ranges {
        bytes[range.start as usize..range.end as usize].iter_mut().for_each(|count| *count += 1);
    }
    bytes
}

fn check(ranges: &[Range<u64>], options: &PlanOptions) -> Result<Vec<PlannedRead>, TestCaseError> {
    let reads = plan(ranges, options);
    let end = ranges.iter().map(|range| range.end).max().unwrap_or(0) as usize;
    let wanted: Vec<u8> = bitmap(ranges.iter(), end).iter().map(|&n| n.min(1)).collect();
    let parts = bitmap(reads.iter().flat_map(|read| &read.parts), end);
    prop_assert_eq!(parts, wanted);
    let mut needed = 0;
    let mut extra = 0;
    for read in &reads {
        prop_assert!(read.range.start < read.range.end);
        prop_assert!(read.read_bytes() <= options.max_read_bytes.max(1));
        prop_assert_eq!(read.parts.first().unwrap().start, read.range.start);
        prop_assert_eq!(read.parts.last().unwrap().end, read.range.end);
        prop_assert!(read.parts.windows(2).all(|pair| pair[0].end < pair[1].start));
        needed += read.needed_bytes();
        extra += read.read_bytes() - read.needed_bytes();
    }
    prop_assert!(reads.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    prop_assert!(extra == 0 || extra as f64 <= options.max_over_read * needed as f64);
    Ok(reads)
}

fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
    prop::collection::vec((0u64..2000, 0u64..120).prop_map(|(at, len)| at..at + len), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fixed_plan_covers_and_respects_its_caps(
        ranges in ranges(),
        min_seek_size in 0u64..200,
        max_read_bytes in 0u64..400,
        max_over_read in prop_oneof![Just(f64::INFINITY), Just(0.0), 0.0..2.0],
    ) {
        let options =
            PlanOptions { min_seek_size, max_read_bytes, max_over_read, ..PlanOptions::memory() };
        let reads = check(&ranges, &options)?;
        for pair in reads.windows(2) {
            let gap = pair[1].range.start - pair[0].range.end;
            let merged = pair[1].range.end - pair[0].range.start;
            // Nothing that should have been merged was left apart.
            prop_assert!(
                gap > min_seek_size || merged > max_read_bytes || max_over_read.is_finite()
            );
        }
    }

    #[test]
    fn an_adaptive_plan_covers_and_respects_its_caps(
        ranges in ranges(),
        scale in prop::sample::select(vec![1u64, 1000, 100_000]),
        latency_ms in 0u64..200,
        bandwidth in 1e3..1e9f64,
        parallelism in 1usize..20,
        request_us in 0u64..5000,
        max_read_bytes in prop_oneof![Just(u64::MAX), 1u64..100_000],
        max_over_read in prop_oneof![Just(f64::INFINITY), Just(0.0), 0.0..10.0],
    ) {
        let scaled: Vec<Range<u64>> = ranges.iter().map(|r| r.start * scale..r.end * scale).collect();
        let profile = StoreProfile {
            latency: Duration::from_millis(latency_ms),
            bandwidth,
            bandwidth_total: bandwidth * 4.0,
            parallelism,
            request_price: Duration::from_micros(request_us),
        };
        // Few bytes a read would make millions of reads.
        let max_read_bytes = max_read_bytes.max(scale * 10);
        let options = PlanOptions {
            max_read_bytes, max_over_read, profile: Some(profile), ..PlanOptions::object_store()
        };
        if scale == 1 {
            check(&ranges, &options)?;
        } else {
            let reads = plan(&scaled, &options);
            let needed: u64 = reads.iter().map(PlannedRead::needed_bytes).sum();
            let read: u64 = reads.iter().map(PlannedRead::read_bytes).sum();
            prop_assert!(read == needed || (read - needed) as f64 <= max_over_read * needed as f64);
            prop_assert!(reads.iter().all(|read| read.read_bytes() <= max_read_bytes));
            let parts: Vec<Range<u64>> = reads.into_iter().flat_map(|read| read.parts).collect();
            let fixed = PlanOptions { max_read_bytes: u64::MAX, ..PlanOptions::memory() };
            prop_assert_eq!(plan(&parts, &fixed), plan(&scaled, &fixed));
        }
    }
}

#[test]
fn orc_1136_examples() {
    let check = |min_seek_size, ranges: &[Range<u64>], expected: &[Range<u64>]| {
        let reads = plan(ranges, &PlanOptions::orc_1136(min_seek_size, 0.0));
        let got: Vec<Range<u64>> = reads.into_iter().map(|read| read.range).collect();
        assert_eq!(got, expected, "{ranges:?} at {min_seek_size}");
    };
    check(0, &[0..10, 10..20, 21..30], &[0..20, 21..30]);
    check(1, &[21..30, 0..10, 10..20], &[0..30]);
    check(5, &[0..10, 15..20, 26..30], &[0..20, 26..30]);
    check(5, &[0..100, 20..30, 105..110], &[0..110]);
    check(5, &[], &[]);
    // A read stays below 2 GiB.
    let gib = 1 << 30;
    check(100, &[0..gib, gib..2 * gib - 1, 2 * gib..3 * gib], &[0..2 * gib - 1, 2 * gib..3 * gib]);
}
