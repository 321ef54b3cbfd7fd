//! The logs of the dead: who takes which, and in which order.
//!
//! ```text
//!   Lease ─► Claim ─► Replay ─► Flush ─► Release ─► Retire ─► Done
//!                        ▲        │ the pointer moved, or the answer was lost
//!                        └────────┘
//! ```
//!
//! 1. *Lease*: the log's lease, once it has run out. Only avoids that two do the work.
//! 2. *Claim*: an empty segment at the log's end, under the new epoch. Only now the old owner is harmless: its next
//!    write is refused. What it wrote before is replayed, acknowledged or not.
//! 3. *Replay*: of each table, the records behind the position in its current version.
//! 4. *Flush*: files, and a commit that carries the position. Its transaction checks the lease's token and
//!    the pointer.
//! 5. *Release*: delete the segments that are in files. **Claims stay**, so that a write of the old owner that was
//!    under way for long still meets a segment of that number and is refused. So does the newest segment, which
//!    tells the next taker where the log ends.
//! 6. *Retire*: enter the log as retired, and drop its positions from the tables. After the release, because without a
//!    position everything that is left would be replayed again.
//!
//! Each step may be repeated. A taker that dies is followed by another, which begins at the first step
//! under the next epoch.
//!
//! Not here: whether the owner is dead ([`crate::membership`]), reading and writing records.

use std::time::Duration;

use crate::lease::{Holder, Lease, LeaseAction, LeaseEvent, LeaseOptions, LeaseRow};
use crate::membership::Membership;
use crate::placement::{Candidate, KeyHash, rank};
use crate::{DaemonId, LogId, Monotonic};

/// Who takes over a log, of [`Membership::takers`]: its best by rendezvous hashing, so the logs of one dead daemon
/// are spread over several. `None` without candidates.
pub fn taker(log: LogId, candidates: &[Candidate]) -> Option<DaemonId> {
    rank(KeyHash::of_log(log), candidates, 1).first().copied()
}

/// Whether daemon `me` begins to take over a log that is neither retired nor its own.
///
/// `row` is the log's lease, `unchanged_for` how long [`crate::watch::Watch`] has seen it unchanged, and `members`
/// come from one read of the database. A lease that is ours already is one whose grant we did not hear of,
/// or a takeover that was given up.
pub fn is_due(
    log: LogId,
    row: &LeaseRow,
    me: Holder,
    members: &Membership,
    unchanged_for: Duration,
    options: LeaseOptions,
) -> bool {
    let is_orphan = !members.table().lives(row.holder) && unchanged_for >= options.ttl;
    row.holder == me || is_orphan && taker(log, &members.takers()) == Some(me.daemon)
}

/// Where a takeover stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Waits for the lease.
    Lease,
    /// Writes the claim.
    Claim,
    /// Reads records.
    Replay,
    /// Writes files and commits.
    Flush,
    /// Deletes segments.
    Release,
    /// Enters the log as retired.
    Retire,
    /// Nothing is left to do.
    Done,
    /// Another has the lease or the log, or soon will.
    Abandoned,
}

/// What happens to a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeoverEvent {
    /// For the log's lease; its `Acquire` begins the takeover, its `Tick` repeats a step that had no answer.
    Lease(LeaseEvent),
    /// The claim is the last segment of the log.
    Claimed,
    /// The records were read, up to and including this sequence.
    Replayed {
        /// The log's last record.
        to: u64,
    },
    /// The commit is done.
    Flushed,
    /// The segments are deleted.
    Released,
    /// The log is retired.
    Retired,
    /// The step failed, or nobody knows whether it did.
    Failed,
    /// The token was refused, or a claim with a higher epoch was found.
    Fenced,
}

/// What a takeover wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeoverAction {
    /// For the log's lease.
    Lease(LeaseAction),
    /// Put an empty segment at the log's end, put-if-absent, with this epoch.
    Claim {
        /// The fencing token.
        epoch: u64,
    },
    /// Read the tables' positions and the records behind them.
    Replay,
    /// Write what was read to files, and commit with the position `to`.
    Flush {
        /// The fencing token.
        epoch: u64,
        /// The position that the commit carries.
        to: u64,
    },
    /// Delete segments up to and including this record, but neither claims nor the newest segment.
    Release {
        /// The position.
        to: u64,
    },
    /// Enter the log as retired, in a transaction that checks the token.
    Retire {
        /// The fencing token.
        epoch: u64,
    },
}

/// One daemon's takeover of one log.
#[derive(Clone, Debug)]
pub struct Takeover {
    lease: Lease,
    step: Step,
    epoch: u64,
    to: u64,
}

impl Takeover {
    /// A takeover that has not begun.
    pub fn new(options: LeaseOptions) -> Self {
        Self { lease: Lease::new(options), step: Step::Lease, epoch: 0, to: 0 }
    }

    /// Where it stands.
    pub fn step(&self) -> Step {
        self.step
    }

