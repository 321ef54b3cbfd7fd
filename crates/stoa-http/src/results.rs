//! `/v1/results/{id}`: what a result is that `POST /v1/sql?keep=true` left here, its rows, and its end.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind, Result};

use crate::app::App;
use crate::asker::Asker;
use crate::body::{ResultBody, Rows};
use crate::format::{self, Format};
use crate::kept::{Kept, Page};
use crate::parameters::{checked, checked_path};
use crate::problem::Problem;

/// Rows so far, bytes, and whether these are all.
pub(crate) async fn describe(
    State(app): State<Arc<App>>,
    asker: Asker,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(readable(&app, &asker, &checked_path(id)?).await?.to_json()))
}

/// The result `id` of `asker`, who can still read what it could read when the statement ran.
///
/// # Errors
/// Not found: there is no such result of this role. 42501: rights were taken away since; the result is gone then.
async fn readable(app: &App, asker: &Asker, id: &str) -> Result<Arc<Kept>> {
    let kept = app.results.of(id, asker.user())?;
    let still = asker.session(&app.engine).must_still_read(kept.standing()).await;
    if still.as_ref().is_err_and(|error| error.kind() == ErrorKind::Forbidden) {
        app.results.remove(id);
    }
    still.map(|()| kept)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowsParameters {
    /// Overrides `Accept`: json, ndjson, csv, arrow.
    format: Option<String>,
    /// Number of the first row, from 0.
    #[serde(default)]
    from: u64,
    /// Most rows to return; without it, all.
    max_rows: Option<u64>,
    /// Whether the end of a result that was cut is no error.
    #[serde(default)]
    partial: bool,
    /// The answer is to be saved as a file of this name.
    file: Option<String>,
}

/// Rows of the result, in any format.
pub(crate) async fn rows(
    State(app): State<Arc<App>>,
    asker: Asker,
    id: Result<Path<String>, PathRejection>,
    parameters: Result<Query<RowsParameters>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let began = clock::monotonic();
    let parameters = checked(parameters)?;
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::choose(parameters.format.as_deref(), accept)?;
    let flight = app.flights.start()?;
    let kept = readable(&app, &asker, &checked_path(id)?).await?;
    let page = Rows::Kept(Page::of(kept, parameters.from, parameters.partial));
    let max_rows = parameters.max_rows.unwrap_or(u64::MAX);
    let body = ResultBody::new(page, format::encoder(format), max_rows, began, flight);
    let mut response = body.into_body().await?.into_response();
    let content_type = HeaderValue::from_static(format.content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    if let Some(file) = parameters.file {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, attachment(&file)?);
    }
    Ok(response)
}

/// Lets go of the result; a query that still runs for it is cancelled.
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    asker: Asker,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let id = checked_path(id)?;
    app.results.of(&id, asker.user())?;
    app.results.remove(&id);
    Ok(StatusCode::NO_CONTENT)
}

/// Letters, digits and `._-` of a name; the others are `-`.
fn attachment(file: &str) -> Result<HeaderValue> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = file.chars().take(200).map(|c| if is_plain(c) { c } else { '-' }).collect();
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .map_err(|error| Error::internal("a file's name is no header").with_source(error))
}
