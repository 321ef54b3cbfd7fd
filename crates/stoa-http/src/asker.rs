//! Who sends a request.
//!
//! If clients must log in (`access_control`), each request carries a role and its password (Basic);
//! browsers ask for them once. Otherwise nobody is asked, and everyone can do anything.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_query::{Engine, Session, SessionOptions};

use crate::problem::Problem;

/// Paths that say nothing about data, for whoever watches over the server.
const OPEN_TO_ALL: [&str; 3] = ["/health", "/ready", "/metrics"];

/// What browsers ask for a password by.
pub(crate) const CHALLENGE: &str = "Basic realm=\"stoa\", charset=\"UTF-8\"";

/// The user of a request.
#[derive(Clone, Debug)]
pub(crate) struct Asker(Arc<str>);

impl Asker {
    /// Reads and checks what a request says of its sender, who is at `peer`.
    ///
    /// # Errors
    /// 28000 where it says nothing and must; 28P01 for a wrong password; 53400 after too many of them.
    pub(crate) async fn of(
        engine: &Engine,
        path: &str,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Self> {
        let nobody = || Self(SessionOptions::default().user.into());
        if !engine.asks_for_login() || OPEN_TO_ALL.contains(&path) {
            return Ok(nobody());
        }
        let (user, password) = credentials(headers).ok_or_else(unknown)?;
        engine.log_in_from(&user, &password, peer).await?;
        Ok(Self(user.into()))
    }

    /// Goes along with the request.
    pub(crate) fn join(self, request: &mut Request) {
        request.extensions_mut().insert(self);
    }

    /// The user's name.
    pub(crate) fn user(&self) -> &str {
        &self.0
    }

    /// A session of this user.
    pub(crate) fn session(&self, engine: &Arc<Engine>) -> Arc<Session> {
        engine.session(self.options())
    }

    /// What such a session is made with.
    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions { user: self.0.to_string(), protocol: "http", ..SessionOptions::default() }
    }
}

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let asker = parts.extensions.get::<Self>().cloned();
        asker.ok_or_else(|| Error::internal("nobody asked who sends the request").into())
    }
}

fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = value.trim().split_once(' ')?;
    let decoded =
        STANDARD.decode(value.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"));
    let text = String::from_utf8(decoded?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn unknown() -> Error {
    Error::new(ErrorKind::Forbidden, "no user and password were given")
        .with_condition(Condition::InvalidAuthorization)
        .with_hint("send them as Basic authorization: the server has access_control on")
}

/// The answer to whoever is not let in; browsers ask for a password then, unless none is looked at.
pub(crate) fn refused(error: Error) -> Response {
    if error.kind() == ErrorKind::Exhausted {
        return Problem::from(error).into_response();
    }
    let mut response = Problem::with_status(error, StatusCode::UNAUTHORIZED).into_response();
    let challenge = HeaderValue::from_static(CHALLENGE);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}
