//! Who belongs to the cluster.
//!
//! ```text
//!   join ─► Joining ─► Up ─► Draining ─► Dead (left)
//!              └────────┴───────┴──────► Dead (two suspicions, or its lease has expired)
//! ```
//!
//! In: the time, the table of members as read, answers to probes. Out: statements for the database, probes to
//! send. [`MemberTable`] is what the database decides, [`Membership`] one daemon's side.
//!
//! There are two levels. *Routing* is local and reversible: a failed connection or two missed probes take a
//! peer out at once, three good probes let it back in, and withdraw our suspicion. *Membership* is shared and final: a dead incarnation
//! never comes back. Without the database nobody joins, nobody dies, and reports go on.
//!
//! **Invariants:** a member is declared dead by expiry only if the database's clock says so and the one
//! that declares it has seen its lease unchanged for a whole time to live, on a monotonic clock and
//! without a pause in reading; a member that reads that it is dead ends.
//!
//! Source: Microsoft Orleans, "Cluster management in Orleans" (membership table, probes of 10 others, two
//! suspicions; <https://learn.microsoft.com/dotnet/orleans/implementation/cluster-management>).
//!
//! Not here: logs of the dead ([`crate::takeover`]), connections.

mod event;
mod peers;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub use event::{MemberAction, MemberEvent};
pub use peers::PROBED_MAX;
use peers::{PeerAction, Peers};
pub use table::{Member, MemberState, MemberTable, SUSPICIONS_NEEDED};

use crate::lease::{Deadline, Holder, LeaseOptions};
use crate::placement::Candidate;
use crate::watch::Watch;
use crate::{DaemonId, DatabaseTime, Incarnation, Monotonic};

/// How often members are read and probed. Equal on all daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberOptions {
    /// The member's own lease.
    pub lease: LeaseOptions,
    /// The time between reads of the table; a notification makes a read earlier.
    pub read_each: Duration,
    /// The time between probes of a peer, and how long an answer may take.
    pub probe_each: Duration,
    /// Within which time two suspicions declare a member dead.
    pub suspicion_window: Duration,
}

impl Default for MemberOptions {
    fn default() -> Self {
        Self {
            lease: LeaseOptions::default(),
            read_each: Duration::from_secs(2),
            probe_each: Duration::from_secs(1),
            suspicion_window: Duration::from_secs(180),
        }
    }
}

/// How long a peer may still answer exact reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerLease {
    /// It renews its lease.
    Live,
    /// It is dead, and from then on has passed its own deadline for certain.
    OverAt(Monotonic),
}

/// One daemon's side of the membership.
#[derive(Clone, Debug)]
pub struct Membership {
    options: MemberOptions,
    daemon: DaemonId,
    incarnation: Option<Incarnation>,
    wanted: MemberState,
    is_ended: bool,
    deadline: Deadline,
    table: MemberTable,
    watch: Watch<Holder, DatabaseTime>,
    leases: BTreeMap<Holder, PeerLease>,
    peers: Peers,
    requests: u64,
    sent: BTreeMap<u64, Monotonic>,
    last_read: u64,
    next_renewal: Monotonic,
    next_read: Monotonic,
}

impl Membership {
    /// A daemon that has not joined yet.
    pub fn new(daemon: DaemonId, options: MemberOptions) -> Self {
        Self {
            options,
            daemon,
            incarnation: None,
            wanted: MemberState::Joining,
            is_ended: false,
            deadline: Deadline::default(),
            table: MemberTable::default(),
            watch: Watch::new(options.read_each * 2),
            leases: BTreeMap::new(),
            peers: Peers::new(daemon, options.probe_each),
            requests: 0,
            sent: BTreeMap::new(),
            last_read: 0,
            next_renewal: Monotonic::default(),
            next_read: Monotonic::default(),
        }
    }

    /// Who we are, once we have joined.
    pub fn me(&self) -> Option<Holder> {
        self.incarnation.map(|incarnation| Holder { daemon: self.daemon, incarnation })
    }

    /// The members as last read.
    pub fn table(&self) -> &MemberTable {
        &self.table
    }

