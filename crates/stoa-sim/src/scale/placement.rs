//! Balance and moved buckets: the real placement, and jump hash, on the same number of keys.

use std::collections::BTreeMap;

use stoa_cluster::placement::{Bucket, Candidate, Placement};
use stoa_cluster::{DaemonId, TableId};

use super::jump;
use crate::random::Random;

/// Buckets per daemon.
pub const BUCKETS_EACH: usize = 256;

/// What happens to homes in a cluster of some size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Homes {
    /// Daemons.
    pub daemons: usize,
    /// The fullest daemon's bytes over the mean.
    pub balance: f64,
    /// Buckets that move when the fullest daemon is lost, as a multiple of 1/N.
    pub moved_on_loss: f64,
    /// Buckets that move when one joins, as a multiple of 1/(N+1).
    pub moved_on_join: f64,
    /// Jump hash: the fullest daemon's splits over the mean.
    pub jump_balance: f64,
    /// Jump hash: the share of all splits that move when the middle daemon is taken out of the list.
    pub jump_moved: f64,
    /// Jump hash: the fullest daemon over the mean when the slot of a dead one is probed past.
    pub jump_balance_after_loss: f64,
    /// Jump hash: over how many daemons the thirteen files of one account are spread, on average.
    pub jump_daemons_of_account: f64,
}

impl Homes {
    /// Places all buckets three times: takes time in proportion to the square of `daemons`.
    pub fn of(daemons: usize) -> Self {
        let buckets = buckets(daemons * BUCKETS_EACH);
        let all = candidates(daemons + 1);
        let (present, table) = (all.get(..daemons).unwrap_or(&all), TableId([7; 16]));
        let before = Placement::new(table, &buckets, present);
        let loads = loads(&before, &buckets);
        let fullest = loads.iter().max_by_key(|(_, bytes)| **bytes).map(|(daemon, _)| *daemon);
        let left: Vec<_> = present.iter().copied().filter(|c| Some(c.daemon) != fullest).collect();
        let on_loss = moved(&before, &Placement::new(table, &buckets, &left));
        let on_join = moved(&before, &Placement::new(table, &buckets, &all));
        let total: u64 = loads.values().sum();
        let most = loads.values().max().copied().unwrap_or(0);

        let keys = buckets.len();
        let jumped = jump::homes(keys, daemons);
        let lost = daemons / 2;
        let closed_up = jump::homes(keys, daemons - 1).into_iter();
        let closed_up = closed_up.map(|index| if index >= lost { index + 1 } else { index });
        let jump_moved = jumped.iter().zip(closed_up).filter(|(old, new)| **old != *new).count();
        let probed: Vec<_> = jumped
            .iter()
            .map(|home| if *home == lost { (lost + 1) % daemons } else { *home })
            .collect();
        let n = daemons as f64;
        Self {
            daemons,
            balance: most as f64 * n / total as f64,
            moved_on_loss: on_loss as f64 * n / keys as f64,
            moved_on_join: on_join as f64 * (n + 1.0) / keys as f64,
            jump_balance: fullest_of(&jumped, daemons) * n / keys as f64,
            jump_moved: jump_moved as f64 / keys as f64,
            jump_balance_after_loss: fullest_of(&probed, daemons) * (n - 1.0) / keys as f64,
            jump_daemons_of_account: n * (1.0 - (1.0 - 1.0 / n).powi(13)),
        }
    }
}

/// Quantiles are nearly, not exactly, of one size: 900 to 1155 units.
fn buckets(count: usize) -> Vec<Bucket> {
    let mut random = Random::new(2);
    let mut bucket = |number| Bucket { number, since: 1, bytes: 900 + random.below(256) };
    (0..count as u32).map(&mut bucket).collect()
}

fn candidates(count: usize) -> Vec<Candidate> {
    let mut random = Random::new(3);
    let mut candidate = || Candidate { daemon: DaemonId::from_bits(random.bits()), weight: 100 };
    (0..count).map(|_| candidate()).collect()
}

fn loads(placement: &Placement, buckets: &[Bucket]) -> BTreeMap<DaemonId, u64> {
    let mut loads = BTreeMap::new();
    for ((_, home), bucket) in placement.first_homes().zip(buckets) {
        *loads.entry(home).or_default() += bucket.bytes;
    }
    loads
}

fn moved(before: &Placement, after: &Placement) -> usize {
    before.first_homes().zip(after.first_homes()).filter(|(old, new)| old != new).count()
}

fn fullest_of(homes: &[usize], daemons: usize) -> f64 {
    let mut counts = vec![0_u32; daemons];
    for home in homes {
        if let Some(count) = counts.get_mut(*home) {
            *count += 1;
        }
    }
    counts.into_iter().max().unwrap_or(0).into()
}
