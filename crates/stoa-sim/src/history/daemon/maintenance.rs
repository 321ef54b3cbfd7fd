//! Compaction and deletion of files, by whoever has the lease for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stoa_cluster::Monotonic;
use stoa_cluster::lease::{Lease, LeaseAction, LeaseEvent, LeaseOptions};
use stoa_cluster::pins::{ReplacedFile, may_delete};

use super::{Daemon, Purpose};
use crate::history::Mutation;
use crate::history::message::{
    Commit, FileId, Name, Request, Returned, Snapshot, Statement, Token,
};

/// Files from which a compaction begins.
const FILES_MIN: usize = 4;

/// How long replaced files stay for other engines. Short, so that pins are what counts.
const GRACE: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
pub enum Call {
    Acquire { request: u64 },
    Renew { request: u64 },
    PutFile { file: FileId },
    Commit,
    Delete { file: FileId },
}

pub struct Maintenance {
    pub lease: Lease,
    epoch: u64,
    commit: Option<(Monotonic, Commit)>,
    seen: BTreeMap<FileId, Monotonic>,
}

impl Maintenance {
    pub fn new(options: LeaseOptions) -> Self {
        Self { lease: Lease::new(options), epoch: 0, commit: None, seen: BTreeMap::new() }
    }
}

impl Daemon {
    pub(super) fn tick_maintenance(&mut self, now: Monotonic) {
        self.maintenance_event(LeaseEvent::Tick, now);
    }

    fn maintenance_event(&mut self, event: LeaseEvent, now: Monotonic) {
        let Some(holder) = self.membership.me() else { return };
        let name = Name::Maintenance;
        for action in self.maintenance.lease.on(event, now) {
            match action {
                LeaseAction::Acquire { request, observed } => {
                    let call = Purpose::Maintenance(Call::Acquire { request });
                    self.statement(Statement::Acquire { name, holder, observed }, call);
                }
                LeaseAction::Renew { request, epoch } => {
                    let token = Token { name, holder, epoch };
                    let call = Purpose::Maintenance(Call::Renew { request });
                    self.statement(Statement::RenewLease(token), call);
                }
                LeaseAction::Stop => self.maintenance.lease = Lease::new(self.options.lease),
            }
        }
    }

    /// Asks for the lease, or does what it is for.
    pub(super) fn maintain(&mut self, snapshot: &Snapshot, now: Monotonic) {
        let row = snapshot.leases.iter().find(|(name, _)| *name == Name::Maintenance);
        let observed = row.map(|(_, row)| row.until);
        let trusts_clocks = matches!(
            self.mutation,
            Some(Mutation::ExpiryByDatabaseClockAlone | Mutation::ExpiryByOwnWallClock)
        );
        let ttl = self.options.lease.ttl;
        let is_patient = self.leases.unchanged_for(&Name::Maintenance) >= ttl || trusts_clocks;
        if self.maintenance.lease.holds(now).is_some() {
            self.delete_files(snapshot, now);
            self.compact(snapshot, now);
        } else if observed.is_none() || is_patient {
            self.maintenance_event(LeaseEvent::Acquire { observed }, now);
        }
    }

    fn delete_files(&mut self, snapshot: &Snapshot, now: Monotonic) {
        for (file, replaced_in) in &snapshot.version.replaced {
            let seen = *self.maintenance.seen.entry(*file).or_insert(now);
            let replaced = ReplacedFile { replaced_in: *replaced_in, seen };
            let pins = &snapshot.pins;
            let ignores_pins = self.mutation == Some(Mutation::IgnorePins);
            let may = may_delete(replaced, pins, &snapshot.members, GRACE, now);
            if may || ignores_pins && now.since(seen) >= GRACE {
                let call = Purpose::Maintenance(Call::Delete { file: *file });
                self.request(Request::DeleteFile { file: *file }, call);
            }
        }
    }

    fn compact(&mut self, snapshot: &Snapshot, now: Monotonic) {
        let is_busy = self.maintenance.commit.as_ref();
        let is_busy = is_busy.is_some_and(|(since, _)| now.since(*since) < Self::PATIENCE);
        let Some(holder) = self.membership.me() else { return };
        if is_busy || snapshot.version.files.len() < FILES_MIN {
            return;
        }
        let token = Token { name: Name::Maintenance, holder, epoch: self.maintenance.epoch };
        let file = self.new_file();
        let remove: BTreeSet<_> = snapshot.version.files.clone();
        let expected = snapshot.version.number;
        let commit = Commit { token, expected, add: file, remove, position: None };
        self.maintenance.commit = Some((now, commit));
        // The world knows what the files hold.
        let call = Purpose::Maintenance(Call::PutFile { file });
        self.request(Request::PutFile { file, rows: vec![] }, call);
    }

    /// The files that the compaction under `file` merges.
    pub fn merged(&self, file: FileId) -> Option<&BTreeSet<FileId>> {
        let (_, commit) = self.maintenance.commit.as_ref()?;
        (commit.add == file).then_some(&commit.remove)
    }

    pub(super) fn maintenance_returned(&mut self, call: Call, returned: Returned, now: Monotonic) {
        let deadline = self.answered.entry(Name::Maintenance).or_default();
        match (call, returned) {
            (Call::Acquire { request }, Returned::Epoch(Some(epoch))) => {
                deadline.extend(now, self.options.lease);
                self.maintenance.epoch = epoch;
                self.maintenance_event(LeaseEvent::Granted { request, epoch }, now);
            }
            (Call::Acquire { request }, _) => {
                self.maintenance_event(LeaseEvent::Refused { request }, now);
            }
            (Call::Renew { request }, Returned::Changed(true)) => {
                deadline.extend(now, self.options.lease);
                self.maintenance_event(LeaseEvent::Renewed { request }, now);
            }
            (Call::Renew { request }, _) => {
                self.maintenance_event(LeaseEvent::Refused { request }, now);
            }
            (Call::Commit, returned) => {
                self.maintenance.commit = None;
                if let Returned::Committed(version) = returned {
                    self.load(&version);
                }
            }
            _ => {}
        }
    }

    pub(super) fn maintenance_response(&mut self, call: Call, _now: Monotonic) {
        match call {
            // Not for an earlier attempt, whose answer is late.
            Call::PutFile { file } => {
                if let Some((_, commit)) = &self.maintenance.commit
                    && commit.add == file
                {
                    let commit = commit.clone();
                    self.statement(Statement::Commit(commit), Purpose::Maintenance(Call::Commit));
                }
            }
            Call::Delete { file } => {
                self.statement(Statement::Forget { file }, Purpose::Other);
            }
            _ => {}
        }
    }
}
