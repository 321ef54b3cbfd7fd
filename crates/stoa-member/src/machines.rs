//! The machines of [`stoa_cluster`] of one daemon, and what is remembered beside them.

use std::collections::{BTreeMap, BTreeSet};

use stoa_catalog::ClusterState;
use stoa_cluster::fresh::Owner;
use stoa_cluster::lease::{Holder, Lease};
use stoa_cluster::membership::{MemberAction, MemberOptions, Membership};
use stoa_cluster::placement::{KeyHash, rank};
use stoa_cluster::watch::Watch;
use stoa_cluster::{DaemonId, DatabaseTime, Monotonic, TableId};
use uuid::Uuid;

use crate::names::log_of;

pub(crate) struct Machines {
    pub(crate) membership: Membership,
    /// The log of this daemon, as its peers have it.
    pub(crate) owner: Owner,
    /// Its lease.
    pub(crate) own_lease: Lease,
    /// How long the leases of logs have been unchanged.
    pub(crate) leases: Watch<String, (Holder, u64, DatabaseTime)>,
    pub(crate) awaited: Awaited,
    /// Lives of peers that records are being sent to.
    pub(crate) sending: BTreeSet<Holder>,
    /// Lives of peers whose connections were ended.
    pub(crate) gone: BTreeSet<Holder>,
    /// Leases of logs that are being taken over.
    pub(crate) taking: BTreeSet<String>,
    pub(crate) takeovers: u64,
    /// Logs that there were when members were last read.
    logs: BTreeSet<String>,
    /// Reads that were asked for before the last answer was handled may be older than it: their numbers end here,
    /// inclusive.
    read_to: u64,
    /// The number of the last read that was asked for.
    asked: u64,
    /// When daemons with logs that we have not heard of were last greeted.
    pub(crate) greeted: Monotonic,
}

/// Logs that this daemon must hear of before its reads are exact.
#[derive(Default)]
pub(crate) struct Awaited {
    /// `None` before they were read for the first time. Of each: what was durable when its owner first sent.
    logs: Option<BTreeMap<String, Option<u64>>>,
    /// Logs that we have heard of before we have read which there are: what was durable when its owner first sent,
    /// and what is shown. Owners send once and then only what is new, so their first word must not be lost.
    early: BTreeMap<String, (u64, u64)>,
}

impl Machines {
    pub(crate) fn new(
        membership: Membership,
        owner: Owner,
        own_lease: Lease,
        options: MemberOptions,
    ) -> Self {
        Self {
            membership,
            owner,
            own_lease,
            leases: Watch::new(options.read_each * 2),
            awaited: Awaited::default(),
            sending: BTreeSet::new(),
            gone: BTreeSet::new(),
            taking: BTreeSet::new(),
            takeovers: 0,
            logs: BTreeSet::new(),
            read_to: 0,
            asked: 0,
            greeted: Monotonic::default(),
        }
    }

    /// Takes note of the reads that are asked for.
    pub(crate) fn asked(&mut self, actions: &[MemberAction]) {
        for action in actions {
            if let MemberAction::Read { request } = action {
                self.asked = *request;
            }
        }
    }

    /// Whether the answer to this read is newer than those that were handled before, for certain. Of two reads that
    /// are under way at once nobody knows which is older, and what is in an older one is not gone in the newer.
    pub(crate) fn is_newer(&mut self, request: u64) -> bool {
        let is_newer = request > self.read_to;
        if is_newer {
            self.read_to = self.asked.max(request);
        }
        is_newer
    }

    /// Takes note of the logs that there are; gives those that are retired since the last read.
    pub(crate) fn see_logs(
        &mut self,
        state: &ClusterState,
        own: &str,
        now: Monotonic,
    ) -> Vec<String> {
        let mut logs = BTreeSet::new();
        for (name, lease) in &state.leases {
            let Some(log) = log_of(name) else { continue };
            if log == own {
                continue;
            }
            logs.insert(log.to_owned());
            let row = lease.row;
            self.leases.see(name.clone(), (row.holder, row.epoch, row.until), now);
        }
        self.awaited.see(&logs);
        let retired = self.logs.difference(&logs).cloned().collect();
        self.logs = logs;
        retired
    }

