//! All groups, one file each: what is taken for a snapshot, and the declarations.

pub(crate) mod alerts;
pub(crate) mod cache;
pub(crate) mod catalog;
pub(crate) mod daemons;
pub(crate) mod executors;
pub(crate) mod history;
pub(crate) mod http;
pub(crate) mod ingest;
pub(crate) mod log;
pub(crate) mod machine;
pub(crate) mod maintenance;
pub(crate) mod paths;
pub(crate) mod pools;
pub(crate) mod queries;
pub(crate) mod recent;
pub(crate) mod refusals;
pub(crate) mod resource_plans;
pub(crate) mod rights;
pub(crate) mod server;
pub(crate) mod shapes;
pub(crate) mod spent;
pub(crate) mod stores;
pub(crate) mod tables;
pub(crate) mod totals;

use crate::declaration::Declaration;

/// All groups, in the order of documents.
pub fn declarations() -> Vec<Declaration> {
    vec![
        server::SERVER.declaration(),
        totals::TOTALS.declaration(),
        recent::RATE.declaration(),
        recent::LATENCY.declaration(),
        paths::LATENCY_PATHS.declaration(),
        machine::MACHINE.declaration(),
        executors::EXECUTORS.declaration(),
        pools::POOLS.declaration(),
        refusals::REFUSALS.declaration(),
        refusals::REFUSED_CONNECTIONS.declaration(),
        cache::CACHE.declaration(),
        stores::STORES.declaration(),
        catalog::CATALOG.declaration(),
        daemons::CLUSTER.declaration(),
        daemons::DAEMONS.declaration(),
        daemons::THIS_DAEMON.declaration(),
        daemons::CLUSTER_EVENTS.declaration(),
        alerts::ALERTS.declaration(),
        log::LOG.declaration(),
        ingest::INGEST.declaration(),
        maintenance::MAINTENANCE.declaration(),
        http::HTTP.declaration(),
        http::HTTP_REQUESTS.declaration(),
        history::HISTORY.declaration(),
        queries::QUERIES.declaration(),
        shapes::QUERY_SHAPES.declaration(),
        tables::TABLES.declaration(),
        rights::ROLES.declaration(),
        rights::GRANTS.declaration(),
        resource_plans::WM_RESOURCEPLANS.declaration(),
        resource_plans::WM_POOLS.declaration(),
        resource_plans::WM_TRIGGERS.declaration(),
        resource_plans::WM_POOLS_TO_TRIGGERS.declaration(),
        resource_plans::WM_MAPPINGS.declaration(),
    ]
}

/// The group that is the table `system.name`.
pub fn system_table(name: &str) -> Option<Declaration> {
    declarations().into_iter().find(|group| group.is_table && group.name == name)
}
