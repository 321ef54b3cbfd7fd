//! The connection to one peer: opened when it is first needed, opened again when it was lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use stoa_cluster::DaemonId;
use stoa_env::timer::{self, Instant};
use stoa_error::{Error, Result};
use tokio::sync::Notify;

use crate::directory::PeerAddress;
use crate::failure;
use crate::outgoing::{self, Connection};
use crate::shared::Shared;
use crate::statistics::{Counters, PeerStatistics};

pub(crate) struct Link {
    daemon: DaemonId,
    state: Mutex<State>,
    /// An attempt to connect has ended.
    changed: Notify,
    pub(crate) counters: Counters,
}

#[derive(Default)]
struct State {
    socket: Socket,
    failure: Option<Failure>,
    /// Which attempt to connect counts; none that was begun before the peer was forgotten.
    attempt: u64,
    /// Of connections that have ended.
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Default)]
enum Socket {
    #[default]
    None,
    Opening,
    Open(Arc<Connection>),
}

/// The last attempt to connect, which failed.
struct Failure {
    error: Error,
    /// Whom it was for; whoever has another address or certificate by now is tried at once.
    peer: PeerAddress,
    attempt: u64,
    /// Until then calls fail with the same error.
    until: Instant,
    delay: Duration,
}

impl Link {
    pub(crate) fn new(daemon: DaemonId) -> Self {
        Self {
            daemon,
            state: Mutex::default(),
            changed: Notify::new(),
            counters: Counters::default(),
        }
    }

    /// The connection, opened if need be. If this is dropped, the attempt goes on for others.
    ///
    /// # Errors
    /// Unavailable (08001): the daemon is no living member, or cannot be reached, or could not be reached just now.
    pub(crate) async fn connection(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
    ) -> Result<Arc<Connection>> {
        loop {
            if let Some(connection) = self.open_connection() {
                return Ok(connection);
            }
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look at the state: no change in between is missed.
            changed.as_mut().enable();
            if let Some(attempt) = self.begin(shared)? {
                changed.await;
                self.check(attempt)?;
            }
        }
    }

