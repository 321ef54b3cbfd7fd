//! Who may compute now.
//!
//! In: queries with the bytes that they will scan. Out: a [`Ticket`] each before it is planned, so that
//! none is planned in vain, and for it a [`Slot`], at once or in turn. The smallest goes first, but who waits gains: so large ones go, too, in the end. Reports on the short
//! path and statements that read nothing from files need no slot.
//!
//! **Invariants:** at most so many queries have a slot as there are; at most so many more are planned or
//! wait as the queue has room for, the next one is refused with an error to be retried (53300); a slot comes back when
//! its holder is dropped, in whatever way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

/// Scanning this much is worth a second of waiting.
const BYTES_PER_SECOND: u64 = 64 << 20;

/// Gives out slots. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Admission(Arc<Shared>);

/// Who goes first among those who wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// The smallest, and who waits gains.
    #[default]
    Smallest,
    /// Who came first.
    Arrival,
}

#[derive(Debug)]
struct Shared {
    slots: usize,
    queue_max: usize,
    order: Order,
    state: Mutex<State>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: Vec<Waiter>,
    /// Queries that have a ticket and do not wait yet.
    arriving: usize,
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    bytes: u64,
    since: Instant,
    go: oneshot::Sender<()>,
}

/// How busy the executors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionStatus {
    /// Queries that may compute at the same time.
    pub slots: usize,
    /// Those that do.
    pub running: usize,
    /// Those that wait.
    pub waiting: usize,
    /// Most that may wait.
    pub queue_max: usize,
    /// Queries refused since the start because too many waited.
    pub refused: u64,
}

impl AdmissionStatus {
    /// Of two pools together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            slots: self.slots + other.slots,
            running: self.running + other.running,
            waiting: self.waiting + other.waiting,
            queue_max: self.queue_max + other.queue_max,
            refused: self.refused + other.refused,
        }
    }
}

/// The right to compute, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Shared>);

/// A place for a query that is not there yet; dropped, it is given up.
#[derive(Debug)]
pub(crate) struct Ticket(Option<Arc<Shared>>);

/// A place in the queue; dropped, it is given up.
struct Place<'a> {
    shared: &'a Arc<Shared>,
    number: u64,
    go: oneshot::Receiver<()>,
}

impl Admission {
    /// `slots` at once (at least one), `queue_max` waiting.
    pub(crate) fn new(slots: usize, queue_max: usize) -> Self {
        Self::ordered(slots, queue_max, Order::default())
    }

    /// As [`Self::new`], with this order among those who wait.
    pub(crate) fn ordered(slots: usize, queue_max: usize, order: Order) -> Self {
        let (state, refused) = (Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Shared { slots: slots.max(1), queue_max, order, state, refused }))
    }

    /// A place for a query that is planned now; without one, planning it would be in vain.
    ///
    /// # Errors
    /// `Exhausted` (53300) where all places are taken.
    pub(crate) fn reserve(&self) -> Result<Ticket> {
        let mut state = self.0.state.lock();
        if self.0.is_full(&state) {
            drop(state);
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return Err(full(self.0.queue_max));
        }
        state.arriving += 1;
        Ok(Ticket(Some(Arc::clone(&self.0))))
    }

    /// Whether the next one is refused.
    pub(crate) fn is_full(&self) -> bool {
        self.0.is_full(&self.0.state.lock())
    }

    /// Waits for a slot for a query that had one and gave it back for a while.
    pub(crate) async fn enter_again(&self, bytes: u64) -> Result<Slot> {
        Arc::clone(&self.0).wait(bytes, 0).await
    }

    /// A slot if one is free; nothing waits for one.
    pub(crate) fn try_enter(&self) -> Option<Slot> {
        let mut state = self.0.state.lock();
        if state.running >= self.0.slots {
            return None;
        }
        state.running += 1;
        drop(state);
        Some(Slot(Arc::clone(&self.0)))
    }

    /// How busy the executors are.
    pub(crate) fn status(&self) -> AdmissionStatus {
        let shared = &self.0;
        let state = shared.state.lock();
        AdmissionStatus {
            slots: shared.slots,
            running: state.running,
            waiting: state.waiting.len(),
            queue_max: shared.queue_max,
            refused: shared.refused.load(Ordering::Relaxed),
        }
    }
}

impl Ticket {
    /// Waits for a slot for a query that will scan so many `bytes`. Dropped, it waits no more.
    ///
    /// # Errors
    /// None that a caller could do something about.
    pub(crate) async fn enter(mut self, bytes: u64) -> Result<Slot> {
        match self.0.take() {
            Some(shared) => shared.wait(bytes, 1).await,
            None => Err(Error::internal("a ticket was used twice")),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.state.lock().arriving -= 1;
        }
    }
}

impl Shared {
    fn is_full(&self, state: &State) -> bool {
        state.running + state.waiting.len() + state.arriving >= self.slots + self.queue_max
    }

