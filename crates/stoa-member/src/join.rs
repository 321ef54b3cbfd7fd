//! Joining: before anything is answered.
//!
//! ```text
//! lock the id ─► check ─► join ─► lease of the log ─► read members ─► serve and probe ─► (hear of all logs) ─► up
//! ```
//! The lease of the log is taken before members are read: a daemon that joins later finds it, one that joined
//! earlier is among the members.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use stoa_catalog::{Cluster, ClusterState, DaemonInfo};
use stoa_cluster::fresh::{Owner, OwnerOptions};
use stoa_cluster::lease::{Holder, Lease, LeaseAction, LeaseEvent};
use stoa_cluster::membership::{MemberAction, MemberEvent, MemberOptions, Membership};
use stoa_cluster::{Incarnation, LogId};
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_ingest::{Ingest, IngestOptions};
use stoa_peers::{Directory, PeerOptions, Peers};
use stoa_table::Warehouse;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use url::Url;

use crate::directory::{Known, Route};
use crate::drive;
use crate::exact::Exact;
use crate::happened::Happened;
use crate::holding::OtherDaemons;
use crate::holds::Holds;
use crate::identity::Identity;
use crate::machines::Machines;
use crate::member::{Inner, Member, OwnLog};
use crate::names::lease_of;
use crate::service::Services;
use crate::serving::Serving;

/// With what a daemon joins.
#[derive(Debug)]
pub struct JoinOptions {
    /// The folder in which the daemon's id is kept.
    pub folder: PathBuf,
    /// Where other daemons connect to.
    pub listener: TcpListener,
    /// What the daemon says of itself; id and certificate are filled in.
    pub info: DaemonInfo,
    /// Where its log is.
    pub log: Url,
    /// Whether the log may be on a local disk although there are daemons on other machines, who cannot take it over.
    pub local_log: bool,
    /// How logs of others are brought into files.
    pub ingest: IngestOptions,
    /// Leases and probes; equal on all daemons.
    pub members: MemberOptions,
}

impl Member {
    /// Joins the cluster of the warehouse's catalog. `ingest` must ship its log ([`IngestOptions::ships`]).
    /// `None` where the catalog is one that daemons do not share.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer; `Invalid` where this daemon and the others could not reach
    /// each other, or not each other's logs.
    pub async fn join(
        warehouse: Warehouse,
        ingest: Ingest,
        options: JoinOptions,
    ) -> Result<Option<Self>> {
        Self::join_by(warehouse, ingest, options, Arc::new(str::to_owned)).await
    }

    /// As [`Self::join`], for tests that put something between daemons.
    ///
    /// # Errors
    /// As [`Self::join`].
    #[doc(hidden)]
    pub async fn join_by(
        warehouse: Warehouse,
        ingest: Ingest,
        options: JoinOptions,
        route: Route,
    ) -> Result<Option<Self>> {
        let Some(cluster) = warehouse.catalog().cluster() else { return Ok(None) };
        let shipping = ingest
            .shipping()
            .ok_or_else(|| Error::internal("the log of a member is not one that ships"))?;
        let identity = Identity::take(&options.folder)?;
        let keys = stoa_peers::Identity::generate()?;
        let info =
            DaemonInfo { id: identity.daemon, certificate: keys.fingerprint(), ..options.info };
        check(&cluster.state().await?, &info, &options.log, options.local_log)?;

        let known = Arc::new(Known::new(cluster.clone(), route));
        let peer_options = PeerOptions {
            protocol_min: info.protocol_min,
            protocol_max: info.protocol_max,
            build: info.build.clone(),
            ..PeerOptions::default()
        };
        let directory: Arc<dyn Directory> = Arc::clone(&known) as _;
        let peers = Peers::new(keys, directory, peer_options);
        let (ended, until_ended) = watch::channel(false);
        let serving = Arc::new(Serving(OnceLock::new()));
        task::spawn({
            let (peers, serving) = (peers.clone(), Arc::clone(&serving));
            async move { serve(peers, options.listener, serving, until_ended).await }
        });

        let exact = Exact::new();
        let mut membership = Membership::new(identity.daemon, options.members);
        let incarnation = join(&cluster, &info, &exact, &mut membership, options.members).await?;
        let me = Holder { daemon: identity.daemon, incarnation };
        let log = ingest.log_id().to_owned();
        let lease = lease_of(&log);
        let (own_lease, epoch) =
            lease_log(&cluster, &lease, &options.log, me, &exact, options.members).await?;
        let bits = u64::from_str_radix(&log, 16)
            .map_err(|source| Error::internal("a log's id is no number").with_source(source))?;
        let owner_options =
            OwnerOptions { lease_ttl: options.members.lease.ttl, ..OwnerOptions::default() };
        // Who the peers are is read before anything is acknowledged.
        let owner = Owner::new(LogId::from_bits(bits), shipping.durable(), [], owner_options);
        let machines = Machines::new(membership, owner, own_lease, options.members);
        let (events, to_handle) = mpsc::unbounded_channel();
        let inner = Arc::new(Inner {
            me,
            options: options.members,
            cluster: cluster.clone(),
            warehouse,
            ingest: ingest.clone(),
            shipping,
            ingest_options: options.ingest,
            peers,
            known,
            exact,
            own: OwnLog { log, lease, epoch },
            machines: Mutex::new(machines),
            holds: Holds::default(),
            happened: Happened::default(),
            services: Services::default(),
            events,
            moved: watch::Sender::new(()),
            ended,
            drained: watch::Sender::new(false),
            _identity: identity,
        });
        let _ = serving.0.set(Arc::downgrade(&inner));
        ingest.set_others(Arc::new(OtherDaemons(Arc::downgrade(&inner))));
        inner.read_first().await?;
        task::spawn(drive::run(Arc::clone(&inner), to_handle, cluster.hints()));
        tracing::info!(daemon = %me.daemon, incarnation, "joined the cluster");
        Ok(Some(Self(inner)))
    }
}

