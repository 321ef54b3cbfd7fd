//! Flushing in the background: which table, and when.
//!
//! A table is due when its rows, bytes or age reach a limit. When memory gets short (three quarters
//! used, or somebody waits for room), all tables are due, the largest first. A flush that failed is
//! tried again after a wait that doubles. A table that a statement holds is left alone.
//!
//! **Invariant:** at most [`crate::IngestOptions::flushes_max`] flushes run, one per table.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::OwnedMutexGuard;

use crate::fresh::Totals;
use crate::inner::Inner;
use crate::options::FlushLimits;
use crate::tables::TableState;

/// The longest sleep without a look at the tables.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Runs until `inner.stop` is set.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut running = FuturesUnordered::new();
    let mut stop = inner.stop.subscribe();
    while !*stop.borrow_and_update() {
        let due = due(&inner);
        let free = inner.options.flushes_max.max(1).saturating_sub(running.len());
        for flush in due.now.into_iter().filter_map(Flush::of).take(free) {
            running.push(inner.env().spawn(flush.run(inner.clone())));
        }
        tokio::select! {
            Some(_) = running.next() => {}
            () = inner.wake.notified() => {}
            () = inner.budget.pressed() => {}
            () = inner.env().sleep(due.look_after) => {}
            _ = stop.changed() => {}
        }
    }
    // What runs is left to finish: half a flush would be work for nothing.
    while running.next().await.is_some() {}
}

/// A table that shall be flushed, and that nobody else holds.
struct Flush {
    state: Arc<TableState>,
    holding: OwnedMutexGuard<()>,
}

impl Flush {
    fn of(state: Arc<TableState>) -> Option<Self> {
        let holding = state.flushing.clone().try_lock_owned().ok()?;
        Some(Self { state, holding })
    }

    async fn run(self, inner: Arc<Inner>) {
        // An error is noted in the table's state, and logged.
        let _ = inner.flush(&self.state).await;
        drop(self.holding);
    }
}

struct Due {
    /// Whose rows have waited longest first; then the largest, if memory is short.
    now: Vec<Arc<TableState>>,
    /// When the next table is due by age, or may be tried again.
    look_after: Duration,
}

fn due(inner: &Inner) -> Due {
    let now = inner.env().monotonic();
    let mut look_after = LOOK_MAX;
    let (mut due, mut others) = (Vec::new(), Vec::new());
    for state in inner.tables.all() {
        let totals = state.fresh.totals();
        let retry_after = state.not_before().and_then(|at| at.checked_duration_since(now));
        let wait = retry_after.unwrap_or_else(|| until_due(&totals, &state.limits(), now));
        match wait {
            _ if totals.rows == 0 => continue,
            Duration::ZERO => due.push((state, totals)),
            wait if retry_after.is_some() => look_after = look_after.min(wait),
            wait => {
                look_after = look_after.min(wait);
                others.push((state, totals));
            }
        }
    }
    due.sort_by_key(|(_, totals)| totals.oldest);
    if is_short_of_memory(inner) {
        others.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.bytes));
        due.extend(others);
    }
    Due { now: due.into_iter().map(|(state, _)| state).collect(), look_after }
}

/// How long a table may wait for its flush; zero for one that is due.
fn until_due(totals: &Totals, limits: &FlushLimits, now: Instant) -> Duration {
    if totals.bytes >= limits.bytes || totals.rows >= limits.rows {
        return Duration::ZERO;
    }
    let age = totals.oldest.map_or(Duration::ZERO, |oldest| now.duration_since(oldest));
    limits.age.saturating_sub(age)
}

fn is_short_of_memory(inner: &Inner) -> bool {
    let budget = &inner.budget;
    budget.waiting() > 0 || budget.used_bytes() > budget.limit_bytes() / 4 * 3
}
