//! Is it alive, and does it take work?

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::app::App;

/// `GET /health`: 200 as long as the process answers at all.
pub(crate) async fn health() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// `GET /ready`: 200 while statements are taken; 503 with the reason before that, during shutdown,
/// when the commit log has stopped, and when threads do not answer. Statements that nobody waits for and
/// that compute all the same are counted in both. Without the catalog, reports and small writes go on: that is told, and
/// no reason for 503.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let overdue = app.engine.statements_overdue();
    let is_reachable = app.engine.warehouse().catalog().state().reachable;
    let reason = app.not_ready();
    let mut body = json!({
        "ready": reason.is_none(), "statements_overdue": overdue, "catalog_reachable": is_reachable,
    });
    let Some(reason) = reason else { return Json(body).into_response() };
    if let Some(fields) = body.as_object_mut() {
        fields.insert("reason".to_owned(), reason.into());
    }
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}
