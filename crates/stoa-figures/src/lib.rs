//! Every figure that is shown of a server, declared once: name, kind, unit, help, who may see it, and
//! where it comes from.
//!
//! In: a [`Snapshot`], plain numbers and texts at one moment. Out: what shows them.
//!
//! ```text
//!  Snapshot ─► declarations ─┬─► `/metrics`            prometheus
//!  (whoever knows fills it)  ├─► `/v1/status`          status ─► of all daemons: together
//!                            ├─► `system.*`            Group::columns, Group::seen_rows
//!                            └─► openapi.yaml, api.js, docs/figures.md     document
//! ```
//!
//! A [`Group`] is what belongs together: one object of `/v1/status`, one table `system.*`, under one name,
//! and its members have one name wherever they are shown. The names of metrics are Prometheus' own.
//!
//! **Invariants:** no output has a figure that is not declared here, and none is missing. Whoever does
//! not say who may see a group has said: superusers only.
//!
//! Not here: who somebody is, which tables a role may read (whoever fills a group that is
//! [`Seen::Granted`] leaves the others out), DataFusion, HTTP.

mod declaration;
mod document;
mod figure;
mod group;
mod inventory;
mod kind;
mod prometheus;
mod seen;
mod snapshot;
mod status;
mod together;
mod value;

pub use declaration::{Column, Declaration, MetricName};
pub use document::{
    MARKDOWN_FILE, OPENAPI_FILE, TYPES_FILE, markdown, openapi, types, with_section,
};
pub use figure::Figure;
pub use group::Group;
pub use inventory::alerts::{ALERTS, Alert};
pub use inventory::cache::{CACHE, Cache};
pub use inventory::catalog::{CATALOG, CatalogFigures};
pub use inventory::daemons::{
    CLUSTER, CLUSTER_EVENTS, ClusterEvent, ClusterFigures, DAEMONS, Daemon, THIS_DAEMON, ThisDaemon,
};
pub use inventory::executors::{EXECUTORS, Executors, Stalls};
pub use inventory::history::{HISTORY, Sample};
pub use inventory::http::{HTTP, HTTP_REQUESTS, Http, HttpRequests};
pub use inventory::ingest::{INGEST, IngestTable};
pub use inventory::log::{LOG, Log};
pub use inventory::machine::{MACHINE, Machine};
pub use inventory::maintenance::{MAINTENANCE, Maintenance};
pub use inventory::paths::{LATENCY_PATHS, LatencyPath};
pub use inventory::pools::{POOLS, Pool};
pub use inventory::queries::{QUERIES, Query};
pub use inventory::recent::{LATENCY, Latency, RATE, Rate};
pub use inventory::refusals::{REFUSALS, REFUSED_CONNECTIONS, Refusals, RefusedConnections};
pub use inventory::resource_plans::{
    PlanMappingRow, PlanPoolRow, PlanRow, PlanTriggerRow, PoolTriggerRow, ResourcePlanRows,
    WM_MAPPINGS, WM_POOLS, WM_POOLS_TO_TRIGGERS, WM_RESOURCEPLANS, WM_TRIGGERS,
};
pub use inventory::rights::{GRANTS, Grant, ROLES, Role};
pub use inventory::server::{SERVER, Server};
pub use inventory::shapes::{QUERY_SHAPES, QueryShape};
pub use inventory::spent::Spent;
pub use inventory::stores::{STORES, Store};
pub use inventory::tables::{TABLES, Table};
pub use inventory::totals::{TOTALS, Totals};
pub use inventory::{declarations, system_table};
pub use kind::{Kind, Type, Unit};
pub use prometheus::prometheus;
pub use seen::{Seen, Shape, Viewer};
pub use snapshot::Snapshot;
pub use status::{members, status};
pub use together::{Together, for_everyone, together};
pub use value::{Histogram, Value};
