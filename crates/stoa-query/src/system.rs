//! The schema `system`: what the server does, as tables.
//!
//! Each table is a function from the engine to a batch, run when the table is read. Console and
//! `/metrics` show the same numbers.

use std::sync::{Arc, OnceLock, Weak};

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

use crate::engine::Engine;
use crate::latency::LatencyHistogram;
use crate::registry::QueryInfo;

/// Name of the schema.
pub(crate) const SYSTEM: &str = "system";

/// Makes the rows of one table.
type Build = fn(&Engine) -> Rows;

/// All of them, with what they show.
const TABLES: [(&str, Build); 7] = [
    ("cache", cache),
    ("executors", executors),
    ("ingest", ingest),
    ("log", log),
    ("pools", pools),
    ("queries", queries),
    ("query_shapes", query_shapes),
];

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
        let Some((_, build)) = TABLES.iter().find(|(known, _)| *known == name) else {
            return Ok(None);
        };
        let Some(engine) = self.engine.get().and_then(Weak::upgrade) else { return Ok(None) };
        let schema = build(&engine).finish()?.schema();
        let live = Live { engine: Arc::downgrade(&engine), schema: schema.clone(), build: *build };
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

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = self.engine.upgrade().map(|engine| (self.build)(&engine).finish());
        let stream = futures::stream::iter(batch);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}

/// Columns under construction.
#[derive(Default)]
struct Rows {
    rows: usize,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Rows {
    fn of(rows: usize) -> Self {
        Self { rows, ..Self::default() }
    }

    fn push(mut self, name: &str, data_type: DataType, column: ArrayRef) -> Self {
        self.fields.push(Field::new(name, data_type, true));
        self.columns.push(column);
        self
    }

    fn int(self, name: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        let as_int =
            |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        let column: Int64Array = values.map(as_int).collect();
        self.push(name, DataType::Int64, Arc::new(column))
    }

    fn one(self, name: &str, value: impl TryInto<u64>) -> Self {
        self.int(name, std::iter::once(value.try_into().ok()))
    }

    fn float(self, name: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        let column: Float64Array = values.collect();
        self.push(name, DataType::Float64, Arc::new(column))
    }

    fn bool(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        let column: BooleanArray = values.map(Some).collect();
        self.push(name, DataType::Boolean, Arc::new(column))
    }

    fn text<'a>(self, name: &str, values: impl Iterator<Item = Option<&'a str>>) -> Self {
        let column: StringArray = values.collect();
        self.push(name, DataType::Utf8, Arc::new(column))
    }

    fn time(self, name: &str, unix_ms: impl Iterator<Item = i64>) -> Self {
        let zone: Arc<str> = "UTC".into();
        let micros = unix_ms.map(|ms| Some(ms.saturating_mul(1000)));
        let column: TimestampMicrosecondArray = micros.collect();
        let column = column.with_timezone(Arc::clone(&zone));
        self.push(name, DataType::Timestamp(TimeUnit::Microsecond, Some(zone)), Arc::new(column))
    }

    fn finish(self) -> EngineResult<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(self.fields));
        Ok(RecordBatch::try_new_with_options(schema, self.columns, &options)?)
    }
}

/// Running and waiting queries, then those that ended lately.
fn queries(engine: &Engine) -> Rows {
    let mut all: Vec<QueryInfo> = engine.queries().running();
    all.extend(engine.queries().recent());
    let of = || all.iter();
    Rows::of(all.len())
        .int("id", of().map(|q| Some(q.id)))
        .text("state", of().map(|q| Some(q.state.name())))
        .text("user", of().map(|q| Some(q.user.as_str())))
        .text("protocol", of().map(|q| Some(q.protocol)))
        .time("started", of().map(|q| q.started_unix_ms))
        .float("elapsed_ms", of().map(|q| Some(q.elapsed_us as f64 / 1000.0)))
        .bool("short_path", of().map(|q| q.short_path))
        .float("progress", of().map(|q| q.progress))
        .int("rows", of().map(|q| Some(q.rows)))
        .int("bytes_read", of().map(|q| Some(q.bytes_read)))
        .int("requests", of().map(|q| Some(q.requests)))
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
    Rows::of(all.len())
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
        .text("sql", of().map(|s| Some(&*s.sql)))
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

/// The tables that were written to since the start, and their rows that are in no file yet.
fn ingest(engine: &Engine) -> Rows {
    let tables = engine.ingest().map(|ingest| ingest.status().tables).unwrap_or_default();
    let names: Vec<String> = tables.iter().map(|t| t.table.to_string()).collect();
    let of = || tables.iter();
    Rows::of(tables.len())
        .text("table", names.iter().map(|name| Some(name.as_str())))
        .int("fresh_rows", of().map(|t| Some(t.fresh_rows)))
        .int("fresh_bytes", of().map(|t| Some(t.fresh_bytes as u64)))
        .int("flushes", of().map(|t| Some(t.flushes)))
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
