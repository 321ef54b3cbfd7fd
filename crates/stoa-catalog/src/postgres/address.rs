//! Where the database is: a URL as PostgreSQL's clients take it.
//!
//! In: `postgres://account:password@host:port/database?parameter=value`. Out: what a connection is
//! opened with, and what people are shown, which has no password in it.

use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use stoa_error::{Error, Result};
use url::Url;

/// What every connection is told. A statement may wait for a lock that a change holds, so it has more
/// time than a lock.
const SETTINGS: [(&str, &str); 3] = [
    ("lock_timeout", "30s"),
    ("statement_timeout", "40s"),
    ("idle_in_transaction_session_timeout", "60s"),
];

/// As whom Stoa shows in `pg_stat_activity`.
const APPLICATION: &str = "stoa";

/// How long a connection may take to be opened if the URL does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Parameters that the client library knows. It ignores others, and writes their values to the log.
const PARAMETERS: [&str; 13] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// Parameters that are ours to carry out.
const SCHEMA: &str = "currentSchema";
const TIMEOUT: &str = "connect_timeout";

pub(super) struct Address {
    options: PgConnectOptions,
    place: String,
    connect_timeout: Duration,
}

impl Address {
    /// # Errors
    /// `Invalid` with what is wrong, without the URL.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut url = Url::parse(text).map_err(|source| {
            invalid("is not a URL").with_source(source).with_hint(
                "write postgres://account@host:5432/database; in passwords, write special characters \
                 as % and two hexadecimal digits",
            )
        })?;
        if !["postgres", "postgresql"].contains(&url.scheme()) {
            return Err(invalid(format!("begins with {}://", url.scheme()))
                .with_hint("a catalog in PostgreSQL begins with postgres://"));
        }
        let mut schema = None;
        let mut connect_timeout = CONNECT_TIMEOUT;
        let mut kept = Vec::new();
        for (key, value) in url.query_pairs() {
            match &*key {
                SCHEMA => schema = Some(value.into_owned()),
                TIMEOUT => {
                    let seconds = value.parse().ok().filter(|seconds| (1..=600).contains(seconds));
                    connect_timeout = Duration::from_secs(seconds.ok_or_else(|| {
                        invalid("has a connect_timeout that is no number of 1 to 600 seconds")
                    })?);
                }
                known if PARAMETERS.contains(&known) || known.starts_with("options[") => {
                    kept.push((key.into_owned(), value.into_owned()));
                }
                unknown => {
                    return Err(invalid(format!("has an unknown parameter \"{unknown}\""))
                        .with_hint(format!(
                            "known are {SCHEMA}, {TIMEOUT}, {}",
                            PARAMETERS.join(", ")
                        )));
                }
            }
        }
        url.set_query(None);
        for (key, value) in &kept {
            url.query_pairs_mut().append_pair(key, value);
        }
        let options = PgConnectOptions::from_url(&url)
            .map_err(|source| invalid("cannot be used").with_source(source))?;
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name(APPLICATION),
        };
        let options = options.options(SETTINGS);
        let options = match schema {
            Some(schema) => options.options([("search_path", quoted(&schema))]),
            None => options,
        };
        let place = place_of(&options);
        Ok(Self { options, place, connect_timeout })
    }

    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// For people.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }
}

fn invalid(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the URL of the catalog {what}"))
}

/// A schema's name as the start-up parameter `options` takes it: an identifier in quotes, in which a
/// backslash keeps blanks and backslashes.
fn quoted(schema: &str) -> String {
    let identifier = format!("\"{}\"", schema.replace('"', "\"\""));
    identifier.replace('\\', "\\\\").replace(' ', "\\ ")
}

fn place_of(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    format!("postgres://{}@{host}/{database}", options.get_username())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_the_place_and_never_the_password() {
        for (url, place) in [
            ("postgres://ann:hunter2@db:5433/stoa?sslmode=disable", "postgres://ann@db:5433/stoa"),
            ("postgresql://ann@db/stoa?password=hunter2", "postgres://ann@db:5432/stoa"),
            ("postgres://ann:hunter2@db?currentSchema=a b", "postgres://ann@db:5432/ann"),
        ] {
            assert_eq!(Address::parse(url).unwrap().place(), place);
        }
        for (url, part) in [
            ("postgres://ann:hunter2@db:x/stoa", "is not a URL"),
            ("mysql://ann:hunter2@db/stoa", "begins with mysql://"),
            ("postgres://ann:hunter2@db/stoa?sslpassword=hunter2", "\"sslpassword\""),
            (
                "postgres://ann:hunter2@db/stoa?sslmode=hunter2x&connect_timeout=0",
                "connect_timeout",
            ),
        ] {
            let error = Address::parse(url).map(|_| ()).unwrap_err();
            assert!(error.message().contains(part), "{error:?}");
            assert!(!format!("{error:?} {}", error.message_with_sources()).contains("hunter2"));
        }
    }

    #[test]
    fn a_schema_becomes_the_search_path() {
        let address = Address::parse("postgres://ann@db/stoa?currentSchema=My Schema").unwrap();
        let options = address.options().get_options().unwrap();
        assert!(options.ends_with("-c search_path=\"My\\ Schema\""), "{options}");
    }
}
