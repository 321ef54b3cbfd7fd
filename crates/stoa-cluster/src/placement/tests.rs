//! Golden values, bounds, and how many buckets move.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::LogId;

const TABLE: TableId = TableId(*b"0123456789abcdef");

const LOG_GOLDEN: [u64; 5] = [1, 5, 3, 2, 4];

const PLACEMENT_GOLDEN: &str = "2125215313424355223522451515544445344114211345523123452154134212";

/// Buckets per daemon: fewer would make the luck of single daemons outweigh the bound.
const PER_DAEMON: u32 = 256;

fn daemons(count: u64) -> Vec<Candidate> {
    (1..=count)
        .map(|id| Candidate { daemon: DaemonId::from_bits(id * 0x9e37), weight: 100 })
        .collect()
}

/// Quantiles are nearly, not exactly, of one size.
fn buckets(count: u32) -> Vec<Bucket> {
    let bytes = |number: u32| 900 + u64::from(number.wrapping_mul(2_654_435_761) >> 24);
    (0..count).map(|number| Bucket { number, since: 1, bytes: bytes(number) }).collect()
}

/// How often buckets moved, as a multiple of 1/`count`.
fn moved_share(before: &Placement, after: &Placement, count: u64) -> f64 {
    let moved = before.first_homes().zip(after.first_homes()).filter(|(old, new)| old != new);
    moved.count() as f64 * count as f64 / before.homes.len() as f64
}

fn loads(placement: &Placement, buckets: &[Bucket]) -> BTreeMap<DaemonId, u64> {
    let bytes: BTreeMap<_, _> =
        buckets.iter().map(|bucket| (bucket.number, bucket.bytes)).collect();
    let mut loads = BTreeMap::new();
    for (bucket, home) in placement.first_homes() {
        *loads.entry(home).or_default() += bytes[&bucket];
    }
    loads
}

/// A change of any of these values empties the caches of every cluster that is upgraded.
#[test]
fn golden_values() {
    let key = KeyHash::of_bucket(TABLE, 7);
    let id = DaemonId::from_bits(0x0123_4567_89ab_cdef);
    assert_eq!(key, KeyHash::of_bucket(TABLE, 7));
    assert_eq!(format!("{key:x?}"), "KeyHash(843fed6a0a812434)");
    assert_eq!(daemon_digest(id), 0x0710_7642_f4b1_32ea);
    let hash = key.with(daemon_digest(id));
    assert_eq!(hash, 0xcf4e_0764_62f2_649d);
    assert_eq!(negative_log2(hash), 0x004d_ec85_96b6_7bea);
    let ranked = rank(key, &daemons(7), 7);
    let ranked: Vec<_> = ranked.iter().map(|daemon| daemon.bits() / 0x9e37).collect();
    assert_eq!(ranked, [3, 6, 2, 5, 4, 1, 7]);
    let log = rank(KeyHash::of_log(LogId::from_bits(42)), &daemons(5), 5);
    let log: Vec<_> = log.iter().map(|daemon| daemon.bits() / 0x9e37).collect();
    assert_eq!(log, LOG_GOLDEN);
    let placement = Placement::new(TABLE, &buckets(64), &daemons(5));
    let first: Vec<_> = placement.first_homes().map(|(_, d)| d.bits() / 0x9e37).collect();
    let text: String = first.iter().map(ToString::to_string).collect();
    assert_eq!(text, PLACEMENT_GOLDEN);
}

#[test]
fn a_loss_or_a_join_moves_little_more_than_one_share() {
    for count in [3, 4, 5, 10, 45, 100, 300, 700] {
        let all = daemons(count);
        let buckets = buckets(PER_DAEMON * count as u32);
        let before = Placement::new(TABLE, &buckets, &all);
        let loads = loads(&before, &buckets);
        let fullest =
            loads.iter().max_by_key(|(_, bytes)| **bytes).map(|(daemon, _)| *daemon).unwrap();
        // Small clusters lose each of their daemons, large ones the fullest.
        for lost in all.iter().filter(|lost| count <= 10 || lost.daemon == fullest) {
            let left: Vec<_> = all.iter().copied().filter(|left| left != lost).collect();
            let after = Placement::new(TABLE, &buckets, &left);
            let share = moved_share(&before, &after, count);
            assert!(share <= 1.2, "{count} daemons, {lost:?}: {share:.3}/N");
        }
        let joined = daemons(count + 1);
        let share = moved_share(&before, &Placement::new(TABLE, &buckets, &joined), count + 1);
        assert!(share <= 1.2, "{count} daemons and one more: {share:.3}/(N + 1)");
    }
}

