//! The plan that costs least on a given store.
//!
//! Merging saves time only where ranges outnumber the requests that run at once (K); below that
//! it makes the longest read longer. So no fixed gap is right everywhere. Here a handful of
//! candidate plans, from "nothing merged" to "everything that may be", is costed:
//!
//! - *time*: reads of `latency + bytes / bandwidth` seconds, longest first, on K connections, but
//!   not below all bytes over the total bandwidth;
//! - *money*, in seconds: the price of each request, and the share of the network card that the
//!   bytes take away from others.
//!
//! On one connection this is the rule "merge if gap < latency × bandwidth" (ORC-1136's 4 MiB on
//! its authors' store).

use std::collections::BinaryHeap;
use std::ops::Range;

use crate::StoreProfile;
use crate::pack::{PlannedRead, allowed_gap, gaps, pack, pack_sizes};

/// Gaps that are always read over: the bytes cost less than the work of one more request.
const FREE_GAP_BYTES: u64 = 64 << 10;
/// Ranges are not split into pieces smaller than this.
const PIECE_BYTES_MIN: u64 = 256 << 10;
/// Ranges beyond which only the cheap costing is used, to bound the planning time.
const EXACT_READS_MAX: usize = 4096;

/// Chooses a plan for `wanted` (sorted, disjoint).
pub(crate) fn plan(
    wanted: &[Range<u64>],
    profile: &StoreProfile,
    max_read_bytes: u64,
    max_over_read: f64,
) -> Vec<PlannedRead> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut best = (f64::INFINITY, 0, max_read_bytes);
    let mut sizes = Vec::with_capacity(wanted.len());
    for gap in gap_candidates(wanted, profile, max_over_read) {
        for size in size_candidates(wanted, gap, profile, max_read_bytes) {
            pack_sizes(wanted, gap, size, &mut sizes);
            let cost = cost(&mut sizes, profile);
            if cost < best.0 {
                best = (cost, gap, size);
            }
        }
    }
    let (_, gap, size) = best;
    pack(wanted, gap, size)
}

/// Seconds until reads of `sizes` bytes are all there, on `profile`; sorts `sizes`.
///
/// Reads start longest first, each on the connection that is free first.
fn makespan(sizes: &mut [u64], profile: &StoreProfile) -> f64 {
    let connections = profile.parallelism.max(1);
    let bytes: u64 = sizes.iter().sum();
    let floor = bytes as f64 / profile.bandwidth_total.max(1.0);
    if sizes.len() <= connections {
        let longest = sizes.iter().max();
        return longest.map_or(0.0, |&size| profile.request_seconds(size)).max(floor);
    }
    let seconds = if connections == 1 || sizes.len() > EXACT_READS_MAX {
        let busy: f64 = sizes.iter().map(|&size| profile.request_seconds(size)).sum();
        busy / connections as f64
    } else {
        let mut free_at: BinaryHeap<std::cmp::Reverse<Micros>> =
            (0..connections).map(|_| std::cmp::Reverse(0)).collect();
        let mut last = 0;
        sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
        for &mut size in sizes {
            let std::cmp::Reverse(start) = free_at.pop().unwrap_or(std::cmp::Reverse(0));
            let end = start + (profile.request_seconds(size) * 1e6) as Micros;
            last = last.max(end);
            free_at.push(std::cmp::Reverse(end));
        }
        last as f64 / 1e6
    };
    seconds.max(floor)
}

type Micros = u64;

/// Time and money of reads of `sizes` bytes, in seconds.
fn cost(sizes: &mut [u64], profile: &StoreProfile) -> f64 {
    let bytes: u64 = sizes.iter().sum();
    makespan(sizes, profile)
        + sizes.len() as f64 * profile.request_price.as_secs_f64()
        + bytes as f64 / profile.bandwidth_total.max(1.0)
}

