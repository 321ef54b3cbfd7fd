//! Whose session a call runs in.
//!
//! A handshake with a user's name makes a session and gives its token; calls that carry the token
//! run in it. Calls without one run in the session of their connection. Where clients must log in
//! (`access_control`), user and password come with the handshake or with each call (Basic); otherwise any
//! password is accepted, as over the PostgreSQL protocol.
//!
//! A token is good on every daemon of the cluster: one that does not know it asks the daemon that gave it, and makes
//! a session of its own that begins with the settings of the one there.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_query::{Engine, SessionOptions};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::client::Client;
use crate::connection::ConnectionState;
use crate::handles::{Handle, Handles};
use crate::logins::{self, Login};
use crate::question::Setting;
use crate::status::status;

/// Name of the session's protocol in lists of queries.
const PROTOCOL: &str = "flight";
/// The user of who does not say who he is.
const ANONYMOUS: &str = "stoa";

/// All sessions that have tokens.
pub(crate) struct Clients {
    engine: Arc<Engine>,
    by_token: Handles<Client>,
}

/// What a call says about its sender.
#[derive(Debug, PartialEq, Eq)]
enum Credentials {
    Nothing,
    Token(String),
    User { name: String, password: String },
}

/// What is known of a call's sender before anything is checked.
pub(crate) struct Sender {
    credentials: Credentials,
    application: String,
    connection: Option<ConnectionState>,
    /// Who was found when the call was let in.
    client: Option<Arc<Client>>,
}

/// The client of a call that was let in.
#[derive(Clone)]
pub(crate) struct LetInClient(pub(crate) Arc<Client>);

impl Sender {
    /// # Errors
    /// Credentials that cannot be read.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let application = request.metadata().get("user-agent");
        let application = application.and_then(|text| text.to_str().ok());
        Ok(Self {
            credentials: credentials(request.metadata()).map_err(|e| status(&e))?,
            application: application.unwrap_or_default().to_owned(),
            connection: request.extensions().get::<ConnectionState>().cloned(),
            client: request.extensions().get::<LetInClient>().map(|found| Arc::clone(&found.0)),
        })
    }

    /// Where the client is.
    fn peer(&self) -> Option<IpAddr> {
        self.connection.as_ref().map(|connection| connection.guest.address())
    }
}

impl Clients {
    pub(crate) fn new(engine: Arc<Engine>, count_max: usize, idle_max: Duration) -> Self {
        Self { engine, by_token: Handles::new(count_max, idle_max) }
    }

    /// Makes a session for who sends this; returns its token.
    ///
    /// # Errors
    /// Unauthenticated: a wrong password, or none where clients must log in.
    pub(crate) async fn login(&self, sender: Sender) -> Result<String, Status> {
        let peer = sender.peer();
        let user = match sender.credentials {
            // A client that logs in again with a token it has goes on with that.
            Credentials::Token(token) => return self.known(&token).await.map(|_| token),
            other => self.checked(other, peer).await?,
        };
        let daemon = self.engine.daemon_number();
        Ok(self.by_token.insert(daemon, self.client(user, sender.application)).text())
    }

    /// The session of a call.
    ///
    /// # Errors
    /// Unauthenticated: a token that is unknown or was not used for too long, a wrong password, or
    /// none where clients must log in.
    pub(crate) async fn of(&self, sender: Sender) -> Result<Arc<Client>, Status> {
        let peer = sender.peer();
        if let Some(client) = sender.client {
            return Ok(client);
        }
        let user = match sender.credentials {
            Credentials::Token(token) => return self.known(&token).await,
            other => self.checked(other, peer).await?,
        };
        let Some(connection) = sender.connection else {
            return Ok(Arc::new(self.client(user, sender.application)));
        };
        let mut current = connection.client.lock();
        match current.as_ref().filter(|client| client.user == user) {
            Some(client) => Ok(Arc::clone(client)),
            None => Ok(Arc::clone(current.insert(Arc::new(self.client(user, sender.application))))),
        }
    }

    /// The user, whose password is right if it matters.
    async fn checked(
        &self,
        credentials: Credentials,
        peer: Option<IpAddr>,
    ) -> Result<String, Status> {
        match credentials {
            Credentials::User { name, password } => {
                let checked = self.engine.log_in_from(&name, &password, peer).await;
                checked.map(|()| name).map_err(|error| status(&error))
            }
            _ if self.engine.asks_for_login() => {
                let error = Error::new(ErrorKind::Forbidden, "no user and password were given")
                    .with_condition(Condition::InvalidAuthorization)
                    .with_hint("connect with user and password: the server has access_control on");
                Err(status(&error))
            }
            _ => Ok(ANONYMOUS.to_owned()),
        }
    }

