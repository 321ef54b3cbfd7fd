//! `GET /metrics`: the figures of `/v1/status` in Prometheus' text format. `stoa-figures` declares them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::snapshot;

/// Metrics are for everybody, names of tables for who has a right on them.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    let snapshot = snapshot::complete(&app, app.engine.figures());
    let text = stoa_figures::prometheus(&snapshot, !app.engine.asks_for_login());
    ([(header::CONTENT_TYPE, content_type)], text).into_response()
}
