//! The rules: what is wrong with a server and its cluster.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use stoa_cluster::DaemonId;
use stoa_env::task;
use stoa_member::{MemberStatus, MembersStatus};
use stoa_query::Engine;
use url::Url;

use crate::alerts::board::{Change, Condition};
use crate::alerts::disk::used_share;
use crate::alerts::options::AlertOptions;

/// A daemon was declared dead. About the cluster.
pub(crate) const DAEMON_DIED: &str = "daemon_died";
/// Nobody has taken over the log of a dead daemon. About the cluster.
pub(crate) const LOG_ORPHANED: &str = "log_orphaned";
const DAEMON_NOT_REACHED: &str = "daemon_not_reached";
const READS_NOT_EXACT: &str = "reads_not_exact";
const CATALOG_UNREACHABLE: &str = "catalog_unreachable";
const LOG_STOPPED: &str = "log_stopped";
const DISK_NEARLY_FULL: &str = "disk_nearly_full";
const STATEMENTS_REFUSED: &str = "statements_refused";

/// What the rules look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// This daemon; `None` where there is no cluster.
    pub(crate) me: Option<DaemonId>,
    pub(crate) daemons: Vec<DaemonFacts>,
    pub(crate) logs_orphaned: usize,
    pub(crate) exact: bool,
    pub(crate) catalog_reachable: bool,
    pub(crate) log_stopped: Option<String>,
    /// Of the disk of a local commit log, 0 to 1.
    pub(crate) disk_used: Option<f64>,
    /// Statements since the start that limits refused.
    pub(crate) refused: u64,
}

/// A daemon of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct DaemonFacts {
    pub(crate) id: DaemonId,
    pub(crate) host: String,
    pub(crate) is_up: bool,
    pub(crate) has_died: bool,
    pub(crate) is_reached: bool,
    /// Since when it has its state, by the database's clock.
    pub(crate) state_since_unix_ms: i64,
}

impl DaemonFacts {
    fn of(member: &MemberStatus) -> Self {
        let is_dead = member.state.name() == "dead";
        Self {
            id: member.info.id,
            host: member.info.name.clone(),
            is_up: member.is_up(),
            has_died: is_dead && !member.has_left,
            is_reached: is_dead || member.routed,
            state_since_unix_ms: member.life.map_or(0, |life| life.state_since_ms),
        }
    }
}

impl Facts {
    pub(crate) async fn of(engine: &Engine) -> Self {
        let snapshot = engine.figures();
        let status = engine.member().map(stoa_member::Member::status);
        let refusals = &snapshot.refusals;
        let refused = refusals.too_large + refusals.out_of_memory + snapshot.executors.refused;
        let log = snapshot.log.as_ref();
        Self {
            me: status.as_ref().map(|status| status.me),
            daemons: status.iter().flat_map(daemons).collect(),
            logs_orphaned: status
                .iter()
                .flat_map(|status| &status.logs)
                .filter(|log| !log.alive)
                .count(),
            exact: status.as_ref().is_none_or(|status| status.exact),
            catalog_reachable: snapshot.catalog.reachable,
            log_stopped: log.and_then(|log| log.stopped.clone()),
            disk_used: disk_used(log.and_then(|log| local_path(&log.place))).await,
            refused,
        }
    }

    /// Whether this daemon is the one to tell of a change. Of the cluster tells the lowest daemon of those that were up
    /// when it began: all of them agree who that is, and whoever comes later neither tells again nor keeps others from it.
    pub(crate) fn tells(&self, change: &Change) -> bool {
        if ![DAEMON_DIED, LOG_ORPHANED].contains(&change.alert.alert.as_str()) {
            return true;
        }
        let up = || self.daemons.iter().filter(|daemon| daemon.is_up);
        let since = change.alert.since_unix_ms;
        let witnesses = up().filter(|daemon| daemon.state_since_unix_ms <= since);
        let first = witnesses.map(|daemon| daemon.id).min();
        // Where they are all gone, somebody else says that it is over.
        let anyone = || up().map(|daemon| daemon.id).min().filter(|_| !change.is_on);
        first.or_else(anyone) == self.me
    }

