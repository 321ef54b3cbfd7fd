//! Reads on this process, and reports that it passes on.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use stoa_cluster::fresh::{Freshness, ReadAnswer, ReadRequest, Seen};
use stoa_cluster::hot::choose;
use stoa_cluster::membership::MemberEvent;
use stoa_cluster::placement::{Bucket, Placement};
use stoa_cluster::{DaemonId, Monotonic, TableId};

use super::{Daemon, Out};
use crate::history::Mutation;
use crate::history::message::{PeerMessage, Row, Version};

/// After which time a report that was passed on is computed here.
const REPORT_PATIENCE: Duration = Duration::from_millis(300);

/// What a read shows: the version's files, and these rows.
pub struct Answer {
    pub seen: Seen,
    pub version: Rc<Version>,
    pub fresh: Vec<Row>,
}

/// A read that takes long.
pub struct Scan {
    pub version: Rc<Version>,
    pub until: Monotonic,
}

/// Reports that were passed on and not answered.
#[derive(Default)]
pub struct Reports {
    waiting: BTreeMap<u64, (DaemonId, Monotonic)>,
    placement: Option<(u64, Placement)>,
}

impl Daemon {
    /// Answers a read, if this daemon can; `Err` names a record that is shown but not there.
    pub fn answer(
        &self,
        freshness: Freshness,
        seen: &Seen,
        now: Monotonic,
    ) -> Result<Option<Answer>, String> {
        let now = if self.mutation == Some(Mutation::StaleClock) { self.last_tick } else { now };
        let Some(version) = &self.version else { return Ok(None) };
        let request = ReadRequest { freshness, seen, deadline: self.deadline() };
        let ReadAnswer::Show(shown) = self.replica.read(request, now) else { return Ok(None) };
        let mut fresh = vec![];
        for (log, to) in &shown.logs {
            let from = version.positions.get(log).copied().unwrap_or(0);
            for sequence in from + 1..=*to {
                let row = self.fresh.get(log).and_then(|records| records.get(&sequence));
                let hole = || format!("record {sequence} of {log} is shown, but not there");
                fresh.push(*row.ok_or_else(hole)?);
            }
        }
        Ok(Some(Answer { seen: shown, version: version.clone(), fresh }))
    }

    /// Begins a read of the present version that lasts until `until`.
    pub fn scan(&mut self, until: Monotonic) {
        if let Some(version) = self.version.clone() {
            self.scans.push(Scan { version, until });
        }
    }

    /// Ends scans; returns those that ended.
    pub fn ended_scans(&mut self, now: Monotonic) -> Vec<Scan> {
        let (ended, running) =
            std::mem::take(&mut self.scans).into_iter().partition(|scan| scan.until <= now);
        self.scans = running;
        ended
    }

    /// The versions that reads of this process use or will use.
    pub fn pinned(&self) -> impl Iterator<Item = &Rc<Version>> {
        self.scans.iter().map(|scan| &scan.version).chain(&self.version)
    }

    pub(super) fn oldest_version(&self) -> Option<u64> {
        self.pinned().map(|version| version.number).min()
    }

    /// Takes a report for `bucket`: passes it on to a home, or answers it.
    pub fn report(&mut self, report: u64, bucket: u32, now: Monotonic) {
        let epoch = self.membership.table().epoch();
        if self.reports.placement.as_ref().is_none_or(|(known, _)| *known != epoch) {
            let buckets: Vec<_> =
                (0..8).map(|number| Bucket { number, since: 1, bytes: 1000 }).collect();
            let candidates = self.membership.candidates(|_| 1);
            let placement = Placement::new(TableId([0; 16]), &buckets, &candidates);
            self.reports.placement = Some((epoch, placement));
        }
        let homes =
            self.reports.placement.iter().flat_map(|(_, placement)| placement.homes(bucket));
        let homes: Vec<_> = homes.copied().take(2).collect();
        let in_flight = |home: DaemonId| {
            let count = self.reports.waiting.values().filter(|(other, _)| *other == home).count();
            (home == self.id || self.membership.is_routed(home)).then_some(count as u64)
        };
        match choose(&homes, report, in_flight) {
            Some(home) if home != self.id => {
                self.reports.waiting.insert(report, (home, now));
                self.out.push(Out::Peer { to: home, message: PeerMessage::Report { report } });
            }
            _ => self.report_here(report, now),
        }
    }

    fn report_here(&mut self, report: u64, now: Monotonic) {
        let is_answered = self.version.is_none() || self.answers_reports(now);
        self.out.push(Out::Reported { report, is_answered });
    }

    pub(super) fn reported(&mut self, report: u64) {
        if self.reports.waiting.remove(&report).is_some() {
            self.out.push(Out::Reported { report, is_answered: true });
        }
    }

    pub(super) fn tick_reports(&mut self, now: Monotonic) {
        let waiting = self.reports.waiting.iter();
        let late: Vec<_> = waiting
            .filter(|(_, (_, sent))| now.since(*sent) >= REPORT_PATIENCE)
            .map(|(report, (home, _))| (*report, *home))
            .collect();
        for (report, home) in late {
            self.reports.waiting.remove(&report);
            self.membership.on(MemberEvent::Failed { peer: home }, now);
            self.report_here(report, now);
        }
    }
}
