//! One simulated process: the machines of `stoa-cluster`, and what carries out their actions.

mod catalog;
mod log;
mod maintenance;
mod peers;
mod reads;
mod takeovers;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use stoa_cluster::fresh::{Freshness, ReadAnswer, Replica, ReplicaAction, ReplicaEvent};
use stoa_cluster::lease::{Deadline, Holder};
use stoa_cluster::membership::{MemberAction, MemberEvent, MemberOptions, Membership};
use stoa_cluster::watch::Watch;
use stoa_cluster::{DaemonId, DatabaseTime, LogId, Monotonic};

use log::OwnLog;
use maintenance::Maintenance;
use reads::Reports;
pub use reads::{Answer, Scan};
use takeovers::Running;

use super::Mutation;
use super::message::{
    FileId, Life, Message, Name, PeerMessage, Request, Response, Returned, Row, Statement, Version,
};

/// What a process wants from the world.
#[derive(Debug)]
pub enum Out {
    Statement {
        call: u64,
        statement: Statement,
    },
    Request {
        call: u64,
        request: Request,
    },
    Peer {
        to: DaemonId,
        message: PeerMessage,
    },
    /// A client hears that its row is written.
    Acknowledged {
        log: LogId,
        sequence: u64,
        row: Row,
    },
    /// A report was answered.
    Reported {
        report: u64,
        is_answered: bool,
    },
    /// The process ends itself.
    End,
}

/// What a call was for.
#[derive(Clone, Debug)]
enum Purpose {
    Join { request: u64 },
    Renew { request: u64 },
    Read { request: Option<u64> },
    OwnLog(log::Step),
    Takeover { log: LogId, step: takeovers::Call },
    Maintenance(maintenance::Call),
    Other,
}

pub struct Daemon {
    pub id: DaemonId,
    pub life: Life,
    mutation: Option<Mutation>,
    options: MemberOptions,
    pub membership: Membership,
    /// Under a mutation: the deadline counted from answers.
    answered: BTreeMap<Name, Deadline>,
    member_answered: Deadline,
    leases: Watch<Name, (Holder, u64, DatabaseTime)>,
    pub own: OwnLog,
    pub replica: Replica,
    knows_logs: bool,
    owners: BTreeMap<LogId, DaemonId>,
    fresh: BTreeMap<LogId, BTreeMap<u64, Row>>,
    pub version: Option<Rc<Version>>,
    takeovers: BTreeMap<LogId, Running>,
    maintenance: Maintenance,
    scans: Vec<Scan>,
    reports: Reports,
    calls: BTreeMap<u64, Purpose>,
    calls_made: u64,
    last_tick: Monotonic,
    out: Vec<Out>,
}

impl Daemon {
    pub fn new(
        id: DaemonId,
        life: Life,
        options: MemberOptions,
        mutation: Option<Mutation>,
    ) -> Self {
        Self {
            id,
            life,
            mutation,
            options,
            membership: Membership::new(id, options),
            answered: BTreeMap::new(),
            member_answered: Deadline::default(),
            leases: Watch::new(options.read_each * 2),
            own: OwnLog::new(LogId::from_bits(life), options.lease),
            replica: Replica::new(),
            knows_logs: false,
            owners: BTreeMap::new(),
            fresh: BTreeMap::new(),
            version: None,
            takeovers: BTreeMap::new(),
            maintenance: Maintenance::new(options.lease),
            scans: vec![],
            reports: Reports::default(),
            calls: BTreeMap::new(),
            calls_made: 0,
            last_tick: Monotonic::default(),
            out: vec![],
        }
    }

    pub fn take_out(&mut self) -> Vec<Out> {
        std::mem::take(&mut self.out)
    }

    /// Which leases this process believes to hold.
    pub fn believes(&self, now: Monotonic) -> Vec<Name> {
        let takeovers =
            self.takeovers.iter().map(|(log, running)| (Name::Log(*log), running.machine.lease()));
        let own = (Name::Log(self.own.log), &self.own.lease);
        let maintenance = (Name::Maintenance, &self.maintenance.lease);
        let all = takeovers.chain([own, maintenance]);
        all.filter(|(name, lease)| {
            let late = self.mutation == Some(Mutation::DeadlineFromAnswer)
                && self.answered.get(name).is_some_and(|deadline| deadline.holds(now));
            lease.holds(now).is_some() || late
        })
        .map(|(name, _)| name)
        .collect()
    }

    /// The deadline of our membership.
    fn deadline(&self) -> Deadline {
        match self.mutation {
            Some(Mutation::DeadlineFromAnswer) => self.member_answered,
            _ => self.membership.deadline(),
        }
    }

    pub fn tick(&mut self, now: Monotonic) {
        self.last_tick = now;
        let actions = self.membership.on(MemberEvent::Tick, now);
        self.member_actions(actions);
        self.tick_own_log(now);
        self.tick_takeovers(now);
        self.tick_maintenance(now);
        self.tick_reports(now);
        if let Some(me) = self.membership.me() {
            for log in self.replica.awaited().collect::<Vec<_>>() {
                if let Some(owner) = self.owners.get(&log) {
                    self.out.push(Out::Peer {
                        to: *owner,
                        message: PeerMessage::Hello { by: me, log },
                    });
                }
            }
        }
        if self.replica.is_complete() && self.own.is_open() {
            self.membership.on(MemberEvent::Ready, now);
        }
    }

