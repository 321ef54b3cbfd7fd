//! How a server behaves, and the switch that says when it is ready.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stoa_listen::Limits;
use stoa_tls::Tls;

use crate::alerts::AlertOptions;

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Connections at the same time; beyond them, a new one makes the one give way that has waited
    /// longest for a request, or is refused (503).
    pub max_connections: usize,
    /// What holds for connections without a request under way.
    pub limits: Limits,
    /// Longest body of a request, bytes.
    pub body_bytes_max: usize,
    /// Names under which the server is reached besides those of loopback, without port. Matters
    /// only while it listens on loopback.
    pub allowed_hosts: Vec<String>,
    /// Says when `/ready` may say so.
    pub readiness: Readiness,
    /// How long a shutdown waits for requests under way before it closes their connections, ms.
    pub drain_ms_max: u64,
    /// When somebody is told that something is wrong, and who.
    pub alerts: AlertOptions,
    /// What connections are encrypted with; those that are not are refused then.
    pub tls: Option<Tls>,
    /// The directory in which ended queries are kept for days; in memory only, the newest, if `None`.
    pub query_log: Option<PathBuf>,
    /// What is kept for clients between requests.
    pub kept: KeptOptions,
}

/// What is kept for clients between requests: results, and sessions.
#[derive(Clone, Debug)]
pub struct KeptOptions {
    /// Results at the same time; beyond them, the one that was not read for longest goes.
    pub results_max: usize,
    /// Bytes of one result; what is longer is cut.
    pub result_bytes_max: u64,
    /// Bytes of all results together.
    pub bytes_max: u64,
    /// Bytes of a result that are read before anybody asks for them.
    pub ahead_bytes: u64,
    /// How long a query whose next rows nobody asks for goes on, ms.
    pub unwanted_ms_max: u64,
    /// How long a result is kept after it was last read, ms.
    pub unread_ms_max: u64,
    /// Sessions of one role.
    pub sessions_per_role_max: usize,
    /// How long a session is kept after it was last used, ms.
    pub session_idle_ms_max: u64,
}

impl Default for KeptOptions {
    fn default() -> Self {
        Self {
            results_max: 128,
            result_bytes_max: 1 << 30,
            bytes_max: 4 << 30,
            ahead_bytes: 16 << 20,
            unwanted_ms_max: 60_000,
            unread_ms_max: 3_600_000,
            sessions_per_role_max: 100,
            session_idle_ms_max: 3_600_000,
        }
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_connections: 1000,
            limits: Limits::default(),
            body_bytes_max: 16 << 20,
            allowed_hosts: Vec::new(),
            readiness: Readiness::default(),
            drain_ms_max: 60_000,
            alerts: AlertOptions::default(),
            tls: None,
            query_log: None,
            kept: KeptOptions::default(),
        }
    }
}

/// A switch for `/ready`, for servers that listen before everything else is up. On by default.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<AtomicBool>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Readiness {
    /// A switch that is off until [`Readiness::set`].
    pub fn not_yet() -> Self {
        let readiness = Self::default();
        readiness.set(false);
        readiness
    }

    /// Turns it on or off.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
