//! The log of this process: its lease, its records, its flushes; and the records of other logs.

use std::collections::BTreeMap;

use stoa_cluster::fresh::{Owner, OwnerAction, OwnerEvent, OwnerOptions, Push, ReplicaEvent};
use stoa_cluster::lease::{Lease, LeaseAction, LeaseEvent, LeaseOptions};
use stoa_cluster::membership::PeerLease;
use stoa_cluster::{LogId, Monotonic};

use super::{Daemon, Out, Purpose};
use crate::history::Mutation;
use crate::history::message::{
    Commit, FileId, Name, PeerMessage, Request, Response, Returned, Row, Segment, Statement, Token,
};

/// Time between flushes.
const FLUSH_EACH_MS: u64 = 3000;

#[derive(Clone, Debug)]
pub enum Step {
    Acquire { request: u64 },
    Renew { request: u64 },
    Put { number: u64 },
    PutFile { file: FileId },
    Commit,
    Other,
}

pub struct OwnLog {
    pub log: LogId,
    pub lease: Lease,
    epoch: Option<u64>,
    is_claimed: bool,
    pub owner: Option<Owner>,
    records: BTreeMap<u64, Row>,
    rows: BTreeMap<u64, Row>,
    /// The object that is being put, and when it was sent.
    putting: Option<(u64, Segment, Monotonic)>,
    next_object: u64,
    put_to: u64,
    flush: Option<Flush>,
    next_flush: Monotonic,
    acknowledged: u64,
}

struct Flush {
    since: Monotonic,
    commit: Commit,
}

impl OwnLog {
    pub fn new(log: LogId, options: LeaseOptions) -> Self {
        Self {
            log,
            lease: Lease::new(options),
            epoch: None,
            is_claimed: false,
            owner: None,
            records: BTreeMap::new(),
            rows: BTreeMap::new(),
            putting: None,
            next_object: 1,
            put_to: 0,
            flush: None,
            next_flush: Monotonic::default(),
            acknowledged: 0,
        }
    }

    pub fn is_open(&self) -> bool {
        self.owner.is_some()
    }
}

impl Daemon {
    fn own_token(&self) -> Option<Token> {
        let (holder, epoch) = (self.membership.me()?, self.own.epoch?);
        Some(Token { name: Name::Log(self.own.log), holder, epoch })
    }

    pub(super) fn tick_own_log(&mut self, now: Monotonic) {
        let Some(me) = self.membership.me() else { return };
        if self.own.epoch.is_none() && self.own.lease.holds(now).is_none() {
            let actions = self.own.lease.on(LeaseEvent::Acquire { observed: None }, now);
            for action in actions {
                if let LeaseAction::Acquire { request, observed } = action {
                    let name = Name::Log(self.own.log);
                    let statement = Statement::Acquire { name, holder: me, observed };
                    self.statement(statement, Purpose::OwnLog(Step::Acquire { request }));
                }
            }
        }
        for action in self.own.lease.on(LeaseEvent::Tick, now) {
            if let (LeaseAction::Renew { request, .. }, Some(token)) = (action, self.own_token()) {
                self.statement(
                    Statement::RenewLease(token),
                    Purpose::OwnLog(Step::Renew { request }),
                );
            }
        }
        self.claim_own_log(now);
        self.owner_event(OwnerEvent::Tick, now);
        self.put(now);
        self.flush(now);
    }

    /// The first object of the log.
    fn claim_own_log(&mut self, now: Monotonic) {
        let (Some(epoch), false) = (self.own.epoch, self.own.is_claimed) else { return };
        if self.own.putting.is_none() {
            let segment = Segment { writer: self.life, epoch, records: vec![] };
            self.own.putting = Some((self.own.next_object, segment, Monotonic::default()));
        }
        self.put(now);
    }

    pub(super) fn own_log_read(&mut self, now: Monotonic) {
        let peers: Vec<_> = self.membership.peer_leases().collect();
        let peers: Vec<_> = match self.mutation {
            Some(Mutation::DeadIsOver) => {
                peers.into_iter().map(|(p, l)| (p, hasty(l, now))).collect()
            }
            _ => peers,
        };
        if self.own.is_open() {
            self.owner_event(OwnerEvent::Peers(peers), now);
        } else if self.own.is_claimed {
            self.own.owner = Some(Owner::new(self.own.log, 0, peers, OwnerOptions::default()));
        }
    }

