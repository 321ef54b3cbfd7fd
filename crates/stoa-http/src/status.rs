//! `GET /v1/status`: how the server is, with the samples that live charts draw.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_env::clock;
use stoa_query::{
    CacheStatus, Engine, IngestStatus, MaintenanceStatus, PoolStatus, Session, TableIngestStatus,
};

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::checked;
use crate::problem::Problem;
use crate::process;
use crate::sampler::{RECENT, WINDOW, share};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusParameters {
    /// Only samples taken after this time, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    since: i64,
}

pub(crate) async fn status(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<StatusParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let since = checked(parameters)?.since;
    let engine = &app.engine;
    let session = asker.session(engine);
    let sees_all = session.may_everything().await?;
    let log = match engine.ingest().map(|ingest| ingest.status()) {
        Some(status) => Some(log(&status, seen(engine, &session, &status.tables).await)),
        None => None,
    };
    let totals = engine.queries().totals();
    let rate = app.sampler.rate();
    let [p50_ms, p95_ms, p99_ms] = app.sampler.recent_percentiles();
    Ok(Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": app.is_ready(),
        "not_ready": app.not_ready(),
        "warehouse": engine.options().warehouse.as_str(),
        "started_unix_ms": app.started_unix_ms,
        "now_unix_ms": clock::unix_ms(),
        "uptime_ms": app.started.elapsed().as_millis() as u64,
        "memory": {
            "resident_bytes": process::resident_bytes(),
            "query_reserved_bytes": engine.memory_used_bytes(),
            "query_limit_bytes": engine.options().memory_limit_bytes,
        },
        "queries": {
            "running": engine.queries().running_count(),
            "started": totals.started,
            "finished": totals.finished,
            "failed": totals.failed,
            "cancelled": totals.cancelled,
            "rows": totals.rows,
            "bytes_read": totals.bytes_read,
            "requests": totals.requests,
        },
        "admission": admission(engine),
        "cache": cache(&engine.cache_status()),
        "reports": {
            "answered": engine.reports_answered(),
            "templates": engine.templates_known(),
            "answers_reused": engine.results_reused(),
        },
        "log": log,
        "maintenance": engine.maintenance_status().map(|status| maintenance(&status, sees_all)),
        "rate": { "per_second": rate, "per_hour": rate * 3600.0, "window_s": WINDOW },
        "latency": { "p50_ms": p50_ms, "p95_ms": p95_ms, "p99_ms": p99_ms, "window_s": RECENT },
        "history": app.sampler.samples_since(since),
    })))
}

/// Who computes and who waits.
fn admission(engine: &Engine) -> Value {
    let status = engine.admission_status();
    json!({
        "executors": engine.executors().count(),
        "slots": status.slots,
        "running": status.running,
        "waiting": status.waiting,
        "waiting_limit": status.queue_max,
        "refused": status.refused,
        "pools": engine.pools_status().iter().map(pool).collect::<Vec<_>>(),
        "stalls": {
            "executors": engine.executor_stalls().stalls,
            "planners": engine.planner_stalls().stalls,
            "io": engine.io_stalls().stalls,
        },
        "overdue": engine.statements_overdue(),
    })
}

fn pool(pool: &PoolStatus) -> Value {
    json!({
        "name": pool.name,
        "slots": pool.admission.slots,
        "running": pool.admission.running,
        "waiting": pool.admission.waiting,
        "waiting_limit": pool.admission.queue_max,
        "refused": pool.admission.refused,
        "memory_bytes": pool.memory_bytes,
        "memory_limit_bytes": pool.memory_bytes_max,
        "ended": pool.ended,
    })
}

/// What reports keep in memory.
fn cache(status: &CacheStatus) -> Value {
    let asked = status.chunk_hits + status.chunk_misses;
    json!({
        "bytes": status.bytes,
        "limit_bytes": status.bytes_max,
        "entries": status.entries,
        "chunk_hits": status.chunk_hits,
        "chunk_misses": status.chunk_misses,
        "hit_ratio": share(status.chunk_hits, asked),
        "disk": {
            "bytes": status.disk_bytes,
            "limit_bytes": status.disk_bytes_max,
            "hits": status.disk_hits,
            "misses": status.disk_misses,
            "is_writing": status.disk_is_writing,
        },
    })
}

/// What is done to tables in the background; to which and what went wrong for those who may see all.
fn maintenance(status: &MaintenanceStatus, sees_all: bool) -> Value {
    let now = status.now.as_ref().filter(|_| sees_all).map(|work| {
        json!({
            "table": work.table.to_string(),
            "work": work.kind.name(),
            "since_unix_ms": work.since_unix_ms,
        })
    });
    json!({
        "now": now,
        "compactions": status.compactions,
        "compacted_rows": status.compacted_rows,
        "compacted_bytes": status.compacted_bytes_read,
        "snapshots_expired": status.snapshots_expired,
        "files_deleted": status.files_deleted,
        "failures": status.failures,
        "errors": if sees_all { json!(status.errors) } else { json!({}) },
    })
}

/// The tables with fresh rows that the session's user may see.
async fn seen(engine: &Engine, session: &Session, all: &[TableIngestStatus]) -> Vec<Value> {
    let mut tables = Vec::new();
    for status in all {
        // One that cannot be read is told of to those who may see all.
        let may_see = match engine.warehouse().table(&status.table).await {
            Ok(found) => session.may_see_table(&found).await.is_ok(),
            Err(_) => session.may_everything().await.unwrap_or_default(),
        };
        if may_see {
            tables.push(table(status));
        }
    }
    tables
}

/// The commit log and the rows that are in no file yet.
fn log(status: &IngestStatus, tables: Vec<Value>) -> Value {
    json!({
        "place": status.log.place,
        "open": status.open,
        "stopped": status.log.poisoned,
        "fresh_bytes": status.fresh_bytes,
        "fresh_limit_bytes": status.fresh_bytes_max,
        "waiting": status.appends_waiting,
        "appends": status.appends,
        "rows": status.appended_rows,
        "syncs": status.log.syncs,
        "segments": status.log.segments,
        "segment_bytes": status.log.segment_bytes,
        "tables": tables,
    })
}

fn table(status: &TableIngestStatus) -> Value {
    json!({
        "table": status.table.to_string(),
        "fresh_rows": status.fresh_rows,
        "fresh_bytes": status.fresh_bytes,
        "oldest_ms": status.oldest_age.map(|age| age.as_millis() as u64),
        "flushes": status.flushes,
        "flushed_rows": status.flushed_rows,
        "last_flush_unix_ms": status.last_flush_unix_ms,
        "failures": status.failures,
        "last_error": status.last_error,
    })
}
