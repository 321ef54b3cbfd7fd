//! `GET /v1/cluster`: all daemons of the cluster, asked at once; `GET /v1/cluster/{daemon}`: the state of one.
//!
//! ```text
//!  console ─► any daemon ─┬─► its own report ───────────────┐
//!                         └─► the others' (within a second) ─┴─► merged: figures, latency, shapes, events, alerts
//! ```
//!
//! **Invariants:** a daemon that does not answer is listed with the reason, and is no error of the answer. Daemons tell
//! each other everything; the one that is asked leaves out what its client may not see, as `/v1/status` and `/v1/shapes`
//! do. Daemons of other builds can be asked: members that are missing are empty, unknown ones are left out.

mod latencies;
mod merged;
mod report;
mod service;
mod shapes;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::Value;
use stoa_error::{Error, Result};
use stoa_member::{Member, ServiceKind};
use stoa_query::Engine;

use crate::app::App;
use crate::asker::Asker;
use crate::cluster::merged::Merged;
use crate::cluster::report::{Question, Report};
use crate::parameters::{checked, checked_path};
use crate::problem::Problem;

pub(crate) use service::serve;

/// How long another daemon may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterParameters {
    /// Most shapes of each daemon to merge, and to list.
    #[serde(default)]
    shapes: usize,
}

/// All daemons.
pub(crate) async fn overview(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<ClusterParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(read(&app, &asker, checked(parameters)?.shapes).await?))
}

/// All daemons as they are now, with the `shapes` that took most time.
pub(crate) async fn read(app: &App, asker: &Asker, shapes: usize) -> Result<Value> {
    let is_superuser = asker.session(&app.engine).may_everything().await?;
    let member = member(&app.engine)?;
    let question =
        Question { shapes: if is_superuser { shapes } else { 0 }, ..Question::default() };
    let others = member.ask_others(ServiceKind::Figures, question.encode()?, ANSWER_LIMIT).await;
    let mut merged = Merged::new(app, &question);
    for (daemon, answer) in others {
        merged.add(daemon.to_string(), answer.and_then(|body| Report::decode(&body)));
    }
    Ok(merged.into_json(is_superuser))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DaemonParameters {
    /// Only samples taken after this time, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    since: i64,
}

/// One daemon, as its own `/v1/status` shows it; of groups about tables, a plain role sees nothing here.
pub(crate) async fn daemon(
    State(app): State<Arc<App>>,
    asker: Asker,
    wanted: Result<Path<String>, PathRejection>,
    parameters: Result<Query<DaemonParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let wanted = checked_path(wanted)?;
    let since = checked(parameters)?.since;
    Ok(Json(read_daemon(&app, &wanted, &asker, since).await?))
}

/// The state of one daemon now, with samples taken after `since` (milliseconds since 1970-01-01 UTC).
pub(crate) async fn read_daemon(
    app: &App,
    wanted: &str,
    asker: &Asker,
    since: i64,
) -> Result<Value> {
    let is_superuser = asker.session(&app.engine).may_everything().await?;
    let member = member(&app.engine)?;
    let question = Question { history_since: Some(since), ..Question::default() };
    let report = match member.id().to_string() == wanted {
        true => Report::of(app, &question),
        false => ask(member, wanted, &question).await?,
    };
    Ok(match is_superuser {
        true => report.status,
        false => stoa_figures::for_everyone(&report.status),
    })
}

async fn ask(member: &Member, wanted: &str, question: &Question) -> Result<Report> {
    let others = member.others();
    let daemon =
        others.into_iter().find(|daemon| daemon.to_string() == wanted).ok_or_else(|| {
            Error::not_found(format!("no daemon \"{wanted}\" is a living member of the cluster"))
                .with_hint("system.daemons lists all")
        })?;
    let answer = member.ask(daemon, ServiceKind::Figures, question.encode()?, ANSWER_LIMIT);
    Report::decode(&answer.await?)
}

fn member(engine: &Engine) -> Result<&Member> {
    engine.member().ok_or_else(|| {
        Error::not_found("this server is not a member of a cluster")
            .with_hint("servers with the same catalog in PostgreSQL are one")
    })
}
