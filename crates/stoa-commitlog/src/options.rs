//! How a log behaves: sizes and waits, with presets per kind of storage.

use std::time::Duration;

use stoa_error::{Error, Result};

use crate::frame::{self, PAYLOAD_BYTES_MAX};
use crate::storage::StorageKind;

/// Sizes and waits of a log. The presets fit; change a field where measurement says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// A segment that has grown to this many bytes is followed by the next.
    pub segment_bytes: u64,
    /// Frames that are written and synced together have at most this many bytes; a larger frame
    /// goes alone.
    pub group_bytes_max: usize,
    /// Frames that are queued or being written have at most this many bytes; further appends wait.
    pub in_flight_bytes_max: usize,
    /// Most bytes of one payload; at most [`PAYLOAD_BYTES_MAX`].
    pub payload_bytes_max: usize,
    /// How long an append waits for room before it fails, retryably.
    pub append_wait_max: Duration,
    /// Relaxed appends are synced, unasked, once they have left this many bytes unsynced.
    pub unsynced_bytes_max: u64,
    /// Least time between the starts of two syncs: what requests to an object store cost decides.
    /// Zero on a disk, where a group is whatever arrived during the previous sync.
    pub sync_interval_min: Duration,
}

impl LogOptions {
    /// For a disk.
    pub const fn disk() -> Self {
        Self {
            segment_bytes: 64 << 20,
            group_bytes_max: 8 << 20,
            in_flight_bytes_max: 64 << 20,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            append_wait_max: Duration::from_secs(10),
            unsynced_bytes_max: 8 << 20,
            sync_interval_min: Duration::ZERO,
        }
    }

    /// For an object store: larger groups, as a put takes long; at most ten puts per second, as
    /// each costs money.
    pub const fn object_store() -> Self {
        Self {
            group_bytes_max: 16 << 20,
            sync_interval_min: Duration::from_millis(100),
            ..Self::disk()
        }
    }

    /// The preset for a kind of storage.
    pub const fn for_kind(kind: StorageKind) -> Self {
        match kind {
            StorageKind::Appendable => Self::disk(),
            StorageKind::PutIfAbsent => Self::object_store(),
        }
    }

    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |name: &str, value: u64, limit: String| {
            Error::invalid(format!("{name} is {value}, it must be {limit}"))
        };
        if self.payload_bytes_max > PAYLOAD_BYTES_MAX {
            let limit = format!("at most {PAYLOAD_BYTES_MAX}");
            return Err(wrong("payload_bytes_max", self.payload_bytes_max as u64, limit));
        }
        let least = frame::HEADER_BYTES + 1;
        for (name, value) in [
            ("group_bytes_max", self.group_bytes_max),
            ("in_flight_bytes_max", self.in_flight_bytes_max),
        ] {
            if value < least || u32::try_from(value).is_err() {
                return Err(wrong(name, value as u64, format!("{least} to {}", u32::MAX)));
            }
        }
        Ok(())
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self::disk()
    }
}
