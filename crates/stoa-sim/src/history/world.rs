//! Time, processes and messages.

use std::collections::BTreeMap;
use std::time::Duration;

use stoa_cluster::fresh::Freshness;
use stoa_cluster::membership::MemberOptions;
use stoa_cluster::{DaemonId, Monotonic};

use super::Mutation;
use super::daemon::{Daemon, Out};
use super::database::Database;
use super::ledger::Ledger;
use super::message::{Life, Message, PeerMessage, Request};
use super::network::{Network, Node};
use super::store::Store;
use crate::random::Random;

/// How long faults last, and how long the cluster then has to recover.
const FAULTS_MS: u64 = 40_000;
const RECOVERY_MS: u64 = 50_000;

/// When clients stop: their last requests have their answers before the end.
pub(super) const CLIENTS_END_MS: u64 = FAULTS_MS + RECOVERY_MS - 3000;

/// Time between ticks of a process.
pub(super) const TICK_MS: u64 = 200;

/// What happens next.
#[derive(Debug)]
pub(super) enum Event {
    Start { daemon: usize },
    Tick { daemon: usize, life: Life },
    Deliver { from: Node, to: Node, message: Message },
    Client,
    Read { daemon: usize, session: usize, freshness: Freshness, acknowledged: usize },
    Fault,
    Leave { daemon: usize, life: Life },
    Thaw { daemon: usize },
    Heal,
}

impl Event {
    /// The process that it is for.
    fn daemon(&self) -> Option<usize> {
        match self {
            Event::Tick { daemon, .. }
            | Event::Read { daemon, .. }
            | Event::Leave { daemon, .. } => Some(*daemon),
            Event::Deliver { to: Node::Daemon(daemon), .. } => Some(*daemon),
            _ => None,
        }
    }
}

/// A place for a process.
#[derive(Default)]
pub(super) struct Slot {
    pub process: Option<Daemon>,
    pub frozen_until: u64,
    /// What arrived while the process was frozen.
    pub parked: Vec<Event>,
    wall_ahead_ms: i64,
    pub is_starting: bool,
}

pub(super) struct World {
    pub random: Random,
    pub now_ms: u64,
    pub slots: Vec<Slot>,
    pub network: Network,
    pub database: Database,
    pub database_away_until: u64,
    pub clock_ahead_ms_max: i64,
    pub store: Store,
    pub ledger: Ledger,
    pub is_calm: bool,
    queue: BTreeMap<(u64, u64), Event>,
    queued: u64,
    pub lives: Life,
    pub options: MemberOptions,
    pub mutation: Option<Mutation>,
    trace: Option<Vec<String>>,
    pub events: u64,
}

impl World {
    pub fn new(seed: u64, mutation: Option<Mutation>, is_traced: bool) -> Self {
        let mut random = Random::new(seed);
        let options = MemberOptions::default();
        let mut slots: Vec<_> = (0..random.between(2, 5)).map(|_| Slot::default()).collect();
        for slot in &mut slots {
            slot.wall_ahead_ms = random.below(120_000) as i64 - 60_000;
        }
        let mut world = Self {
            random,
            now_ms: 1000,
            slots,
            network: Network::default(),
            database: Database::new(options, mutation),
            database_away_until: 0,
            clock_ahead_ms_max: 0,
            store: Store::new(mutation),
            ledger: Ledger::default(),
            is_calm: false,
            queue: BTreeMap::new(),
            queued: 0,
            lives: 0,
            options,
            mutation,
            trace: is_traced.then(Vec::new),
            events: 0,
        };
        for daemon in 0..world.slots.len() {
            let at = 1000 + world.random.below(3000);
            world.at(at, Event::Start { daemon });
        }
        world.at(1500, Event::Client);
        world.at(6000, Event::Fault);
        world.at(FAULTS_MS, Event::Heal);
        world
    }

