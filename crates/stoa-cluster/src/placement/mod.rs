//! Which daemons cache which part of a table: weighted rendezvous hashing with bounded load.
//!
//! In: the buckets of a table with their bytes, and the daemons with their weights. Out: for each bucket up
//! to [`HOMES_MAX`] homes, the best first. The same inputs give the same homes in every process, on
//! every machine and in every release.
//!
//! A key is (table UUID, bucket of the first sort column). The boundaries of the buckets and their bytes are
//! a property of the table that changes seldom; a stripe belongs to the bucket of its lower bound. So
//! the thirteen monthly files of one account have one home, and new files move nothing.
//!
//! The score of a daemon is −w / ln(u), with u = (hash + ½) / 2⁶⁴ of key and daemon: a daemon that leaves
//! takes along only its own keys, and a change of weight moves keys only to or from that daemon. A daemon
//! takes no first homes beyond (1 + ε) of its share of the bytes, ε = ¼; the next best takes them instead
//! (Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", arXiv 1608.01350). The
//! bound makes other keys move too, but few: `tests.rs` has the figures.
//!
//! **Invariants:** no floating point (`logarithm`); buckets that are added later never move older ones;
//! the bytes of a daemon's first homes are below its bound plus one bucket.
//!
//! Not here: which buckets are hot ([`crate::hot`]), which daemons are alive ([`crate::membership`]). A home
//! is about speed only: every daemon can answer every report.

mod hash;
mod logarithm;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;

pub use hash::KeyHash;
use hash::daemon_digest;
use logarithm::negative_log2;

use crate::{DaemonId, TableId};

/// The most homes that a bucket has.
pub const HOMES_MAX: usize = 3;

/// What a daemon may hold beyond its share: a quarter.
const EXCESS_PERCENT: u128 = 25;

/// A daemon that may be a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The daemon.
    pub daemon: DaemonId,
    /// Its share relative to the others: bytes of cache in a fixed unit, or cores. 0 is never a home.
    pub weight: u32,
}

/// A range of values of a table's first sort column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Names the bucket within the table. Never used again for another range.
    pub number: u32,
    /// The sequence number of the snapshot that introduced the bucket. Older ones are placed first.
    pub since: u64,
    /// The bytes of the bucket's files, as recorded in snapshot `since` and not changed later.
    pub bytes: u64,
}

/// The homes of one table's buckets, for one table property and one membership epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    homes: BTreeMap<u32, Vec<DaemonId>>,
}

impl Placement {
    /// Places all buckets of a table. The order of the arguments' items does not matter.
    ///
    /// Takes time in proportion to buckets × candidates: about 10 ns each when optimised. Call it once per
    /// change of either, and look homes up per report.
    pub fn new(table: TableId, buckets: &[Bucket], candidates: &[Candidate]) -> Self {
        let mut bins = bins(candidates);
        let mut buckets = buckets.to_vec();
        buckets.sort_by_key(|bucket| (bucket.since, bucket.number));
        buckets.dedup_by_key(|bucket| bucket.number);
        let mut homes = BTreeMap::new();
        let mut bytes = 0;
        for generation in buckets.chunk_by(|a, b| a.since == b.since) {
            // Bounds count the bytes up to this generation only, so that later ones change nothing.
            bytes += generation.iter().map(|bucket| u128::from(bucket.bytes)).sum::<u128>();
            set_bounds(&mut bins, bytes);
            for bucket in generation {
                let key = KeyHash::of_bucket(table, bucket.number);
                homes.insert(bucket.number, place(&mut bins, key, bucket.bytes));
            }
        }
        Self { homes }
    }

    /// Up to [`HOMES_MAX`] homes of a bucket, the best first; empty for an unknown bucket, or where
    /// there are no daemons.
    pub fn homes(&self, bucket: u32) -> &[DaemonId] {
        self.homes.get(&bucket).map_or(&[], Vec::as_slice)
    }

    /// Every bucket with its first home, by bucket number.
    pub fn first_homes(&self) -> impl Iterator<Item = (u32, DaemonId)> {
        self.homes.iter().filter_map(|(bucket, homes)| Some((*bucket, *homes.first()?)))
    }
}

