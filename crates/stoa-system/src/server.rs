//! What the schema has to know of its server.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::prelude::SessionConfig;
use stoa_error::Result;
use stoa_figures::{
    Cache, CatalogFigures, ClusterEvent, ClusterFigures, Daemon, Executors, Grant, IngestTable,
    Latency, LatencyPath, Log, Machine, Maintenance, Pool, Query, QueryShape, Rate, Refusals,
    ResourcePlanRows, Role, Sample, Store, Table, Totals,
};

/// The server.
pub trait Server: Send + Sync {
    /// Its figures, for whoever runs plans with this configuration.
    ///
    /// # Errors
    /// `Internal` where the configuration does not tell who that is, or the server has ended.
    fn figures(&self, config: &SessionConfig) -> Result<Arc<dyn Figures>>;
}

/// A server's figures, as they are now, for one role. Rows about tables are those of tables that it may
/// read something of; all else is judged by the schema.
#[async_trait]
pub trait Figures: Send + Sync {
    /// The role.
    fn role(&self) -> &str;

    /// Whether it may see everything.
    fn is_superuser(&self) -> bool;

    /// What reports keep.
    fn cache(&self) -> Cache;

    /// Who computes and who waits.
    fn executors(&self) -> Executors;

    /// Who may do what with what.
    ///
    /// # Errors
    /// The catalog's.
    async fn grants(&self) -> Result<Vec<Grant>>;

    /// Tables with rows that are in no file yet.
    ///
    /// # Errors
    /// The catalog's.
    async fn ingest(&self) -> Result<Vec<IngestTable>>;

    /// The catalog.
    fn catalog(&self) -> CatalogFigures;

    /// The cluster; `None` where there is none.
    fn cluster(&self) -> Option<ClusterFigures>;

    /// Its daemons.
    fn daemons(&self) -> Vec<Daemon>;

    /// What happened to it, the oldest first.
    fn cluster_events(&self) -> Vec<ClusterEvent>;

    /// Samples of the last week.
    fn history(&self) -> Vec<Sample>;

    /// How long queries took within the last minute.
    fn latency(&self) -> Latency;

    /// The same by path.
    fn latency_paths(&self) -> Vec<LatencyPath>;

    /// The commit log; `None` without one.
    fn log(&self) -> Option<Log>;

    /// What the machine does.
    fn machine(&self) -> Machine;

    /// The work in the background; `None` where that is off.
    fn maintenance(&self) -> Option<Maintenance>;

    /// Pools of queries.
    fn pools(&self) -> Vec<Pool>;

    /// Running and waiting queries, then those that ended lately.
    fn queries(&self) -> Vec<Query>;

    /// Statements that differ in their literals only.
    fn query_shapes(&self) -> Vec<QueryShape>;

    /// Queries a second.
    fn rate(&self) -> Rate;

    /// Resource plans.
    ///
    /// # Errors
    /// The catalog's.
    async fn resource_plans(&self) -> Result<ResourcePlanRows>;

    /// What was refused since the start.
    fn refusals(&self) -> Refusals;

    /// Who there is.
    fn roles(&self) -> Vec<Role>;

    /// What each store was asked for since the start.
    fn stores(&self) -> Vec<Store>;

    /// Tables, by namespace and name.
    ///
    /// # Errors
    /// The catalog's.
    async fn tables(&self) -> Result<Vec<Table>>;

    /// All statements since the start.
    fn totals(&self) -> Totals;
}
