//! For `stoa-system`: the engine's figures, for a caller.

mod cluster;
mod ingest;
mod queries;
mod resource_plans;
mod rights;
pub(crate) mod snapshot;
mod stores;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use datafusion::prelude::SessionConfig;
use stoa_error::{Error, Result};
use stoa_figures::{
    Cache, CatalogFigures, ClusterEvent, ClusterFigures, Daemon, Executors, Grant, IngestTable,
    Latency, LatencyPath, Log, Machine, Maintenance, Pool, Query, QueryShape, Rate, Refusals,
    ResourcePlanRows, Role, Sample, Store, Table, Totals,
};
use stoa_system::{Figures, Server};

use crate::access::Caller;
use crate::engine::Engine;

/// The server whose figures are those of `engine`, which is set when the engine is there.
pub(crate) fn server(engine: &Arc<OnceLock<Weak<Engine>>>) -> Arc<dyn Server> {
    Arc::new(SystemServer { engine: Arc::clone(engine) })
}

struct SystemServer {
    /// Has the schema `system`, too.
    engine: Arc<OnceLock<Weak<Engine>>>,
}

impl Server for SystemServer {
    fn figures(&self, config: &SessionConfig) -> Result<Arc<dyn Figures>> {
        let ended = || Error::internal("a plan reads figures of an engine that has ended");
        let engine = self.engine.get().and_then(Weak::upgrade).ok_or_else(ended)?;
        Ok(Arc::new(SeenFigures { engine, caller: Caller::within(config)? }))
    }
}

/// Figures of which those about tables are for a caller.
struct SeenFigures {
    engine: Arc<Engine>,
    caller: Arc<Caller>,
}

#[async_trait]
impl Figures for SeenFigures {
    fn role(&self) -> &str {
        self.caller.role()
    }

    fn is_superuser(&self) -> bool {
        self.caller.may_everything()
    }

    fn cache(&self) -> Cache {
        snapshot::cache(&self.engine)
    }

    fn executors(&self) -> Executors {
        snapshot::executors(&self.engine)
    }

    async fn grants(&self) -> Result<Vec<Grant>> {
        rights::grants(&self.engine, &self.caller).await
    }

    async fn ingest(&self) -> Result<Vec<IngestTable>> {
        Ok(ingest::load(&self.engine, &self.caller).await)
    }

    fn history(&self) -> Vec<Sample> {
        self.engine.all_samples()
    }

    fn latency(&self) -> Latency {
        self.engine.latency()
    }

    fn latency_paths(&self) -> Vec<LatencyPath> {
        self.engine.latency_paths()
    }

    fn log(&self) -> Option<Log> {
        snapshot::log(&self.engine)
    }

    fn machine(&self) -> Machine {
        self.engine.machine()
    }

    fn maintenance(&self) -> Option<Maintenance> {
        snapshot::maintenance(&self.engine)
    }

    fn pools(&self) -> Vec<Pool> {
        snapshot::pools(&self.engine)
    }

    fn queries(&self) -> Vec<Query> {
        queries::queries(&self.engine)
    }

    fn query_shapes(&self) -> Vec<QueryShape> {
        queries::query_shapes(&self.engine)
    }

    fn cluster(&self) -> Option<ClusterFigures> {
        cluster::cluster(&self.engine)
    }

    fn daemons(&self) -> Vec<Daemon> {
        cluster::daemons(&self.engine)
    }

    fn cluster_events(&self) -> Vec<ClusterEvent> {
        cluster::events(&self.engine)
    }

    fn catalog(&self) -> CatalogFigures {
        snapshot::catalog(&self.engine)
    }

    fn rate(&self) -> Rate {
        self.engine.rate()
    }

    fn refusals(&self) -> Refusals {
        snapshot::refusals(&self.engine)
    }

    async fn resource_plans(&self) -> Result<ResourcePlanRows> {
        resource_plans::load(&self.engine).await
    }

    fn roles(&self) -> Vec<Role> {
        rights::roles(&self.engine)
    }

    fn stores(&self) -> Vec<Store> {
        stores::stores(&self.engine)
    }

    async fn tables(&self) -> Result<Vec<Table>> {
        tables::load(&self.engine, &self.caller).await
    }

    fn totals(&self) -> Totals {
        snapshot::totals(&self.engine)
    }
}