#[test]
fn without_bounds_only_the_keys_of_the_changed_daemon_move() {
    let before = daemons(20);
    let mut heavier = before.clone();
    heavier[4].weight = 170;
    let left: Vec<_> = before.iter().copied().filter(|c| *c != before[4]).collect();
    let changed = before[4].daemon;
    let (mut gained, mut lost) = (0, 0);
    for number in 0..100_000 {
        let key = KeyHash::of_bucket(TABLE, number);
        let old = rank(key, &before, 1)[0];
        let new = rank(key, &heavier, 1)[0];
        assert!(old == new || new == changed, "more weight takes keys and moves no others");
        gained += usize::from(old != new);
        let new = rank(key, &left, 1)[0];
        assert!(old == new || old == changed, "a loss moves the keys of the lost one only");
        lost += usize::from(old != new);
    }
    // 170/2070 − 100/2000 = 3.2 %, and 5 %, of 100,000, and three standard deviations.
    assert!((3046..3380).contains(&gained), "{gained}");
    assert!((4793..5207).contains(&lost), "{lost}");
}

#[test]
fn a_change_of_weight_moves_few_keys_between_others() {
    let before = daemons(20);
    let mut heavier = before.clone();
    heavier[4].weight = 170;
    let buckets = buckets(PER_DAEMON * 20);
    let old = Placement::new(TABLE, &buckets, &before);
    let new = Placement::new(TABLE, &buckets, &heavier);
    let pairs = old.first_homes().zip(new.first_homes());
    let between_others = pairs.filter(|((_, a), (_, b))| a != b && *b != before[4].daemon).count();
    assert!(between_others * 1000 < buckets.len() * 5, "{between_others} of {}", buckets.len());
}

#[test]
fn shares_follow_weights() {
    let mut candidates = daemons(10);
    candidates[0].weight = 300;
    candidates[1].weight = 0;
    let buckets = buckets(4096);
    let loads = loads(&Placement::new(TABLE, &buckets, &candidates), &buckets);
    let total: u64 = loads.values().sum();
    let share = loads[&candidates[0].daemon] as f64 / total as f64;
    assert!((0.25..0.30).contains(&share), "300 of 1100: {share}");
    assert!(!loads.contains_key(&candidates[1].daemon));
}

proptest! {
    #[test]
    fn loads_stay_in_their_bounds_and_order_means_nothing(
        sizes in prop::collection::vec((1u64..5000, 0u64..4), 1..200),
        weights in prop::collection::vec(1u32..500, 1..20),
    ) {
        let numbered = sizes.iter().enumerate();
        let mut buckets: Vec<_> = numbered
            .map(|(n, (bytes, since))| Bucket { number: n as u32, since: *since, bytes: *bytes })
            .collect();
        let ids = weights.iter().zip(1u64..);
        let mut candidates: Vec<_> = ids
            .map(|(weight, id)| Candidate { daemon: DaemonId::from_bits(id), weight: *weight })
            .collect();
        let placement = Placement::new(TABLE, &buckets, &candidates);
        let total: u64 = buckets.iter().map(|bucket| bucket.bytes).sum();
        let largest = buckets.iter().map(|bucket| bucket.bytes).max().unwrap();
        let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        for (daemon, load) in loads(&placement, &buckets) {
            let weight = u64::from(weights[daemon.bits() as usize - 1]);
            let bound = (total * 125 * weight).div_ceil(100 * sum);
            prop_assert!(load < bound + largest, "{load} of {bound}");
        }
        for bucket in &buckets {
            let homes = placement.homes(bucket.number);
            prop_assert_eq!(homes.len(), candidates.len().min(HOMES_MAX));
            prop_assert!(homes.iter().all(|home| homes.iter().filter(|h| *h == home).count() == 1));
        }
        buckets.reverse();
        candidates.reverse();
        prop_assert_eq!(&placement, &Placement::new(TABLE, &buckets, &candidates));

        // Newer buckets move none of the older ones.
        let old: Vec<_> = buckets.iter().copied().filter(|bucket| bucket.since < 2).collect();
        for (bucket, home) in Placement::new(TABLE, &old, &candidates).first_homes() {
            prop_assert_eq!(placement.homes(bucket)[0], home);
        }
    }
}

#[test]
fn odd_inputs() {
    assert!(Placement::new(TABLE, &buckets(3), &[]).homes(0).is_empty());
    let empty = [Bucket { number: 0, since: 0, bytes: 0 }];
    assert_eq!(Placement::new(TABLE, &empty, &daemons(2)).homes(0).len(), 2);
    assert!(Placement::new(TABLE, &empty, &daemons(2)).homes(9).is_empty());
}
