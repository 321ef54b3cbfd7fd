//! `GET /v1/shapes`: statements that differ only in their literals, counted together.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_figures::{QUERY_SHAPES, Viewer, members};
use stoa_query::QueryShape;

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::checked;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    /// Most shapes to list.
    #[serde(default = "most_default")]
    most: usize,
}

fn most_default() -> usize {
    200
}

/// Those that took most time first.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<ListParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(read(&app, &asker, checked(parameters)?.most).await?))
}

/// The `most` that took most time.
///
/// # Errors
/// 42501 for a role that is no superuser.
pub(crate) async fn read(app: &App, asker: &Asker, most: usize) -> stoa_error::Result<Value> {
    asker.session(&app.engine).must_be_superuser("see what statements others run").await?;
    let all = app.engine.queries().shapes();
    let listed: Vec<Value> = all.iter().take(most).map(to_json).collect();
    Ok(json!({ "shapes": listed, "known": all.len() }))
}

/// A shape; who asks is a superuser.
fn to_json(shape: &QueryShape) -> Value {
    let viewer = Viewer { role: "", is_superuser: true };
    Value::Object(members(&QUERY_SHAPES, &stoa_figures::QueryShape::from(shape), viewer))
}