    fn open_connection(&self) -> Option<Arc<Connection>> {
        match &self.state.lock().socket {
            Socket::Open(connection) if !connection.has_ended() => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// The error of this attempt, if it has failed.
    fn check(&self, attempt: u64) -> Result<()> {
        match &self.state.lock().failure {
            Some(failure) if failure.attempt == attempt => Err(failure.error.copied()),
            _ => Ok(()),
        }
    }

    /// The attempt to connect that is under way, begun if need be; `None` if there is a connection.
    fn begin(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<Option<u64>> {
        let peer = shared.directory.address(self.daemon);
        let peer = peer.ok_or_else(|| failure::not_a_member(self.daemon))?;
        let mut state = self.state.lock();
        match &state.socket {
            Socket::Opening => return Ok(Some(state.attempt)),
            Socket::Open(connection) if !connection.has_ended() => return Ok(None),
            _ => {}
        }
        let failure = state.failure.as_ref().filter(|failure| failure.peer == peer);
        if let Some(failure) = failure
            && timer::now() < failure.until
        {
            return Err(failure.error.copied());
        }
        state.socket = Socket::Opening;
        state.attempt += 1;
        let attempt = state.attempt;
        drop(state);
        let (link, of_task) = (Arc::clone(self), Arc::clone(shared));
        // Made here: a runtime that has ended does not even begin the task.
        let reset = Reset {
            link: Arc::clone(self),
            shared: Arc::clone(shared),
            peer: peer.clone(),
            attempt,
        };
        shared.spawn(async move {
            let _reset = reset;
            link.run(&of_task, peer, attempt).await;
        });
        Ok(Some(attempt))
    }

    /// Opens a connection, and carries it until it ends.
    async fn run(&self, shared: &Shared, peer: PeerAddress, attempt: u64) {
        let limit = shared.options.open_timeout;
        let opened = match timer::timeout(limit, outgoing::open(shared, &peer)).await {
            Ok(opened) => opened,
            Err(_) => {
                let why = format_args!("it took more than {} ms", limit.as_millis());
                Err(failure::cannot_connect(self.daemon, &peer.address, why))
            }
        };
        let (connection, stream) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::debug!(daemon = %self.daemon, ?error, "cannot connect to a peer");
                return self.failed(shared, peer, error, attempt);
            }
        };
        if !self.opened(&connection, attempt) {
            return;
        }
        connection.run(stream, &shared.options).await;
        self.ended(shared, peer, &connection, attempt);
    }

    /// `false` if the peer was forgotten meanwhile.
    fn opened(&self, connection: &Arc<Connection>, attempt: u64) -> bool {
        let mut state = self.state.lock();
        let is_current = state.attempt == attempt;
        if is_current {
            state.socket = Socket::Open(Arc::clone(connection));
        }
        drop(state);
        self.changed.notify_waiters();
        is_current
    }

    fn failed(&self, shared: &Shared, peer: PeerAddress, error: Error, attempt: u64) {
        let mut state = self.state.lock();
        if state.attempt == attempt {
            state.socket = Socket::None;
            let failure = state.failure_after(shared, peer, error);
            state.failure = Some(failure);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn ended(&self, shared: &Shared, peer: PeerAddress, connection: &Connection, attempt: u64) {
        let mut state = self.state.lock();
        state.bytes_in += connection.traffic.bytes_read();
        state.bytes_out += connection.traffic.bytes_written();
        if state.attempt != attempt {
            return;
        }
        state.socket = Socket::None;
        // A peer that takes connections and answers nothing is no better than one that takes none.
        state.failure = match connection.has_answered() {
            true => None,
            false => {
                let why = "it ended the last connection without an answer";
                let error = failure::cannot_connect(self.daemon, &peer.address, why);
                Some(state.failure_after(shared, peer, error))
            }
        };
    }

    /// Ends the connection and any attempt to open one; the next call begins anew.
    pub(crate) fn forget(&self, why: &str) {
        let mut state = self.state.lock();
        state.attempt += 1;
        state.failure = None;
        let socket = std::mem::take(&mut state.socket);
        drop(state);
        if let Socket::Open(connection) = socket {
            connection.close(why);
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn statistics(&self, connected_from: bool) -> PeerStatistics {
        let state = self.state.lock();
        let (mut bytes_in, mut bytes_out) = (state.bytes_in, state.bytes_out);
        let open = match &state.socket {
            Socket::Open(connection) => Some(connection),
            _ => None,
        };
        if let Some(connection) = open {
            bytes_in += connection.traffic.bytes_read();
            bytes_out += connection.traffic.bytes_written();
        }
        PeerStatistics {
            daemon: self.daemon,
            connected: open.is_some_and(|connection| !connection.has_ended()),
            connected_from,
            protocol: open.map(|connection| connection.protocol),
            build: open.map(|connection| connection.build.clone()),
            in_flight: self.counters.in_flight.load(Ordering::Relaxed),
            calls: self.counters.calls.load(Ordering::Relaxed),
            failures: self.counters.failures.load(Ordering::Relaxed),
            bytes_in,
            bytes_out,
            round_trip_us: self.counters.round_trip_us(),
        }
    }
}

/// Fails an attempt whose task goes before its end.
struct Reset {
    link: Arc<Link>,
    shared: Arc<Shared>,
    peer: PeerAddress,
    attempt: u64,
}

impl Drop for Reset {
    fn drop(&mut self) {
        let state = self.link.state.lock();
        let is_opening = state.attempt == self.attempt && matches!(state.socket, Socket::Opening);
        drop(state);
        if is_opening {
            let why = "this daemon has stopped the attempt";
            let error = failure::cannot_connect(self.link.daemon, &self.peer.address, why);
            self.link.failed(&self.shared, self.peer.clone(), error, self.attempt);
        }
    }
}

impl State {
    /// One more failure, for longer than the last if that was for the same peer.
    fn failure_after(&mut self, shared: &Shared, peer: PeerAddress, error: Error) -> Failure {
        let options = &shared.options;
        let last = self.failure.take().filter(|last| last.peer == peer);
        let delay = last.map_or(options.retry_min, |last| last.delay.saturating_mul(2));
        let delay = delay.min(options.retry_max);
        let now = timer::now();
        let until = now.checked_add(delay).unwrap_or(now);
        Failure { error, peer, attempt: self.attempt, until, delay }
    }
}
