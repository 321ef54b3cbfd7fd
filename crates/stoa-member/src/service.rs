//! Requests of what stands above a membership: cancel a statement, show figures, answer a report.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};

/// What a request is for. The numbers are those on the wire and stay what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ServiceKind {
    /// A key of the PostgreSQL protocol that cancels what its connection runs.
    Cancel = 0x100,
    /// End a query, a session, or what a session runs, by its id.
    Kill = 0x101,
    /// What the daemon would show of itself.
    Figures = 0x102,
    /// The rows of a ticket.
    Ticket = 0x103,
    /// Compute parts of a large statement.
    Enlist = 0x105,
    /// Such a statement has ended.
    Release = 0x106,
    /// What was done of it so far.
    Done = 0x107,
    /// Answer a report. (0x104 was one in another form.)
    Report = 0x108,
    /// Answer a report on some parts of a version of a table.
    ReportParts = 0x109,
}

/// Answers requests of one kind that other daemons send. Called on the runtime of the membership; long work
/// belongs elsewhere.
pub trait Service: Send + Sync + 'static {
    /// The answer to a request of `from`, who has proved who it is and is a living member. Kind, SQLSTATE, message
    /// and hint of an error reach who asked.
    fn answer(&self, from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>>;
}

/// The services of this daemon.
#[derive(Default)]
pub(crate) struct Services(RwLock<HashMap<u16, Arc<dyn Service>>>);

impl Services {
    pub(crate) fn set(&self, kind: ServiceKind, service: Arc<dyn Service>) {
        self.0.write().insert(kind as u16, service);
    }

    pub(crate) fn find(&self, kind: u16) -> Option<Arc<dyn Service>> {
        self.0.read().get(&kind).map(Arc::clone)
    }
}

pub(crate) fn unknown(kind: u16) -> Error {
    Error::unsupported(format!("this daemon does not know requests of kind {kind}"))
        .with_hint("a newer version of stoa asks; upgrade this daemon")
}
