//! Signals that ask the process to end.

use stoa_env::task;
use stoa_error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a process that a second signal ended: its clean end did not happen.
const FORCED_EXIT_CODE: i32 = 1;

/// SIGINT (Ctrl-C) and SIGTERM.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over; from now on they do not end the process by themselves.
    pub(super) fn listen() -> Result<Self> {
        let take = |kind| {
            signal(kind).map_err(|e| Error::internal("cannot take over signals").with_source(e))
        };
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    /// Waits for one, and names it.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Ends the process at the next one.
    pub(super) fn exit_at_next(mut self) {
        task::spawn(async move {
            let signal = self.next().await;
            tracing::warn!(signal, "second signal: ending at once");
            std::process::exit(FORCED_EXIT_CODE);
        });
    }
}