    /// Runs the history to its end, or to the first violation.
    pub fn run(&mut self) -> Result<(), String> {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            if at > FAULTS_MS + RECOVERY_MS {
                break;
            }
            self.now_ms = at.max(self.now_ms);
            self.events += 1;
            self.step(event)?;
            self.check_holders()?;
        }
        self.end()
    }

    pub fn trace(self) -> Vec<String> {
        self.trace.unwrap_or_default()
    }

    pub fn now(&self) -> Monotonic {
        Monotonic(Duration::from_millis(self.now_ms))
    }

    pub fn note(&mut self, text: impl FnOnce() -> String) {
        let now_ms = self.now_ms;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now_ms:>6} {}", text()));
        }
    }

    pub fn at(&mut self, at_ms: u64, event: Event) {
        self.queued += 1;
        self.queue.insert((at_ms, self.queued), event);
    }

    fn step(&mut self, event: Event) -> Result<(), String> {
        if let Some(slot) = event.daemon().and_then(|daemon| self.slots.get_mut(daemon))
            && slot.frozen_until > self.now_ms
        {
            slot.parked.push(event);
            return Ok(());
        }
        match event {
            Event::Start { daemon } => self.start(daemon),
            Event::Tick { daemon, life } => return self.tick(daemon, life),
            Event::Deliver { from, to, message } => return self.deliver(from, to, message),
            Event::Client => return self.client(),
            Event::Read { daemon, session, freshness, acknowledged } => {
                return self.read(daemon, session, freshness, acknowledged);
            }
            Event::Fault if !self.is_calm => {
                self.fault();
                let next = self.now_ms + self.random.between(200, 4000);
                self.at(next, Event::Fault);
            }
            Event::Fault => {}
            Event::Leave { daemon, life } => return self.leave(daemon, life),
            Event::Thaw { daemon } => {
                let now_ms = self.now_ms;
                let slot = self.slots.get_mut(daemon).filter(|slot| slot.frozen_until <= now_ms);
                let parked = slot.map(|slot| std::mem::take(&mut slot.parked));
                let mut parked = parked.unwrap_or_default();
                // Threads that answer reads may run before those that receive.
                if self.random.chance(500) {
                    parked.sort_by_key(|event| !matches!(event, Event::Read { .. }));
                }
                for event in parked {
                    self.step(event)?;
                    self.check_holders()?;
                }
            }
            Event::Heal => self.heal(),
        }
        Ok(())
    }

    fn deliver(&mut self, from: Node, to: Node, message: Message) -> Result<(), String> {
        if let Some(trace) = &mut self.trace
            && !matches!(
                message,
                Message::Peer {
                    message: PeerMessage::Probe { .. } | PeerMessage::Answer { .. },
                    ..
                }
            )
        {
            let text: String = format!("{message:?}").chars().take(260).collect();
            trace.push(format!("{:>6} {from:?} -> {to:?}: {text}", self.now_ms));
        }
        match (to, message) {
            (Node::Database, Message::Statement { life, call, statement }) => {
                let Node::Daemon(daemon) = from else { return Ok(()) };
                if self.now_ms < self.database_away_until {
                    return Ok(());
                }
                let id = DaemonId::from_bits(daemon as u64);
                let wall = self.slots.get(daemon).map_or(0, |slot| slot.wall_ahead_ms);
                let returned = self.database.run(id, statement, self.now_ms, wall)?;
                self.send(to, from, Message::Returned { life, call, returned });
            }
            (Node::Store, Message::Request { life, call, request }) => {
                self.check_delete(&request)?;
                let response = self.store.run(request);
                self.send(to, from, Message::Response { life, call, response });
            }
            (Node::Daemon(daemon), message) => {
                let now = self.now();
                let life = match &message {
                    Message::Returned { life, .. } | Message::Response { life, .. } => Some(*life),
                    _ => None,
                };
                if let Some(process) = self.process(daemon)
                    && life.is_none_or(|life| process.life == life)
                {
                    process.receive(message, now);
                }
                return self.carry_out(daemon);
            }
            _ => {}
        }
        Ok(())
    }

    /// Sends what a process wants sent.
    pub fn carry_out(&mut self, daemon: usize) -> Result<(), String> {
        let Some(process) = self.process(daemon) else { return Ok(()) };
        let (life, from) = (process.life, Node::Daemon(daemon));
        for out in process.take_out() {
            match out {
                Out::Statement { call, statement } => {
                    self.send(from, Node::Database, Message::Statement { life, call, statement });
                }
                Out::Request { call, mut request } => {
                    self.fill_in(daemon, &mut request);
                    self.send(from, Node::Store, Message::Request { life, call, request });
                }
                Out::Peer { to, message } => {
                    let to = Node::Daemon(to.bits() as usize);
                    self.send(from, to, Message::Peer { from: daemon, message });
                }
                Out::Acknowledged { log, sequence, row } => {
                    self.note(|| format!("row {row} is acknowledged: {log}:{sequence}"));
                    let version = self.database.version.clone();
                    self.ledger.acknowledge((log, sequence, row), &self.store, &version)?;
                }
                Out::Reported { report, is_answered } => {
                    self.ledger.report_ends(report, is_answered)?
                }
                Out::End => self.crash(daemon),
            }
        }
        Ok(())
    }

    /// A compaction writes the rows of the files that it merges.
    fn fill_in(&mut self, daemon: usize, request: &mut Request) {
        let Some(process) = self.slots.get(daemon).and_then(|slot| slot.process.as_ref()) else {
            return;
        };
        if let Request::PutFile { file, rows } = request
            && let Some(merged) = process.merged(*file)
        {
            rows.extend(merged.iter().filter_map(|file| self.store.files.get(file)).flatten());
        }
    }

    fn send(&mut self, from: Node, to: Node, message: Message) {
        let is_put = matches!(message, Message::Request { request: Request::Put { .. }, .. });
        let may_double = is_put || matches!(message, Message::Peer { .. });
        for at in self.network.arrivals(from, to, may_double, &mut self.random, self.now_ms) {
            self.at(at, Event::Deliver { from, to, message: message.clone() });
        }
    }
}
