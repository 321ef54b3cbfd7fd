//! Histories of a small cluster in which everything goes wrong that can.
//!
//! In: a seed, and optionally a [`Mutation`]. Out: how much happened, or the first violation with a trace.
//! Two to four daemons run the machines of `stoa-cluster`; the database, the object store and the network are
//! models in memory. For 40 simulated seconds there are crashes, freezes, cuts in one or both directions,
//! absences of the database, jumps of its clock, lost, late and doubled messages, and drains; then the cluster
//! has 50 s to recover.
//!
//! Checked at every step: two processes never both believe to hold a lease; positions never go back; an
//! acknowledged row is in a log or a file; no file is deleted that a member's read needs. Checked for every read: no
//! row twice; exact reads have all rows that were acknowledged before they began; sessions see what they wrote and
//! saw; reports are answered whatever peers do. Checked at the end: every acknowledged row is there once, no
//! row that was shown is lost, every daemon answers exactly, every report was answered, and late writes were acknowledged.
//!
//! Not modelled: several tables, monotonic clocks of different speed, a database or store that breaks its
//! promises (loses a committed transaction, ignores put-if-absent).

mod checks;
mod clients;
mod daemon;
mod database;
mod faults;
mod ledger;
mod message;
mod network;
mod processes;
mod store;
mod world;

use std::fmt;

use world::World;

/// A mistake that an implementation could make. The histories must find each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A taker does not claim the log before it replays it.
    SkipClaim,
    /// Rows are acknowledged when durable, told or not.
    AcknowledgeBeforeTold,
    /// Deadlines count from when an answer arrived, not from before the request.
    DeadlineFromAnswer,
    /// A taker compares the lease with its own wall clock.
    ExpiryByOwnWallClock,
    /// A taker does not wait until it has seen the lease unchanged for its whole time.
    ExpiryByDatabaseClockAlone,
    /// The release of a log's segments deletes its claims and its end.
    DeleteClaims,
    /// Replaced files are deleted whoever reads them.
    IgnorePins,
    /// Commits do not check the lease's token.
    CommitWithoutToken,
    /// Replicas show rows before they are durable.
    ShowBeforeDurable,
    /// Reads compare the deadline with a time that was read before a pause.
    StaleClock,
    /// After a commit without an answer, the same rows are committed again.
    RetryFlushBlindly,
    /// Writers do not wait for the deadline of a peer that was declared dead.
    DeadIsOver,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::SkipClaim,
        Self::AcknowledgeBeforeTold,
        Self::DeadlineFromAnswer,
        Self::ExpiryByOwnWallClock,
        Self::ExpiryByDatabaseClockAlone,
        Self::DeleteClaims,
        Self::IgnorePins,
        Self::CommitWithoutToken,
        Self::ShowBeforeDurable,
        Self::StaleClock,
        Self::RetryFlushBlindly,
        Self::DeadIsOver,
    ];
}

/// What happened in a history without violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages, ticks, faults and clients' requests.
    pub events: u64,
    /// Rows that were acknowledged.
    pub acknowledged: u64,
    /// Reads that were answered and checked.
    pub reads: u64,
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.acknowledged += other.acknowledged;
        self.reads += other.reads;
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The history; the same one is run again by the same seed.
    pub seed: u64,
    /// When, in simulated milliseconds.
    pub at_ms: u64,
    /// What.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, at {} ms: {}", self.seed, self.at_ms, self.what)
    }
}

impl std::error::Error for Violation {}

/// Runs one history.
///
/// # Errors
/// The first violation.
pub fn run(seed: u64, mutation: Option<Mutation>) -> Result<Summary, Violation> {
    let mut world = World::new(seed, mutation, false);
    match world.run() {
        Ok(()) => Ok(Summary {
            events: world.events,
            acknowledged: world.ledger.acknowledged() as u64,
            reads: world.ledger.reads,
        }),
        Err(what) => Err(Violation { seed, at_ms: world.now_ms, what }),
    }
}

/// The last `lines` lines of what happened in a history.
pub fn trace(seed: u64, mutation: Option<Mutation>, lines: usize) -> Vec<String> {
    let mut world = World::new(seed, mutation, true);
    let end = world.run().err().unwrap_or_else(|| "no violation".into());
    world.note(|| end);
    let trace = world.trace();
    let from = trace.len().saturating_sub(lines);
    trace.into_iter().skip(from).collect()
}
