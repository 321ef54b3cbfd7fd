//! How a server behaves: its limits and its encryption.

use std::time::Duration;

use stoa_listen::Limits;
use stoa_tls::Tls;

/// How a server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiveOptions {
    /// Connections at the same time.
    pub max_connections: usize,
    /// What holds for connections that have not logged in.
    pub limits: Limits,
    /// Bytes of the largest message taken, so of the longest statement.
    pub message_bytes_max: usize,
    /// Sessions at the same time; one more is refused (53300). Over HTTP they outlive their connections.
    pub max_sessions: usize,
    /// How long a session is kept that nobody uses, as Hive's `hive.server2.idle.session.timeout`.
    pub session_idle_max: Duration,
    /// How long an operation is kept that nobody asks for, as Hive's `hive.server2.idle.operation.timeout`.
    pub operation_idle_max: Duration,
    /// How long a shutdown waits for calls under way before it closes their connections.
    pub drain_max: Duration,
    /// What connections are encrypted with; those that are not are refused then.
    pub tls: Option<Tls>,
}

impl Default for HiveOptions {
    fn default() -> Self {
        Self {
            max_connections: 1000,
            limits: Limits::default(),
            message_bytes_max: 16 << 20,
            max_sessions: 4000,
            session_idle_max: Duration::from_secs(4 * 3600),
            operation_idle_max: Duration::from_secs(2 * 3600),
            drain_max: Duration::from_secs(10),
            tls: None,
        }
    }
}