    /// The lease of the log.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Takes an event in. Answers to steps that are over are ignored.
    pub fn on(&mut self, event: TakeoverEvent, now: Monotonic) -> Vec<TakeoverAction> {
        if matches!(self.step, Step::Done | Step::Abandoned) {
            return vec![];
        }
        let next = match (event, self.step) {
            (TakeoverEvent::Lease(event), _) => return self.on_lease(event, now),
            (TakeoverEvent::Fenced, _) => Step::Abandoned,
            (TakeoverEvent::Claimed, Step::Claim) => Step::Replay,
            (TakeoverEvent::Replayed { to }, Step::Replay) => {
                self.to = to;
                Step::Flush
            }
            (TakeoverEvent::Flushed, Step::Flush) => Step::Release,
            // It may have happened: what the version holds by now decides.
            (TakeoverEvent::Failed, Step::Flush) => Step::Replay,
            (TakeoverEvent::Failed, step) => step,
            (TakeoverEvent::Released, Step::Release) => Step::Retire,
            (TakeoverEvent::Retired, Step::Retire) => Step::Done,
            _ => return vec![],
        };
        self.go(next)
    }

    fn on_lease(&mut self, event: LeaseEvent, now: Monotonic) -> Vec<TakeoverAction> {
        let had = self.lease.holds(now);
        let actions = self.lease.on(event, now);
        let is_lost = actions.contains(&LeaseAction::Stop);
        let is_refused = matches!(event, LeaseEvent::Refused { .. }) && had.is_none();
        if is_lost || is_refused {
            self.step = Step::Abandoned;
        }
        let mut actions: Vec<_> = actions.into_iter().map(TakeoverAction::Lease).collect();
        if let (Step::Lease, Some(epoch)) = (self.step, self.lease.holds(now)) {
            self.epoch = epoch;
            actions.extend(self.go(Step::Claim));
        }
        actions
    }

    fn go(&mut self, step: Step) -> Vec<TakeoverAction> {
        self.step = step;
        let (epoch, to) = (self.epoch, self.to);
        match step {
            Step::Claim => vec![TakeoverAction::Claim { epoch }],
            Step::Replay => vec![TakeoverAction::Replay],
            Step::Flush => vec![TakeoverAction::Flush { epoch, to }],
            Step::Release => vec![TakeoverAction::Release { to }],
            Step::Retire => vec![TakeoverAction::Retire { epoch }],
            Step::Lease | Step::Done | Step::Abandoned => vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Monotonic = Monotonic(std::time::Duration::ZERO);

    fn begun() -> (Takeover, Vec<TakeoverAction>) {
        let mut takeover = Takeover::new(LeaseOptions::default());
        takeover.on(TakeoverEvent::Lease(LeaseEvent::Acquire { observed: None }), NOW);
        let granted = LeaseEvent::Granted { request: 1, epoch: 7 };
        let actions = takeover.on(TakeoverEvent::Lease(granted), NOW);
        (takeover, actions)
    }

    #[test]
    fn steps_come_in_their_order_whatever_answers_come() {
        let (mut takeover, actions) = begun();
        assert_eq!(actions, [TakeoverAction::Claim { epoch: 7 }]);
        for early in [TakeoverEvent::Flushed, TakeoverEvent::Released, TakeoverEvent::Retired] {
            assert_eq!(takeover.on(early, NOW), []);
        }
        assert_eq!(takeover.on(TakeoverEvent::Failed, NOW), [TakeoverAction::Claim { epoch: 7 }]);
        assert_eq!(takeover.on(TakeoverEvent::Claimed, NOW), [TakeoverAction::Replay]);
        let replayed = TakeoverEvent::Replayed { to: 9 };
        assert_eq!(takeover.on(replayed, NOW), [TakeoverAction::Flush { epoch: 7, to: 9 }]);
        assert_eq!(takeover.on(TakeoverEvent::Failed, NOW), [TakeoverAction::Replay]);
        takeover.on(TakeoverEvent::Replayed { to: 9 }, NOW);
        assert_eq!(takeover.on(TakeoverEvent::Flushed, NOW), [TakeoverAction::Release { to: 9 }]);
        assert_eq!(
            takeover.on(TakeoverEvent::Released, NOW),
            [TakeoverAction::Retire { epoch: 7 }]
        );
        assert_eq!(takeover.on(TakeoverEvent::Retired, NOW), []);
        assert_eq!(takeover.step(), Step::Done);
    }

    #[test]
    fn whoever_is_fenced_gives_up() {
        let (mut takeover, _) = begun();
        assert_eq!(takeover.on(TakeoverEvent::Fenced, NOW), []);
        assert_eq!(takeover.step(), Step::Abandoned);
        assert_eq!(takeover.on(TakeoverEvent::Claimed, NOW), []);
    }

    #[test]
    fn logs_of_one_daemon_are_spread() {
        let up: Vec<_> =
            (1..=4).map(|id| Candidate { daemon: DaemonId::from_bits(id), weight: 1 }).collect();
        let takers: std::collections::BTreeSet<_> =
            (0..20).filter_map(|log| taker(LogId::from_bits(log), &up)).collect();
        assert_eq!(takers.len(), 4);
        assert_eq!(taker(LogId::from_bits(1), &[]), None);
    }
}
