//! The schema `system`: what the server does, as tables.
//!
//! Each table is a function from the engine to a batch, run when the table is read; one that has to read
//! metadata for that is loaded. Console and `/metrics` show the same numbers.

mod ingest;
mod rights;
mod rows;
mod stores;
mod tables;

use std::sync::{Arc, OnceLock, Weak};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use futures::future::BoxFuture;
use stoa_error::{Error, Result};
use stoa_store::StoreTotals;

use crate::access::Caller;
use crate::engine::Engine;
use crate::error::to_datafusion;
use crate::latency::LatencyHistogram;
use crate::registry::QueryInfo;
use crate::spent::Spent;
use rows::Rows;

/// Name of the schema.
pub(crate) const SYSTEM: &str = "system";

/// Reads the rows of one table that somebody may see.
type Load = fn(Arc<Engine>, Arc<Caller>) -> BoxFuture<'static, Result<Rows>>;

/// Makes the rows of one table.
#[derive(Clone, Copy)]
enum Build {
    /// From what is in memory.
    Now(fn(&Engine) -> Rows),
    /// From what must be read; `empty` has the same columns.
    Loaded { empty: fn() -> Rows, load: Load },
}

/// All of them, with what they show.
const TABLES: [(&str, Build); 11] = [
    ("cache", Build::Now(cache)),
    ("executors", Build::Now(executors)),
    ("grants", Build::Loaded { empty: rights::no_grants, load: rights::grants }),
    ("ingest", Build::Loaded { empty: ingest::empty, load: ingest::load }),
    ("log", Build::Now(log)),
    ("pools", Build::Now(pools)),
    ("queries", Build::Now(queries)),
    ("query_shapes", Build::Now(query_shapes)),
    ("roles", Build::Now(rights::roles)),
    ("stores", Build::Now(stores::stores)),
    ("tables", Build::Loaded { empty: tables::empty, load: tables::load }),
];

impl Build {
    fn schema(self, engine: &Engine) -> EngineResult<SchemaRef> {
        let rows = match self {
            Self::Now(build) => build(engine),
            Self::Loaded { empty, .. } => empty(),
        };
        Ok(rows.finish()?.schema())
    }

    async fn run(self, engine: Arc<Engine>, caller: Arc<Caller>) -> EngineResult<RecordBatch> {
        match self {
            Self::Now(build) => build(&engine).finish(),
            Self::Loaded { load, .. } => {
                load(engine, caller).await.map_err(to_datafusion)?.finish()
            }
        }
    }
}

/// `system`.
pub(crate) struct SystemSchema {
    /// Set when the engine is there, which has this schema.
    engine: Arc<OnceLock<Weak<Engine>>>,
}

impl SystemSchema {
    pub(crate) fn new(engine: Arc<OnceLock<Weak<Engine>>>) -> Self {
        Self { engine }
    }
}

impl std::fmt::Debug for SystemSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SystemSchema")
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        TABLES.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some((name, build)) = TABLES.iter().find(|(known, _)| *known == name) else {
            return Ok(None);
        };
        let Some(engine) = self.engine.get().and_then(Weak::upgrade) else { return Ok(None) };
        let schema = build.schema(&engine)?;
        let live =
            Live { engine: Arc::downgrade(&engine), schema: schema.clone(), name, build: *build };
        Ok(Some(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(live)])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.iter().any(|(known, _)| *known == name)
    }
}

/// A table that is built when it is read.
struct Live {
    engine: Weak<Engine>,
    schema: SchemaRef,
    name: &'static str,
    build: Build,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live")
    }
}

