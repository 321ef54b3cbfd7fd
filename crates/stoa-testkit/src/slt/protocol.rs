//! What a protocol has to offer so that files can be run over it.

use std::fmt;

use async_trait::async_trait;

/// A running engine or server, reached in one way.
#[async_trait]
pub trait Protocol: Send + Sync {
    /// The name by which files speak of it.
    fn name(&self) -> &'static str;

    /// A connection with a session of its own.
    ///
    /// # Errors
    /// Whatever keeps it from being opened.
    async fn connect(&self) -> Result<Box<dyn Connection>, Failure>;
}

/// One client.
#[async_trait]
pub trait Connection: Send {
    /// Runs one statement to its end.
    ///
    /// # Errors
    /// What the server says.
    async fn run(&mut self, sql: &str) -> Result<Answer, Failure>;
}

/// What a statement gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing to fetch; so many rows were written.
    Done(u64),
    /// Rows of cells, in the form of [`Cell`](super::Cell).
    Rows(Vec<Vec<String>>),
}

/// An error as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Five characters; empty where the protocol broke.
    pub sqlstate: String,
    /// The message with detail and hint.
    pub message: String,
}

impl Failure {
    /// A failure of the connection itself.
    pub fn broken(message: impl fmt::Display) -> Self {
        Self { sqlstate: String::new(), message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.sqlstate, self.message)
    }
}

impl std::error::Error for Failure {}
