//! `GET /v1/status`: how the server is, with the samples that live charts draw.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_env::clock;

use crate::app::App;
use crate::parameters::checked;
use crate::problem::Problem;
use crate::process;
use crate::sampler::{RECENT, WINDOW};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusParameters {
    /// Only samples taken after this time, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    since: i64,
}

pub(crate) async fn status(
    State(app): State<Arc<App>>,
    parameters: Result<Query<StatusParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let since = checked(parameters)?.since;
    let engine = &app.engine;
    let totals = engine.queries().totals();
    let rate = app.sampler.rate();
    let [p50_ms, p95_ms, p99_ms] = app.sampler.recent_percentiles();
    Ok(Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": app.is_ready(),
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
        "rate": { "per_second": rate, "per_hour": rate * 3600.0, "window_s": WINDOW },
        "latency": { "p50_ms": p50_ms, "p95_ms": p95_ms, "p99_ms": p99_ms, "window_s": RECENT },
        "history": app.sampler.samples_since(since),
    })))
}
