//! `GET /openapi.yaml`: the description of this API, as it is in the documents of this version.

use axum::http::header;
use axum::response::{IntoResponse, Response};

const DESCRIPTION: &str = include_str!("../../../docs/openapi.yaml");

/// The description, as YAML (RFC 9512).
pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/yaml")], DESCRIPTION).into_response()
}