    /// Whether exact reads may be answered and writes acknowledged. `now` must have been read after the
    /// answer was computed, so that a pause before it counts.
    pub fn holds(&self, now: Monotonic) -> bool {
        !self.is_ended && self.deadline.holds(now)
    }

    /// When our lease ends, exclusive.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Whether requests may be sent to a peer.
    pub fn is_routed(&self, peer: DaemonId) -> bool {
        self.peers.is_routed(peer)
    }

    /// The daemons that are homes of buckets in this epoch, with their weights. Routing does not change it, and
    /// weights must come from the same read: homes are equal on all daemons.
    pub fn candidates(&self, weight: impl Fn(DaemonId) -> u32) -> Vec<Candidate> {
        self.in_state(MemberState::Up, weight)
    }

    /// The daemons that take over logs in this epoch: those that are up, or joining ones where none is.
    ///
    /// After the death of all daemons, the first that come back can be up only when the logs of the dead are
    /// retired: somebody who is not up yet has to do that.
    pub fn takers(&self) -> Vec<Candidate> {
        let up = self.in_state(MemberState::Up, |_| 1);
        if up.is_empty() { self.in_state(MemberState::Joining, |_| 1) } else { up }
    }

    fn in_state(&self, state: MemberState, weight: impl Fn(DaemonId) -> u32) -> Vec<Candidate> {
        let members = self.table.iter().filter(|(_, member)| member.state == state);
        members.map(|(daemon, _)| Candidate { daemon, weight: weight(daemon) }).collect()
    }

    /// All other lives of daemons that have been seen, with how long they may answer exact reads.
    pub fn peer_leases(&self) -> impl Iterator<Item = (Holder, PeerLease)> {
        let me = self.me();
        self.leases.iter().map(|(peer, lease)| (*peer, *lease)).filter(move |(p, _)| Some(*p) != me)
    }

    /// Takes an event in.
    pub fn on(&mut self, event: MemberEvent, now: Monotonic) -> Vec<MemberAction> {
        if self.is_ended {
            return vec![];
        }
        match event {
            MemberEvent::Tick => return self.tick(now),
            MemberEvent::Joined { request, incarnation } => {
                // An older join was superseded by the newest one, which made another incarnation.
                let is_newest = request == self.requests;
                if self.incarnation.is_none() && is_newest && self.extend(request) {
                    self.incarnation = Some(incarnation);
                    self.next_read = now;
                }
            }
            MemberEvent::Renewed { request } => drop(self.extend(request)),
            MemberEvent::Refused => return self.end(),
            MemberEvent::Read { request, table } => return self.read(request, table, now),
            MemberEvent::Changed => self.next_read = now,
            MemberEvent::Answered { peer, probe } => self.peers.answered(peer, probe),
            MemberEvent::Failed { peer } => self.peers.failed(peer),
            MemberEvent::Ready => self.wanted = self.wanted.max(MemberState::Up),
            MemberEvent::Drain => self.wanted = self.wanted.max(MemberState::Draining),
            MemberEvent::Leave => {
                // Others need not wait for a deadline that we gave up.
                self.wanted = MemberState::Dead;
                self.deadline = Deadline::default();
                let me = self.me().into_iter();
                let state = self.wanted;
                return me.map(|me| MemberAction::SetState { me, state }).collect();
            }
        }
        vec![]
    }

    fn tick(&mut self, now: Monotonic) -> Vec<MemberAction> {
        let mut actions = vec![];
        if now >= self.next_renewal {
            self.next_renewal = now + self.options.lease.renew_each;
            let request = self.request(now);
            actions.push(match self.me() {
                None => MemberAction::Join { request },
                Some(me) => MemberAction::Renew { request, me },
            });
        }
        let Some(me) = self.me() else { return actions };
        if now >= self.next_read {
            self.next_read = now + self.options.read_each;
            let request = self.request(now);
            actions.push(MemberAction::Read { request });
        }
        actions.extend(self.peers.tick(now).into_iter().map(|action| match action {
            PeerAction::Probe { peer, probe } => MemberAction::Probe { peer, probe },
            PeerAction::Suspect { peer } => MemberAction::Suspect { peer, me },
        }));
        actions
    }