/// Gaps worth trying, ascending: the free one, and from there in fourfold steps to the break-even
/// gap, each within the cap on extra bytes.
fn gap_candidates(wanted: &[Range<u64>], profile: &StoreProfile, max_over_read: f64) -> Vec<u64> {
    let price_gap = profile.request_price.as_secs_f64() * profile.bandwidth_total;
    let widest = profile.break_even_gap().max(price_gap as u64);
    let mut gaps: Vec<u64> = gaps(wanted).filter(|gap| *gap <= widest).collect();
    gaps.sort_unstable();
    let mut candidates = vec![0, FREE_GAP_BYTES.min(widest)];
    let mut step = FREE_GAP_BYTES * 4;
    while step < widest {
        candidates.push(step);
        step *= 4;
    }
    candidates.push(widest);
    // Only gaps that occur make a difference.
    for candidate in &mut candidates {
        let occurs = gaps.partition_point(|gap| gap <= candidate);
        let nearest = occurs.checked_sub(1).and_then(|at| gaps.get(at)).copied().unwrap_or(0);
        *candidate = allowed_gap(wanted, nearest, max_over_read);
    }
    candidates.dedup();
    candidates
}

/// Sizes of reads worth trying under `gap`: as large as allowed, and such that the bytes spread
/// over the connections in one, two or more rounds.
fn size_candidates(
    wanted: &[Range<u64>],
    gap: u64,
    profile: &StoreProfile,
    max_read_bytes: u64,
) -> Vec<u64> {
    let connections = profile.parallelism.max(1) as u64;
    let needed: u64 = wanted.iter().map(|range| range.end - range.start).sum();
    let bytes = needed + gaps(wanted).filter(|found| *found <= gap).sum::<u64>();
    let mut sizes = vec![max_read_bytes];
    if connections > 1 {
        // A little more than an equal share, because ranges do not fill reads exactly.
        for (rounds, eighths) in [(1, 8), (1, 9), (1, 10), (2, 8), (2, 9), (4, 9)] {
            let share = bytes.div_ceil(connections * rounds).saturating_mul(eighths) / 8;
            sizes.push(share.max(PIECE_BYTES_MIN).min(max_read_bytes));
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn profile(latency_ms: u64, parallelism: usize) -> StoreProfile {
        StoreProfile {
            latency: Duration::from_millis(latency_ms),
            bandwidth: 90e6,
            bandwidth_total: 1e10,
            parallelism,
            request_price: Duration::ZERO,
        }
    }

    fn every_second(count: u64, bytes: u64) -> Vec<Range<u64>> {
        (0..count).map(|at| at * 2 * bytes..(at * 2 + 1) * bytes).collect()
    }

    #[test]
    fn one_connection_merges_below_the_break_even_gap() {
        let one = profile(30, 1);
        assert_eq!(plan(&every_second(64, 2 << 20), &one, 1 << 30, 8.0).len(), 1);
        assert_eq!(plan(&every_second(64, 4 << 20), &one, 1 << 30, 8.0).len(), 64);
    }

    #[test]
    fn many_connections_split_the_work_evenly() {
        let ten = profile(30, 10);
        let reads = plan(&every_second(64, 512 << 10), &ten, 1 << 30, 8.0);
        assert!((9..=10).contains(&reads.len()), "{}", reads.len());
        // As many ranges as connections: merging saves nothing.
        assert_eq!(plan(&every_second(10, 512 << 10), &ten, 1 << 30, 8.0).len(), 10);
        // One large range is cut up.
        let whole = 0..64 << 20;
        assert_eq!(plan(std::slice::from_ref(&whole), &ten, 1 << 30, 8.0).len(), 10);
    }

    #[test]
    fn dear_requests_are_saved() {
        let mut dear = profile(30, 10);
        dear.request_price = Duration::from_millis(200);
        let reads = plan(&every_second(10, 64 << 10), &dear, 1 << 30, 8.0);
        assert_eq!(reads.len(), 1);
    }

    #[test]
    fn makespan_is_the_schedule_of_the_connections() {
        let check = |sizes: &[u64], profile: &StoreProfile, expected: f64| {
            let got = makespan(&mut sizes.to_vec(), profile);
            assert!((got - expected).abs() < 1e-4, "{got}, expected {expected}");
        };
        let two = profile(100, 2);
        check(&[], &two, 0.0);
        check(&[9_000_000], &two, 0.2);
        check(&[9_000_000, 0, 0], &two, 0.2);
        check(&[0, 0, 9_000_000], &two, 0.2);
        check(&[0, 0, 9_000_000], &profile(100, 1), 0.4);
    }
}
