//! Work that may be asked to stop, and work that was asked and goes on all the same.
//!
//! A [`Stop`] belongs to one piece of work on other threads. Who waits for the work holds a [`Waiting`];
//! once that is gone, whatever the reason, the work is asked to stop, and every part of it sees so at
//! its next look. All parts hold on to the same [`Stop`], so that it is known of work that nobody waits
//! for whether a part of it is still there. **Invariant:** to ask and to look takes no lock.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind};

/// Whether a piece of work is to stop.
#[derive(Debug, Default)]
pub(crate) struct Stop(OnceLock<Instant>);

impl Stop {
    /// Whether nobody waits for the work any more.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.get().is_some()
    }

    fn ask(&self) {
        let _ = self.0.set(clock::monotonic());
    }
}

/// Held by who waits for the work; dropped, it asks it to stop.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Stop>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.ask();
    }
}

/// All work that there is.
#[derive(Debug, Default)]
pub(crate) struct Stops(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    all: Vec<Weak<Stop>>,
    /// The length at which those that are gone are left out.
    sweep_at: usize,
}

/// Shorter lists are not looked through for what is gone.
const SWEEP_MIN: usize = 64;

impl Stops {
    /// A piece of work that begins, and who waits for it.
    pub(crate) fn begin(&self) -> (Arc<Stop>, Waiting) {
        let stop = Arc::new(Stop::default());
        let mut list = self.0.lock();
        if list.all.len() >= list.sweep_at.max(SWEEP_MIN) {
            list.all.retain(|stop| stop.strong_count() > 0);
            list.sweep_at = 2 * list.all.len();
        }
        list.all.push(Arc::downgrade(&stop));
        drop(list);
        let waiting = Waiting(Arc::clone(&stop));
        (stop, waiting)
    }

    /// Pieces of work that were asked to stop longer than `patience` ago and are still there.
    pub(crate) fn overdue(&self, patience: Duration) -> usize {
        let now = clock::monotonic();
        let is_overdue = |stop: &Weak<Stop>| {
            let asked = stop.upgrade().and_then(|stop| stop.0.get().copied());
            asked.is_some_and(|asked| now.duration_since(asked) > patience)
        };
        self.0.lock().all.iter().filter(|stop| is_overdue(stop)).count()
    }
}

/// What work returns that was asked to stop; mostly nobody reads it.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorKind::Cancelled, "canceling statement due to user request")
        .with_sqlstate("57014")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_overdue_from_the_question_to_its_end() {
        let stops = Stops::default();
        let (work, waiting) = stops.begin();
        assert!(!work.is_asked());
        assert_eq!(stops.overdue(Duration::ZERO), 0);
        let part = Arc::clone(&work);
        drop((waiting, work));
        assert!(part.is_asked());
        assert_eq!(stops.overdue(Duration::from_secs(3600)), 0);
        while stops.overdue(Duration::ZERO) == 0 {
            std::hint::spin_loop();
        }
        drop(part);
        assert_eq!(stops.overdue(Duration::ZERO), 0);
    }

    #[test]
    fn the_list_does_not_grow_with_what_is_gone() {
        let stops = Stops::default();
        let keep = |n: i32| {
            let begun = stops.begin();
            (n % 100 == 0).then_some(begun)
        };
        let kept: Vec<_> = (0..10_000).filter_map(keep).collect();
        assert_eq!(kept.len(), 100);
        assert!(stops.0.lock().all.len() <= 2 * kept.len() + SWEEP_MIN);
    }
}
