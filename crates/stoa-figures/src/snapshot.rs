//! A server at one moment.

use std::slice;

use crate::group::Group;
use crate::inventory::alerts::{ALERTS, Alert};
use crate::inventory::cache::{CACHE, Cache};
use crate::inventory::catalog::{CATALOG, CatalogFigures};
use crate::inventory::daemons::{
    CLUSTER, ClusterFigures, DAEMONS, Daemon, THIS_DAEMON, ThisDaemon,
};
use crate::inventory::executors::{EXECUTORS, Executors};
use crate::inventory::history::{HISTORY, Sample};
use crate::inventory::http::{HTTP, HTTP_REQUESTS, Http, HttpRequests};
use crate::inventory::ingest::{INGEST, IngestTable};
use crate::inventory::log::{LOG, Log};
use crate::inventory::machine::{MACHINE, Machine};
use crate::inventory::maintenance::{MAINTENANCE, Maintenance};
use crate::inventory::paths::{LATENCY_PATHS, LatencyPath};
use crate::inventory::pools::{POOLS, Pool};
use crate::inventory::recent::{LATENCY, Latency, RATE, Rate};
use crate::inventory::refusals::{REFUSALS, REFUSED_CONNECTIONS, Refusals, RefusedConnections};
use crate::inventory::server::{SERVER, Server};
use crate::inventory::stores::{STORES, Store};
use crate::inventory::totals::{TOTALS, Totals};

/// What `/v1/status` and `/metrics` are made of.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The process.
    pub server: Server,
    /// Statements since the start.
    pub totals: Totals,
    /// Queries a second.
    pub rate: Rate,
    /// How long they take.
    pub latency: Latency,
    /// The same by the way on which they are answered.
    pub latency_paths: Vec<LatencyPath>,
    /// What the machine does.
    pub machine: Machine,
    /// Who computes and who waits.
    pub executors: Executors,
    /// The same by pool.
    pub pools: Vec<Pool>,
    /// What was refused.
    pub refusals: Refusals,
    /// Connections that were refused, by listener.
    pub refused_connections: Vec<RefusedConnections>,
    /// What reports keep.
    pub cache: Cache,
    /// What stores were asked for.
    pub stores: Vec<Store>,
    /// The catalog.
    pub catalog: CatalogFigures,
    /// The cluster; `None` where there is none.
    pub cluster: Option<ClusterFigures>,
    /// Its daemons.
    pub daemons: Vec<Daemon>,
    /// Which of them this one is; `None` where there is no cluster.
    pub this_daemon: Option<ThisDaemon>,
    /// What is wrong.
    pub alerts: Vec<Alert>,
    /// The commit log; `None` without one.
    pub log: Option<Log>,
    /// Tables with small writes; of `/v1/status`, those that the viewer may see.
    pub ingest: Vec<IngestTable>,
    /// The work in the background; `None` where that is off.
    pub maintenance: Option<Maintenance>,
    /// The HTTP server.
    pub http: Http,
    /// Its requests.
    pub http_requests: Vec<HttpRequests>,
    /// Samples, oldest first.
    pub history: Vec<Sample>,
}

/// Looks at groups with their rows.
pub(crate) trait Visitor {
    /// At one of them.
    fn visit<S>(&mut self, group: &Group<S>, rows: &[S]);
}

impl Snapshot {
    /// Shows `visitor` all groups, in the order of documents.
    pub(crate) fn visit(&self, visitor: &mut impl Visitor) {
        visitor.visit(&SERVER, slice::from_ref(&self.server));
        visitor.visit(&TOTALS, slice::from_ref(&self.totals));
        visitor.visit(&RATE, slice::from_ref(&self.rate));
        visitor.visit(&LATENCY, slice::from_ref(&self.latency));
        visitor.visit(&LATENCY_PATHS, &self.latency_paths);
        visitor.visit(&MACHINE, slice::from_ref(&self.machine));
        visitor.visit(&EXECUTORS, slice::from_ref(&self.executors));
        visitor.visit(&POOLS, &self.pools);
        visitor.visit(&REFUSALS, slice::from_ref(&self.refusals));
        visitor.visit(&REFUSED_CONNECTIONS, &self.refused_connections);
        visitor.visit(&CACHE, slice::from_ref(&self.cache));
        visitor.visit(&STORES, &self.stores);
        visitor.visit(&CATALOG, slice::from_ref(&self.catalog));
        visitor.visit(&CLUSTER, self.cluster.as_slice());
        visitor.visit(&DAEMONS, &self.daemons);
        visitor.visit(&THIS_DAEMON, self.this_daemon.as_slice());
        visitor.visit(&ALERTS, &self.alerts);
        visitor.visit(&LOG, self.log.as_slice());
        visitor.visit(&INGEST, &self.ingest);
        visitor.visit(&MAINTENANCE, self.maintenance.as_slice());
        visitor.visit(&HTTP, slice::from_ref(&self.http));
        visitor.visit(&HTTP_REQUESTS, &self.http_requests);
        visitor.visit(&HISTORY, &self.history);
    }
}
