//! `GET /api/v1/sessions`, `GET /api/v1/queries/active` and `GET /api/v1/queries/historical`: what runs and ran, with the
//! field names of HiveServer2's own pages (Hive's `QueriesRESTfulAPIServlet` and `QueryInfo`), for tools that read these.
//!
//! Sessions are those of HiveServer2's clients; queries are those of all protocols. Whoever asks sees what `system.queries`
//! shows: superusers all, others their own. Fields that mean nothing here are `null`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use stoa_query::{QueryInfo, QueryState};

use crate::app::App;
use crate::asker::Asker;
use crate::problem::Problem;

/// The protocol of the sessions that are listed.
const HIVE: &str = "hive";

/// Open sessions of HiveServer2's clients, oldest first.
pub(crate) async fn sessions(
    State(app): State<Arc<App>>,
    asker: Asker,
) -> Result<Json<Value>, Problem> {
    Ok(Json(read_sessions(&app, &asker).await?))
}

/// Those sessions that `asker` may see.
pub(crate) async fn read_sessions(app: &App, asker: &Asker) -> stoa_error::Result<Value> {
    let session = asker.session(&app.engine);
    let is_superuser = session.may_everything().await?;
    let mut operations: HashMap<i32, u64> = HashMap::new();
    for query in app.engine.queries().running() {
        *operations.entry(query.backend_id).or_default() += 1;
    }
    let now = stoa_env::clock::unix_ms();
    let seconds = |since: i64| now.saturating_sub(since).max(0) / 1000;
    let mut all = app.engine.sessions();
    all.retain(|one| one.protocol == HIVE && (is_superuser || one.user == asker.user()));
    let of = |one: &stoa_query::SessionInfo| {
        let count = operations.get(&one.process_id).copied().unwrap_or_default();
        let idle = if count > 0 { 0 } else { seconds(one.used_unix_ms) };
        json!({
            "sessionId": one.process_id.to_string(),
            "username": one.user,
            "ipAddress": null,
            "operationCount": count,
            "activeTime": seconds(one.opened_unix_ms),
            "idleTime": idle,
        })
    };
    Ok(all.iter().map(of).collect())
}

/// Queries that run or wait, oldest first.
pub(crate) async fn active(
    State(app): State<Arc<App>>,
    asker: Asker,
) -> Result<Json<Value>, Problem> {
    Ok(Json(read_active(&app, &asker)))
}

/// Those of the queries that run that `asker` may see.
pub(crate) fn read_active(app: &App, asker: &Asker) -> Value {
    seen(app, asker, &app.engine.queries().running())
}

/// Queries that ended lately, newest first.
pub(crate) async fn historical(
    State(app): State<Arc<App>>,
    asker: Asker,
) -> Result<Json<Value>, Problem> {
    Ok(Json(seen(&app, &asker, &app.engine.queries().recent())))
}

fn seen(app: &App, asker: &Asker, queries: &[QueryInfo]) -> Value {
    let session = asker.session(&app.engine);
    let is_seen = |query: &&QueryInfo| session.may_see_query_of(&query.user).is_ok();
    queries.iter().filter(is_seen).map(as_hive).collect()
}

fn as_hive(query: &QueryInfo) -> Value {
    let elapsed_ms = i64::try_from(query.elapsed_us / 1000).unwrap_or(i64::MAX);
    let (state, is_running) = match query.state {
        QueryState::Planning => ("INITIALIZED", true),
        QueryState::Queued => ("PENDING", true),
        QueryState::Running => ("RUNNING", true),
        QueryState::Finished => ("FINISHED", false),
        QueryState::Failed => ("ERROR", false),
        QueryState::Cancelled => ("CANCELED", false),
    };
    let end = (!is_running).then(|| query.started_unix_ms.saturating_add(elapsed_ms));
    json!({
        "userName": query.user,
        "executionEngine": "stoa",
        "sessionId": query.backend_id.to_string(),
        "operationId": query.id.to_string(),
        "beginTime": query.started_unix_ms,
        "endTime": end,
        "elapsedTime": elapsed_ms,
        "runtime": elapsed_ms,
        "running": is_running,
        "state": state,
        "operationLogLocation": null,
        "queryDisplay": {
            "queryId": query.id.to_string(),
            "queryString": query.sql,
            "errorMessage": query.error,
        },
    })
}
