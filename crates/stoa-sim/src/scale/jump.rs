//! Hive's way, to compare with: LLAP's consistent splits.
//!
//! Hash of a file's path and offset, then jump consistent hash (Lamping, Veach, "A Fast, Minimal Memory,
//! Consistent Hash Algorithm", arXiv 1406.2294) over daemons in the order of their slots. A dead slot is kept and
//! probed past (Hive, `HostAffinitySplitLocationProvider`).

use crate::random::Random;

/// The index that jump hash gives to a key, below `count`.
pub fn jump(mut key: u64, count: usize) -> usize {
    let (mut index, mut next) = (0, 0_u64);
    while next < count as u64 {
        index = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = ((index + 1) as f64 * ((1_u64 << 31) as f64 / ((key >> 33) + 1) as f64)) as u64;
    }
    index as usize
}

/// Where each of `keys` splits goes.
pub fn homes(keys: usize, count: usize) -> Vec<usize> {
    let mut random = Random::new(1);
    (0..keys).map(|_| jump(random.bits(), count)).collect()
}
