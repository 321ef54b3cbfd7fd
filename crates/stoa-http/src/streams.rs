//! The live streams that are open (`live`): how many there may be, and who has signed out meanwhile.

use std::sync::Arc;

use stoa_error::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

/// Streams that are open at the same time. Each may hold a connection and some megabytes.
const STREAMS_MAX: usize = 128;
/// Names of roles that have signed out, for streams that have not looked yet.
const SIGNED_OUT_MAX: usize = 64;

/// All live streams of a server.
pub(crate) struct Streams {
    places: Arc<Semaphore>,
    signed_out: broadcast::Sender<Arc<str>>,
}

/// The place of one stream, free again when dropped.
pub(crate) struct Place {
    signed_out: broadcast::Receiver<Arc<str>>,
    _permit: OwnedSemaphorePermit,
}

impl Streams {
    pub(crate) fn new() -> Self {
        let (signed_out, _) = broadcast::channel(SIGNED_OUT_MAX);
        Self { places: Arc::new(Semaphore::new(STREAMS_MAX)), signed_out }
    }

    /// Ends the streams of a role. Browsers that have not forgotten its password begin new ones.
    pub(crate) fn sign_out(&self, role: &str) {
        // Nobody may be listening.
        let _ = self.signed_out.send(role.into());
    }

    /// # Errors
    /// Exhausted (53300): there are as many streams as may be.
    pub(crate) fn enter(&self) -> Result<Place> {
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let problem = format!("{STREAMS_MAX} live streams are open already");
            Error::new(ErrorKind::Exhausted, problem).with_sqlstate("53300").with_hint(
                "close consoles that nobody looks at, or ask for /v1/status and others one by one",
            )
        })?;
        Ok(Place { signed_out: self.signed_out.subscribe(), _permit: permit })
    }
}

impl Place {
    /// Completes when `role` signs out, or so many did that its name may have been missed.
    pub(crate) async fn signed_out(&mut self, role: &str) {
        while self.signed_out.recv().await.is_ok_and(|name| &*name != role) {}
    }
}
