//! The reader's side: what this daemon shows, and whether that is enough.

use std::collections::{BTreeMap, BTreeSet};

use super::{Push, Seen, Vector};
use crate::lease::Deadline;
use crate::{LogId, Monotonic};

/// What a read promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Everything acknowledged before it began, by any daemon.
    Exact,
    /// What this daemon has; goes on without the database.
    Known,
}

/// A read that wants an answer.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest<'a> {
    /// What it promises.
    pub freshness: Freshness,
    /// What the session has written and seen.
    pub seen: &'a Seen,
    /// The deadline of our own membership.
    pub deadline: Deadline,
}

/// Whether a read can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadAnswer {
    /// Show the version, and of each log the records behind the version's position up to this one; add it
    /// to what the session has seen.
    Show(Seen),
    /// Not yet: this daemon has less than the session. Wait, at most a second; then read the catalog's
    /// pointer, or fetch from the owner of the log; then SQLSTATE 57P03.
    Behind {
        /// The log; `None`: the table version.
        log: Option<LogId>,
    },
    /// Not here: our deadline has passed, or we have not been told yet by the owners of all logs.
    Refuse,
}

/// What happens to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaEvent {
    /// The logs that the database knew when it was read for the first time after we had joined. Until the owner of
    /// each has pushed, or the log is retired, there are no exact reads.
    Logs(Vec<LogId>),
    /// A message from the owner of a log, to this life of us.
    Pushed(Push),
    /// A newer table version was loaded.
    Version {
        /// Its sequence number.
        number: u64,
        /// What it holds of each log.
        positions: Vector,
    },
    /// The rows of a log are all in files of the loaded table version, and it gets no more.
    Retired(LogId),
}

/// What a replica wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaAction {
    /// Tell the owner what we show.
    Tell {
        /// The log.
        log: LogId,
        /// Everything up to and including this sequence.
        to: u64,
    },
    /// Read the catalog's pointer: records that we miss are in files already.
    ReadVersion,
}

/// The fresh rows of all logs, on one daemon.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    logs: BTreeMap<LogId, Copy>,
    /// Logs whose owners have not pushed yet; `None` before we have read which there are.
    awaited: Option<BTreeSet<LogId>>,
    retired: BTreeSet<LogId>,
    version: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    /// In files of the loaded version up to here.
    version: u64,
    /// Received without a gap up to here, or in files.
    have: u64,
    durable: u64,
    /// Exact only from here on: what was durable when we were told for the first time.
    exact_from: Option<u64>,
}

impl Copy {
    fn shown(self) -> u64 {
        self.have.min(self.durable).max(self.version)
    }
}

impl Replica {
    /// A replica that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything of a log up to this sequence is shown; all of it once it is retired.
    pub fn shown(&self, log: LogId) -> u64 {
        if self.retired.contains(&log) {
            return u64::MAX;
        }
        self.logs.get(&log).map_or(0, |copy| copy.shown())
    }

    /// Logs whose owners we must greet (`Hello`), until they push.
    pub fn awaited(&self) -> impl Iterator<Item = LogId> {
        self.awaited.iter().flatten().copied()
    }

    /// Whether exact reads are possible at all: when a joining daemon is ready.
    pub fn is_complete(&self) -> bool {
        let is_exact = |copy: &Copy| copy.exact_from.is_none_or(|from| copy.shown() >= from);
        let is_told = self.awaited.as_ref().is_some_and(BTreeSet::is_empty);
        is_told && self.logs.iter().all(|(log, copy)| self.retired.contains(log) || is_exact(copy))
    }

    /// Takes an event in.
    pub fn on(&mut self, event: ReplicaEvent) -> Vec<ReplicaAction> {
        match event {
            ReplicaEvent::Logs(logs) => {
                let is_told =
                    |log: &LogId| self.logs.get(log).is_some_and(|c| c.exact_from.is_some());
                let open =
                    logs.into_iter().filter(|log| !is_told(log) && !self.retired.contains(log));
                let open = open.collect();
                self.awaited.get_or_insert(open);
                vec![]
            }
            ReplicaEvent::Pushed(push) => self.pushed(push),
            ReplicaEvent::Version { number, positions } => {
                self.version = self.version.max(number);
                for (log, position) in positions {
                    let copy = self.logs.entry(log).or_default();
                    copy.version = copy.version.max(position);
                    copy.have = copy.have.max(position);
                }
                vec![]
            }
            ReplicaEvent::Retired(log) => {
                self.retired.insert(log);
                self.told_by(log);
                vec![]
            }
        }
    }

    /// Whether a read can be answered now, and with what.
    pub fn read(&self, request: ReadRequest<'_>, now: Monotonic) -> ReadAnswer {
        let is_exact = request.freshness == Freshness::Exact;
        if is_exact && !(request.deadline.holds(now) && self.is_complete()) {
            return ReadAnswer::Refuse;
        }
        if self.version < request.seen.version {
            return ReadAnswer::Behind { log: None };
        }
        let behind = request.seen.logs.iter().find(|(log, seen)| self.shown(**log) < **seen);
        if let Some((log, _)) = behind {
            return ReadAnswer::Behind { log: Some(*log) };
        }
        let live = self.logs.keys().filter(|log| !self.retired.contains(log));
        let logs = live.map(|log| (*log, self.shown(*log))).collect();
        ReadAnswer::Show(Seen { version: self.version, logs })
    }

    fn pushed(&mut self, push: Push) -> Vec<ReplicaAction> {
        self.told_by(push.log);
        let copy = self.logs.entry(push.log).or_default();
        copy.exact_from.get_or_insert(push.durable);
        copy.durable = copy.durable.max(push.durable);
        let mut actions = vec![];
        if push.from <= copy.have + 1 {
            copy.have = copy.have.max(push.to);
        } else if copy.have < push.base {
            actions.push(ReplicaAction::ReadVersion);
        }
        actions.push(ReplicaAction::Tell { log: push.log, to: copy.shown() });
        actions
    }

    fn told_by(&mut self, log: LogId) {
        if let Some(awaited) = &mut self.awaited {
            awaited.remove(&log);
        }
    }
}
