//! What happened to the cluster, as this daemon saw it.
//!
//! In: members as they are read, what this daemon does. Out: the last [`EVENTS_MAX`] events. Times and states are the
//! database's, so two daemons that saw the same have equal events, and whoever merges them drops one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use stoa_catalog::ClusterState;
use stoa_cluster::membership::{Member, MemberState};
use stoa_cluster::{DaemonId, DatabaseTime, Incarnation};

/// Events that are remembered.
const EVENTS_MAX: usize = 500;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberEventKind {
    /// A daemon has joined; it does not answer yet.
    Joined,
    /// It answers.
    Up,
    /// Another does not reach it.
    Suspected,
    /// It ends in order.
    Draining,
    /// It has ended in order.
    Left,
    /// It was declared dead.
    Died,
    /// It has taken over the log of another.
    TookOver,
    /// An alert is on.
    Alert,
    /// An alert is off again.
    Resolved,
}

impl MemberEventKind {
    /// The name, for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Up => "up",
            Self::Suspected => "suspected",
            Self::Draining => "draining",
            Self::Left => "left",
            Self::Died => "died",
            Self::TookOver => "took over",
            Self::Alert => "alert",
            Self::Resolved => "resolved",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberHappened {
    /// When, milliseconds since 1970-01-01 UTC: by the database's clock for what it decided, else by this machine's.
    pub at_ms: i64,
    /// What.
    pub kind: MemberEventKind,
    /// The daemon it is about.
    pub daemon: Option<DaemonId>,
    /// Its life.
    pub incarnation: Option<Incarnation>,
    /// The name of its machine.
    pub host: Option<String>,
    /// Who did it or saw it, where that matters.
    pub by: Option<DaemonId>,
    /// More about it.
    pub detail: Option<String>,
}

/// The last events, and what is needed to see the next ones.
#[derive(Default)]
pub(crate) struct Happened(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    events: VecDeque<MemberHappened>,
    seen: BTreeMap<DaemonId, Seen>,
}

/// What is known of a daemon's newest life.
#[derive(Default)]
struct Seen {
    incarnation: Incarnation,
    state: Option<MemberState>,
    suspicions: BTreeSet<(DaemonId, DatabaseTime)>,
}

impl Happened {
    /// Takes note of members as they were read; reads come in order.
    pub(crate) fn see(&self, state: &ClusterState) {
        let mut remembered = self.0.lock();
        let Remembered { events, seen } = &mut *remembered;
        let mut new = Vec::new();
        for (daemon, member) in state.members.iter() {
            new.extend(seen.entry(daemon).or_default().changes(daemon, member, state));
        }
        // A daemon that was removed and joins again has a higher incarnation, if it is the same one.
        seen.retain(|daemon, _| state.members.get(*daemon).is_some());
        new.sort_by_key(|event| event.at_ms);
        new.into_iter().for_each(|event| push(events, event));
    }

    pub(crate) fn add(&self, event: MemberHappened) {
        push(&mut self.0.lock().events, event);
    }

