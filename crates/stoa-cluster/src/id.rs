//! Names of daemons, logs and tables.

use std::fmt;

/// A daemon, for as long as its disk cache exists: random, made when it first joins, kept beside the cache.
///
/// It survives restarts and changes of address. It is never an index into a list of daemons: homes of
/// buckets depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DaemonId(u64);

/// A commit log, with the bits of `stoa_commitlog::LogId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogId(u64);

/// A table: the 16 bytes of its UUID, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub [u8; 16]);

/// One life of a daemon: counted by the database, greater with every join.
pub type Incarnation = u64;

impl DaemonId {
    /// The id with the given bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The id's bits.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl LogId {
    /// The id with the given bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The id's bits.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for DaemonId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
