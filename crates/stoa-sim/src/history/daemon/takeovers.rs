//! Logs of the dead that this process takes over.

use std::collections::BTreeSet;

use stoa_cluster::lease::{LeaseAction, LeaseEvent};
use stoa_cluster::takeover::{Step, Takeover, TakeoverAction, TakeoverEvent, is_due};
use stoa_cluster::{LogId, Monotonic};

use super::{Daemon, Purpose};
use crate::history::Mutation;
use crate::history::message::{
    Commit, Name, Request, Response, Returned, Row, Segment, Snapshot, Statement, Token,
};

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Acquire { request: u64 },
    Renew { request: u64 },
    ListToClaim,
    PutClaim,
    ReadVersion,
    ListToReplay,
    PutFile,
    Commit,
    Release,
    Retire,
}

pub struct Running {
    pub machine: Takeover,
    epoch: u64,
    rows: Vec<Row>,
    from: u64,
    expected: u64,
    commit: Option<Commit>,
    /// When the present step was begun.
    since: Monotonic,
}

impl Daemon {
    pub(super) fn begin_takeovers(&mut self, snapshot: &Snapshot, now: Monotonic) {
        self.takeovers.retain(|_, run| !matches!(run.machine.step(), Step::Done | Step::Abandoned));
        if !self.membership.holds(now) {
            return;
        }
        let Some(me) = self.membership.me() else { return };
        let options = self.options.lease;
        for (name, row) in &snapshot.leases {
            let Name::Log(log) = *name else { continue };
            let unchanged_for = match self.mutation {
                Some(Mutation::ExpiryByDatabaseClockAlone | Mutation::ExpiryByOwnWallClock) => {
                    options.ttl
                }
                _ => self.leases.unchanged_for(name),
            };
            let is_open = log != self.own.log && !snapshot.version.retired.contains(&log);
            let is_due = is_due(log, row, me, &self.membership, unchanged_for, options);
            if is_open && is_due && !self.takeovers.contains_key(&log) {
                let machine = Takeover::new(self.options.lease);
                let (rows, from, expected) = (vec![], 0, 0);
                let run =
                    Running { machine, epoch: 0, rows, from, expected, commit: None, since: now };
                self.takeovers.insert(log, run);
                let observed = Some(row.until);
                let event = TakeoverEvent::Lease(LeaseEvent::Acquire { observed });
                self.takeover_event(log, event, now);
            }
        }
    }

    pub(super) fn tick_takeovers(&mut self, now: Monotonic) {
        for log in self.takeovers.keys().copied().collect::<Vec<_>>() {
            self.takeover_event(log, TakeoverEvent::Lease(LeaseEvent::Tick), now);
            let is_late =
                self.takeovers.get(&log).is_some_and(|run| now.since(run.since) > Self::PATIENCE);
            if is_late {
                let is_waiting =
                    self.takeovers.get(&log).is_some_and(|run| run.machine.step() == Step::Lease);
                let event = if is_waiting { TakeoverEvent::Fenced } else { TakeoverEvent::Failed };
                self.takeover_event(log, event, now);
            }
        }
    }

    fn takeover_event(&mut self, log: LogId, event: TakeoverEvent, now: Monotonic) {
        let Some(run) = self.takeovers.get_mut(&log) else { return };
        let actions = run.machine.on(event, now);
        let is_a_step = actions.iter().any(|action| !matches!(action, TakeoverAction::Lease(_)));
        if is_a_step {
            run.since = now;
            // Answers to an earlier attempt would be taken for answers to this one.
            self.calls.retain(|_, purpose| match purpose {
                Purpose::Takeover { step: Call::Renew { .. }, .. } => true,
                Purpose::Takeover { log: other, .. } => *other != log,
                _ => true,
            });
        }
        for action in actions {
            self.takeover_action(log, action, now);
        }
    }

    fn takeover_action(&mut self, log: LogId, action: TakeoverAction, now: Monotonic) {
        let call = |step| Purpose::Takeover { log, step };
        let Some(holder) = self.membership.me() else { return };
        let token = |epoch| Token { name: Name::Log(log), holder, epoch };
        match action {
            TakeoverAction::Lease(LeaseAction::Acquire { request, observed }) => {
                let statement = Statement::Acquire { name: Name::Log(log), holder, observed };
                self.statement(statement, call(Call::Acquire { request }));
            }
            TakeoverAction::Lease(LeaseAction::Renew { request, epoch }) => {
                self.statement(Statement::RenewLease(token(epoch)), call(Call::Renew { request }));
            }
            TakeoverAction::Lease(LeaseAction::Stop) => {}
            TakeoverAction::Claim { epoch } => {
                if let Some(run) = self.takeovers.get_mut(&log) {
                    run.epoch = epoch;
                }
                match self.mutation {
                    Some(Mutation::SkipClaim) => {
                        self.takeover_event(log, TakeoverEvent::Claimed, now)
                    }
                    _ => self.request(Request::List { log }, call(Call::ListToClaim)),
                }
            }
            TakeoverAction::Replay => self.statement(Statement::Read, call(Call::ReadVersion)),
            TakeoverAction::Flush { epoch, to } => {
                let file = self.new_file();
                let Some(run) = self.takeovers.get_mut(&log) else { return };
                if to <= run.from {
                    self.takeover_event(log, TakeoverEvent::Flushed, now);
                    return;
                }
                let (rows, expected) = (run.rows.clone(), run.expected);
                let (remove, position) = (BTreeSet::new(), Some((log, to)));
                run.commit =
                    Some(Commit { token: token(epoch), expected, add: file, remove, position });
                self.request(Request::PutFile { file, rows }, call(Call::PutFile));
            }
            TakeoverAction::Release { to } => {
                self.request(Request::Release { log, to }, call(Call::Release));
            }
            TakeoverAction::Retire { epoch } => {
                let token = token(epoch);
                self.statement(Statement::Retire { token, log }, call(Call::Retire));
            }
        }
    }

