//! Probing peers, and which of them get requests.
//!
//! A probe is a tiny report that the peer answers on its executors: a peer whose connections are open but which
//! answers nothing counts as missing. Each daemon probes the next [`PROBED_MAX`] on a ring of all,
//! and those that it does not route to.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lease::Holder;
use crate::placement::KeyHash;
use crate::{DaemonId, Incarnation, Monotonic};

/// The most peers that a daemon probes all the time.
pub const PROBED_MAX: usize = 10;

/// Missed probes after which a peer gets no more requests.
const MISSED_TO_DROP: u32 = 2;

/// Missed probes after which a peer is suspected: as long as its lease would last without a renewal. A busy machine may
/// not answer for a few seconds.
const MISSED_TO_SUSPECT: u32 = 5;

/// A suspicion is repeated after at most this many more missed probes, so that it stays in its window.
const SUSPECT_AGAIN_MAX: u32 = 4;

/// Answered probes in a row after which a peer gets requests again.
const GOOD_TO_READMIT: u32 = 3;

/// Probes of a suspect are at most this many times rarer, a power of two.
const BACK_OFF_MAX: u32 = 32;

/// A probe to send, or a peer to suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerAction {
    Probe { peer: DaemonId, probe: u64 },
    Suspect { peer: Holder },
}

#[derive(Clone, Debug)]
pub(super) struct Peers {
    me: DaemonId,
    each: Duration,
    peers: BTreeMap<DaemonId, Peer>,
    probes: u64,
    last_tick: Monotonic,
}

#[derive(Clone, Debug)]
struct Peer {
    incarnation: Incarnation,
    is_probed: bool,
    is_routed: bool,
    missed: u32,
    good: u32,
    suspect_at: u32,
    waiting_for: Option<u64>,
    next_probe: Monotonic,
}

impl Peers {
    pub fn new(me: DaemonId, each: Duration) -> Self {
        let last_tick = Monotonic::default();
        Self { me, each, peers: BTreeMap::new(), probes: 0, last_tick }
    }

    /// Takes over the living members; a new incarnation starts with a clean slate.
    pub fn set(&mut self, living: impl Iterator<Item = Holder>, now: Monotonic) {
        let living: BTreeMap<_, _> = living
            .filter(|peer| peer.daemon != self.me)
            .map(|p| (p.daemon, p.incarnation))
            .collect();
        self.peers.retain(|daemon, peer| living.get(daemon) == Some(&peer.incarnation));
        for (daemon, incarnation) in living {
            self.peers.entry(daemon).or_insert_with(|| Peer::new(incarnation, now));
        }
        let probed = self.ring();
        for (daemon, peer) in &mut self.peers {
            peer.is_probed = probed.contains(daemon);
        }
    }

    pub fn is_routed(&self, peer: DaemonId) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.is_routed)
    }

    pub fn is_probed(&self, peer: DaemonId) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.is_probed)
    }

    pub fn failed(&mut self, peer: DaemonId) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.is_routed = false;
            peer.good = 0;
        }
    }

    pub fn answered(&mut self, peer: DaemonId, probe: u64) {
        let Some(peer) = self.peers.get_mut(&peer) else { return };
        if peer.waiting_for != Some(probe) {
            return;
        }
        peer.waiting_for = None;
        peer.missed = 0;
        peer.suspect_at = MISSED_TO_SUSPECT;
        peer.good = peer.good.saturating_add(1);
        peer.is_routed |= peer.good >= GOOD_TO_READMIT;
    }

    pub fn tick(&mut self, now: Monotonic) -> Vec<PeerAction> {
        // After a pause of our own, answers are late because of us.
        let was_paused = now.since(self.last_tick) > self.each * 2;
        self.last_tick = now;
        let mut actions = vec![];
        for (daemon, peer) in &mut self.peers {
            if was_paused {
                peer.waiting_for = None;
            }
            if now < peer.next_probe || peer.is_routed && !peer.is_probed {
                continue;
            }
            if peer.waiting_for.is_some() && peer.miss() {
                let peer = Holder { daemon: *daemon, incarnation: peer.incarnation };
                actions.push(PeerAction::Suspect { peer });
            }
            self.probes += 1;
            peer.waiting_for = Some(self.probes);
            peer.next_probe = now + self.each * peer.back_off();
            actions.push(PeerAction::Probe { peer: *daemon, probe: self.probes });
        }
        actions
    }

    /// The peers behind us on a ring of hashes: everybody is probed by as many as they probe.
    fn ring(&self) -> Vec<DaemonId> {
        let place = |daemon: DaemonId| (KeyHash::of_daemon(daemon), daemon);
        let here = place(self.me);
        let mut ring: Vec<_> = self.peers.keys().map(|daemon| place(*daemon)).collect();
        ring.sort_unstable();
        let split = ring.partition_point(|other| *other < here);
        ring.rotate_left(split);
        ring.into_iter().take(PROBED_MAX).map(|(_, daemon)| daemon).collect()
    }
}

impl Peer {
    fn new(incarnation: Incarnation, now: Monotonic) -> Self {
        Self {
            incarnation,
            is_probed: false,
            is_routed: true,
            missed: 0,
            good: 0,
            suspect_at: MISSED_TO_SUSPECT,
            waiting_for: None,
            next_probe: now,
        }
    }

    /// Counts a missed probe; true if the peer is to be suspected.
    fn miss(&mut self) -> bool {
        self.missed = self.missed.saturating_add(1);
        self.good = 0;
        self.is_routed &= self.missed < MISSED_TO_DROP;
        let is_suspect = self.missed >= self.suspect_at;
        if is_suspect {
            self.suspect_at = self.missed.saturating_add(self.missed.min(SUSPECT_AGAIN_MAX));
        }
        is_suspect
    }

    fn back_off(&self) -> u32 {
        let beyond = self.missed.saturating_sub(MISSED_TO_SUSPECT).min(BACK_OFF_MAX.ilog2());
        1 << beyond
    }
}
