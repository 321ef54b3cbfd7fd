//! The loop that tells the machines what happened, and carries out what they want.
//!
//! Statements and calls run in tasks of their own, so that a slow database or peer delays no deadline.

use std::sync::Arc;
use std::time::Duration;

use stoa_catalog::{ClusterHints, ClusterState};
use stoa_cluster::fresh::{OwnerAction, OwnerEvent};
use stoa_cluster::lease::{Holder, LeaseAction, LeaseEvent};
use stoa_cluster::membership::{MemberAction, MemberEvent, MemberState, PeerLease};
use stoa_env::{task, timer};
use tokio::sync::mpsc;

use crate::event::Event;
use crate::machines::Machines;
use crate::member::Inner;
use crate::messages::kind;
use crate::names::lease_of;

/// Time between ticks of the machines.
const TICK: Duration = Duration::from_millis(100);

/// Time between greetings of daemons whose logs have not been heard of.
const GREET_EACH: Duration = Duration::from_millis(500);

/// Runs until the membership ends.
pub(crate) async fn run(
    inner: Arc<Inner>,
    mut events: mpsc::UnboundedReceiver<Event>,
    mut hints: ClusterHints,
) {
    let mut ticks = timer::interval(TICK);
    ticks.set_missed_tick_behavior(timer::MissedTickBehavior::Delay);
    while !inner.exact.is_ended() {
        tokio::select! {
            _ = ticks.tick() => inner.tick(),
            () = inner.shipping.changed() => inner.log_moved(),
            () = hints.next() => inner.member_event(MemberEvent::Changed),
            event = events.recv() => match event {
                Some(event) => inner.event(event),
                None => break,
            },
        }
    }
}

impl Inner {
    /// Tells the membership something, and carries out what it wants.
    pub(crate) fn member_event(self: &Arc<Self>, event: MemberEvent) {
        let mut machines = self.machines.lock();
        let now = self.exact.now();
        let actions = machines.membership.on(event, now);
        machines.asked(&actions);
        self.exact.set_deadline(machines.membership.deadline().until());
        drop(machines);
        self.carry_out(actions);
    }

    /// Has an event handled by the loop.
    pub(crate) fn send(&self, event: Event) {
        // After the end nobody handles it.
        let _ = self.events.send(event);
    }

    fn tick(self: &Arc<Self>) {
        self.member_event(MemberEvent::Tick);
        self.owner_event(OwnerEvent::Tick);
        let now = self.exact.now();
        let actions = self.machines.lock().own_lease.on(LeaseEvent::Tick, now);
        self.renew_own_log(actions);
        self.greet();
        self.holds.expire(&self.known.living());
    }

    fn event(self: &Arc<Self>, event: Event) {
        match event {
            Event::Member(event) => self.member_event(event),
            Event::Lease(event) => {
                let now = self.exact.now();
                let actions = self.machines.lock().own_lease.on(event, now);
                self.renew_own_log(actions);
            }
            Event::State { request, state } => self.read(request, *state),
            Event::Told { peer, to } => self.owner_event(OwnerEvent::Told { peer, to }),
            Event::Taken { lease, is_done } => {
                let mut machines = self.machines.lock();
                machines.taking.remove(&lease);
                machines.takeovers += u64::from(is_done);
            }
        }
    }

    /// Members and leases, as of one moment.
    pub(crate) fn read(self: &Arc<Self>, request: u64, state: ClusterState) {
        let state = Arc::new(state);
        let now = self.exact.now();
        if !self.machines.lock().is_newer(request) {
            return self.member_event(MemberEvent::Changed);
        }
        self.known.set(Arc::clone(&state));
        self.happened.see(&state);
        let table = state.members.clone();
        self.member_event(MemberEvent::Read { request, table });
        let (retired, peers) = {
            let mut machines = self.machines.lock();
            let retired = machines.see_logs(&state, &self.own.log, now);
            let peers: Vec<_> = machines.membership.peer_leases().collect();
            (retired, peers)
        };
        let own = state.members.get(self.me.daemon);
        if own.is_some_and(|row| row.state == MemberState::Draining) {
            self.drained.send_if_modified(|drained| !std::mem::replace(drained, true));
        }
        for log in retired {
            self.ingest.forget_copy(&log);
        }
        // Before a peer is sent anything: what it is told first to be durable must cover all that was acknowledged
        // without it.
        self.owner_event(OwnerEvent::Peers(peers.clone()));
        for (peer, lease) in peers {
            match lease {
                PeerLease::Live => self.send_records_to(peer),
                PeerLease::OverAt(_) => self.forget_peer(peer),
            }
        }
        self.look_for_orphans(&state, now);
        self.look_whether_complete();
    }

