//! `system.queries` and `system.query_shapes`.

use stoa_figures::{Query, QueryShape};

use crate::engine::Engine;
use crate::run::latency::LatencyHistogram;
use crate::run::paths::QueryPath;
use crate::run::registry::QueryInfo;
use crate::run::shapes;
use crate::run::spent::Spent;

/// Running and waiting queries, then those that ended lately.
pub(super) fn queries(engine: &Engine) -> Vec<Query> {
    let mut all: Vec<QueryInfo> = engine.queries().running();
    all.extend(engine.queries().recent());
    all.iter().map(Query::from).collect()
}

/// Statements that differ in their literals only, the most expensive first.
pub(super) fn query_shapes(engine: &Engine) -> Vec<QueryShape> {
    engine.queries().shapes().iter().map(QueryShape::from).collect()
}

impl From<&QueryInfo> for Query {
    fn from(query: &QueryInfo) -> Self {
        Self {
            id: query.id,
            state: query.state.name(),
            user: query.user.clone(),
            protocol: query.protocol,
            started_unix_ms: query.started_unix_ms,
            elapsed_ms: query.elapsed_us as f64 / 1000.0,
            short_path: query.path == QueryPath::Short,
            path: query.path.name(),
            wait_ms: query.wait_us.unwrap_or_default() as f64 / 1000.0,
            progress: query.progress,
            rows: query.rows,
            bytes_read: query.bytes_read,
            requests: query.requests,
            spent: (&query.spent).into(),
            pool: query.pool.clone(),
            memory_bytes: query.memory_bytes,
            memory_peak_bytes: query.memory_peak_bytes,
            sqlstate: query.sqlstate,
            error: query.error.clone(),
            sql: query.sql.clone(),
        }
    }
}

impl From<&shapes::QueryShape> for QueryShape {
    fn from(shape: &shapes::QueryShape) -> Self {
        let percentile = |share: f64| {
            LatencyHistogram::percentile_us(&shape.latency, share, shape.max_us)
                .map(|us| us / 1000.0)
        };
        Self {
            queries: shape.queries,
            failed: shape.failed,
            short_path: shape.short_path,
            reused: shape.reused,
            total_ms: shape.total_us as f64 / 1000.0,
            p50_ms: percentile(0.5),
            p95_ms: percentile(0.95),
            p99_ms: percentile(0.99),
            max_ms: shape.max_us as f64 / 1000.0,
            rows: shape.rows,
            bytes_read: shape.bytes_read,
            requests: shape.requests,
            spent: (&shape.spent).into(),
            sql: shape.sql.to_string(),
        }
    }
}

impl From<&Spent> for stoa_figures::Spent {
    fn from(spent: &Spent) -> Self {
        let totals = &spent.store.totals;
        Self {
            chunk_hits: spent.chunk_hits,
            chunk_misses: spent.chunk_misses,
            store_gets: totals.reads,
            store_heads: totals.heads,
            store_puts: totals.writes,
            store_lists: totals.lists,
            store_deletes: totals.deletes,
            store_retries: totals.retries,
            store_bytes_read: totals.bytes_read,
            store_bytes_written: totals.bytes_written,
            hedges: spent.hedges,
            cost_usd: spent.store.dollars,
        }
    }
}