    pub(super) fn takeover_returned(
        &mut self,
        log: LogId,
        call: Call,
        returned: Returned,
        now: Monotonic,
    ) {
        let deadline = self.answered.entry(Name::Log(log)).or_default();
        let event = match (call, returned) {
            (Call::Acquire { request }, Returned::Epoch(Some(epoch))) => {
                deadline.extend(now, self.options.lease);
                TakeoverEvent::Lease(LeaseEvent::Granted { request, epoch })
            }
            (Call::Acquire { request }, _) => TakeoverEvent::Lease(LeaseEvent::Refused { request }),
            (Call::Renew { request }, Returned::Changed(true)) => {
                deadline.extend(now, self.options.lease);
                TakeoverEvent::Lease(LeaseEvent::Renewed { request })
            }
            (Call::Renew { request }, _) => TakeoverEvent::Lease(LeaseEvent::Refused { request }),
            (Call::ReadVersion, Returned::Read(snapshot)) => {
                self.load(&snapshot.version);
                let Some(run) = self.takeovers.get_mut(&log) else { return };
                run.expected = snapshot.version.number;
                run.from = snapshot.version.positions.get(&log).copied().unwrap_or(0);
                if !snapshot.version.retired.contains(&log) {
                    let purpose = Purpose::Takeover { log, step: Call::ListToReplay };
                    self.request(Request::List { log }, purpose);
                    return;
                }
                TakeoverEvent::Fenced
            }
            (Call::Commit, Returned::Committed(version)) => {
                self.load(&version);
                TakeoverEvent::Flushed
            }
            (Call::Retire, Returned::Committed(version)) => {
                self.load(&version);
                TakeoverEvent::Retired
            }
            (Call::Commit | Call::Retire, Returned::Fenced) => TakeoverEvent::Fenced,
            _ => TakeoverEvent::Failed,
        };
        self.takeover_event(log, event, now);
    }

    pub(super) fn takeover_response(
        &mut self,
        log: LogId,
        call: Call,
        response: Response,
        now: Monotonic,
    ) {
        let Some(run) = self.takeovers.get_mut(&log) else { return };
        let purpose = |step| Purpose::Takeover { log, step };
        let event = match (call, response) {
            (Call::ListToClaim, Response::Listed(segments)) => {
                let newest = segments.iter().map(|(_, segment)| segment.epoch).max().unwrap_or(0);
                let last = segments.last().map_or(0, |(number, _)| *number);
                let is_claimed = segments.last().is_some_and(|(_, segment)| {
                    segment.epoch == run.epoch && segment.records.is_empty()
                });
                if newest <= run.epoch && !is_claimed {
                    let segment = Segment { writer: self.life, epoch: run.epoch, records: vec![] };
                    let request = Request::Put { log, number: last + 1, segment };
                    self.request(request, purpose(Call::PutClaim));
                    return;
                }
                if is_claimed { TakeoverEvent::Claimed } else { TakeoverEvent::Fenced }
            }
            (Call::PutClaim, Response::Done) => TakeoverEvent::Claimed,
            (Call::ListToReplay, Response::Listed(segments)) => {
                let is_ours = segments.iter().all(|(_, segment)| segment.epoch <= run.epoch);
                let records = segments.into_iter().flat_map(|(_, segment)| segment.records);
                let new: Vec<_> = records.filter(|(sequence, _)| *sequence > run.from).collect();
                let to = new.last().map_or(run.from, |(sequence, _)| *sequence);
                run.rows = new.into_iter().map(|(_, row)| row).collect();
                if is_ours { TakeoverEvent::Replayed { to } } else { TakeoverEvent::Fenced }
            }
            (Call::PutFile, _) => {
                let Some(commit) = run.commit.clone() else { return };
                self.statement(Statement::Commit(commit), purpose(Call::Commit));
                return;
            }
            (Call::Release, _) => TakeoverEvent::Released,
            // Another object came first.
            _ => TakeoverEvent::Failed,
        };
        self.takeover_event(log, event, now);
    }
}