impl Inner {
    /// Reads members and leases for the first time.
    async fn read_first(self: &Arc<Self>) -> Result<()> {
        let now = self.exact.now();
        let actions = self.machines.lock().membership.on(MemberEvent::Tick, now);
        let read = actions.iter().find_map(|action| match action {
            MemberAction::Read { request } => Some(*request),
            _ => None,
        });
        let request = read.ok_or_else(|| Error::internal("a new member does not read members"))?;
        let state = self.cluster.state().await?;
        self.read(request, state);
        Ok(())
    }
}

/// Joins; the request's time is when the lease begins for us.
async fn join(
    cluster: &Cluster,
    info: &DaemonInfo,
    exact: &Exact,
    membership: &mut Membership,
    options: MemberOptions,
) -> Result<Incarnation> {
    let actions = membership.on(MemberEvent::Tick, exact.now());
    let Some(MemberAction::Join { request }) = actions.first() else {
        return Err(Error::internal("a new member does not join"));
    };
    let incarnation = cluster.join(info, options.lease.ttl).await?;
    membership.on(MemberEvent::Joined { request: *request, incarnation }, exact.now());
    exact.set_deadline(membership.deadline().until());
    Ok(incarnation)
}

async fn lease_log(
    cluster: &Cluster,
    name: &str,
    place: &Url,
    me: Holder,
    exact: &Exact,
    options: MemberOptions,
) -> Result<(Lease, u64)> {
    let mut lease = Lease::new(options.lease);
    let actions = lease.on(LeaseEvent::Acquire { observed: None }, exact.now());
    let Some(LeaseAction::Acquire { request, .. }) = actions.first() else {
        return Err(Error::internal("a new lease is not asked for"));
    };
    let granted = cluster.acquire(name, place.as_str(), me, None, options.lease.ttl).await?;
    let epoch = granted.ok_or_else(|| Error::conflict(format!("{name} has another owner")))?;
    lease.on(LeaseEvent::Granted { request: *request, epoch }, exact.now());
    Ok((lease, epoch))
}

async fn serve(
    peers: Peers,
    listener: TcpListener,
    serving: Arc<Serving>,
    mut ended: watch::Receiver<bool>,
) {
    let until = async move {
        // A sender that is gone means the same.
        let _ = ended.wait_for(|ended| *ended).await;
    };
    if let Err(error) = peers.serve(listener, serving, until).await {
        tracing::error!(%error, "other daemons are not answered");
    }
}

/// Refuses what would make members that do not understand each other, or cannot reach each other, or not each
/// other's logs.
fn check(state: &ClusterState, info: &DaemonInfo, log: &Url, local_log: bool) -> Result<()> {
    let others = state.daemons.values().filter(|other| {
        let row = state.members.get(other.id);
        let holder = row.map(|row| Holder { daemon: other.id, incarnation: row.incarnation });
        other.id != info.id && holder.is_some_and(|holder| state.members.lives(holder))
    });
    for other in others {
        check_protocol(info, other)?;
        if other.name == info.name {
            continue;
        }
        let local = [info, other].into_iter().find(|daemon| is_loopback(&daemon.peer_address));
        if let Some(local) = local {
            return Err(Error::invalid(format!(
                "daemons on {} and {} would not reach each other: the address of the one on {} is {}",
                info.name, other.name, local.name, local.peer_address
            ))
            .with_hint("set listen and advertise to an address that other machines reach"));
        }
        if log.scheme() == "file" && !local_log {
            return Err(Error::invalid(format!(
                "the commit log is on a disk of {}: daemons on other machines, such as {}, could not \
                 take it over",
                info.name, other.name
            ))
            .with_hint(
                "set commit_log to a store that all reach, such as s3://bucket/log; or \
                 allow_local_log, if rows may be unreachable while a machine is down",
            ));
        }
    }
    Ok(())
}

fn check_protocol(info: &DaemonInfo, other: &DaemonInfo) -> Result<()> {
    if info.protocol_min <= other.protocol_max && other.protocol_min <= info.protocol_max {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "this daemon ({}) speaks protocols {} to {} with others, and daemon {} ({}) on {} speaks {} to {}",
        info.build,
        info.protocol_min,
        info.protocol_max,
        other.id,
        other.build,
        other.name,
        other.protocol_min,
        other.protocol_max
    ))
    .with_hint("upgrade the daemons one version at a time"))
}

fn is_loopback(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
        || address.starts_with("localhost:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(protocol_min: u16, protocol_max: u16) -> DaemonInfo {
        let text = String::new;
        DaemonInfo {
            id: stoa_cluster::DaemonId::from_bits(u64::from(protocol_min)),
            name: text(),
            peer_address: text(),
            pg_address: text(),
            http_address: text(),
            flight_address: text(),
            zone: text(),
            build: format!("build {protocol_max}"),
            protocol_min,
            protocol_max,
            cores: 1,
            cache_bytes: 0,
            certificate: [0; 32],
        }
    }

    #[test]
    fn daemons_need_a_protocol_in_common() {
        for (other, fits) in [((1, 2), true), ((3, 4), true), ((1, 1), false), ((4, 5), false)] {
            let checked = check_protocol(&info(2, 3), &info(other.0, other.1));
            assert_eq!(checked.is_ok(), fits, "{other:?}");
            if let Err(error) = checked {
                let both = ["build 3".to_owned(), format!("build {}", other.1)];
                assert!(both.iter().all(|build| error.message().contains(build)), "{error}");
            }
        }
    }
}
