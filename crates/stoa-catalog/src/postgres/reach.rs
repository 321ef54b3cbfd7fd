//! Whether PostgreSQL answers; when it does not, one task asks until it does again.
//!
//! **Invariant:** what was remembered is forgotten before anybody learns that PostgreSQL is back.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use stoa_env::timer::{self, Instant};
use stoa_env::{clock, random};
use tokio::sync::watch;

use super::memory::STALE_MAX;
use super::{Shared, sessions};
use crate::CatalogState;

/// Between two attempts to reach PostgreSQL: at first, and at most. Each is between half of it and all
/// of it, so that not all daemons come at once.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

pub(super) struct Reach {
    here: watch::Sender<bool>,
    details: Mutex<Details>,
}

struct Details {
    since: SystemTime,
    last_error: Option<String>,
    reconnections: u64,
}

impl Default for Reach {
    fn default() -> Self {
        let details = Details { since: clock::now(), last_error: None, reconnections: 0 };
        Self { here: watch::Sender::new(true), details: Mutex::new(details) }
    }
}

impl Reach {
    pub(super) fn is_here(&self) -> bool {
        *self.here.borrow()
    }

    pub(super) fn state(&self) -> CatalogState {
        let details = self.details.lock();
        let reachable = self.is_here();
        CatalogState {
            reachable,
            since: details.since,
            remembered_until: (!reachable).then(|| details.since + STALE_MAX),
            last_error: details.last_error.clone(),
            reconnections: details.reconnections,
            reads_asked: 0,
            reads_known: 0,
        }
    }

    /// Whether PostgreSQL answers, or does so until `deadline`; never after it, so that who tries again
    /// and again comes to an end.
    pub(super) async fn wait_until_here(&self, deadline: Instant) -> bool {
        if self.is_here() {
            return timer::now() < deadline;
        }
        let mut here = self.here.subscribe();
        let wait = deadline.saturating_duration_since(timer::now());
        timer::timeout(wait, here.wait_for(|here| *here)).await.is_ok_and(|here| here.is_ok())
    }

    /// Notes that PostgreSQL does not answer.
    pub(super) fn mark_away(&self, shared: &Arc<Shared>, error: &sqlx::Error) {
        let mut details = self.details.lock();
        details.last_error = Some(error.to_string());
        if !self.here.send_replace(false) {
            return;
        }
        details.since = clock::now();
        drop(details);
        shared.sessions.forget_idle();
        let place = shared.address.place();
        tracing::error!(%error, place, "the catalog does not answer; reads are answered from memory");
        shared.home.spawn(come_back(Arc::downgrade(shared)));
    }

    fn mark_here(&self) {
        let mut details = self.details.lock();
        details.since = clock::now();
        details.reconnections += 1;
        self.here.send_replace(true);
    }
}

/// Tries to connect until it is done, or nobody has the catalog any more.
async fn come_back(shared: Weak<Shared>) {
    let mut pause = PAUSE_MIN;
    loop {
        let part =
            0.5 + f64::from(u32::try_from(random::u64() >> 33).unwrap_or(0)) / f64::from(u32::MAX);
        timer::sleep(pause.mul_f64(part)).await;
        pause = (pause * 2).min(PAUSE_MAX);
        let Some(shared) = shared.upgrade() else { return };
        if shared.sessions.is_closed() {
            return;
        }
        match sessions::open(&shared).await {
            Ok(session) => {
                shared.memory.forget_all();
                shared.sessions.put(session);
                shared.reach.mark_here();
                tracing::info!(place = shared.address.place(), "the catalog answers again");
                return;
            }
            Err(error) => shared.reach.details.lock().last_error = Some(error.to_string()),
        }
    }
}
