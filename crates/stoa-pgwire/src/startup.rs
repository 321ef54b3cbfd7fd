//! The start of a connection: encryption is agreed upon, the session made, settings told.

use std::sync::Arc;

use bytes::Bytes;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_query::{DATABASE, Engine, Session, SessionOptions};
use stoa_tls::{Socket, Tls};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::wire::backend::Severity;
use crate::wire::frontend::{StartupPacket, violation};
use crate::wire::stream::{Stop, Wire};

/// What a new connection asks for.
#[derive(Debug)]
pub(crate) enum Opening {
    /// To cancel what another connection runs.
    Cancel { process_id: i32, secret: Bytes },
    /// A session.
    Session(StartupParameters),
}

/// Parameters of a start-up packet, in the client's order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartupParameters {
    user: String,
    application: String,
    /// Settings, to be applied in order.
    settings: Vec<(String, String)>,
    /// Protocol options that this server does not know.
    unknown_options: Vec<String>,
    /// The client asked for a newer minor version than 3.0.
    newer: bool,
}

/// Reads the first packets until one says what the connection is for. With `tls`, a session is for
/// clients who encrypt; who cancels need not, since older clients do not.
pub(crate) async fn open<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    wire: &mut Wire<Socket<S>>,
    tls: Option<&Tls>,
) -> Result<Opening, Stop> {
    let mut names_no_protocol = false;
    if let Some(tls) = tls
        && wire.begins_with_tls().await?
    {
        wire.begin_tls(tls).await?;
        names_no_protocol = wire.socket().alpn().is_none();
    }
    // One request for TLS and one for GSSAPI; more would be a loop.
    for _ in 0..3 {
        let packet = wire.startup_packet().await?.ok_or(Stop::Gone)?;
        // Or what was meant for a server of another protocol could be sent to this one.
        if names_no_protocol {
            return Err(no_protocol().into());
        }
        match packet {
            packet @ (StartupPacket::SslRequest | StartupPacket::GssRequest) => {
                // Bytes sent before the answer could be an attacker's (CVE-2021-23222).
                if wire.has_input() {
                    let message = "received unencrypted data after encryption request";
                    return Err(violation(message).into());
                }
                let begins = packet == StartupPacket::SslRequest && !wire.socket().is_encrypted();
                match tls.filter(|_| begins) {
                    Some(tls) => {
                        wire.output.accept_encryption();
                        wire.flush().await?;
                        wire.begin_tls(tls).await?;
                    }
                    None => {
                        wire.output.refuse_encryption();
                        wire.flush().await?;
                    }
                }
            }
            StartupPacket::Cancel { process_id, secret } => {
                return Ok(Opening::Cancel { process_id, secret });
            }
            StartupPacket::Startup { major, minor, parameters } => {
                if tls.is_some() && !wire.socket().is_encrypted() {
                    return Err(not_encrypted().into());
                }
                return Ok(Opening::Session(read_parameters(major, minor, parameters)?));
            }
        }
    }
    Err(violation("too many requests for encryption").into())
}

fn no_protocol() -> Error {
    violation("TLS without a request for it needs ALPN, and the client named no protocol")
        .with_hint("connect with sslnegotiation=postgres, or with a client that sends ALPN")
}

fn not_encrypted() -> Error {
    Error::new(ErrorKind::Forbidden, "the connection is not encrypted")
        .with_condition(Condition::InvalidAuthorization)
        .with_detail("the server has tls_cert set, and takes encrypted connections only")
        .with_hint(
            "connect with sslmode=verify-full and the authority's certificate in sslrootcert",
        )
}

fn read_parameters(
    major: u16,
    minor: u16,
    parameters: Vec<(String, String)>,
) -> Result<StartupParameters> {
    if major != 3 {
        let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0");
        return Err(Error::unsupported(message)
            .with_hint("this port speaks the PostgreSQL protocol, version 3"));
    }
    let mut read = StartupParameters {
        user: String::new(),
        application: String::new(),
        settings: Vec::new(),
        unknown_options: Vec::new(),
        newer: minor > 0,
    };
    let mut database = None;
    for (name, value) in parameters {
        match name.as_str() {
            "user" => read.user = value,
            "database" => database = Some(value),
            "options" => read.settings.extend(command_line_settings(&value)?),
            "replication" if is_off(&value) => {}
            "replication" => {
                return Err(Error::unsupported("replication connections are not supported")
                    .with_hint("leave out the parameter \"replication\""));
            }
            option if option.starts_with("_pq_.") => read.unknown_options.push(name),
            _ => {
                if name.eq_ignore_ascii_case("application_name") {
                    read.application.clone_from(&value);
                }
                read.settings.push((name, value));
            }
        }
    }
    if read.user.is_empty() {
        return Err(Error::invalid("no user name specified in startup packet")
            .with_condition(Condition::InvalidAuthorization)
            .with_hint("any name will do, unless the server has access_control on"));
    }
    check_program(&read.application)?;
    check_database(database.as_deref().unwrap_or_default(), &read.user)?;
    Ok(read)
}

