//! The bound on memory that fresh rows may hold.
//!
//! In: bytes that an append needs. Out: room for them, or an error to retry after. Rows that are
//! replayed at a start get room at once; what they have beyond the limit is owed by later ones.
//!
//! **Invariants:** room taken by appends is never above the limit; who waits longest is served
//! first; a caller that goes away while it waits takes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stoa_env::Env;
use stoa_error::{Error, ErrorKind, Result};
use tokio::sync::{Notify, Semaphore};

/// Bytes per permit of the semaphore, which counts in 32 bits.
const UNIT: usize = 1024;

/// Rounds up to what the budget counts in.
pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(UNIT)
}

pub(crate) struct Budget {
    /// Units that are free.
    free: Semaphore,
    limit_bytes: usize,
    wait_max: Duration,
    env: Env,
    account: Mutex<Account>,
    waiting: AtomicUsize,
    /// Wakes the flusher when somebody has to wait.
    pressure: Notify,
}

#[derive(Default)]
struct Account {
    used_units: usize,
    /// Units used beyond the limit.
    owed_units: usize,
}

/// Room for some bytes; given back when dropped, unless it is kept.
pub(crate) struct Room<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl Budget {
    /// Room for `limit_bytes`; appends wait for it at most `wait_max`.
    pub(crate) fn new(limit_bytes: usize, wait_max: Duration, env: Env) -> Self {
        Self {
            free: Semaphore::new(limit_bytes / UNIT),
            limit_bytes,
            wait_max,
            env,
            account: Mutex::default(),
            waiting: AtomicUsize::new(0),
            pressure: Notify::new(),
        }
    }

    /// Waits for room.
    ///
    /// # Errors
    /// `Invalid` (54000) for more than the limit, `Exhausted` (53200) where there was no room in
    /// time.
    pub(crate) async fn take(&self, bytes: usize) -> Result<Room<'_>> {
        let bytes = rounded(bytes);
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        if bytes > self.limit_bytes / UNIT * UNIT {
            return Err(self.never_fits(bytes));
        }
        if let Ok(permit) = self.free.try_acquire_many(units) {
            permit.forget();
            return Ok(self.taken(bytes));
        }
        let _waiting = Waiting::new(self);
        self.pressure.notify_one();
        match self.env.timeout(self.wait_max, self.free.acquire_many(units)).await {
            Some(Ok(permit)) => {
                permit.forget();
                Ok(self.taken(bytes))
            }
            Some(Err(_)) => Err(crate::error::closed()),
            None => Err(self.no_room_in_time()),
        }
    }

    /// Takes room without waiting, and beyond the limit if need be.
    pub(crate) fn force(&self, bytes: usize) {
        let units = rounded(bytes) / UNIT;
        let mut account = self.account.lock();
        account.used_units += units;
        account.owed_units += units - self.free.forget_permits(units);
    }

    /// Gives room back.
    pub(crate) fn give_back(&self, bytes: usize) {
        let units = rounded(bytes) / UNIT;
        let mut account = self.account.lock();
        account.used_units = account.used_units.saturating_sub(units);
        let repaid = units.min(account.owed_units);
        account.owed_units -= repaid;
        self.free.add_permits(units - repaid);
    }

    /// Fails whoever waits or comes later.
    pub(crate) fn close(&self) {
        self.free.close();
    }

    /// Bytes in use.
    pub(crate) fn used_bytes(&self) -> usize {
        self.account.lock().used_units * UNIT
    }

    /// The limit.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Appends that wait for room now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns when somebody had to wait since the last call.
    pub(crate) async fn pressed(&self) {
        self.pressure.notified().await;
    }

    fn taken(&self, bytes: usize) -> Room<'_> {
        self.account.lock().used_units += bytes / UNIT;
        Room { budget: self, bytes }
    }

    fn never_fits(&self, bytes: usize) -> Error {
        Error::invalid(format!(
            "one append of {bytes} bytes is larger than the {} that all fresh rows may hold",
            self.limit_bytes
        ))
        .with_sqlstate("54000")
        .with_hint("write fewer rows at a time, or load them in bulk")
    }

    fn no_room_in_time(&self) -> Error {
        Error::new(
            ErrorKind::Exhausted,
            format!(
                "fresh rows hold {} of {} bytes, and no room came free within {} ms",
                self.used_bytes(),
                self.limit_bytes,
                self.wait_max.as_millis()
            ),
        )
        .with_sqlstate("53200")
        .with_hint(
            "retry later: rows come in faster than they are flushed, or flushes fail (the status \
             of ingest says which)",
        )
    }
}

impl Room<'_> {
    /// Keeps the room: whoever holds the rows gives it back.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

/// Counts one waiting append for as long as it lives.
struct Waiting<'a>(&'a Budget);

impl<'a> Waiting<'a> {
    fn new(budget: &'a Budget) -> Self {
        budget.waiting.fetch_add(1, Ordering::Relaxed);
        Self(budget)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn budget(kib: usize) -> Budget {
        Budget::new(kib * UNIT, Duration::from_secs(60), Env::real())
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_given_back() {
        let budget = budget(4);
        budget.take(3 * UNIT).await.unwrap().keep();
        let mut waiting = Box::pin(budget.take(2 * UNIT));
        assert!((&mut waiting).now_or_never().is_none());
        budget.pressed().await;
        assert_eq!((budget.waiting(), budget.used_bytes()), (1, 3 * UNIT));
        budget.give_back(3 * UNIT);
        drop(waiting.await.unwrap());
        assert_eq!((budget.waiting(), budget.used_bytes()), (0, 0));
        assert_eq!(budget.take(5 * UNIT).await.err().unwrap().sqlstate(), "54000");
    }

    #[tokio::test(start_paused = true)]
    async fn no_room_in_time_is_an_error_to_retry_after() {
        let budget = budget(1);
        let _room = budget.take(1).await.unwrap();
        let error = budget.take(1).await.err().unwrap();
        assert_eq!(error.sqlstate(), "53200");
        assert!(error.kind().is_retryable() && error.hint().is_some());
        assert_eq!(budget.waiting(), 0);
    }

    #[tokio::test]
    async fn what_was_forced_beyond_the_limit_is_owed() {
        let budget = budget(2);
        budget.force(5 * UNIT);
        budget.give_back(3 * UNIT);
        assert!(budget.take(1).now_or_never().is_none());
        budget.give_back(2 * UNIT);
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.take(2 * UNIT).now_or_never().is_some());
    }
}
