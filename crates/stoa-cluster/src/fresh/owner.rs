//! The owner's side: when a record may be acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Push;
use crate::lease::Holder;
use crate::membership::PeerLease;
use crate::{LogId, Monotonic};

/// How an owner repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerOptions {
    /// After which time without an answer a push is repeated.
    pub repeat_each: Duration,
    /// How long the leases of members are valid: [`crate::lease::LeaseOptions::ttl`].
    pub lease_ttl: Duration,
}

impl Default for OwnerOptions {
    fn default() -> Self {
        let lease_ttl = crate::lease::LeaseOptions::default().ttl;
        Self { repeat_each: Duration::from_millis(200), lease_ttl }
    }
}

/// What happens to the owner of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerEvent {
    /// Time has passed; send it a few times per [`OwnerOptions::repeat_each`].
    Tick,
    /// A client writes a record.
    Append,
    /// Clients have written records up to and including this sequence, which the caller stores.
    Appended {
        /// The sequence.
        to: u64,
    },
    /// The log has stored everything up to and including this sequence.
    Durable {
        /// The sequence.
        to: u64,
    },
    /// A table version that holds everything up to and including this sequence was committed.
    Flushed {
        /// The sequence.
        to: u64,
    },
    /// A life of a peer shows everything up to and including this sequence.
    Told {
        /// The peer.
        peer: Holder,
        /// The sequence.
        to: u64,
    },
    /// A peer that we may not know yet wants to be told.
    Hello {
        /// The peer.
        peer: Holder,
    },
    /// What the membership knows of the peers: [`crate::membership::Membership::peer_leases`].
    Peers(Vec<(Holder, PeerLease)>),
    /// The log refused a write: another has claimed it.
    Fenced,
}

/// What the owner of a log wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerAction {
    /// Store this record in the log.
    Put {
        /// Its sequence.
        sequence: u64,
    },
    /// Send records to a peer.
    Push {
        /// To whom; another life of the daemon must ignore it.
        peer: Holder,
        /// What.
        push: Push,
    },
    /// Answer the clients whose records have sequences up to and including this one.
    Acknowledge {
        /// The sequence.
        to: u64,
    },
    /// Answer all waiting clients that the outcome is unknown: their records may still be found in the log.
    Stop,
}

/// The records of one log that are not in files, as its owner sees them.
#[derive(Clone, Debug)]
pub struct Owner {
    options: OwnerOptions,
    log: LogId,
    base: u64,
    last: u64,
    durable: u64,
    acknowledged: u64,
    is_fenced: bool,
    peers: BTreeMap<Holder, Told>,
    /// Lives that are dead: never waited for again once their leases are over.
    gone: BTreeSet<Holder>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    to: u64,
    sent_to: u64,
    last_push: Option<Monotonic>,
    lease: PeerLease,
}

impl Owner {
    /// The owner of a log whose last record is `last`, all of which are in files.
    ///
    /// `peers` must have been read after the log was entered in the database: a daemon that joins later
    /// finds the log there, one that joined earlier is among them.
    pub fn new(
        log: LogId,
        last: u64,
        peers: impl IntoIterator<Item = (Holder, PeerLease)>,
        options: OwnerOptions,
    ) -> Self {
        let mut owner = Self {
            options,
            log,
            base: last,
            last,
            durable: last,
            acknowledged: last,
            is_fenced: false,
            peers: BTreeMap::new(),
            gone: BTreeSet::new(),
        };
        owner.set_peers(peers);
        owner
    }