    /// A client's row. False if this daemon does not take any now.
    pub fn append(&mut self, row: Row, now: Monotonic) -> bool {
        let Some(owner) = &self.own.owner else { return false };
        let sequence = owner.last() + 1;
        self.own.records.insert(sequence, row);
        self.own.rows.insert(sequence, row);
        self.owner_event(OwnerEvent::Append, now);
        self.put(now);
        self.own.owner.is_some()
    }

    pub(super) fn owner_event(&mut self, event: OwnerEvent, now: Monotonic) {
        let Some(owner) = &mut self.own.owner else { return };
        let actions = owner.on(event, now);
        let durable = owner.durable();
        for action in actions {
            match action {
                // Groups are put in `put`.
                OwnerAction::Put { .. } => {}
                OwnerAction::Push { peer, push } => {
                    let records = self.own.rows.range(push.from..).map(|(s, row)| (*s, *row));
                    let records = records.take_while(|(s, _)| *s <= push.to).collect();
                    let message = PeerMessage::Push { to: peer, push, records };
                    self.out.push(Out::Peer { to: peer.daemon, message });
                }
                OwnerAction::Acknowledge { to } => self.acknowledge(to),
                OwnerAction::Stop => self.own.owner = None,
            }
        }
        if self.mutation == Some(Mutation::AcknowledgeBeforeTold) {
            self.acknowledge(durable);
        }
    }

    fn acknowledge(&mut self, to: u64) {
        for sequence in self.own.acknowledged + 1..=to {
            if let Some(row) = self.own.rows.get(&sequence) {
                self.out.push(Out::Acknowledged { log: self.own.log, sequence, row: *row });
            }
        }
        self.own.acknowledged = self.own.acknowledged.max(to);
    }

    /// Puts what has gathered while the object before was put. One at a time.
    fn put(&mut self, now: Monotonic) {
        if self.own.putting.is_none() && self.own.is_open() {
            let records: Vec<_> =
                self.own.records.range(self.own.put_to + 1..).map(|(s, row)| (*s, *row)).collect();
            if let (Some((last, _)), Some(epoch)) = (records.last(), self.own.epoch) {
                self.own.put_to = *last;
                let segment = Segment { writer: self.life, epoch, records };
                self.own.putting = Some((self.own.next_object, segment, Monotonic::default()));
            }
        }
        let Some((number, segment, sent)) = &mut self.own.putting else { return };
        if *sent != Monotonic::default() && now.since(*sent) < Self::PATIENCE {
            return;
        }
        *sent = now;
        let (log, number, segment) = (self.own.log, *number, segment.clone());
        self.request(Request::Put { log, number, segment }, Purpose::OwnLog(Step::Put { number }));
    }

    /// Puts the durable records into a file, and commits it.
    fn flush(&mut self, now: Monotonic) {
        if self.own.flush.as_ref().is_some_and(|flush| now.since(flush.since) < Self::PATIENCE) {
            return;
        }
        let is_due = now >= self.own.next_flush || self.own.flush.is_some();
        let (Some(owner), Some(version)) = (&self.own.owner, &self.version) else { return };
        let Some(token) = self.own_token().filter(|_| is_due) else { return };
        // Whatever became of an earlier attempt, the version tells.
        let log = self.own.log;
        let position = version.positions.get(&log).copied().unwrap_or(0);
        let is_blind = self.mutation == Some(Mutation::RetryFlushBlindly);
        let from = if is_blind { owner.base() } else { position };
        let (base, to) = (owner.base(), owner.durable());
        let expected = version.number;
        if position > base && !is_blind {
            self.owner_event(OwnerEvent::Flushed { to: position }, now);
        }
        self.own.next_flush = now + std::time::Duration::from_millis(FLUSH_EACH_MS);
        self.own.flush = None;
        if to <= from {
            return;
        }
        let rows = self.own.rows.range(from + 1..=to).map(|(_, row)| *row).collect();
        let file = self.new_file();
        let remove = std::collections::BTreeSet::new();
        let commit = Commit { token, expected, add: file, remove, position: Some((log, to)) };
        self.own.flush = Some(Flush { since: now, commit });
        self.request(Request::PutFile { file, rows }, Purpose::OwnLog(Step::PutFile { file }));
    }

