//! The server as a member of a cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use stoa_catalog::DaemonInfo;
use stoa_cells::CellFlushOrder;
use stoa_cluster::DaemonId;
use stoa_cluster::membership::MemberOptions;
use stoa_distributed::Members;
use stoa_error::{Error, Result};
use stoa_ingest::IngestOptions;
use stoa_member::{JoinOptions, Member, ServiceKind};
use tokio::net::TcpListener;

use crate::engine::reports_for_others::ReportsForOthers;
use crate::engine::spread::{Spreading, Taking};
use crate::engine::{Engine, Handles};

/// What rules of workloads see of reports that other daemons ask for.
const PROTOCOL_OF_OTHERS: &str = "peer";

/// The protocol between daemons that this build speaks.
const PROTOCOL: u16 = 1;

/// With what a server joins the cluster of its catalog.
#[derive(Debug)]
pub struct Joining {
    /// Where other daemons connect to.
    pub listener: TcpListener,
    /// Where other daemons have parts of their statements computed.
    pub task_listener: TcpListener,
    /// The folder in which the daemon's id is kept.
    pub folder: PathBuf,
    /// The name of the machine: two daemons on one reach each other's disks.
    pub host: String,
    /// Where other daemons, and clients of each protocol, connect to: `host:port`.
    pub peer_address: String,
    /// For clients of the PostgreSQL protocol.
    pub pg_address: String,
    /// For HTTP.
    pub http_address: String,
    /// For Arrow Flight SQL.
    pub flight_address: String,
    /// The availability zone; may be empty.
    pub zone: String,
    /// Whether the log may be on a local disk although there are daemons on other machines.
    pub local_log: bool,
    /// How long the lease of a member lasts.
    pub lease: Duration,
}

impl Engine {
    /// Joins the cluster of the catalog, if [`EngineOptions::cluster`](crate::EngineOptions) says so and the
    /// catalog is one that daemons share. Reads are answered once all others have been heard of.
    ///
    /// # Errors
    /// Those of [`Member::join`].
    pub fn join(&self, joining: Joining) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let data = &self.handles().data;
            let (Some(ingest), Some(log)) = (data.ingest(), self.shipped_log.clone()) else {
                return Ok(());
            };
            let options = self.options();
            let info = DaemonInfo {
                // Filled in from the daemon's files.
                id: DaemonId::from_bits(0),
                certificate: [0; 32],
                name: joining.host,
                peer_address: joining.peer_address,
                pg_address: joining.pg_address,
                http_address: joining.http_address,
                flight_address: joining.flight_address,
                zone: joining.zone,
                build: concat!("stoa ", env!("CARGO_PKG_VERSION")).to_owned(),
                protocol_min: PROTOCOL,
                protocol_max: PROTOCOL,
                cores: u32::try_from(options.threads).unwrap_or(u32::MAX),
                cache_bytes: options.cache_bytes_max as u64,
            };
            let mut members = MemberOptions::default();
            members.lease.ttl = joining.lease;
            let join = JoinOptions {
                folder: joining.folder,
                listener: joining.listener,
                info,
                log,
                local_log: joining.local_log,
                ingest: IngestOptions {
                    order: Some(Arc::new(CellFlushOrder)),
                    ..IngestOptions::default()
                },
                members,
            };
            let joined = Member::join(data.warehouse().clone(), ingest.clone(), join).await?;
            let member = joined.ok_or_else(|| Error::internal("the catalog is not shared"))?;
            self.end_for_others(&member);
            let reports = ReportsForOthers {
                in_parts: false,
                data: Arc::downgrade(data),
                memory: Arc::clone(self.handles().runner.memory()),
                pool: self.handles().runner.pools().configured("", "", PROTOCOL_OF_OTHERS),
            };
            let parts = ReportsForOthers { in_parts: true, ..reports.clone() };
            member.serve(ServiceKind::Report, Arc::new(reports));
            member.serve(ServiceKind::ReportParts, Arc::new(parts));
            let spreading = self.spread_with(&member, joining.task_listener)?;
            for (kind, service) in spreading.services() {
                member.serve(kind, service);
            }
            data.set_member(member, options.home_bytes_min);
            Ok(())
        })
    }

    /// From now on, large plans are computed with the other daemons.
    fn spread_with(&self, member: &Member, listener: TcpListener) -> Result<Arc<Spreading>> {
        let Handles { data, runner, .. } = self.handles();
        let taking = Taking {
            daemons: Arc::new(member.clone()),
            network: Arc::new(Members(member.clone())),
            listener,
            bytes_min: self.options().spread_bytes_min,
            base: self.new_state(),
            data: Arc::downgrade(data),
        };
        Spreading::start(runner, taking)
    }

    /// This server as a member of its cluster; `None` where there is none.
    pub fn member(&self) -> Option<&Member> {
        self.handles().data.member()
    }
}