    /// Ends the connections of a life that is over, once.
    fn forget_peer(&self, peer: Holder) {
        if self.machines.lock().gone.insert(peer) {
            self.peers.forget(peer.daemon);
        }
    }

    /// What is appended, durable and in files has changed.
    pub(crate) fn log_moved(&self) {
        let (last, durable) = (self.shipping.last(), self.shipping.durable());
        self.owner_event(OwnerEvent::Appended { to: last });
        self.owner_event(OwnerEvent::Durable { to: durable.min(last) });
        self.owner_event(OwnerEvent::Flushed { to: self.shipping.in_files() });
        self.moved.send_replace(());
    }

    pub(crate) fn owner_event(&self, event: OwnerEvent) {
        let now = self.exact.now();
        let actions = self.machines.lock().owner.on(event, now);
        for action in actions {
            match action {
                OwnerAction::Acknowledge { to } => self.shipping.acknowledge(to),
                // Whoever sends to a peer looks for itself what there is.
                OwnerAction::Push { .. } | OwnerAction::Put { .. } => {}
                OwnerAction::Stop => self.shipping.stop("another daemon has taken the log over"),
            }
        }
    }

    pub(crate) fn look_whether_complete(self: &Arc<Self>) {
        let is_complete = self.machines.lock().awaited.is_complete();
        if is_complete && !self.exact.is_complete() {
            self.exact.set_complete();
            tracing::info!(daemon = %self.me.daemon, "knows the rows of all other daemons");
        }
        if is_complete {
            self.member_event(MemberEvent::Ready);
        }
    }

    /// Asks the owners of logs that we have not heard of for a word.
    fn greet(self: &Arc<Self>) {
        let (logs, is_due) = {
            let mut machines = self.machines.lock();
            let now = self.exact.now();
            let is_due = now.since(machines.greeted) >= GREET_EACH;
            if is_due {
                machines.greeted = now;
            }
            (machines.awaited.logs(), is_due)
        };
        if !is_due || logs.is_empty() {
            return;
        }
        let Some(state) = self.known.state() else { return };
        for log in logs {
            let lease = state.leases.get(&lease_of(&log));
            let owner = lease.map(|lease| lease.row.holder);
            let Some(owner) = owner.filter(|owner| state.members.lives(*owner)) else { continue };
            let inner = Arc::clone(self);
            task::spawn(async move {
                let limit = GREET_EACH;
                let greeting =
                    inner.peers.call(owner.daemon, kind::HELLO, bytes::Bytes::new(), limit);
                if let Err(error) = greeting.await {
                    tracing::debug!(%error, peer = %owner.daemon, "a daemon was not greeted");
                }
            });
        }
    }

    fn carry_out(self: &Arc<Self>, actions: Vec<MemberAction>) {
        for action in actions {
            if action == MemberAction::End {
                self.end();
                continue;
            }
            let inner = Arc::clone(self);
            task::spawn(async move { inner.act(action).await });
        }
    }

