//! `GET /v1/history`: samples of up to a week, for charts; as `system.history` has them, in columns.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_error::Error;
use stoa_figures::{HISTORY, Viewer, members};

use crate::app::App;
use crate::parameters::checked;
use crate::problem::Problem;

/// Lengths of a step, seconds.
const STEPS: [u64; 4] = [1, 10, 60, 600];

/// What everyone may see.
const ANYONE: Viewer<'_> = Viewer { role: "", is_superuser: false };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryParameters {
    step_s: u64,
    /// Only samples that ended after this time, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    since: i64,
}

/// # Errors
/// Invalid: no samples of such a step are kept.
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    parameters: Result<Query<HistoryParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let HistoryParameters { step_s, since } = checked(parameters)?;
    if !STEPS.contains(&step_s) {
        let hint = "step_s is 1 (ten minutes are kept), 10 (an hour), 60 (a day) or 600 (a week)";
        let error = Error::invalid(format!("no samples of {step_s} s are kept"));
        return Err(error.with_hint(hint).into());
    }
    let names: Vec<&str> = HISTORY.declaration().columns.iter().map(|column| column.name).collect();
    let rows = app.engine.samples_since(step_s, since).into_iter().map(|sample| {
        let mut values = members(&HISTORY, &sample, ANYONE);
        names.iter().map(|name| values.remove(*name).unwrap_or_default()).collect::<Value>()
    });
    let rows: Vec<Value> = rows.collect();
    Ok(Json(json!({ "step_s": step_s, "columns": names, "rows": rows })))
}
