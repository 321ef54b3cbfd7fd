//! `GET /v1/me`: who asks, and what they may see. `GET /v1/sign-out`: a browser forgets the password.
//!
//! Browsers keep the password of Basic authorization and send it with each request, until an answer refuses it. So
//! signing out is a page that refuses the role that signs out, and nobody else.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use stoa_error::Result;

use crate::app::App;
use crate::asker::{Asker, CHALLENGE};
use crate::parameters::checked;
use crate::problem::Problem;

const SIGNED_OUT: &str = r#"<!doctype html><html lang="en"><meta charset="utf-8"><title>Signed out · Stoa</title>
<meta name="color-scheme" content="light dark"><h1>You are signed out</h1>
<p>The browser has forgotten the password. <a href="/">Sign in again</a></p></html>"#;

/// The role, whether it is a superuser, and whether it has logged in.
pub(crate) async fn me(State(app): State<Arc<App>>, asker: Asker) -> Result<Json<Value>, Problem> {
    let is_superuser = asker.session(&app.engine).may_everything().await?;
    let signs_in = app.engine.asks_for_login();
    Ok(Json(json!({ "role": asker.user(), "superuser": is_superuser, "signs_in": signs_in })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignOutParameters {
    /// Who signs out.
    role: String,
}

/// Refuses the role that signs out; whoever has signed in as another one goes to the console.
pub(crate) async fn sign_out(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<SignOutParameters>, QueryRejection>,
) -> Result<Response, Problem> {
    let role = checked(parameters)?.role;
    if !app.engine.asks_for_login() || asker.user() != role {
        return Ok(Redirect::to("/").into_response());
    }
    app.streams.sign_out(&role);
    let mut response = (StatusCode::UNAUTHORIZED, Html(SIGNED_OUT)).into_response();
    let challenge = HeaderValue::from_static(CHALLENGE);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}