    /// What an alert about this daemon is about.
    fn own(&self) -> String {
        self.me.map(|me| me.to_string()).unwrap_or_default()
    }
}

fn died(daemon: &DaemonFacts) -> Condition {
    Condition {
        alert: DAEMON_DIED,
        about: daemon.id.to_string(),
        summary: format!("daemon {} on {} has died", daemon.id, daemon.host),
        may_pass: false,
        since_unix_ms: Some(daemon.state_since_unix_ms),
    }
}

fn daemons(status: &MembersStatus) -> impl Iterator<Item = DaemonFacts> {
    status.members.iter().map(DaemonFacts::of)
}

fn local_path(place: &str) -> Option<PathBuf> {
    let url = Url::parse(place).ok()?;
    (url.scheme() == "file").then(|| url.to_file_path().ok())?
}

/// A disk that does not answer must not keep those who serve connections waiting.
async fn disk_used(path: Option<PathBuf>) -> Option<f64> {
    let path = path?;
    task::spawn_blocking(move || used_share(&path)).await.ok()?
}

/// The rules, with what they must remember.
pub(crate) struct Conditions {
    after: Duration,
    disk_used_max: f64,
    refused_max: u64,
    /// Refused statements at earlier times, the oldest first, which is at least `after` old once the server is.
    refused: VecDeque<(Instant, u64)>,
}

impl Conditions {
    pub(crate) fn new(options: &AlertOptions) -> Self {
        Self {
            after: options.after,
            disk_used_max: options.disk_used_max,
            refused_max: options.refused_max,
            refused: VecDeque::new(),
        }
    }

    /// All that is wrong now.
    pub(crate) fn look(&mut self, facts: &Facts, now: Instant) -> Vec<Condition> {
        let dead = facts.daemons.iter().filter(|daemon| daemon.has_died);
        let mut found: Vec<Condition> = dead.map(died).collect();
        let own = |alert, summary: String, may_pass| Condition {
            alert,
            about: facts.own(),
            summary,
            may_pass,
            since_unix_ms: None,
        };
        if facts.logs_orphaned > 0 {
            let summary =
                "the log of a dead daemon was not taken over: statements that change rows wait";
            // About the cluster, whoever looks.
            found.push(Condition {
                about: String::new(),
                ..own(LOG_ORPHANED, summary.to_owned(), true)
            });
        }
        let unreached = facts.daemons.iter().filter(|daemon| !daemon.is_reached);
        found.extend(unreached.map(|daemon| {
            let summary = format!(
                "daemon {} on {} is not reached: small writes wait",
                daemon.id, daemon.host
            );
            Condition { about: daemon.id.to_string(), ..own(DAEMON_NOT_REACHED, summary, true) }
        }));
        if !facts.exact {
            let summary = "reads may miss rows that other daemons have acknowledged, or wait";
            found.push(own(READS_NOT_EXACT, summary.to_owned(), true));
        }
        if !facts.catalog_reachable {
            let summary = "the catalog's database does not answer: commits and DDL wait";
            found.push(own(CATALOG_UNREACHABLE, summary.to_owned(), true));
        }
        if let Some(stopped) = &facts.log_stopped {
            found.push(own(LOG_STOPPED, format!("small writes are refused: {stopped}"), false));
        }
        if let Some(used) = facts.disk_used.filter(|used| *used > self.disk_used_max) {
            let summary = format!("the disk of the commit log is {:.0} % full", used * 100.0);
            found.push(own(DISK_NEARLY_FULL, summary, false));
        }
        let refused = self.refused_lately(facts.refused, now);
        if refused > self.refused_max {
            let within = self.after.as_secs();
            let summary = format!("{refused} statements were refused within {within} s");
            found.push(own(STATEMENTS_REFUSED, summary, false));
        }
        found
    }

