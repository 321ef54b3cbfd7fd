//! Who may be the home of a part of a table.

use std::time::Duration;

use stoa_catalog::ClusterState;
use stoa_cluster::DaemonId;
use stoa_cluster::membership::MemberState;
use stoa_cluster::placement::Candidate;

use crate::member::Member;

/// How long a daemon that is gone keeps its parts: it may be starting again, with its cache's disk or with what it
/// kept of what was hot, and others would read all of it for a minute.
const GRACE: Duration = Duration::from_secs(120);

/// Caches are weighed in this unit, bytes.
const WEIGHT_UNIT: u64 = 16 << 20;

/// The daemons among which a table's parts are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeCandidates {
    /// As of which change of the members.
    pub epoch: u64,
    /// Those that are up, and those that have not been gone for long; weighed by the bytes of their caches.
    pub daemons: Vec<Candidate>,
}

impl Member {
    /// The daemons among which a table's parts are shared. They change with the epoch, and when those that are gone
    /// have been so for two minutes: all daemons find the same ones within seconds.
    pub fn home_candidates(&self) -> HomeCandidates {
        let Some(state) = self.0.known.state() else {
            return HomeCandidates { epoch: 0, daemons: Vec::new() };
        };
        HomeCandidates { epoch: state.members.epoch(), daemons: candidates(&state) }
    }

    /// Whether no other daemon lives. Asked by each report that is not in memory, so it makes no list of them.
    pub fn is_alone(&self) -> bool {
        let me = self.id();
        self.0.known.state().is_none_or(|state| {
            let mut others = state.members.iter().filter(|(daemon, _)| *daemon != me);
            others.all(|(_, row)| row.state == MemberState::Dead)
        })
    }

    /// The number of changes of the members that this daemon knows of.
    pub fn epoch(&self) -> u64 {
        self.0.known.state().map_or(0, |state| state.members.epoch())
    }

    /// Whether requests to another daemon are likely to be answered: it is up, and was reached lately.
    pub fn reaches(&self, daemon: DaemonId) -> bool {
        let is_up = self.0.known.state().is_some_and(|state| {
            state.members.get(daemon).is_some_and(|row| row.state == MemberState::Up)
        });
        is_up && self.0.machines.lock().membership.is_routed(daemon)
    }
}

fn candidates(state: &ClusterState) -> Vec<Candidate> {
    let now_ms = i64::try_from(state.read_at.0.as_millis()).unwrap_or(i64::MAX);
    let candidate = |(daemon, row): (DaemonId, &stoa_cluster::membership::Member)| {
        let life = state.lives.get(&daemon)?;
        let gone_for = || {
            let ms = now_ms.saturating_sub(life.state_since_ms);
            Duration::from_millis(u64::try_from(ms).unwrap_or_default())
        };
        let has_parts = match row.state {
            // One that joins answers nothing yet, but may be a home that starts again.
            MemberState::Up | MemberState::Joining => true,
            MemberState::Draining | MemberState::Dead => gone_for() < GRACE,
        };
        let cache = state.daemons.get(&daemon).map_or(0, |info| info.cache_bytes);
        let weight = u32::try_from(cache / WEIGHT_UNIT).unwrap_or(u32::MAX).max(1);
        has_parts.then_some(Candidate { daemon, weight })
    };
    state.members.iter().filter_map(candidate).collect()
}
