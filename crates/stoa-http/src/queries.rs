//! `GET /v1/queries`, `GET /v1/queries/{id}/plan` and `DELETE /v1/queries/{id}`: what runs, what ran, how
//! far its operators are, and stopping it. `GET /v1/query-log`: what ran in the last days.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_error::{Error, ErrorKind};
use stoa_figures::{QUERIES, Viewer, members};
use stoa_query::{PlanMetric, PlanNode, QueryInfo};

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::{checked, checked_path};
use crate::problem::Problem;
use crate::query_log::{Entry, Filter};

/// Most entries of the log in one answer.
const LOG_MAX: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    /// Most ended queries to list.
    #[serde(default = "recent_default")]
    recent: usize,
}

fn recent_default() -> usize {
    100
}

/// Running and queued queries oldest first, ended ones newest first.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<ListParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let most = checked(parameters)?.recent;
    let (registry, session) = (app.engine.queries(), asker.session(&app.engine));
    let is_seen = |query: &&QueryInfo| session.may_see_query_of(&query.user).is_ok();
    let (running, recent) = (registry.running(), registry.recent());
    let running: Vec<Value> = running.iter().filter(is_seen).map(to_json).collect();
    let recent: Vec<Value> = recent.iter().filter(is_seen).take(most).map(to_json).collect();
    Ok(Json(json!({ "running": running, "recent": recent })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanParameters {
    /// Whether it is no error that there is no plan.
    #[serde(default)]
    optional: bool,
}

/// The plan of a query with what its operators have counted so far; 204 without one, if that is no error.
pub(crate) async fn plan(
    State(app): State<Arc<App>>,
    asker: Asker,
    id: Result<Path<u64>, PathRejection>,
    parameters: Result<Query<PlanParameters>, QueryRejection>,
) -> Result<Response, Problem> {
    let is_optional = checked(parameters)?.optional;
    let (query, plan) = match app.engine.queries().plan(checked_path(id)?) {
        Err(error) if is_optional && error.kind() == ErrorKind::NotFound => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        found => found?,
    };
    asker.session(&app.engine).may_see_query_of(&query.user)?;
    Ok(Json(json!({ "query": to_json(&query), "plan": node(&plan) })).into_response())
}

fn node(plan: &PlanNode) -> Value {
    let metric = |metric: &PlanMetric| json!({ "name": metric.name, "value": metric.value, "unit": metric.unit.name() });
    json!({
        "name": plan.name,
        "detail": plan.detail,
        "rows": plan.rows,
        "compute_ms": plan.compute_ns.map(|ns| ns as f64 / 1e6),
        "metrics": plan.metrics.iter().map(metric).collect::<Vec<_>>(),
        "inputs": plan.inputs.iter().map(node).collect::<Vec<_>>(),
    })
}

/// Ended queries that the filter leaves, newest first; for roles that are no superusers, their own.
pub(crate) async fn log(
    State(app): State<Arc<App>>,
    asker: Asker,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let found = read_log(&app, &asker, checked(filter)?).await?;
    Ok(Json(json!({ "queries": found })))
}

/// Entries of the log that `asker` may see.
pub(crate) async fn read_log(
    app: &App,
    asker: &Asker,
    mut filter: Filter,
) -> stoa_error::Result<Vec<Value>> {
    filter.most = filter.most.min(LOG_MAX);
    let session = asker.session(&app.engine);
    let is_superuser = session.may_everything().await?;
    let user = asker.user().to_owned();
    let is_seen = move |entry: &Entry| is_superuser || entry.text("user") == user;
    let found = app.query_log.search(filter, is_seen).await?;
    Ok(found.iter().map(|entry| json!(entry.as_ref())).collect())
}

/// Asks a query to stop; 204 says that it was asked.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    asker: Asker,
    id: Result<Path<u64>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let id = checked_path(id)?;
    if asker.session(&app.engine).kill(id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Error::not_found(format!("no query {id} runs"))
        .with_hint("GET /v1/queries lists the queries that run")
        .into())
}

/// A query that the caller was found to be allowed to see.
pub(crate) fn to_json(query: &QueryInfo) -> Value {
    let viewer = Viewer { role: &query.user, is_superuser: false };
    Value::Object(members(&QUERIES, &stoa_figures::Query::from(query), viewer))
}
