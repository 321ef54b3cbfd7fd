//! `POST /v1/sessions`, `DELETE /v1/sessions/{id}`: sessions that last from request to request, for `SET`, temporary
//! tables and transactions.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_query::SessionOptions;

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::{checked, checked_path};
use crate::problem::Problem;

/// Longest time for which a client may ask a session to stay after it has gone.
const GRACE_S_MAX: u64 = 600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenParameters {
    /// Who asks, for lists of queries.
    application: Option<String>,
}

/// Opens a session; 201 with its id.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<OpenParameters>, QueryRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let application = checked(parameters)?.application.unwrap_or_default();
    let application = application.chars().take(256).collect();
    let session = app.engine.session(SessionOptions { application, ..asker.options() });
    let id = app.sessions.add(asker.user(), session);
    Ok((StatusCode::CREATED, Json(json!({ "session": id }))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndParameters {
    /// Seconds for which it stays, in case its client comes back.
    #[serde(default)]
    grace_s: u64,
}

/// Ends a session; 204.
pub(crate) async fn end(
    State(app): State<Arc<App>>,
    asker: Asker,
    id: Result<Path<String>, PathRejection>,
    parameters: Result<Query<EndParameters>, QueryRejection>,
) -> Result<StatusCode, Problem> {
    let grace = Duration::from_secs(checked(parameters)?.grace_s.min(GRACE_S_MAX));
    app.sessions.end(&checked_path(id)?, asker.user(), grace)?;
    Ok(StatusCode::NO_CONTENT)
}
