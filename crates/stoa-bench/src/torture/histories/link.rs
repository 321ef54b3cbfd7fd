//! A connection whose statements are noted with the time that they took.

use std::time::Instant;

use stoa_env::clock::monotonic;
use stoa_error::{Error, Result};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::op::{End, Moment, Span};
use crate::write::ServerAddress;

/// Codes that no statement here may end with: something inside the server is wrong.
const BUGS: [&str; 1] = ["XX"];

/// Classes of codes behind which a statement may be done or not.
const UNCLEAR: [&str; 4] = ["08", "57", "58", "XX"];

/// The one clock of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(monotonic())
    }

    pub(crate) fn now(self) -> Moment {
        self.0.elapsed().as_nanos() as Moment
    }
}

/// A connection of the PostgreSQL protocol to one of the servers.
pub(crate) struct Link {
    pub server: usize,
    pub address: ServerAddress,
    pub client: Client,
    clock: Clock,
}

/// What became of a statement.
pub(crate) struct Ran<T> {
    pub span: Span,
    pub answer: Option<T>,
    /// The code of the error, if the server gave one.
    pub code: String,
}

impl Link {
    pub(crate) async fn open(server: usize, address: &ServerAddress, clock: Clock) -> Result<Self> {
        let client = address.postgres().await?;
        Ok(Self { server, address: address.clone(), client, clock })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Another connection to the same server, for one COPY. When a server refuses a COPY, the driver
    /// still sends `CopyFail` and a second `Sync`, and takes what the server says to that for the
    /// answer of the statement after it: each one would be told what became of the one before.
    pub(crate) async fn for_copy(&self) -> Result<Self> {
        Self::open(self.server, &self.address, self.clock).await
    }

    /// Notes what a call of the driver comes to.
    pub(crate) async fn note<T>(
        &self,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Ran<T> {
        let sent = self.clock.now();
        let result = call.await;
        let ended = self.clock.now();
        let span = |end| Span { server: self.server, sent, ended, end };
        match result {
            Ok(answer) => Ran { span: span(End::Done), answer: Some(answer), code: String::new() },
            Err(error) => {
                let code = error.code().map_or("", |code| code.code());
                Ran { span: span(end_of(code)), answer: None, code: code.to_owned() }
            }
        }
    }

    /// As [`Self::note`], for calls of the other protocols, whose errors say in their text what the
    /// server answered.
    pub(crate) async fn note_other(&self, call: impl Future<Output = Result<()>>) -> Ran<()> {
        let sent = self.clock.now();
        let result = call.await;
        let ended = self.clock.now();
        let (end, code) = match &result {
            Ok(()) => (End::Done, String::new()),
            Err(error) => {
                let text = format!("{} {}", error.message(), error.detail().unwrap_or_default());
                let code = code_in(&text).unwrap_or_default();
                (end_of(&code), code)
            }
        };
        let span = Span { server: self.server, sent, ended, end };
        Ran { span, answer: result.ok(), code }
    }

    pub(crate) async fn run(&self, sql: &str) -> Ran<Vec<SimpleQueryMessage>> {
        self.note(self.client.simple_query(sql)).await
    }

    /// Runs a statement that must succeed.
    ///
    /// # Errors
    /// Unavailable with what the server said.
    pub(crate) async fn must(&self, sql: &str) -> Result<Vec<SimpleQueryMessage>> {
        self.client.simple_query(sql).await.map_err(|error| {
            let detail =
                error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
            let code = error.code().map_or("", |code| code.code()).to_owned();
            Error::unavailable(format!("{sql} failed")).with_detail(format!("{code} {detail}"))
        })
    }
}

impl<T> Ran<T> {
    /// The same with another answer.
    pub(crate) fn map<U>(self, of: impl FnOnce(T) -> U) -> Ran<U> {
        Ran { span: self.span, answer: self.answer.map(of), code: self.code }
    }

    /// Whether it was acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.span.end == End::Done
    }

    /// Whether the server said that something in it is wrong.
    pub(crate) fn is_bug(&self) -> bool {
        BUGS.iter().any(|class| self.code.starts_with(class))
    }
}

/// What an error with this code says of the statement; an empty one comes from a broken connection.
fn end_of(code: &str) -> End {
    match code.is_empty() || UNCLEAR.iter().any(|class| code.starts_with(class)) {
        true => End::Unknown,
        false => End::Refused,
    }
}

/// The SQLSTATE in an answer of HTTP (`"code":"42P01"`) or Flight (`SQLSTATE: 42P01`). Nothing else
/// of five characters: what an error tells may name a file or a process.
fn code_in(text: &str) -> Option<String> {
    let after = |marker: &str| {
        let (_, rest) = text.split_once(marker)?;
        let code = rest.trim_start_matches([' ', ':', '"']).get(..5)?;
        code.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()).then_some(code)
    };
    after("\"code\"").or_else(|| after("SQLSTATE")).map(str::to_owned)
}

/// The values of a column of integers.
pub(crate) fn integers(messages: &[SimpleQueryMessage], column: usize) -> Vec<i64> {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(column)?.parse().ok(),
        _ => None,
    });
    rows.collect()
}

/// The rows that statements say they have changed.
pub(crate) fn changed(messages: &[SimpleQueryMessage]) -> u64 {
    let counts = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
        _ => None,
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_in_what_servers_say() {
        assert_eq!(code_in(r#"{"error":{"code":"42P01","message":"no"}}"#).unwrap(), "42P01");
        let of_flight = "the log /tmp/12345/_log has stopped\nSQLSTATE: 57P03";
        assert_eq!(code_in(of_flight).unwrap(), "57P03");
        assert_eq!(
            code_in(r#"{"error":{"message":"see /tmp/12345","code":"08007"}}"#).unwrap(),
            "08007"
        );
        assert_eq!(code_in("connection 12345 reset by peer"), None);
        assert_eq!((end_of(""), end_of("08007")), (End::Unknown, End::Unknown));
        assert_eq!((end_of("40001"), end_of("42P01")), (End::Refused, End::Refused));
    }
}