    async fn act(self: Arc<Self>, action: MemberAction) {
        let ttl = self.options.lease.ttl;
        let done = match action {
            // We have joined before the loop began.
            MemberAction::Join { .. } | MemberAction::End => Ok(()),
            MemberAction::Renew { request, me } => self.cluster.renew(me, ttl).await.map(|is_done| {
                self.send(Event::Member(match is_done {
                    true => MemberEvent::Renewed { request },
                    false => MemberEvent::Refused,
                }));
            }),
            MemberAction::SetState { me, state } => self.cluster.set_state(me, state).await.map(|_| {
                if state == MemberState::Up {
                    tracing::info!(daemon = %me.daemon, "is up");
                }
            }),
            MemberAction::Read { request } => self.cluster.state().await.map(|state| {
                self.send(Event::State { request, state: Box::new(state) });
            }),
            MemberAction::Probe { peer, probe } => {
                self.probe(peer, probe).await;
                Ok(())
            }
            MemberAction::Suspect { peer, me } => {
                let window = self.options.suspicion_window;
                self.cluster.suspect(peer, me, window).await.map(|is_dead| {
                    tracing::warn!(peer = %peer.daemon, is_dead, "a daemon does not answer");
                })
            }
            MemberAction::Trust { peer, me } => self.cluster.trust(peer, me).await.map(|is_done| {
                if is_done {
                    tracing::info!(peer = %peer.daemon, "a daemon answers again");
                }
            }),
            MemberAction::Expire { peer, observed } => {
                self.cluster.expire(peer, observed).await.map(|is_dead| {
                    if is_dead {
                        tracing::warn!(peer = %peer.daemon, "a daemon's lease has expired: it is dead");
                    }
                })
            }
        };
        if let Err(error) = done {
            // The catalog says itself that its database is away.
            match self.warehouse.catalog().state().reachable {
                true => tracing::warn!(%error, "the cluster's members cannot be read or changed"),
                false => tracing::debug!(%error, "the cluster's members cannot be read or changed"),
            }
        }
    }

    async fn probe(&self, peer: stoa_cluster::DaemonId, probe: u64) {
        let limit = self.options.probe_each;
        match self.peers.call(peer, kind::PROBE, bytes::Bytes::new(), limit).await {
            Ok(answer) => {
                self.send(Event::Member(MemberEvent::Answered { peer, probe }));
                if answer.first() == Some(&0) {
                    // It does not count us as a member: read whether that is so.
                    self.send(Event::Member(MemberEvent::Changed));
                }
            }
            Err(error) => {
                tracing::debug!(%error, %peer, "a probe failed");
                if stoa_peers::is_unreachable(&error) {
                    self.send(Event::Member(MemberEvent::Failed { peer }));
                }
            }
        }
    }

    fn renew_own_log(self: &Arc<Self>, actions: Vec<LeaseAction>) {
        for action in actions {
            match action {
                LeaseAction::Renew { request, epoch } => {
                    let inner = Arc::clone(self);
                    task::spawn(async move { inner.renew_lease(request, epoch).await });
                }
                // Whoever took it over has claimed the log, or is about to: it refuses our writes then.
                LeaseAction::Stop => self.owner_event(OwnerEvent::Fenced),
                LeaseAction::Acquire { .. } => {}
            }
        }
    }

    async fn renew_lease(&self, request: u64, epoch: u64) {
        let (lease, ttl) = (&self.own.lease, self.options.lease.ttl);
        match self.cluster.renew_lease(lease, self.me, epoch, ttl).await {
            Ok(true) => self.send(Event::Lease(LeaseEvent::Renewed { request })),
            Ok(false) => self.send(Event::Lease(LeaseEvent::Refused { request })),
            Err(error) => tracing::debug!(%error, "the lease of the log was not renewed"),
        }
    }

    /// Others have declared us dead.
    fn end(&self) {
        self.exact.end();
        self.shipping.stop("the cluster has gone on without this daemon");
        tracing::error!(
            daemon = %self.me.daemon,
            incarnation = self.me.incarnation,
            "the other daemons have declared this one dead; it answers nothing any more"
        );
        self.ended.send_replace(true);
    }

    /// Whether records are to be sent to this life of a peer.
    pub(crate) fn is_peer(&self, machines: &Machines, peer: Holder) -> bool {
        !self.exact.is_ended() && machines.membership.table().lives(peer)
    }
}
