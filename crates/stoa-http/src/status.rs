//! `GET /v1/status`: how the server is, with the samples that live charts draw. `stoa-figures` declares
//! its members, and who may see them.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::Value;
use stoa_figures::{Snapshot, Viewer};

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::checked;
use crate::problem::Problem;
use crate::snapshot;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusParameters {
    /// Only samples taken after this time, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    since: i64,
}

pub(crate) async fn status(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<StatusParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(read(&app, &asker, checked(parameters)?.since).await?))
}

/// The state now, as `asker` may see it, with samples taken after `since` (milliseconds since 1970-01-01 UTC).
pub(crate) async fn read(app: &App, asker: &Asker, since: i64) -> stoa_error::Result<Value> {
    let session = asker.session(&app.engine);
    let viewer = Viewer { role: asker.user(), is_superuser: session.may_everything().await? };
    let seen = Snapshot {
        history: app.engine.samples_since(1, since),
        ..snapshot::complete(app, session.figures().await?)
    };
    Ok(stoa_figures::status(&seen, viewer))
}