    /// Waits for a slot, with a ticket or without.
    async fn wait(self: Arc<Self>, bytes: u64, tickets: usize) -> Result<Slot> {
        let mut place = {
            let mut state = self.state.lock();
            state.arriving -= tickets;
            if state.running < self.slots {
                state.running += 1;
                drop(state);
                return Ok(Slot(self));
            }
            let (go, wait) = oneshot::channel();
            let number = state.next;
            state.next += 1;
            state.waiting.push(Waiter { number, bytes, since: clock::monotonic(), go });
            Place { shared: &self, number, go: wait }
        };
        match (&mut place.go).await {
            Ok(()) => Ok(Slot(Arc::clone(&self))),
            Err(_) => Err(Error::internal("a place in the queue was lost")),
        }
    }

    /// Hands a slot that is free on to who is next.
    fn pass_on(self: &Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            let now = clock::monotonic();
            let rank = |waiter: &Waiter| match self.order {
                Order::Smallest => rank(waiter.bytes, now.duration_since(waiter.since)),
                Order::Arrival => waiter.number as f64,
            };
            let next = state.waiting.iter().enumerate();
            let next = next.min_by(|(_, a), (_, b)| rank(a).total_cmp(&rank(b)));
            let Some((index, _)) = next else {
                state.running -= 1;
                return;
            };
            // Who went away in this moment passes on nothing.
            if state.waiting.swap_remove(index).go.send(()).is_ok() {
                return;
            }
        }
    }
}

/// Seconds of scanning, less the square of the seconds waited: the lowest goes first.
fn rank(bytes: u64, waited: Duration) -> f64 {
    bytes as f64 / BYTES_PER_SECOND as f64 - waited.as_secs_f64().powi(2)
}

impl Slot {
    /// Whether it is one of these.
    pub(crate) fn is_of(&self, admission: &Admission) -> bool {
        Arc::ptr_eq(&self.0, &admission.0)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let waits = {
            let mut state = self.shared.state.lock();
            let before = state.waiting.len();
            state.waiting.retain(|waiter| waiter.number != self.number);
            state.waiting.len() < before
        };
        // The slot may have come just now, and nobody takes it.
        if !waits && self.go.try_recv().is_ok() {
            self.shared.pass_on();
        }
    }
}

fn full(queue_max: usize) -> Error {
    Error::new(ErrorKind::Exhausted, "the server is busy: too many queries wait already")
        .with_sqlstate("53300")
        .with_detail(format!("{queue_max} queries wait for an executor"))
        .with_hint("send the statement again in a second or two")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    async fn enter(admission: &Admission, bytes: u64) -> Result<Slot> {
        admission.reserve()?.enter(bytes).await
    }

    #[test]
    fn the_smallest_goes_first_and_ages() {
        let second = Duration::from_secs(1);
        assert!(rank(1 << 20, Duration::ZERO) < rank(1 << 30, Duration::ZERO));
        assert!(rank(1 << 30, 5 * second) < rank(1 << 20, Duration::ZERO));
    }

    #[tokio::test]
    async fn slots_go_round_and_the_queue_ends() {
        let admission = Admission::new(1, 2);
        let first = enter(&admission, 1 << 30).await.unwrap();
        let mut large = Box::pin(enter(&admission, 1 << 40));
        let mut small = Box::pin(enter(&admission, 1));
        assert!((&mut large).now_or_never().is_none());
        assert!((&mut small).now_or_never().is_none());
        let refused = enter(&admission, 1).await.unwrap_err();
        assert_eq!((refused.sqlstate(), refused.is_retryable()), ("53300", true));
        let status = admission.status();
        assert_eq!((status.running, status.waiting, status.refused), (1, 2, 1));
        drop(first);
        let small = small.await.unwrap();
        assert!((&mut large).now_or_never().is_none());
        drop(small);
        drop(large.await.unwrap());
        assert_eq!(admission.status().running, 0);
    }

    #[tokio::test]
    async fn in_order_of_arrival_the_first_goes_first() {
        let admission = Admission::ordered(1, 2, Order::Arrival);
        let first = enter(&admission, 1).await.unwrap();
        let mut large = Box::pin(enter(&admission, 1 << 40));
        let mut small = Box::pin(enter(&admission, 1));
        assert!((&mut large).now_or_never().is_none());
        assert!((&mut small).now_or_never().is_none());
        drop(first);
        let large = large.await.unwrap();
        assert!((&mut small).now_or_never().is_none());
        drop(large);
        drop(small.await.unwrap());
    }

    #[test]
    fn who_is_planned_takes_a_place() {
        let admission = Admission::new(1, 1);
        let tickets = [admission.reserve().unwrap(), admission.reserve().unwrap()];
        assert!(admission.is_full());
        assert_eq!(admission.reserve().unwrap_err().sqlstate(), "53300");
        drop(tickets);
        assert!(!admission.is_full());
        assert_eq!((admission.status().running, admission.status().waiting), (0, 0));
    }

    #[tokio::test]
    async fn who_goes_away_leaves_nothing_behind() {
        let admission = Admission::new(1, 10);
        let first = enter(&admission, 1).await.unwrap();
        let mut gone = Box::pin(enter(&admission, 1));
        let mut stays = Box::pin(enter(&admission, 1 << 40));
        assert!((&mut gone).now_or_never().is_none());
        assert!((&mut stays).now_or_never().is_none());
        // The slot is given to the first of them, who goes away without having looked.
        drop(first);
        drop(gone);
        drop(stays.await.unwrap());
        assert_eq!((admission.status().running, admission.status().waiting), (0, 0));
    }
}
