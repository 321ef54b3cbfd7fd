//! How a server behaves: its limits and its encryption.

use std::time::Duration;

use stoa_listen::Limits;
use stoa_tls::Tls;

/// How a server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightOptions {
    /// Connections at the same time; a client beyond them makes the one give way that has waited
    /// longest with its first call, or waits.
    pub max_connections: usize,
    /// What holds for connections without a call that was let in.
    pub limits: Limits,
    /// Bytes of the largest message taken, so of the largest batch.
    pub message_bytes_max: usize,
    /// Bytes of all messages together that are on their way in.
    pub incoming_bytes_max: usize,
    /// Sessions that have tokens, kept at the same time; beyond them the longest unused one ends.
    pub max_sessions: usize,
    /// Prepared statements, and queries whose rows were not fetched yet, kept at the same time.
    pub max_statements: usize,
    /// How long a session or statement is kept that nobody uses.
    pub idle_max: Duration,
    /// How long a shutdown waits for calls under way before it closes their connections.
    pub drain_max: Duration,
    /// What connections are encrypted with; those that are not are refused then.
    pub tls: Option<Tls>,
}

impl Default for FlightOptions {
    fn default() -> Self {
        Self {
            max_connections: 1000,
            limits: Limits::default(),
            message_bytes_max: 64 << 20,
            incoming_bytes_max: 512 << 20,
            max_sessions: 1000,
            max_statements: 1000,
            idle_max: Duration::from_secs(3600),
            drain_max: Duration::from_secs(10),
            tls: None,
        }
    }
}
