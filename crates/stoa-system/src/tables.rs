//! The tables: which there are, who may read them, and how.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as EngineResult;
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_error::{Error, ErrorKind, Result};
use stoa_figures::{Group, Viewer};
use stoa_semantics::errors::to_datafusion;

use crate::rows;
use crate::server::Figures;

/// Name of the schema.
pub const SYSTEM: &str = "system";

/// Reads the rows of one table.
type Load<S> = for<'a> fn(&'a dyn Figures) -> BoxFuture<'a, Result<Vec<S>>>;

/// Reads a table.
type Read = dyn Fn(Arc<dyn Figures>) -> BoxFuture<'static, EngineResult<RecordBatch>> + Send + Sync;

/// All of them, by name, with what they show.
pub(crate) fn all() -> Vec<SystemTable> {
    vec![
        SystemTable::of(&stoa_figures::CACHE, |figures| vec![figures.cache()]),
        SystemTable::of(&stoa_figures::CATALOG, |figures| vec![figures.catalog()]),
        SystemTable::of(&stoa_figures::CLUSTER, |figures| figures.cluster().into_iter().collect()),
        SystemTable::of(&stoa_figures::CLUSTER_EVENTS, |figures| figures.cluster_events()),
        SystemTable::of(&stoa_figures::DAEMONS, |figures| figures.daemons()),
        SystemTable::of(&stoa_figures::EXECUTORS, |figures| vec![figures.executors()]),
        SystemTable::loaded(&stoa_figures::GRANTS, |figures| figures.grants()),
        SystemTable::of(&stoa_figures::HISTORY, |figures| figures.history()),
        SystemTable::loaded(&stoa_figures::INGEST, |figures| figures.ingest()),
        SystemTable::of(&stoa_figures::LATENCY, |figures| vec![figures.latency()]),
        SystemTable::of(&stoa_figures::LATENCY_PATHS, |figures| figures.latency_paths()),
        SystemTable::of(&stoa_figures::LOG, |figures| figures.log().into_iter().collect()),
        SystemTable::of(&stoa_figures::MACHINE, |figures| vec![figures.machine()]),
        SystemTable::of(&stoa_figures::MAINTENANCE, |figures| {
            figures.maintenance().into_iter().collect()
        }),
        SystemTable::of(&stoa_figures::POOLS, |figures| figures.pools()),
        SystemTable::of(&stoa_figures::QUERIES, |figures| figures.queries()),
        SystemTable::of(&stoa_figures::QUERY_SHAPES, |figures| figures.query_shapes()),
        SystemTable::of(&stoa_figures::RATE, |figures| vec![figures.rate()]),
        SystemTable::of(&stoa_figures::REFUSALS, |figures| vec![figures.refusals()]),
        SystemTable::of(&stoa_figures::ROLES, |figures| figures.roles()),
        SystemTable::of(&stoa_figures::STORES, |figures| figures.stores()),
        SystemTable::loaded(&stoa_figures::TABLES, |figures| figures.tables()),
        SystemTable::of(&stoa_figures::TOTALS, |figures| vec![figures.totals()]),
        SystemTable::loaded(&stoa_figures::WM_MAPPINGS, |figures| {
            async { Ok(figures.resource_plans().await?.mappings) }.boxed()
        }),
        SystemTable::loaded(&stoa_figures::WM_POOLS, |figures| {
            async { Ok(figures.resource_plans().await?.pools) }.boxed()
        }),
        SystemTable::loaded(&stoa_figures::WM_POOLS_TO_TRIGGERS, |figures| {
            async { Ok(figures.resource_plans().await?.pools_to_triggers) }.boxed()
        }),
        SystemTable::loaded(&stoa_figures::WM_RESOURCEPLANS, |figures| {
            async { Ok(figures.resource_plans().await?.plans) }.boxed()
        }),
        SystemTable::loaded(&stoa_figures::WM_TRIGGERS, |figures| {
            async { Ok(figures.resource_plans().await?.triggers) }.boxed()
        }),
    ]
}

/// A table of the schema.
pub(crate) struct SystemTable {
    pub(crate) name: &'static str,
    pub(crate) schema: SchemaRef,
    read: Box<Read>,
}

impl SystemTable {
    /// A table of what is in memory.
    pub(crate) fn of<S>(group: &'static Group<S>, rows: fn(&dyn Figures) -> Vec<S>) -> Self
    where
        S: Send + Sync + 'static,
    {
        Self::new(group, move |figures| {
            let rows = rows(figures);
            async move { Ok(rows) }.boxed()
        })
    }

    /// A table of what must be read.
    fn loaded<S>(group: &'static Group<S>, load: Load<S>) -> Self
    where
        S: Send + Sync + 'static,
    {
        Self::new(group, load)
    }

    fn new<S, L>(group: &'static Group<S>, load: L) -> Self
    where
        S: Send + Sync + 'static,
        L: for<'a> Fn(&'a dyn Figures) -> BoxFuture<'a, Result<Vec<S>>>
            + Copy
            + Send
            + Sync
            + 'static,
    {
        let schema = rows::schema(&group.declaration());
        let columns = Arc::clone(&schema);
        let read = move |figures: Arc<dyn Figures>| {
            let columns = Arc::clone(&columns);
            async move {
                if !group.admits(viewer(&*figures)) {
                    return Err(to_datafusion(refusal(group.name(), figures.role())));
                }
                let loaded = load(&*figures).await.map_err(to_datafusion)?;
                rows::batch(group, &columns, &loaded, viewer(&*figures))
            }
            .boxed()
        };
        Self { name: group.name(), schema, read: Box::new(read) }
    }

    /// Its rows, of what the reader may see.
    ///
    /// # Errors
    /// 42501 for who may not read it, and those of reading it.
    pub(crate) async fn read(&self, figures: Arc<dyn Figures>) -> EngineResult<RecordBatch> {
        (self.read)(figures).await
    }
}

fn viewer(figures: &dyn Figures) -> Viewer<'_> {
    Viewer { role: figures.role(), is_superuser: figures.is_superuser() }
}

fn refusal(table: &str, role: &str) -> Error {
    let message = format!("permission denied: only a superuser may read {SYSTEM}.{table}");
    Error::new(ErrorKind::Forbidden, message)
        .with_sqlstate("42501")
        .with_hint(format!("the role is \"{role}\""))
}