    /// Ends the sessions of a call's token, on all daemons; `false` for a call without one.
    pub(crate) async fn close<T>(&self, request: &Request<T>) -> bool {
        let Ok(Credentials::Token(token)) = credentials(request.metadata()) else { return false };
        let Some(handle) = Handle::read_text(&token) else { return false };
        let was_here = self.by_token.remove(handle).is_some();
        if was_here {
            logins::close_elsewhere(&self.engine, handle).await;
        }
        was_here
    }

    /// Ends the session of a token, which was closed on another daemon.
    pub(crate) fn close_here(&self, handle: Handle) {
        self.by_token.remove(handle);
    }

    /// Whose session the token of another daemon's client is, and how it is set.
    ///
    /// # Errors
    /// 28000: the token is not known. 0A000: a statement of it would mean something else elsewhere.
    pub(crate) fn login_for_another(&self, handle: Handle) -> Result<Login> {
        let client = self.by_token.get(handle).ok_or_else(unknown_token)?;
        Login::of(&client)
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn forget_idle(&self) {
        self.by_token.forget_idle();
    }

    /// The session of a token, which another daemon may have given.
    async fn known(&self, token: &str) -> Result<Arc<Client>, Status> {
        let handle = Handle::read_text(token).ok_or_else(|| status(&unknown_token()))?;
        if let Some(client) = self.by_token.get(handle) {
            return Ok(client);
        }
        self.known_elsewhere(handle).await.map_err(|error| status(&error))
    }

    async fn known_elsewhere(&self, handle: Handle) -> Result<Arc<Client>> {
        let login = logins::ask(&self.engine, handle).await?.ok_or_else(unknown_token)?;
        let client = self.client(login.user, login.application);
        for Setting { name, value } in &login.settings {
            client.session.begin_with(name, value)?;
        }
        Ok(self.by_token.get_or_insert(handle, client))
    }

    /// A client of the same role, with a session of its own.
    pub(crate) fn like(&self, client: &Client) -> Client {
        self.client(client.user.clone(), String::new())
    }

    fn client(&self, user: String, application: String) -> Client {
        let session = self.engine.session(SessionOptions {
            user: user.clone(),
            protocol: PROTOCOL,
            application: application.clone(),
            ..SessionOptions::default()
        });
        Client { session, user, application }
    }
}

fn credentials(metadata: &MetadataMap) -> Result<Credentials> {
    let Some(value) = metadata.get("authorization") else { return Ok(Credentials::Nothing) };
    let text = value.to_str().unwrap_or_default().trim();
    let (scheme, value) = text.split_once(' ').unwrap_or((text, ""));
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(Credentials::Token(value.to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(refused("the authorization is neither Basic nor Bearer"));
    }
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let decoded = GeneralPurpose::new(&STANDARD, config).decode(value).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| refused("the Basic authorization cannot be read"))?;
    match text.split_once(':').unwrap_or((&text, "")) {
        ("", _) => Err(refused("the Basic authorization names no user")
            .with_hint("any name will do, unless the server has access_control on")),
        (name, password) => {
            Ok(Credentials::User { name: name.to_owned(), password: password.to_owned() })
        }
    }
}

fn unknown_token() -> Error {
    Error::new(ErrorKind::Forbidden, "the token is not known, or was not used for too long")
        .with_condition(Condition::InvalidAuthorization)
        .with_hint("connect again")
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message).with_condition(Condition::InvalidAuthorization)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_or_refused() {
        let check = |value: &str, expected: Option<Credentials>| {
            let mut metadata = MetadataMap::new();
            metadata.insert("authorization", value.parse().unwrap());
            assert_eq!(credentials(&metadata).ok(), expected, "{value}");
        };
        check("Bearer abc", Some(Credentials::Token("abc".to_owned())));
        let me = |password: &str| {
            Some(Credentials::User { name: "me".to_owned(), password: password.to_owned() })
        };
        check("Basic bWU6c2VjcmV0", me("secret"));
        check("basic bWU6", me(""));
        check("Basic bWU", me(""));
        for wrong in ["Basic", "Basic OnNlY3JldA==", "Basic !", "Digest x", ""] {
            check(wrong, None);
        }
        assert_eq!(credentials(&MetadataMap::new()).ok(), Some(Credentials::Nothing));
    }
}