    fn refused_lately(&mut self, refused: u64, now: Instant) -> u64 {
        self.refused.push_back((now, refused));
        // The second one is old enough: the first is not needed any more.
        while self.refused.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= self.after) {
            self.refused.pop_front();
        }
        self.refused.front().map_or(0, |(_, before)| refused.saturating_sub(*before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon(id: u64, is_up: bool, has_died: bool) -> DaemonFacts {
        let id = DaemonId::from_bits(id);
        DaemonFacts {
            id,
            host: "one".to_owned(),
            is_up,
            has_died,
            is_reached: true,
            state_since_unix_ms: 100,
        }
    }

    fn healthy() -> Facts {
        Facts {
            me: Some(DaemonId::from_bits(2)),
            daemons: vec![daemon(1, true, false), daemon(2, true, false)],
            exact: true,
            catalog_reachable: true,
            disk_used: Some(0.9),
            ..Facts::default()
        }
    }

    fn names(found: &[Condition]) -> Vec<&str> {
        found.iter().map(|condition| condition.alert).collect()
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        let mut unreached = daemon(3, true, false);
        unreached.is_reached = false;
        let h = healthy;
        for (facts, wanted) in [
            (h(), None),
            (Facts { logs_orphaned: 1, ..h() }, Some(LOG_ORPHANED)),
            (Facts { exact: false, ..h() }, Some(READS_NOT_EXACT)),
            (Facts { catalog_reachable: false, ..h() }, Some(CATALOG_UNREACHABLE)),
            (Facts { log_stopped: Some("no room".to_owned()), ..h() }, Some(LOG_STOPPED)),
            (Facts { disk_used: Some(0.91), ..h() }, Some(DISK_NEARLY_FULL)),
            (Facts { daemons: vec![unreached], ..h() }, Some(DAEMON_NOT_REACHED)),
        ] {
            let mut conditions = Conditions::new(&AlertOptions::default());
            let found = conditions.look(&facts, stoa_env::clock::monotonic());
            assert_eq!(names(&found), wanted.into_iter().collect::<Vec<_>>(), "{facts:?}");
        }
    }

    #[test]
    fn refusals_count_for_a_while() {
        let options = AlertOptions { refused_max: 10, ..AlertOptions::default() };
        let mut conditions = Conditions::new(&options);
        let start = stoa_env::clock::monotonic();
        // 50 before this began do not count.
        for (second, refused, is_alert) in
            [(0, 50, false), (30, 60, false), (31, 61, true), (89, 61, true), (92, 61, false)]
        {
            let facts = Facts { refused, ..healthy() };
            let found = conditions.look(&facts, start + Duration::from_secs(second));
            assert_eq!(!found.is_empty(), is_alert, "at {second}: {found:?}");
        }
    }

    #[test]
    fn of_the_cluster_tells_one_of_those_who_saw_it_begin() {
        let change = |alert: &str, since_unix_ms, is_on| {
            let alert = alert.to_owned();
            let alert = stoa_figures::Alert { alert, since_unix_ms, ..Default::default() };
            Change { alert, is_on }
        };
        // 1 and 2 are up since 100; who looks is 2.
        let facts = healthy();
        assert!(!facts.tells(&change(DAEMON_DIED, 100, true)));
        assert!(facts.tells(&change(LOG_STOPPED, 100, true)), "of itself each tells");
        let with = |one: DaemonFacts, two_since| {
            let two = DaemonFacts { state_since_unix_ms: two_since, ..daemon(2, true, false) };
            Facts { daemons: vec![one, two], ..healthy() }
        };
        let dead = || daemon(1, false, true);
        let late = || DaemonFacts { state_since_unix_ms: 300, ..daemon(1, true, false) };
        for (facts, since, on, off) in [
            (with(dead(), 100), 200, true, true),
            // The first one has come later: it has not seen it.
            (with(late(), 100), 200, true, true),
            (with(late(), 100), 400, false, false),
            // Nobody has seen it begin.
            (with(dead(), 300), 200, false, true),
            (with(late(), 300), 200, false, false),
        ] {
            assert_eq!(facts.tells(&change(DAEMON_DIED, since, true)), on, "{facts:?}");
            assert_eq!(facts.tells(&change(DAEMON_DIED, since, false)), off, "{facts:?}");
        }
    }
}
