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
/// and when the commit log has stopped.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.not_ready() {
        None => Json(json!({ "ready": true })).into_response(),
        Some(reason) => {
            let body = Json(json!({ "ready": false, "reason": reason }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}