    /// The oldest first.
    pub(crate) fn all(&self) -> Vec<MemberHappened> {
        let mut all: Vec<_> = self.0.lock().events.iter().cloned().collect();
        all.sort_by_key(|event| event.at_ms);
        all
    }
}

fn push(events: &mut VecDeque<MemberHappened>, event: MemberHappened) {
    if events.len() == EVENTS_MAX {
        events.pop_front();
    }
    events.push_back(event);
}

impl Seen {
    /// What has changed since it was seen last, of which it takes note.
    fn changes(
        &mut self,
        daemon: DaemonId,
        member: &Member,
        state: &ClusterState,
    ) -> Vec<MemberHappened> {
        let event = |kind, at_ms| MemberHappened {
            at_ms,
            kind,
            daemon: Some(daemon),
            incarnation: Some(member.incarnation),
            host: state.daemons.get(&daemon).map(|info| info.name.clone()),
            by: None,
            detail: None,
        };
        let mut new = Vec::new();
        let life = state.lives.get(&daemon);
        if self.incarnation != member.incarnation {
            *self = Self { incarnation: member.incarnation, ..Self::default() };
            new.extend(life.map(|life| event(MemberEventKind::Joined, life.joined_at_ms)));
        }
        for (by, at) in &member.suspicions {
            if self.suspicions.insert((*by, *at)) {
                let suspected = event(MemberEventKind::Suspected, milliseconds(at.0));
                new.push(MemberHappened { by: Some(*by), ..suspected });
            }
        }
        self.suspicions.retain(|suspicion| member.suspicions.contains(suspicion));
        if self.state != Some(member.state) {
            self.state = Some(member.state);
            let kind = match member.state {
                MemberState::Joining => None,
                MemberState::Up => Some(MemberEventKind::Up),
                MemberState::Draining => Some(MemberEventKind::Draining),
                MemberState::Dead if has_left(member) => Some(MemberEventKind::Left),
                MemberState::Dead => Some(MemberEventKind::Died),
            };
            new.extend(kind.zip(life).map(|(kind, life)| event(kind, life.state_since_ms)));
        }
        new
    }
}

/// Whether it is dead because it wanted to be.
pub(crate) fn has_left(member: &Member) -> bool {
    member.state == MemberState::Dead && member.until == DatabaseTime::default()
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use stoa_catalog::DaemonLife;
    use stoa_cluster::membership::MemberTable;

    use super::*;

    fn state(rows: &[(u64, Incarnation, MemberState, u64, &[u64])]) -> ClusterState {
        let id = DaemonId::from_bits;
        let at = |seconds| DatabaseTime(Duration::from_secs(seconds));
        let members = rows.iter().map(|(daemon, incarnation, state, until, suspected)| {
            let suspicions = suspected.iter().map(|by| (id(*by), at(7))).collect();
            let (incarnation, state, until) = (*incarnation, *state, at(*until));
            (id(*daemon), Member { incarnation, state, until, suspicions })
        });
        let lives = rows.iter().map(|(daemon, incarnation, state, _, _)| {
            let joined_at_ms = *incarnation as i64 * 1000;
            let state_since_ms = joined_at_ms + *state as i64 * 10;
            (id(*daemon), DaemonLife { number: 0, joined_at_ms, state_since_ms })
        });
        ClusterState {
            read_at: at(0),
            members: MemberTable::from_rows(0, 0, members),
            daemons: BTreeMap::new(),
            lives: lives.collect(),
            leases: BTreeMap::new(),
            format: 1,
        }
    }

    fn names(happened: &Happened) -> Vec<String> {
        let name = |event: MemberHappened| {
            let daemon = event.daemon.map(|daemon| daemon.to_string()).unwrap_or_default();
            let daemon = daemon.trim_start_matches('0');
            format!("{} {daemon}/{}", event.kind.name(), event.incarnation.unwrap_or(0))
        };
        happened.all().into_iter().map(name).collect()
    }

    #[test]
    fn each_change_is_one_event() {
        use MemberState::{Dead, Draining, Joining, Up};
        let happened = Happened::default();
        for rows in [
            &[(1, 1, Joining, 9, &[][..])][..],
            &[(1, 1, Up, 9, &[]), (2, 2, Joining, 9, &[])],
            &[(1, 1, Up, 10, &[]), (2, 2, Up, 9, &[])],
            &[(1, 1, Up, 11, &[]), (2, 2, Up, 9, &[1])],
            &[(1, 1, Up, 12, &[]), (2, 2, Dead, 9, &[1])],
            // The state between was not read.
            &[(1, 1, Draining, 13, &[]), (2, 3, Up, 9, &[])],
            &[(1, 1, Dead, 0, &[]), (2, 3, Up, 9, &[])],
            &[(2, 3, Up, 9, &[])],
        ] {
            let state = state(rows);
            happened.see(&state);
            happened.see(&state);
        }
        let mut wanted = [
            "joined 1/1",
            "up 1/1",
            "draining 1/1",
            "left 1/1",
            "joined 2/2",
            "up 2/2",
            "suspected 2/2",
            "died 2/2",
            "joined 2/3",
            "up 2/3",
        ];
        let mut found = names(&happened);
        found.sort();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
    }

    #[test]
    fn daemons_that_saw_the_same_have_equal_events() {
        use MemberState::{Dead, Joining, Up};
        let (early, late) = (Happened::default(), Happened::default());
        early.see(&state(&[(1, 1, Joining, 9, &[])]));
        early.see(&state(&[(1, 1, Up, 9, &[])]));
        let last = state(&[(1, 1, Up, 9, &[]), (2, 2, Dead, 5, &[1])]);
        early.see(&last);
        late.see(&last);
        assert_eq!(early.all(), late.all());
        assert_eq!(names(&late).len(), 5);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let happened = Happened::default();
        for life in 1..=EVENTS_MAX as u64 + 10 {
            happened.see(&state(&[(1, life, MemberState::Joining, 9, &[])]));
        }
        let all = happened.all();
        assert_eq!((all.len(), all[0].incarnation), (EVENTS_MAX, Some(11)));
    }
}
