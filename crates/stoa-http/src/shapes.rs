//! `GET /v1/shapes`: statements that differ only in their literals, counted together.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_query::{LatencyHistogram, QueryShape};

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::checked;
use crate::problem::Problem;
use crate::spent::with_members;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    /// Most shapes to list.
    #[serde(default = "most_default")]
    most: usize,
}

fn most_default() -> usize {
    200
}

/// Those that took most time first.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<ListParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let most = checked(parameters)?.most;
    asker.session(&app.engine).must_be_superuser("see what statements others run").await?;
    let all = app.engine.queries().shapes();
    let listed: Vec<Value> = all.iter().take(most).map(to_json).collect();
    Ok(Json(json!({ "shapes": listed, "known": all.len() })))
}

fn to_json(shape: &QueryShape) -> Value {
    let percentile =
        |share| LatencyHistogram::percentile_us(&shape.latency, share).map(|us| us / 1000.0);
    let object = json!({
        "sql": &*shape.sql,
        "queries": shape.queries,
        "failed": shape.failed,
        "short_path": shape.short_path,
        "rows": shape.rows,
        "bytes_read": shape.bytes_read,
        "requests": shape.requests,
        "total_ms": shape.total_us as f64 / 1000.0,
        "p50_ms": percentile(0.5),
        "p95_ms": percentile(0.95),
        "p99_ms": percentile(0.99),
        "max_ms": shape.max_us as f64 / 1000.0,
    });
    with_members(object, &shape.spent)
}
