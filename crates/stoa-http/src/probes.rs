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

/// `GET /ready`: 200 while statements are taken, 503 before and during shutdown.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let ready = app.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": ready }))).into_response()
}