fn is_off(value: &str) -> bool {
    ["false", "off", "no", "0"].iter().any(|off| value.eq_ignore_ascii_case(off))
}

/// Refuses programs that read what only a PostgreSQL server has, before they fail half way.
fn check_program(application: &str) -> Result<()> {
    if !["pg_dump", "pg_dumpall"].contains(&application) {
        return Ok(());
    }
    Err(Error::unsupported(format!("{application} is not supported")).with_hint(
        "SHOW CREATE TABLE gives a table's definition and COPY … TO STDOUT its rows; \
         to back up everything, copy the warehouse",
    ))
}

/// There is one database. Clients that name none send the user's name, and many tools send
/// `postgres`; both mean the one.
fn check_database(database: &str, user: &str) -> Result<()> {
    if database.is_empty() || [DATABASE, "postgres", user].contains(&database) {
        return Ok(());
    }
    Err(Error::not_found(format!("database \"{database}\" does not exist"))
        .with_sqlstate("3D000")
        .with_hint(format!("the only database is \"{DATABASE}\"; namespaces are its schemas")))
}

/// Reads `-c name=value --name=value`; a backslash takes the next character as it is.
fn command_line_settings(options: &str) -> Result<Vec<(String, String)>> {
    let mut words = vec![String::new()];
    let mut chars = options.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => words.last_mut().into_iter().for_each(|word| word.extend(chars.next())),
            blank if blank.is_whitespace() => words.push(String::new()),
            other => words.last_mut().into_iter().for_each(|word| word.push(other)),
        }
    }
    words.retain(|word| !word.is_empty());
    let mut settings = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("--") {
            Some(assignment) => Some(assignment),
            None if word == "-c" => words.next().map(String::as_str),
            None => word.strip_prefix("-c"),
        };
        let pair = assignment.and_then(|text| text.split_once('='));
        let Some((name, value)) = pair else {
            return Err(Error::invalid(format!("invalid command-line argument: {word}"))
                .with_sqlstate("42601")
                .with_hint("write options=-c name=value"));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

impl StartupParameters {
    /// Who the client says it is.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Makes the session; settings that it does not know become warnings, so that clients which
    /// set more than Stoa has can still connect.
    pub(crate) fn session<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        engine: &Arc<Engine>,
        wire: &mut Wire<S>,
    ) -> Result<Arc<Session>> {
        let session = engine.session(SessionOptions {
            user: self.user.clone(),
            protocol: "postgresql",
            application: self.application.clone(),
            ..SessionOptions::default()
        });
        for (name, value) in &self.settings {
            match session.begin_with(name, value) {
                Ok(()) => {}
                Err(error) if error.is(Condition::UndefinedObject) => {
                    let hint = error.hint().unwrap_or_default();
                    let (code, message) = (error.sqlstate(), error.message());
                    wire.output.notice(Severity::Warning, code, message, hint);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(session)
    }

    /// Answers a request for a newer version or for options that are not known.
    pub(crate) fn negotiate<S: AsyncRead + AsyncWrite + Unpin>(&self, wire: &mut Wire<S>) {
        if self.newer || !self.unknown_options.is_empty() {
            wire.output.negotiate_version(&self.unknown_options);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &[(&str, &str)]) -> Result<StartupParameters> {
        let owned = parameters.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        read_parameters(3, 0, owned.collect())
    }

    #[test]
    fn the_database_is_the_one_or_a_clients_default() {
        for database in ["stoa", "postgres", "me", ""] {
            read(&[("user", "me"), ("database", database)]).unwrap();
        }
        let error = read(&[("user", "me"), ("database", "sales")]).unwrap_err();
        assert_eq!(error.sqlstate(), "3D000");
        assert_eq!(read(&[]).unwrap_err().sqlstate(), "28000");
        assert!(read_parameters(2, 0, Vec::new()).is_err());
    }

    #[test]
    fn settings_come_from_parameters_and_options() {
        let options = "-c search_path=a\\ b --statement-timeout=5 -cjit=off";
        let read = read(&[("user", "me"), ("options", options), ("DateStyle", "ISO")]).unwrap();
        let expected = [
            ("search_path", "a b"),
            ("statement_timeout", "5"),
            ("jit", "off"),
            ("DateStyle", "ISO"),
        ];
        assert_eq!(read.settings, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert!(command_line_settings("-x").is_err());
    }
}