    /// Whether `me` is first of those that are up, for a table.
    pub(crate) fn maintains(&self, me: DaemonId, table: Uuid) -> bool {
        let key = KeyHash::of_bucket(TableId(*table.as_bytes()), 0);
        let first = rank(key, &self.membership.takers(), 1);
        first.first().is_none_or(|first| *first == me)
    }
}

impl Awaited {
    fn see(&mut self, logs: &BTreeSet<String>) {
        match &mut self.logs {
            // A log that appears later is one whose owner knows us.
            Some(awaited) => awaited.retain(|log, _| logs.contains(log)),
            None => {
                let early = std::mem::take(&mut self.early);
                self.logs = Some(logs.iter().map(|log| (log.clone(), None)).collect());
                for (log, (durable, shown)) in early {
                    self.heard(&log, durable, shown);
                }
            }
        }
    }

    /// Takes note that the owner of a log has sent us something: what was durable then is to be shown.
    pub(crate) fn heard(&mut self, log: &str, durable: u64, shown: u64) {
        let Some(awaited) = &mut self.logs else {
            self.early.entry(log.to_owned()).or_insert((durable, shown)).1 = shown;
            return;
        };
        let Some(from) = awaited.get_mut(log) else { return };
        if shown >= *from.get_or_insert(durable) {
            awaited.remove(log);
        }
    }

    /// Those that have not been heard of.
    pub(crate) fn logs(&self) -> Vec<String> {
        self.logs.iter().flatten().map(|(log, _)| log.clone()).collect()
    }

    /// Whether everything that was acknowledged before we joined is shown.
    pub(crate) fn is_complete(&self) -> bool {
        self.logs.as_ref().is_some_and(BTreeMap::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_durable_at_the_first_word_of_each_log_is_awaited() {
        let mut awaited = Awaited::default();
        assert!(!awaited.is_complete(), "the logs have not been read");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        awaited.see(&names(&["a", "b"]));
        awaited.heard("a", 7, 3);
        awaited.heard("a", 9, 6);
        assert_eq!(awaited.logs(), ["a", "b"]);
        awaited.heard("a", 9, 7);
        assert_eq!(awaited.logs(), ["b"]);
        // Retired; and a new one is not waited for.
        awaited.see(&names(&["a", "c"]));
        assert!(awaited.is_complete());
    }

    /// A daemon that has just joined is sent to at once, before it has read who there is.
    #[test]
    fn the_first_word_may_come_before_the_logs_are_read() {
        let mut awaited = Awaited::default();
        awaited.heard("a", 5, 5);
        awaited.heard("b", 7, 3);
        awaited.heard("b", 9, 4);
        awaited.heard("retired", 1, 1);
        awaited.see(&["a", "b", "c"].map(str::to_owned).into());
        assert_eq!(awaited.logs(), ["b", "c"]);
        awaited.heard("b", 9, 7);
        awaited.heard("c", 0, 0);
        assert!(awaited.is_complete());
    }

    #[test]
    fn of_reads_that_are_under_way_at_once_one_counts() {
        let options = MemberOptions::default();
        let daemon = DaemonId::from_bits(1);
        let log = stoa_cluster::LogId::from_bits(1);
        let mut machines = Machines::new(
            Membership::new(daemon, options),
            Owner::new(log, 0, [], stoa_cluster::fresh::OwnerOptions::default()),
            Lease::new(options.lease),
            options,
        );
        let ask = |machines: &mut Machines, request| {
            machines.asked(&[MemberAction::Read { request }]);
        };
        ask(&mut machines, 3);
        assert!(machines.is_newer(3));
        ask(&mut machines, 5);
        ask(&mut machines, 6);
        assert!(machines.is_newer(5));
        assert!(!machines.is_newer(6), "asked for before five was answered");
        ask(&mut machines, 7);
        assert!(machines.is_newer(7));
        assert!(!machines.is_newer(7));
    }
}