impl PartitionStream for Live {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, tasks: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (name, build) = (self.name, self.build);
        let caller = tasks.session_config().get_extension::<Caller>();
        let batches = futures::stream::iter(self.engine.upgrade())
            .then(move |engine| read(name, build, engine, caller.clone()));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

async fn read(
    name: &str,
    build: Build,
    engine: Arc<Engine>,
    caller: Option<Arc<Caller>>,
) -> EngineResult<RecordBatch> {
    let no_caller = || to_datafusion(Error::internal("a plan without a caller"));
    let caller = caller.ok_or_else(no_caller)?;
    let rows = build.run(engine, Arc::clone(&caller)).await?;
    visible(name, rows, &caller).map_err(to_datafusion)
}

/// What of a table's rows the caller may see: statements of others are for superusers.
fn visible(name: &str, rows: RecordBatch, caller: &Caller) -> Result<RecordBatch> {
    if name == "query_shapes" {
        caller.must_be_superuser("see what statements others run")?;
    }
    let users = rows.column_by_name("user").filter(|_| name == "queries");
    let Some(users) = users.filter(|_| !caller.may_everything()) else { return Ok(rows) };
    let own = users.as_string::<i32>().iter().map(|user| Some(user == Some(caller.role())));
    filter_record_batch(&rows, &own.collect())
        .map_err(|e| Error::internal("queries cannot be filtered").with_source(e))
}

/// Running and waiting queries, then those that ended lately.
fn queries(engine: &Engine) -> Rows {
    let mut all: Vec<QueryInfo> = engine.queries().running();
    all.extend(engine.queries().recent());
    let of = || all.iter();
    let spent: Vec<Spent> = of().map(|q| q.spent).collect();
    let rows = Rows::of(all.len())
        .int("id", of().map(|q| Some(q.id)))
        .text("state", of().map(|q| Some(q.state.name())))
        .text("user", of().map(|q| Some(q.user.as_str())))
        .text("protocol", of().map(|q| Some(q.protocol)))
        .time("started", of().map(|q| Some(q.started_unix_ms)))
        .float("elapsed_ms", of().map(|q| Some(q.elapsed_us as f64 / 1000.0)))
        .bool("short_path", of().map(|q| q.short_path))
        .float("progress", of().map(|q| q.progress))
        .int("rows", of().map(|q| Some(q.rows)))
        .int("bytes_read", of().map(|q| Some(q.bytes_read)))
        .int("requests", of().map(|q| Some(q.requests)));
    with_spent(rows, &spent)
        .text("pool", of().map(|q| Some(q.pool.as_str())))
        .int("memory_bytes", of().map(|q| Some(q.memory_bytes)))
        .int("memory_peak_bytes", of().map(|q| Some(q.memory_peak_bytes)))
        .text("sqlstate", of().map(|q| q.sqlstate))
        .text("error", of().map(|q| q.error.as_deref()))
        .text("sql", of().map(|q| Some(q.sql.as_str())))
}

/// Statements that differ in their literals only, the most expensive first.
fn query_shapes(engine: &Engine) -> Rows {
    let all = engine.queries().shapes();
    let of = || all.iter();
    let percentile = |share: f64| {
        all.iter().map(move |shape| {
            LatencyHistogram::percentile_us(&shape.latency, share).map(|us| us / 1000.0)
        })
    };
    let spent: Vec<Spent> = of().map(|s| s.spent).collect();
    let rows = Rows::of(all.len())
        .int("queries", of().map(|s| Some(s.queries)))
        .int("failed", of().map(|s| Some(s.failed)))
        .int("short_path", of().map(|s| Some(s.short_path)))
        .float("total_ms", of().map(|s| Some(s.total_us as f64 / 1000.0)))
        .float("p50_ms", percentile(0.5))
        .float("p95_ms", percentile(0.95))
        .float("p99_ms", percentile(0.99))
        .float("max_ms", of().map(|s| Some(s.max_us as f64 / 1000.0)))
        .int("rows", of().map(|s| Some(s.rows)))
        .int("bytes_read", of().map(|s| Some(s.bytes_read)))
        .int("requests", of().map(|s| Some(s.requests)));
    with_spent(rows, &spent).text("sql", of().map(|s| Some(&*s.sql)))
}

/// What was taken of caches and object stores.
fn with_spent(rows: Rows, all: &[Spent]) -> Rows {
    let total = |of: fn(&StoreTotals) -> u64| all.iter().map(move |s| Some(of(&s.store.totals)));
    rows.float("hit_ratio", all.iter().map(Spent::hit_ratio))
        .int("chunk_hits", all.iter().map(|s| Some(s.chunk_hits)))
        .int("chunk_misses", all.iter().map(|s| Some(s.chunk_misses)))
        .int("store_gets", total(|t| t.reads))
        .int("store_heads", total(|t| t.heads))
        .int("store_puts", total(|t| t.writes))
        .int("store_lists", total(|t| t.lists))
        .int("store_deletes", total(|t| t.deletes))
        .int("store_retries", total(|t| t.retries))
        .int("hedges", all.iter().map(|s| Some(s.hedges)))
        .float("cost_usd", all.iter().map(|s| Some(s.store.dollars)))
}

/// One row: who computes and who waits.
fn executors(engine: &Engine) -> Rows {
    let status = engine.admission_status();
    Rows::of(1)
        .one("executors", engine.executors().count())
        .one("slots", status.slots)
        .one("running", status.running)
        .one("waiting", status.waiting)
        .one("queue_max", status.queue_max)
        .one("refused", status.refused)
        .one("memory_used_bytes", engine.memory_used_bytes())
        .one("memory_max_bytes", engine.options().memory_limit_bytes)
        .one("stalls", engine.executor_stalls().stalls)
        .one("wait_max_us", engine.executor_stalls().wait_max_us)
        .one("io_stalls", engine.io_stalls().stalls)
        .one("io_wait_max_us", engine.io_stalls().wait_max_us)
}

/// Pools of queries: slots, queue, memory, and what was ended by their bounds.
fn pools(engine: &Engine) -> Rows {
    let all = engine.pools_status();
    let of = || all.iter();
    let count = |count: usize| Some(count as u64);
    Rows::of(all.len())
        .text("pool", of().map(|p| Some(p.name.as_str())))
        .int("slots", of().map(|p| count(p.admission.slots)))
        .int("running", of().map(|p| count(p.admission.running)))
        .int("waiting", of().map(|p| count(p.admission.waiting)))
        .int("queue_max", of().map(|p| count(p.admission.queue_max)))
        .int("refused", of().map(|p| Some(p.admission.refused)))
        .int("memory_bytes", of().map(|p| count(p.memory_bytes)))
        .int("memory_bytes_max", of().map(|p| p.memory_bytes_max.map(|max| max as u64)))
        .int("ended", of().map(|p| Some(p.ended)))
}

/// One row: what reports keep in memory.
fn cache(engine: &Engine) -> Rows {
    let status = engine.cache_status();
    let asked = status.chunk_hits + status.chunk_misses;
    let ratio = (asked > 0).then(|| status.chunk_hits as f64 / asked as f64);
    Rows::of(1)
        .one("bytes", status.bytes)
        .one("bytes_max", status.bytes_max)
        .one("entries", status.entries)
        .one("chunk_hits", status.chunk_hits)
        .one("chunk_misses", status.chunk_misses)
        .float("hit_ratio", std::iter::once(ratio))
        .one("disk_bytes", status.disk_bytes)
        .one("disk_bytes_max", status.disk_bytes_max)
        .one("disk_hits", status.disk_hits)
        .one("disk_misses", status.disk_misses)
        .one("reports_answered", engine.reports_answered())
        .one("templates", engine.templates_known())
        .one("plan_templates", engine.plan_templates_known())
        .one("plan_templates_used", engine.plan_templates_used())
        .one("results_reused", engine.results_reused())
}

/// One row: the commit log and the memory for fresh rows; none where there is no log.
fn log(engine: &Engine) -> Rows {
    let status = engine.ingest().map(|ingest| ingest.status());
    let of = || status.iter();
    Rows::of(status.iter().count())
        .bool("open", of().map(|s| s.open))
        .int("fresh_bytes", of().map(|s| Some(s.fresh_bytes as u64)))
        .int("fresh_bytes_max", of().map(|s| Some(s.fresh_bytes_max as u64)))
        .int("appends", of().map(|s| Some(s.appends)))
        .int("appended_rows", of().map(|s| Some(s.appended_rows)))
        .int("appends_waiting", of().map(|s| Some(s.appends_waiting as u64)))
}
