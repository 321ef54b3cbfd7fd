//! The handle of a membership.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use stoa_catalog::{Cluster, ClusterState};
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_cluster::membership::{MemberEvent, MemberOptions, MemberState};
use stoa_env::clock;
use stoa_error::Result;
use stoa_ingest::{Ingest, IngestOptions, Shipping};
use stoa_peers::Peers;
use stoa_table::Warehouse;
use tokio::sync::{mpsc, watch};

use crate::directory::Known;
use crate::event::Event;
use crate::exact::Exact;
use crate::happened::{Happened, MemberHappened, has_left};
use crate::holds::Holds;
use crate::identity::Identity;
use crate::machines::Machines;
use crate::names::log_of;
use crate::service::Services;
use crate::status::{LogOwner, MemberStatus, MembersStatus};

/// How long leaving may take to be written; a daemon that was not heard of is dead after its lease.
const LEAVE_LIMIT: Duration = Duration::from_secs(3);

/// This daemon as a member of its cluster. Cheap to clone.
#[derive(Clone)]
pub struct Member(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) me: Holder,
    pub(crate) options: MemberOptions,
    pub(crate) cluster: Cluster,
    pub(crate) warehouse: Warehouse,
    pub(crate) ingest: Ingest,
    pub(crate) shipping: Shipping,
    /// For logs that are taken over.
    pub(crate) ingest_options: IngestOptions,
    pub(crate) peers: Peers,
    pub(crate) known: Arc<Known>,
    pub(crate) exact: Exact,
    pub(crate) own: OwnLog,
    pub(crate) machines: Mutex<Machines>,
    pub(crate) holds: Holds,
    pub(crate) happened: Happened,
    pub(crate) services: Services,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    /// Changes when there may be more to send.
    pub(crate) moved: watch::Sender<()>,
    /// Set once the membership has ended.
    pub(crate) ended: watch::Sender<bool>,
    /// Set once an operator wants this daemon to end.
    pub(crate) drained: watch::Sender<bool>,
    pub(crate) _identity: Identity,
}

/// This daemon's log and its lease.
#[derive(Clone, Debug)]
pub(crate) struct OwnLog {
    pub(crate) log: String,
    pub(crate) lease: String,
    pub(crate) epoch: u64,
}

impl Member {
    /// Who this daemon is.
    pub fn id(&self) -> DaemonId {
        self.0.me.daemon
    }

    /// Whether what was read until now is exact: nothing that was acknowledged before is missing. Cheap; ask
    /// after the read.
    pub fn is_exact(&self) -> bool {
        // What was read while the database was away came from memory: others may have committed since.
        self.0.exact.holds() && self.0.warehouse.catalog().state().reachable
    }

    /// Whether what was read until now may be answered: it is exact, or the catalog's database is away, so that
    /// nobody can say that it is not.
    pub fn may_answer(&self) -> bool {
        self.0.exact.may_answer(|| !self.0.warehouse.catalog().state().reachable)
    }

    /// Whether this daemon should be sent statements: reads are answered, or will be after a short wait. When the
    /// catalog's database comes back, all daemons renew their leases at once, and none should be taken out for it.
    pub fn is_ready(&self) -> bool {
        let state = self.0.warehouse.catalog().state();
        // A wall clock that was set back makes this zero: ready, though reads may wait in vain for a moment.
        let here_for = clock::now().duration_since(state.since).unwrap_or_default();
        self.0.exact.is_ready(|| !state.reachable, here_for)
    }

    /// Waits until reads are exact. While the catalog's database does not answer, nobody can renew a lease, and reads
    /// go on with what is known.
    ///
    /// # Errors
    /// 57P01 where the others have gone on without this daemon; 57P03 where the wait was in vain.
    pub async fn wait_until_exact(&self) -> Result<()> {
        let catalog = self.0.warehouse.catalog();
        self.0.exact.wait(|| !catalog.state().reachable).await
    }

