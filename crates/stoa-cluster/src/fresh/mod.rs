//! Rows that are in a log but not yet in files, on all daemons at once.
//!
//! ```text
//!   owner of a log                         each peer
//!   append s ──┬─► PUT of the segment
//!              └─► push s ────────────────► kept, not shown
//!   PUT done ────► push "durable to s" ───► shown
//!   acknowledge s ◄── told s ──────────────┘
//! ```
//!
//! An acknowledged row is durable, and shown by every daemon that may still answer exact reads. A peer that does
//! not answer is waited for until it is dead and has passed its own deadline. So exact reads ask nobody.
//!
//! A session carries what it has written and seen ([`Seen`]); a daemon that has less waits or fetches.
//!
//! **Invariants:** a row is shown only after it is durable; positions of a replica never go back; a replica
//! answers exact reads only if it has everything that was acknowledged before it was told for the first
//! time.
//!
//! Not here: bytes of records, flushes ([`crate::takeover`] for those of the dead), which tables a record is for.

mod owner;
mod replica;
#[cfg(test)]
mod tests;

pub use owner::{Owner, OwnerAction, OwnerEvent, OwnerOptions};
pub use replica::{Freshness, ReadAnswer, ReadRequest, Replica, ReplicaAction, ReplicaEvent};

use std::collections::BTreeMap;

use crate::LogId;

/// Of each log, everything up to and including a sequence.
pub type Vector = BTreeMap<LogId, u64>;

/// What a session has written and seen of one table.
///
/// The version is needed beside the logs: rows of a log that was retired since are found in files only,
/// and its position in no vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The sequence number of the newest table version.
    pub version: u64,
    /// Positions in logs.
    pub logs: Vector,
}

impl Seen {
    /// Adds what another read showed, or a write.
    pub fn add(&mut self, other: &Self) {
        self.version = self.version.max(other.version);
        for (log, sequence) in &other.logs {
            let seen = self.logs.entry(*log).or_default();
            *seen = (*seen).max(*sequence);
        }
    }
}

/// A message from the owner of a log to one life of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Push {
    /// The log.
    pub log: LogId,
    /// Everything up to this sequence, inclusive, is in files of a committed table version.
    pub base: u64,
    /// The first record in this message.
    pub from: u64,
    /// The last record in this message; below `from` if there is none.
    pub to: u64,
    /// Everything up to this sequence, inclusive, is durable.
    pub durable: u64,
}
