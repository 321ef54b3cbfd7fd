//! The hashes that decide homes. Their values must never change: each change empties every cache.
//!
//! XXH3 (64 bits, seed 0) over canonical bytes, once per bucket and once per daemon: a tag with a
//! version, then the fields, numbers in big-endian order. The two are mixed per pair with whole
//! numbers only. Golden values in `tests.rs` keep all of this as it is.

use twox_hash::XxHash3_64;

use crate::{DaemonId, LogId, TableId};

/// A key's part of the hash of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyHash(u64);

impl KeyHash {
    /// A bucket of a table's first sort column.
    pub fn of_bucket(table: TableId, bucket: u32) -> Self {
        Self(digest(b"stoa/bucket/1", &[&table.0, &bucket.to_be_bytes()]))
    }

    /// A commit log.
    pub fn of_log(log: LogId) -> Self {
        Self(digest(b"stoa/log/1", &[&log.bits().to_be_bytes()]))
    }

    /// A daemon that looks for peers to probe.
    pub(crate) fn of_daemon(daemon: DaemonId) -> Self {
        Self(daemon_digest(daemon))
    }

    /// The hash of this key and the daemon with `digest`: uniform, and independent for each pair.
    pub(super) fn with(self, digest: u64) -> u64 {
        mix(mix(self.0 ^ digest).wrapping_add(self.0.rotate_left(31)))
    }
}

/// A daemon's part of the hash of a pair.
pub(super) fn daemon_digest(daemon: DaemonId) -> u64 {
    digest(b"stoa/daemon/1", &[&daemon.bits().to_be_bytes()])
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn digest(tag: &[u8], fields: &[&[u8]]) -> u64 {
    // Tags and fields of one kind have fixed lengths, so no two keys have the same bytes.
    let bytes: Vec<u8> =
        std::iter::once(&tag).chain(fields).flat_map(|part| part.iter().copied()).collect();
    XxHash3_64::oneshot(&bytes)
}