    pub(super) fn own_log_returned(&mut self, step: Step, returned: Returned, now: Monotonic) {
        match (step, returned) {
            (Step::Acquire { request }, Returned::Epoch(Some(epoch))) => {
                self.answered
                    .entry(Name::Log(self.own.log))
                    .or_default()
                    .extend(now, self.options.lease);
                self.own.lease.on(LeaseEvent::Granted { request, epoch }, now);
                self.own.epoch = Some(epoch);
            }
            (Step::Renew { request }, Returned::Changed(true)) => {
                self.answered
                    .entry(Name::Log(self.own.log))
                    .or_default()
                    .extend(now, self.options.lease);
                self.own.lease.on(LeaseEvent::Renewed { request }, now);
            }
            (Step::Renew { request }, Returned::Changed(false)) => {
                self.own.lease.on(LeaseEvent::Refused { request }, now);
            }
            (Step::Commit, Returned::Committed(version)) => {
                // It may be the answer to an earlier attempt: only the version tells what is in files.
                self.own.flush = None;
                self.load(&version);
                let log = self.own.log;
                if let Some(to) = version.positions.get(&log).copied() {
                    self.owner_event(OwnerEvent::Flushed { to }, now);
                    self.request(Request::Release { log, to }, Purpose::OwnLog(Step::Other));
                }
            }
            (Step::Commit, Returned::Moved) => {
                if self.mutation != Some(Mutation::RetryFlushBlindly) {
                    (self.own.flush, self.own.next_flush) = (None, now);
                }
                self.statement(Statement::Read, Purpose::Read { request: None });
            }
            (Step::Commit, Returned::Fenced) => self.own.flush = None,
            _ => {}
        }
    }

    pub(super) fn own_log_response(&mut self, step: Step, response: Response, now: Monotonic) {
        match (step, response) {
            (Step::Put { number }, response) => {
                let is_current = self.own.putting.as_ref().is_some_and(|(n, ..)| *n == number);
                let Some((_, segment, _)) = self.own.putting.take_if(|_| is_current) else {
                    return;
                };
                if matches!(response, Response::Taken) {
                    self.owner_event(OwnerEvent::Fenced, now);
                    return;
                }
                self.own.next_object = number + 1;
                self.own.is_claimed = true;
                if let Some((to, _)) = segment.records.last() {
                    self.owner_event(OwnerEvent::Durable { to: *to }, now);
                    self.show_own(*to);
                }
                self.put(now);
            }
            // Not for an earlier attempt, whose answer is late.
            (Step::PutFile { file }, _) => {
                if let Some(flush) = &self.own.flush
                    && flush.commit.add == file
                {
                    let commit = flush.commit.clone();
                    self.statement(Statement::Commit(commit), Purpose::OwnLog(Step::Commit));
                }
            }
            _ => {}
        }
    }

    /// Our own durable records, as our readers see them.
    fn show_own(&mut self, durable: u64) {
        let (log, base) = (self.own.log, self.own.owner.as_ref().map_or(0, Owner::base));
        let records = self.own.rows.range(base + 1..=durable).map(|(s, row)| (*s, *row));
        self.fresh.entry(log).or_default().extend(records);
        let push = Push { log, base, from: base + 1, to: durable, durable };
        self.replica_event(ReplicaEvent::Pushed(push));
    }
}

/// A mutation: whoever is dead is forgotten at once, though it may not know yet.
fn hasty(lease: PeerLease, now: Monotonic) -> PeerLease {
    match lease {
        PeerLease::Live => PeerLease::Live,
        PeerLease::OverAt(_) => PeerLease::OverAt(now),
    }
}