    pub fn receive(&mut self, message: Message, now: Monotonic) {
        match message {
            Message::Returned { call, returned, .. } => self.returned(call, returned, now),
            Message::Response { call, response, .. } => self.response(call, response, now),
            Message::Peer { from, message } => {
                self.peer(DaemonId::from_bits(from as u64), message, now)
            }
            Message::Statement { .. } | Message::Request { .. } => {}
        }
    }

    fn statement(&mut self, statement: Statement, purpose: Purpose) {
        self.calls_made += 1;
        self.calls.insert(self.calls_made, purpose);
        self.out.push(Out::Statement { call: self.calls_made, statement });
    }

    fn request(&mut self, request: Request, purpose: Purpose) {
        self.calls_made += 1;
        self.calls.insert(self.calls_made, purpose);
        self.out.push(Out::Request { call: self.calls_made, request });
    }

    /// A name that no other file has.
    fn new_file(&mut self) -> FileId {
        self.calls_made += 1;
        (self.life << 32) | self.calls_made
    }

    fn returned(&mut self, call: u64, returned: Returned, now: Monotonic) {
        let Some(purpose) = self.calls.remove(&call) else { return };
        match (purpose, returned) {
            (Purpose::Join { request }, Returned::Joined(incarnation)) => {
                self.member_answered.extend(now, self.options.lease);
                self.membership.on(MemberEvent::Joined { request, incarnation }, now);
            }
            (Purpose::Renew { request }, Returned::Changed(true)) => {
                self.member_answered.extend(now, self.options.lease);
                self.membership.on(MemberEvent::Renewed { request }, now);
            }
            (Purpose::Renew { .. }, Returned::Changed(false)) => {
                let actions = self.membership.on(MemberEvent::Refused, now);
                self.member_actions(actions);
            }
            (Purpose::Read { request }, Returned::Read(snapshot)) => {
                self.read(request, *snapshot, now)
            }
            (Purpose::OwnLog(step), returned) => self.own_log_returned(step, returned, now),
            (Purpose::Takeover { log, step }, returned) => {
                self.takeover_returned(log, step, returned, now);
            }
            (Purpose::Maintenance(step), returned) => {
                self.maintenance_returned(step, returned, now)
            }
            _ => {}
        }
    }

    fn response(&mut self, call: u64, response: Response, now: Monotonic) {
        match self.calls.remove(&call) {
            Some(Purpose::OwnLog(step)) => self.own_log_response(step, response, now),
            Some(Purpose::Takeover { log, step }) => {
                self.takeover_response(log, step, response, now);
            }
            Some(Purpose::Maintenance(step)) => self.maintenance_response(step, now),
            _ => {}
        }
    }

    pub(super) fn member_actions(&mut self, actions: Vec<MemberAction>) {
        for action in actions {
            match action {
                MemberAction::Join { request } => {
                    self.statement(Statement::Join, Purpose::Join { request });
                }
                MemberAction::Renew { request, me } => {
                    let pin = self.oldest_version();
                    self.statement(Statement::Renew { me, pin }, Purpose::Renew { request });
                }
                MemberAction::SetState { me, state } => {
                    self.statement(Statement::SetState { me, state }, Purpose::Other);
                }
                MemberAction::Read { request } => {
                    self.statement(Statement::Read, Purpose::Read { request: Some(request) });
                }
                MemberAction::Probe { peer, probe } => {
                    self.out.push(Out::Peer { to: peer, message: PeerMessage::Probe { probe } });
                }
                MemberAction::Suspect { peer, me } => {
                    self.statement(Statement::Suspect { peer, me }, Purpose::Other);
                }
                MemberAction::Trust { peer, me } => {
                    self.statement(Statement::Trust { peer, me }, Purpose::Other);
                }
                MemberAction::Expire { peer, observed } => {
                    self.statement(Statement::Expire { peer, observed }, Purpose::Other);
                }
                MemberAction::End => self.out.push(Out::End),
            }
        }
    }

    fn replica_event(&mut self, event: ReplicaEvent) {
        for action in self.replica.on(event) {
            match action {
                ReplicaAction::Tell { log, to } => self.tell(log, to),
                ReplicaAction::ReadVersion => {
                    self.statement(Statement::Read, Purpose::Read { request: None });
                }
            }
        }
    }

    /// Whether a report of what we know can be answered; it must always be.
    fn answers_reports(&self, now: Monotonic) -> bool {
        let seen = stoa_cluster::fresh::Seen::default();
        let deadline = self.deadline();
        let request =
            stoa_cluster::fresh::ReadRequest { freshness: Freshness::Known, seen: &seen, deadline };
        matches!(self.replica.read(request, now), ReadAnswer::Show(_))
    }

    /// How old a call may become before it is given up.
    const PATIENCE: Duration = Duration::from_millis(1500);
}
