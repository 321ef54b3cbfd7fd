//! What follows from a read of the database.

use std::collections::BTreeSet;
use std::rc::Rc;

use stoa_cluster::Monotonic;
use stoa_cluster::fresh::ReplicaEvent;
use stoa_cluster::membership::MemberEvent;

use super::Daemon;
use crate::history::message::{Name, Snapshot, Version};

impl Daemon {
    /// The database was read.
    pub(super) fn read(&mut self, request: Option<u64>, snapshot: Snapshot, now: Monotonic) {
        self.load(&snapshot.version);
        let Some(request) = request else { return };
        let retired = &snapshot.version.retired;
        let mut logs = BTreeSet::new();
        for (name, row) in &snapshot.leases {
            self.leases.see(*name, (row.holder, row.epoch, row.until), now);
            if let Name::Log(log) = name
                && !retired.contains(log)
            {
                self.owners.insert(*log, row.holder.daemon);
                logs.insert(*log);
            }
        }
        let actions =
            self.membership.on(MemberEvent::Read { request, table: snapshot.members.clone() }, now);
        self.member_actions(actions);
        if !self.knows_logs {
            self.knows_logs = true;
            logs.remove(&self.own.log);
            self.replica_event(ReplicaEvent::Logs(logs.into_iter().collect()));
        }
        self.own_log_read(now);
        self.begin_takeovers(&snapshot, now);
        self.maintain(&snapshot, now);
    }

    /// Takes over a version, if it is newer.
    pub(super) fn load(&mut self, version: &Rc<Version>) {
        if self.version.as_ref().is_some_and(|known| known.number >= version.number) {
            return;
        }
        self.version = Some(version.clone());
        let (number, positions) = (version.number, version.positions.clone());
        for (log, position) in &positions {
            if let Some(records) = self.fresh.get_mut(log) {
                *records = records.split_off(&(position + 1));
            }
        }
        self.replica_event(ReplicaEvent::Version { number, positions });
        for log in &version.retired {
            self.fresh.remove(log);
            self.owners.remove(log);
            self.replica_event(ReplicaEvent::Retired(*log));
        }
    }
}
