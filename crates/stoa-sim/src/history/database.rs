//! The database: members, leases, the table's version. Each statement is one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use stoa_cluster::lease::{Arbiter, Holder};
use stoa_cluster::membership::{MemberOptions, MemberTable};
use stoa_cluster::pins::Pin;
use stoa_cluster::{DaemonId, DatabaseTime};

use super::Mutation;
use super::message::{Commit, Name, Returned, Snapshot, Statement, Version};

/// Leases are from the year 2026: jumps backwards stay above zero.
const EPOCH: Duration = Duration::from_secs(1_780_000_000);

pub struct Database {
    pub members: MemberTable,
    pub leases: Arbiter<Name>,
    names: BTreeSet<Name>,
    pub version: Rc<Version>,
    pins: BTreeMap<Holder, u64>,
    /// How far the clock is ahead, in milliseconds.
    pub clock_ahead_ms: i64,
    options: MemberOptions,
    mutation: Option<Mutation>,
}

impl Database {
    pub fn new(options: MemberOptions, mutation: Option<Mutation>) -> Self {
        Self {
            members: MemberTable::default(),
            leases: Arbiter::default(),
            names: BTreeSet::new(),
            version: Rc::default(),
            pins: BTreeMap::new(),
            clock_ahead_ms: 0,
            options,
            mutation,
        }
    }

    fn now(&self, now_ms: u64) -> DatabaseTime {
        let ms = now_ms.saturating_add_signed(self.clock_ahead_ms + EPOCH.as_millis() as i64);
        DatabaseTime(Duration::from_millis(ms))
    }

    /// Runs a statement of `daemon`, whose own clock shows `wall_ahead_ms` more than the time.
    pub fn run(
        &mut self,
        daemon: DaemonId,
        statement: Statement,
        now_ms: u64,
        wall_ahead_ms: i64,
    ) -> Result<Returned, String> {
        let mut now = self.now(now_ms);
        let ttl = self.options.lease.ttl;
        let returned = match statement {
            Statement::Join => Returned::Joined(self.members.join(daemon, ttl, now)),
            Statement::Renew { me, pin } => {
                let is_alive = self.members.renew(me, ttl, now);
                if let (true, Some(pin)) = (is_alive, pin) {
                    let pinned = self.pins.entry(me).or_default();
                    *pinned = (*pinned).max(pin);
                }
                Returned::Changed(is_alive)
            }
            Statement::SetState { me, state } => {
                Returned::Changed(self.members.set_state(me, state))
            }
            Statement::Suspect { peer, me } => {
                let window = self.options.suspicion_window;
                Returned::Changed(self.members.suspect(peer, me, window, now))
            }
            Statement::Trust { peer, me } => Returned::Changed(self.members.trust(peer, me)),
            Statement::Expire { peer, observed } => {
                let mut observed = observed;
                if self.trusts_clocks(&mut now, now_ms, wall_ahead_ms) {
                    observed = self.members.get(peer.daemon).map_or(observed, |row| row.until);
                }
                Returned::Changed(self.members.expire(peer, observed, now))
            }
            Statement::Read => Returned::Read(Box::new(self.snapshot())),
            Statement::Acquire { name, holder, observed } => {
                let mut observed = observed;
                let mut at = now;
                if self.trusts_clocks(&mut at, now_ms, wall_ahead_ms) {
                    observed = self.leases.row(&name).map(|row| row.until);
                }
                // The judgement is by the clock that a mutation may exchange, the grant by the right one.
                let row = self.leases.row(&name);
                let is_free = row.is_none_or(|row| row.until < at || row.holder == holder);
                let at = if is_free { at.max(now) } else { now };
                let epoch =
                    is_free.then(|| self.leases.acquire(name, holder, observed, ttl, at)).flatten();
                self.names.insert(name);
                Returned::Epoch(epoch)
            }
            Statement::RenewLease(token) => Returned::Changed(self.leases.renew(
                &token.name,
                token.holder,
                token.epoch,
                ttl,
                now,
            )),
            Statement::Commit(commit) => self.commit(commit)?,
            Statement::Retire { token, log } => {
                if !self.leases.check(&token.name, token.holder, token.epoch) {
                    return Ok(Returned::Fenced);
                }
                let mut version = Version::clone(&self.version);
                version.number += 1;
                version.positions.remove(&log);
                version.retired.insert(log);
                self.version = Rc::new(version);
                Returned::Committed(self.version.clone())
            }
            Statement::Forget { file } => {
                Rc::make_mut(&mut self.version).replaced.remove(&file);
                Returned::Changed(true)
            }
        };
        Ok(returned)
    }

    /// Whether a mutation lets a clock alone decide; `now` becomes what that clock shows.
    fn trusts_clocks(&self, now: &mut DatabaseTime, now_ms: u64, wall_ahead_ms: i64) -> bool {
        if self.mutation == Some(Mutation::ExpiryByOwnWallClock) {
            let ms = now_ms.saturating_add_signed(wall_ahead_ms + EPOCH.as_millis() as i64);
            *now = DatabaseTime(Duration::from_millis(ms));
            return true;
        }
        self.mutation == Some(Mutation::ExpiryByDatabaseClockAlone)
    }

    fn commit(&mut self, commit: Commit) -> Result<Returned, String> {
        let token = commit.token;
        let is_valid = self.leases.check(&token.name, token.holder, token.epoch);
        if !is_valid && self.mutation != Some(Mutation::CommitWithoutToken) {
            return Ok(Returned::Fenced);
        }
        if commit.expected != self.version.number {
            return Ok(Returned::Moved);
        }
        if !is_valid {
            return Err(format!("a commit under {token:?}, which another has"));
        }
        let mut version = Version::clone(&self.version);
        version.number += 1;
        if let Some((log, to)) = commit.position {
            let position = version.positions.entry(log).or_default();
            if *position > to {
                return Err(format!("the position of {log} goes back from {position} to {to}"));
            }
            *position = to;
        }
        for file in commit.remove {
            version.files.remove(&file);
            version.replaced.insert(file, version.number);
        }
        version.files.insert(commit.add);
        self.version = Rc::new(version);
        Ok(Returned::Committed(self.version.clone()))
    }

    fn snapshot(&self) -> Snapshot {
        let leases = self.names.iter().filter_map(|name| Some((*name, *self.leases.row(name)?)));
        let pins =
            self.pins.iter().map(|(holder, version)| Pin { holder: *holder, version: *version });
        Snapshot {
            members: self.members.clone(),
            leases: leases.collect(),
            version: self.version.clone(),
            pins: pins.collect(),
        }
    }
}
