//! How many requests of one connection run at once, and how many bytes they have.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) struct Slots {
    requests_max: usize,
    bytes_max: usize,
    taken: Mutex<Taken>,
    changed: Notify,
}

#[derive(Default)]
struct Taken {
    requests: usize,
    bytes: usize,
    /// Somebody waits for a change.
    awaited: bool,
}

/// The place of one request, given back when dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    bytes: usize,
}

impl Slots {
    pub(crate) fn new(requests_max: usize, bytes_max: usize) -> Arc<Self> {
        let requests_max = requests_max.max(1);
        Arc::new(Self { requests_max, bytes_max, taken: Mutex::default(), changed: Notify::new() })
    }

    /// A place for a request of `bytes`, if there is one now. A request that is larger than all may be has one
    /// if no other runs.
    pub(crate) fn take_now(self: &Arc<Self>, bytes: usize) -> Option<Slot> {
        let mut taken = self.taken.lock();
        let fits = taken.requests == 0
            || taken.requests < self.requests_max
                && taken.bytes.saturating_add(bytes) <= self.bytes_max;
        if !fits {
            taken.awaited = true;
            return None;
        }
        taken.requests += 1;
        taken.bytes += bytes;
        Some(Slot { slots: Arc::clone(self), bytes })
    }

    /// Waits for a place.
    pub(crate) async fn take(self: &Arc<Self>, bytes: usize) -> Slot {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.take_now(bytes) {
                Some(slot) => return slot,
                None => changed.await,
            }
        }
    }

    /// Waits until no request runs.
    pub(crate) async fn idle(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.is_idle() {
                return;
            }
            changed.await;
        }
    }

    fn is_idle(&self) -> bool {
        let mut taken = self.taken.lock();
        taken.awaited |= taken.requests > 0;
        taken.requests == 0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock();
        taken.requests -= 1;
        taken.bytes -= self.bytes;
        let awaited = std::mem::take(&mut taken.awaited);
        drop(taken);
        if awaited {
            self.slots.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_bytes_are_bounded() {
        let slots = Slots::new(2, 100);
        let large = slots.take_now(1000).unwrap();
        assert!(slots.take_now(1).is_none(), "the large one runs alone");
        drop(large);
        let one = slots.take_now(60).unwrap();
        assert!(slots.take_now(41).is_none());
        let two = slots.take_now(40).unwrap();
        drop(one);
        let three = slots.take_now(0).unwrap();
        assert!(slots.take_now(0).is_none());
        drop((two, three));
        assert!(slots.is_idle());
    }

    #[tokio::test]
    async fn whoever_waits_goes_on() {
        let slots = Slots::new(1, 100);
        let one = slots.take(1).await;
        let (next, ()) = tokio::join!(slots.take(1), async { drop(one) });
        tokio::join!(slots.idle(), async { drop(next) });
    }
}