    /// The last record that is durable; what a flush may put into files.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Everything up to this sequence is in files.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The last record, durable or not.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Takes an event in.
    pub fn on(&mut self, event: OwnerEvent, now: Monotonic) -> Vec<OwnerAction> {
        if self.is_fenced {
            return vec![];
        }
        let mut actions = vec![];
        match event {
            OwnerEvent::Tick => actions.extend(self.push(now, true)),
            OwnerEvent::Append => {
                self.last += 1;
                actions.push(OwnerAction::Put { sequence: self.last });
                actions.extend(self.push(now, false));
            }
            OwnerEvent::Appended { to } => {
                self.last = self.last.max(to);
                actions.extend(self.push(now, false));
            }
            OwnerEvent::Durable { to } => {
                self.durable = self.durable.max(to.min(self.last));
                self.peers.values_mut().for_each(|told| told.last_push = None);
                actions.extend(self.push(now, false));
            }
            OwnerEvent::Flushed { to } => self.base = self.base.max(to.min(self.durable)),
            OwnerEvent::Told { peer, to } => {
                if let Some(told) = self.peers.get_mut(&peer) {
                    told.to = told.to.max(to);
                    told.sent_to = told.sent_to.max(to);
                }
            }
            OwnerEvent::Hello { peer } => {
                if !self.gone.contains(&peer) {
                    let told = self.greet(peer, PeerLease::Live);
                    (told.sent_to, told.last_push) = (0, None);
                    actions.extend(self.push(now, false));
                }
            }
            OwnerEvent::Peers(peers) => {
                self.end_superseded(&peers, now);
                self.set_peers(peers);
                actions.extend(self.push(now, false));
            }
            OwnerEvent::Fenced => {
                self.is_fenced = true;
                return vec![OwnerAction::Stop];
            }
        }
        actions.extend(self.acknowledge(now));
        actions
    }

    fn set_peers(&mut self, peers: impl IntoIterator<Item = (Holder, PeerLease)>) {
        for (peer, lease) in peers {
            match lease {
                PeerLease::Live => drop(self.greet(peer, lease)),
                // Also where we hear of it for the first time: it may answer exact reads until then.
                PeerLease::OverAt(at) if !self.gone.contains(&peer) => {
                    self.gone.insert(peer);
                    self.greet(peer, lease).lease = PeerLease::OverAt(at);
                }
                PeerLease::OverAt(_) => {}
            }
        }
    }

    /// A life that we know by its `Hello` only may be dead before we have read of it: then all we read of is
    /// a later life of the same daemon.
    fn end_superseded(&mut self, peers: &[(Holder, PeerLease)], now: Monotonic) {
        let over = PeerLease::OverAt(now + self.options.lease_ttl);
        for (peer, told) in &mut self.peers {
            let mut lives =
                peers.iter().map(|(other, _)| other).filter(|p| p.daemon == peer.daemon);
            let is_superseded = lives.clone().any(|life| life.incarnation > peer.incarnation);
            if told.lease == PeerLease::Live && is_superseded && lives.all(|life| life != peer) {
                told.lease = over;
                self.gone.insert(*peer);
            }
        }
    }

    fn greet(&mut self, peer: Holder, lease: PeerLease) -> &mut Told {
        let told = Told { to: 0, sent_to: 0, last_push: None, lease };
        self.peers.entry(peer).or_insert(told)
    }

    /// What each peer has not been sent, or with `again` not confirmed for a while.
    fn push(&mut self, now: Monotonic, again: bool) -> Vec<OwnerAction> {
        let mut actions = vec![];
        for (peer, told) in &mut self.peers {
            let is_late = |at: Monotonic| now.since(at) >= self.options.repeat_each;
            if again && told.to < self.durable.max(self.last) && told.last_push.is_some_and(is_late)
            {
                told.sent_to = told.to;
                told.last_push = None;
            }
            if told.last_push.is_some() && told.sent_to >= self.last {
                continue;
            }
            let from = told.sent_to.max(self.base) + 1;
            told.sent_to = told.sent_to.max(self.last);
            told.last_push = Some(now);
            let (log, base, to, durable) = (self.log, self.base, self.last, self.durable);
            actions.push(OwnerAction::Push {
                peer: *peer,
                push: Push { log, base, from, to, durable },
            });
        }
        actions
    }

    fn acknowledge(&mut self, now: Monotonic) -> Option<OwnerAction> {
        let is_over = |lease: PeerLease| matches!(lease, PeerLease::OverAt(at) if at <= now);
        self.peers.retain(|_, told| !is_over(told.lease));
        let told = self.peers.values().map(|told| told.to).min().unwrap_or(u64::MAX);
        let to = self.durable.min(told);
        if to <= self.acknowledged {
            return None;
        }
        self.acknowledged = to;
        Some(OwnerAction::Acknowledge { to })
    }
}
