//! Errors as HTTP clients read them.
//!
//! ```json
//! {"error":{"code":"42P01","kind":"not_found","message":"no table \"t\"","detail":null,
//!           "hint":"…","position":15,"retryable":false}}
//! ```
//! The status is the kind's; `code` is the SQLSTATE; `position` counts characters of the request's
//! statement text from 1.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use stoa_error::{Error, ErrorKind};

/// An [`Error`] on its way to an HTTP client.
#[derive(Debug)]
pub(crate) struct Problem {
    error: Error,
    status: StatusCode,
}

impl Problem {
    /// A status that says more than the kind's.
    pub(crate) fn with_status(error: Error, status: StatusCode) -> Self {
        Self { error, status }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.kind().http_status());
        Self { error, status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        log(&self.error);
        let body = Json(json!({ "error": to_json(&self.error) }));
        let mut response = (self.status, body).into_response();
        let later = matches!(self.error.kind(), ErrorKind::Exhausted | ErrorKind::Unavailable);
        if later && self.error.is_retryable() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The `error` member.
pub(crate) fn to_json(error: &Error) -> Value {
    json!({
        "code": error.sqlstate(),
        "kind": error.kind().name(),
        "message": error.message_with_sources(),
        "detail": error.detail(),
        "hint": error.hint(),
        "position": error.position(),
        "retryable": error.is_retryable(),
    })
}

/// Damage and bugs are for somebody here to look at; the rest is the client's.
pub(crate) fn log(error: &Error) {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Internal => {
            tracing::error!(code = error.sqlstate(), error = ?error, "request failed");
        }
        _ => tracing::debug!(code = error.sqlstate(), error = ?error, "request failed"),
    }
}
