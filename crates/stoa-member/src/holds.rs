//! Tables that this daemon holds for statements of others.
//!
//! A hold that its daemon does not keep alive ends after [`HOLD_LIMIT`]: rows come into files again, and the
//! statement that held does not see those that were acknowledged since.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_env::clock;
use stoa_error::{Error, Result};
use stoa_ingest::FlushHold;

/// How long a hold lasts without a word of its daemon.
const HOLD_LIMIT: Duration = Duration::from_secs(10);

/// Tables that are held for others.
#[derive(Default)]
pub(crate) struct Holds {
    held: Mutex<BTreeMap<u64, Held>>,
    numbers: AtomicU64,
}

struct Held {
    by: Holder,
    kept: Instant,
    hold: Arc<tokio::sync::Mutex<FlushHold>>,
}

impl Holds {
    pub(crate) fn add(&self, by: Holder, hold: FlushHold) -> u64 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let hold = Arc::new(tokio::sync::Mutex::new(hold));
        self.held.lock().insert(number, Held { by, kept: clock::monotonic(), hold });
        number
    }

    fn of(&self, by: Holder, number: u64) -> Result<Arc<tokio::sync::Mutex<FlushHold>>> {
        let mut held = self.held.lock();
        let found = held.get_mut(&number).filter(|held| held.by == by);
        let found = found.ok_or_else(given_up)?;
        found.kept = clock::monotonic();
        Ok(Arc::clone(&found.hold))
    }

    pub(crate) async fn flush(&self, by: Holder, number: u64) -> Result<()> {
        self.of(by, number)?.lock().await.flush().await
    }

    pub(crate) fn keep(&self, by: Holder, number: u64) -> Result<()> {
        self.of(by, number).map(drop)
    }

    pub(crate) fn release(&self, by: Holder, number: u64) {
        let mut held = self.held.lock();
        if held.get(&number).is_some_and(|held| held.by == by) {
            held.remove(&number);
        }
    }

    /// Gives up holds of daemons that are not alive, or have not said a word for long.
    pub(crate) fn expire(&self, living: &BTreeMap<DaemonId, Holder>) {
        let now = clock::monotonic();
        self.held.lock().retain(|_, held| {
            let is_alive = living.get(&held.by.daemon) == Some(&held.by);
            is_alive && now.duration_since(held.kept) < HOLD_LIMIT
        });
    }
}

fn given_up() -> Error {
    Error::conflict("the table is not held any more: the daemon that held it was not heard of")
        .with_hint("nothing was changed; run the statement again")
}
