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
/// that compute all the same are counted in both.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let overdue = app.engine.statements_overdue();
    match app.not_ready() {
        None => Json(json!({ "ready": true, "statements_overdue": overdue })).into_response(),
        Some(reason) => {
            let body = json!({ "ready": false, "reason": reason, "statements_overdue": overdue });
            let body = Json(body);
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}