    fn read(&mut self, request: u64, table: MemberTable, now: Monotonic) -> Vec<MemberAction> {
        // Answers may overtake each other.
        if request <= self.last_read || table.epoch() < self.table.epoch() {
            return vec![];
        }
        let Some(me) = self.me() else { return vec![] };
        self.last_read = request;
        self.table = table;
        if !self.table.lives(me) {
            return self.end();
        }
        self.see_leases(now);
        let living = self.table.iter().filter(|(_, row)| row.state != MemberState::Dead);
        let living = living.map(|(daemon, row)| Holder { daemon, incarnation: row.incarnation });
        self.peers.set(living, now);
        let mut actions = self.expired();
        actions.extend(self.trusted(me));
        let state = self.table.get(self.daemon).map(|row| row.state);
        if state.is_some_and(|state| state < self.wanted) {
            actions.push(MemberAction::SetState { me, state: self.wanted });
        }
        actions
    }

    /// Notes how long each life may still answer exact reads.
    fn see_leases(&mut self, now: Monotonic) {
        let ttl = self.options.lease.ttl;
        for (daemon, row) in self.table.iter() {
            let holder = Holder { daemon, incarnation: row.incarnation };
            self.watch.see(holder, row.until, now);
            let over = match row.state {
                MemberState::Dead if row.until == DatabaseTime::default() => PeerLease::OverAt(now),
                // It last renewed before we first saw this row, and never will again.
                MemberState::Dead => {
                    PeerLease::OverAt(self.watch.since(&holder).unwrap_or(now) + ttl)
                }
                _ => PeerLease::Live,
            };
            self.leases.insert(holder, over);
        }
        for (holder, lease) in &mut self.leases {
            let is_old =
                self.table.get(holder.daemon).is_none_or(|r| r.incarnation != holder.incarnation);
            if is_old && *lease == PeerLease::Live {
                *lease = PeerLease::OverAt(now + ttl);
            }
        }
        let is_over = |lease: &PeerLease| matches!(lease, PeerLease::OverAt(at) if *at + ttl < now);
        self.leases.retain(|holder, lease| {
            let is_old =
                self.table.get(holder.daemon).is_none_or(|r| r.incarnation != holder.incarnation);
            let is_forgotten = is_old && is_over(lease);
            if is_forgotten {
                self.watch.forget(holder);
            }
            !is_forgotten
        });
    }

    /// Members to declare dead. Each has its probers for that; others step in later.
    fn expired(&self) -> Vec<MemberAction> {
        let ttl = self.options.lease.ttl;
        let living = self.table.iter().filter(|(_, row)| row.state != MemberState::Dead);
        let expired = living.filter_map(|(daemon, row)| {
            let peer = Holder { daemon, incarnation: row.incarnation };
            let patience = if self.peers.is_probed(daemon) { ttl } else { ttl * 3 };
            let is_expired = daemon != self.daemon && self.watch.unchanged_for(&peer) >= patience;
            is_expired.then_some(MemberAction::Expire { peer, observed: row.until })
        });
        expired.collect()
    }

    /// Peers that we have suspected and now send requests to again. Else a suspicion would wait there for another one, of
    /// another daemon at another time, and both together would declare dead a peer that everybody reaches.
    fn trusted(&self, me: Holder) -> impl Iterator<Item = MemberAction> {
        self.table.iter().filter_map(move |(daemon, row)| {
            let is_suspect = row.suspicions.iter().any(|(by, _)| *by == me.daemon);
            let is_trusted =
                is_suspect && row.state != MemberState::Dead && self.peers.is_routed(daemon);
            let peer = Holder { daemon, incarnation: row.incarnation };
            is_trusted.then_some(MemberAction::Trust { peer, me })
        })
    }

    fn end(&mut self) -> Vec<MemberAction> {
        self.is_ended = true;
        vec![MemberAction::End]
    }

    fn request(&mut self, now: Monotonic) -> u64 {
        let ttl = self.options.lease.ttl;
        self.sent.retain(|_, sent| now.since(*sent) < ttl);
        self.requests += 1;
        self.sent.insert(self.requests, now);
        self.requests
    }

    fn extend(&mut self, request: u64) -> bool {
        let Some(sent) = self.sent.remove(&request) else { return false };
        if self.wanted != MemberState::Dead {
            self.deadline.extend(sent, self.options.lease);
        }
        true
    }
}
