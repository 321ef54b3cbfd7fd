//! A connection as its protocol sees it: whether its client waits, is known, or was sent away.
//!
//! **Invariant:** of the locks of a guest and of its door, the guest's is taken first.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use stoa_env::clock;

use crate::door::Door;

/// A connection that was let in; clones mean the same one.
#[derive(Clone)]
pub struct Guest(Arc<Inner>);

struct Inner {
    id: u64,
    /// Where the client is.
    address: IpAddr,
    door: Arc<Door>,
    state: Mutex<State>,
}

struct State {
    /// It has logged in, for as long as it lasts.
    known: bool,
    /// Requests under way.
    busy: usize,
    /// It must make room for others.
    sent_away: bool,
    /// When it has waited too long.
    deadline: Instant,
    /// Bytes read since it began to wait.
    bytes: usize,
    /// Who reads from the connection.
    reader: Option<Waker>,
}

/// What a reader has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It reads as it likes.
    Free,
    /// It may read until then; `full`: it has read what it may.
    Waiting { until: Instant, full: bool },
    /// It must end.
    SentAway,
}

impl Guest {
    pub(crate) fn new(id: u64, address: IpAddr, door: Arc<Door>) -> Self {
        let deadline = later(door.limits().login_timeout);
        let state =
            State { known: false, busy: 0, sent_away: false, deadline, bytes: 0, reader: None };
        Self(Arc::new(Inner { id, address, door, state: Mutex::new(state) }))
    }

    /// Where the client is.
    pub fn address(&self) -> IpAddr {
        self.0.address
    }

    /// The client has said who it is, and may stay.
    pub fn known(&self) {
        let mut state = self.0.state.lock();
        let waited = !state.known && state.busy == 0;
        state.known = true;
        self.free(state, waited);
    }

    /// A request of the client was let in; it waits again when that, and all others, have ended.
    #[must_use = "the request ends when this is dropped"]
    pub fn begin(&self) -> Busy {
        let mut state = self.0.state.lock();
        let waited = !state.known && state.busy == 0;
        state.busy += 1;
        self.free(state, waited);
        Busy(self.clone())
    }

    fn free(&self, mut state: MutexGuard<'_, State>, waited: bool) {
        state.bytes = 0;
        if waited {
            self.0.door.waits_no_more(self.0.id);
        }
        wake(state);
    }

    fn end(&self) {
        let mut state = self.0.state.lock();
        state.busy = state.busy.saturating_sub(1);
        if state.known || state.busy > 0 || state.sent_away {
            return;
        }
        state.deadline = later(self.0.door.limits().idle_timeout);
        state.bytes = 0;
        self.0.door.waits_again(self);
        wake(state);
    }

    /// Makes the connection end at its next read, which is woken; `false` if it does not wait.
    pub(crate) fn send_away(&self) -> bool {
        let mut state = self.0.state.lock();
        if state.known || state.busy > 0 {
            return false;
        }
        state.sent_away = true;
        wake(state);
        true
    }

    /// How the connection stands; `reader` is woken when that changes.
    pub(crate) fn standing(&self, reader: &Waker) -> Standing {
        let mut state = self.0.state.lock();
        if state.sent_away {
            return Standing::SentAway;
        }
        if !state.reader.as_ref().is_some_and(|known| known.will_wake(reader)) {
            state.reader = Some(reader.clone());
        }
        if state.known || state.busy > 0 {
            return Standing::Free;
        }
        let full = state.bytes >= self.0.door.limits().waiting_bytes_max;
        Standing::Waiting { until: state.deadline, full }
    }

    /// So many bytes were read.
    pub(crate) fn has_read(&self, bytes: usize) {
        let mut state = self.0.state.lock();
        state.bytes = state.bytes.saturating_add(bytes);
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    pub(crate) fn leave(&self) {
        self.0.door.leave(self.0.id);
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guest").field(&self.0.id).finish()
    }
}

/// A request under way, until dropped.
#[derive(Debug)]
pub struct Busy(Guest);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Wakes the reader once the lock is given back.
fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

fn later(duration: Duration) -> Instant {
    let now = clock::monotonic();
    now.checked_add(duration).unwrap_or(now)
}