    /// Waits until the others have declared this daemon dead.
    pub async fn ended(&self) {
        let mut ended = self.0.ended.subscribe();
        // The sender lives in `self`.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Whether the others have declared this daemon dead, or it has left.
    pub fn is_ended(&self) -> bool {
        self.0.exact.is_ended()
    }

    /// Waits until an operator wants this daemon to end in order (`stoa daemons drain`).
    pub async fn asked_to_drain(&self) {
        let mut drained = self.0.drained.subscribe();
        // The sender lives in `self`.
        let _ = drained.wait_for(|drained| *drained).await;
    }

    /// Takes no requests of others any more, and is no home: the first step of leaving.
    pub async fn drain(&self) {
        let inner = &self.0;
        inner.member_event(MemberEvent::Drain);
        let draining = inner.cluster.set_state(inner.me, MemberState::Draining);
        if let Err(error) = draining.await {
            tracing::warn!(%error, "others are not told that this daemon drains");
        }
    }

    /// Leaves: to be called when nothing is answered and written any more. `flushed` says whether all rows of this
    /// daemon's log are in files; else others take the log over.
    pub async fn leave(&self, flushed: bool) {
        let inner = &self.0;
        inner.exact.end();
        let leaving = async {
            if flushed {
                let (lease, epoch) = (&inner.own.lease, inner.own.epoch);
                inner.cluster.forget_lease(lease, inner.me, epoch).await?;
            }
            inner.cluster.set_state(inner.me, MemberState::Dead).await
        };
        match stoa_env::timer::timeout(LEAVE_LIMIT, leaving).await {
            Ok(Ok(_)) => tracing::info!(daemon = %inner.me.daemon, "left the cluster"),
            Ok(Err(error)) => tracing::warn!(%error, "others are not told that this daemon leaves"),
            Err(_) => tracing::warn!("others are not told in time that this daemon leaves"),
        }
    }

    /// Whether this daemon is the one to do the maintenance of a table, of those that are up.
    pub fn maintains(&self, table: uuid::Uuid) -> bool {
        self.0.machines.lock().maintains(self.0.me.daemon, table)
    }

    /// What happened to the cluster since this daemon joined, and how its members came to be what they are; the last 500
    /// events, the oldest first.
    pub fn happened(&self) -> Vec<MemberHappened> {
        self.0.happened.all()
    }

    /// Has an event remembered that is not about members.
    pub fn remember(&self, event: MemberHappened) {
        self.0.happened.add(event);
    }

    /// What people are shown.
    pub fn status(&self) -> MembersStatus {
        let inner = &self.0;
        let (copied_rows, copied_bytes) = inner.ingest.copied();
        let state = inner.known.state();
        let machines = inner.machines.lock();
        let members = state.as_ref().map(|state| inner.members(&machines, state));
        MembersStatus {
            me: inner.me.daemon,
            epoch: state.as_ref().map_or(0, |state| state.members.epoch()),
            exact: inner.exact.holds(),
            members: members.unwrap_or_default(),
            logs: state.as_deref().map(logs).unwrap_or_default(),
            takeovers: machines.takeovers,
            copied_rows,
            copied_bytes,
            shipping_bytes: inner.shipping.bytes(),
        }
    }
}

impl Inner {
    fn members(&self, machines: &Machines, state: &ClusterState) -> Vec<MemberStatus> {
        let exchanged = self.peers.statistics();
        let members = state.members.iter().filter_map(|(daemon, member)| {
            Some(MemberStatus {
                info: state.daemons.get(&daemon)?.clone(),
                incarnation: member.incarnation,
                state: member.state,
                life: state.lives.get(&daemon).copied(),
                has_left: has_left(member),
                routed: daemon == self.me.daemon || machines.membership.is_routed(daemon),
                suspected_by: member.suspicions.iter().map(|(by, _)| *by).collect(),
                exchanged: exchanged.iter().find(|peer| peer.daemon == daemon).cloned(),
            })
        });
        members.collect()
    }
}

fn logs(state: &ClusterState) -> Vec<LogOwner> {
    let logs = state.leases.iter().filter_map(|(name, lease)| {
        Some(LogOwner {
            log: log_of(name)?.to_owned(),
            place: lease.about.clone(),
            owner: lease.row.holder.daemon,
            alive: state.members.lives(lease.row.holder),
            epoch: lease.row.epoch,
        })
    });
    logs.collect()
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Member({}, life {})", self.0.me.daemon, self.0.me.incarnation)
    }
}
