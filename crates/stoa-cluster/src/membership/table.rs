//! The table of members: what the database decides.
//!
//! A model of statements that each run in one transaction. Every change of a state, a join and a removal
//! included, adds one to a single epoch (a row that these statements lock); renewals, suspicions and their end do not.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lease::Holder;
use crate::{DaemonId, DatabaseTime, Incarnation};

/// What a member does for the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberState {
    /// Reads what it has missed; takes no requests.
    Joining,
    /// Takes requests, and is a home of buckets.
    Up,
    /// Finishes what it has; no home any more.
    Draining,
    /// Left, or declared dead. Final for its incarnation.
    Dead,
}

impl MemberState {
    /// The state's name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Dead => "dead",
        }
    }
}

/// A row of the table of members. Address, zone and protocol versions of a daemon are further columns
/// of the real table; nothing here depends on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The daemon's life; a daemon that joins again gets the next one.
    pub incarnation: Incarnation,
    /// What it does.
    pub state: MemberState,
    /// When its lease expires, exclusive. Zero (`-infinity`): it has left of its own will.
    pub until: DatabaseTime,
    /// Who suspects it since when; at most one per suspecting daemon.
    pub suspicions: Vec<(DaemonId, DatabaseTime)>,
}

/// All members, as of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberTable {
    epoch: u64,
    /// The highest incarnation of all rows that were removed.
    removed: Incarnation,
    rows: BTreeMap<DaemonId, Member>,
}

/// Two suspicions declare a member dead, one where it has only one peer.
pub const SUSPICIONS_NEEDED: usize = 2;

impl MemberTable {
    /// The table with these rows. `removed` is the highest incarnation of all rows that were removed, 0
    /// where none was.
    pub fn from_rows(
        epoch: u64,
        removed: Incarnation,
        rows: impl IntoIterator<Item = (DaemonId, Member)>,
    ) -> Self {
        Self { epoch, removed, rows: rows.into_iter().collect() }
    }

    /// Grows with every change of a state.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The row of a daemon.
    pub fn get(&self, daemon: DaemonId) -> Option<&Member> {
        self.rows.get(&daemon)
    }

    /// All rows, by daemon.
    pub fn iter(&self) -> impl Iterator<Item = (DaemonId, &Member)> {
        self.rows.iter().map(|(daemon, member)| (*daemon, member))
    }

    /// Whether this life of a daemon is a member that is not dead.
    pub fn lives(&self, holder: Holder) -> bool {
        self.rows.get(&holder.daemon).is_some_and(|row| {
            row.incarnation == holder.incarnation && row.state != MemberState::Dead
        })
    }

    /// Adds a daemon as joining, under a new incarnation. An earlier life of it is dead from now on.
    pub fn join(&mut self, daemon: DaemonId, ttl: Duration, now: DatabaseTime) -> Incarnation {
        let last = self.rows.get(&daemon).map_or(self.removed, |row| row.incarnation);
        let incarnation = last + 1;
        let member = Member {
            incarnation,
            state: MemberState::Joining,
            until: now + ttl,
            suspicions: vec![],
        };
        self.rows.insert(daemon, member);
        self.epoch += 1;
        incarnation
    }

    /// Extends a member's lease; false if it is dead, which is how it learns that.
    pub fn renew(&mut self, holder: Holder, ttl: Duration, now: DatabaseTime) -> bool {
        let Some(row) = self.living(holder) else { return false };
        row.until = now + ttl;
        true
    }

    /// Changes a member's own state, forwards only; false if it is dead. [`MemberState::Dead`] means that it
    /// leaves: it must have stopped to answer before it asks for that.
    pub fn set_state(&mut self, holder: Holder, state: MemberState) -> bool {
        let Some(row) = self.living(holder) else { return false };
        if state > row.state {
            row.state = state;
            if state == MemberState::Dead {
                row.until = DatabaseTime::default();
            }
            self.epoch += 1;
        }
        true
    }

    /// Takes note that `by` cannot reach `victim`. Two such notes within `window` declare it dead; in a
    /// cluster of two, one does. True if it is dead now.
    pub fn suspect(
        &mut self,
        victim: Holder,
        by: Holder,
        window: Duration,
        now: DatabaseTime,
    ) -> bool {
        if !self.lives(by) || by.daemon == victim.daemon {
            return false;
        }
        let others = self.rows.iter().filter(|(daemon, row)| {
            **daemon != victim.daemon
                && matches!(row.state, MemberState::Up | MemberState::Draining)
        });
        let needed = SUSPICIONS_NEEDED.min(others.count().max(1));
        let Some(row) = self.living(victim) else { return false };
        row.suspicions.retain(|(other, at)| *other != by.daemon && now.since(*at) < window);
        row.suspicions.push((by.daemon, now));
        let is_dead = row.suspicions.len() >= needed;
        if is_dead {
            row.state = MemberState::Dead;
            self.epoch += 1;
        }
        is_dead
    }

    /// `by` reaches `peer` again: its note of [`Self::suspect`] goes. False if there is none, or one of both is dead.
    pub fn trust(&mut self, peer: Holder, by: Holder) -> bool {
        if !self.lives(by) {
            return false;
        }
        let Some(row) = self.living(peer) else { return false };
        let before = row.suspicions.len();
        row.suspicions.retain(|(other, _)| *other != by.daemon);
        row.suspicions.len() < before
    }

    /// Declares a member dead whose lease has expired and is still as the caller `observed` it. True if it is
    /// dead now.
    pub fn expire(&mut self, victim: Holder, observed: DatabaseTime, now: DatabaseTime) -> bool {
        let expired = self.living(victim).filter(|row| row.until < now && row.until == observed);
        let Some(row) = expired else { return false };
        row.state = MemberState::Dead;
        self.epoch += 1;
        true
    }

    /// Removes the row of a dead daemon; false if there is none or it is not dead. No incarnation of it is
    /// given again, should it come back.
    pub fn remove(&mut self, daemon: DaemonId) -> bool {
        let dead = self.rows.get(&daemon).filter(|row| row.state == MemberState::Dead);
        let Some(incarnation) = dead.map(|row| row.incarnation) else { return false };
        self.rows.remove(&daemon);
        self.removed = self.removed.max(incarnation);
        self.epoch += 1;
        true
    }

    fn living(&mut self, holder: Holder) -> Option<&mut Member> {
        self.rows
            .get_mut(&holder.daemon)
            .filter(|row| row.incarnation == holder.incarnation && row.state != MemberState::Dead)
    }
}
