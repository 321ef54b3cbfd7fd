//! What asks the process to end: signals, and the end of standard input if whoever started it wants that.

use std::io::Read;

use stoa_env::task;
use stoa_error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// Exit code of a process that a second signal ended: its clean end did not happen.
const FORCED_EXIT_CODE: i32 = 1;

/// SIGINT (Ctrl-C), SIGTERM, and the end of standard input.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Answers when standard input has ended; `None` where its end means nothing.
    stdin_end: Option<oneshot::Receiver<()>>,
}

impl Signals {
    /// Takes the signals over; from now on they do not end the process by themselves. With `with_stdin`,
    /// standard input is read to its end, on a thread of its own.
    pub(super) fn listen(with_stdin: bool) -> Result<Self> {
        let take = |kind| {
            signal(kind).map_err(|e| Error::internal("cannot take over signals").with_source(e))
        };
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
            stdin_end: if with_stdin { Some(stdin_end()?) } else { None },
        })
    }

    /// Waits for one, and names it.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
            () = ended(&mut self.stdin_end) => "the end of standard input",
        }
    }

    /// Ends the process at the next one.
    pub(super) fn exit_at_next(mut self) {
        // Whoever started the process may be gone already: that is no second wish.
        self.stdin_end = None;
        task::spawn(async move {
            let signal = self.next().await;
            tracing::warn!(signal, "second signal: ending at once");
            std::process::exit(FORCED_EXIT_CODE);
        });
    }
}

/// Returns when standard input has ended; never, where that means nothing.
async fn ended(stdin_end: &mut Option<oneshot::Receiver<()>>) {
    match stdin_end {
        // A thread that is gone reads no more: the same.
        Some(end) => drop(end.await),
        None => std::future::pending().await,
    }
}

fn stdin_end() -> Result<oneshot::Receiver<()>> {
    let (tell, told) = oneshot::channel();
    let read = move || {
        let mut ignored = [0; 4096];
        let mut stdin = std::io::stdin().lock();
        loop {
            match stdin.read(&mut ignored) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
        }
        // Nobody waits for it where the server has ended by itself.
        let _ = tell.send(());
    };
    task::spawn_thread("stoa-stdin", read)
        .map_err(|e| Error::unavailable("cannot start a thread").with_source(e))?;
    Ok(told)
}