/// The `count` best daemons for `key`, the best first, without bounds on their load.
pub fn rank(key: KeyHash, candidates: &[Candidate], count: usize) -> Vec<DaemonId> {
    let bins = bins(candidates);
    let mut scored: Vec<_> = bins.iter().map(|bin| Scored::new(key, bin)).collect();
    scored.sort_by(|a, b| b.cmp(a));
    scored.iter().take(count).map(|scored| scored.daemon).collect()
}

/// A candidate with what it holds.
struct Bin {
    daemon: DaemonId,
    digest: u64,
    weight: u32,
    load: u128,
    bound: u128,
}

impl Bin {
    fn fits(&self, bytes: u64) -> bool {
        self.load + u128::from(bytes) <= self.bound
    }
}

/// Bins in the order of their ids.
fn bins(candidates: &[Candidate]) -> Vec<Bin> {
    let usable = candidates.iter().filter(|candidate| candidate.weight > 0);
    let mut bins: Vec<_> = usable
        .map(|candidate| Bin {
            daemon: candidate.daemon,
            digest: daemon_digest(candidate.daemon),
            weight: candidate.weight,
            load: 0,
            bound: 0,
        })
        .collect();
    bins.sort_by_key(|bin| bin.daemon);
    bins.dedup_by_key(|bin| bin.daemon);
    bins
}

/// ⌈(1 + ε) · W · w / Σw⌉ for each bin.
fn set_bounds(bins: &mut [Bin], bytes: u128) {
    let weights: u128 = bins.iter().map(|bin| u128::from(bin.weight)).sum();
    for bin in bins {
        let share = bytes * (100 + EXCESS_PERCENT) * u128::from(bin.weight);
        bin.bound = share.div_ceil(100 * weights);
    }
}

/// The homes of a key; its bytes are added to the first one's load.
fn place(bins: &mut [Bin], key: KeyHash, bytes: u64) -> Vec<DaemonId> {
    let mut best: Vec<Scored> = Vec::with_capacity(HOMES_MAX + 1);
    let mut fitting: Option<(Scored, usize)> = None;
    let mut open: Option<(Scored, usize)> = None;
    for (index, bin) in bins.iter().enumerate() {
        let scored = Scored::new(key, bin);
        if bin.fits(bytes) && fitting.as_ref().is_none_or(|(other, _)| scored > *other) {
            fitting = Some((scored, index));
        }
        if bin.load < bin.bound && open.as_ref().is_none_or(|(other, _)| scored > *other) {
            open = Some((scored, index));
        }
        if best.len() < HOMES_MAX || best.last().is_some_and(|last| scored > *last) {
            best.insert(best.partition_point(|other| *other > scored), scored);
            best.truncate(HOMES_MAX);
        }
    }
    // A bucket that fits nowhere goes where there is any room. Without bytes all bounds are 0, and
    // everything fits.
    let Some((first, index)) = fitting.or(open) else {
        return best.iter().map(|scored| scored.daemon).collect();
    };
    if let Some(bin) = bins.get_mut(index) {
        bin.load += u128::from(bytes);
    }
    let others = best.iter().map(|scored| scored.daemon).filter(|daemon| *daemon != first.daemon);
    std::iter::once(first.daemon).chain(others).take(HOMES_MAX).collect()
}

/// Greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scored {
    weight: u32,
    negative_log2: u64,
    daemon: DaemonId,
}

impl Scored {
    fn new(key: KeyHash, bin: &Bin) -> Self {
        let negative_log2 = negative_log2(key.with(bin.digest));
        Self { weight: bin.weight, negative_log2, daemon: bin.daemon }
    }
}

impl Ord for Scored {
    /// a/b > c/d exactly if a·d > c·b: no division, so nothing is rounded.
    fn cmp(&self, other: &Self) -> Ordering {
        let ours = u128::from(self.weight) * u128::from(other.negative_log2);
        let theirs = u128::from(other.weight) * u128::from(self.negative_log2);
        ours.cmp(&theirs).then(other.daemon.cmp(&self.daemon))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
