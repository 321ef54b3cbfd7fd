//! Whether a read may be answered: asked by each, so it costs a few loads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stoa_cluster::Monotonic;
use stoa_env::{clock, timer};
use stoa_error::{Error, Result};

/// How long a read waits for a daemon that has just joined to hear of all others' rows. More than a dead daemon's
/// log needs until it is taken over.
const JOIN_WAIT: Duration = Duration::from_secs(30);

/// How long a read waits for the lease to be renewed, or for the news that it is lost for good.
const RENEWAL_WAIT: Duration = Duration::from_secs(2);

/// Time between looks while a read waits.
const LOOK_EACH: Duration = Duration::from_millis(20);

/// What holds for reads of this daemon.
#[derive(Debug)]
pub(crate) struct Exact {
    /// [`Monotonic`] begins here.
    origin: Instant,
    /// Nanoseconds since the origin until which the lease holds.
    deadline: AtomicU64,
    /// Everything has been heard of that was acknowledged before we joined.
    complete: AtomicBool,
    ended: AtomicBool,
}

/// Why a read is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    Ended,
    Joining,
    Late,
}

impl Exact {
    pub(crate) fn new() -> Self {
        Self {
            origin: clock::monotonic(),
            deadline: AtomicU64::new(0),
            complete: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// The time for the machines.
    pub(crate) fn now(&self) -> Monotonic {
        Monotonic(clock::monotonic().duration_since(self.origin))
    }

    pub(crate) fn set_deadline(&self, until: Option<Monotonic>) {
        let nanoseconds = until.map_or(0, |until| until.0.as_nanos());
        self.deadline.store(u64::try_from(nanoseconds).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    pub(crate) fn set_complete(&self) {
        self.complete.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::SeqCst)
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn doubt(&self) -> Option<Doubt> {
        if self.is_ended() {
            return Some(Doubt::Ended);
        }
        if !self.is_complete() {
            return Some(Doubt::Joining);
        }
        let now = self.now().0.as_nanos();
        (now >= u128::from(self.deadline.load(Ordering::SeqCst))).then_some(Doubt::Late)
    }

    /// Whether what was read until now is exact. Ask after the read.
    pub(crate) fn holds(&self) -> bool {
        self.doubt().is_none()
    }

    /// As [`Self::holds`], or [`Self::wait`] would not wait either.
    pub(crate) fn may_answer(&self, is_away: impl Fn() -> bool) -> bool {
        match self.doubt() {
            None => true,
            Some(Doubt::Late) => is_away(),
            Some(_) => false,
        }
    }

    /// As [`Self::may_answer`], or [`Self::wait`] need not wait in vain: the lease is late, but its database answers
    /// only since `here_for`, so it is about to be renewed.
    pub(crate) fn is_ready(&self, is_away: impl Fn() -> bool, here_for: Duration) -> bool {
        self.may_answer(is_away) || self.doubt() == Some(Doubt::Late) && here_for < RENEWAL_WAIT
    }

    /// Waits until reads are exact, but not for long. `is_away` says whether the catalog's database does not answer:
    /// then nobody can renew or die, and what is known is answered.
    ///
    /// # Errors
    /// 57P01 where this daemon was declared dead; 57P03 where the wait was in vain.
    pub(crate) async fn wait(&self, is_away: impl Fn() -> bool) -> Result<()> {
        let began = clock::monotonic();
        loop {
            let waited = clock::monotonic().duration_since(began);
            match self.doubt() {
                None => return Ok(()),
                Some(Doubt::Ended) => return Err(ended()),
                Some(Doubt::Joining) if waited >= JOIN_WAIT => return Err(joining()),
                Some(Doubt::Late) if is_away() => return Ok(()),
                Some(Doubt::Late) if waited >= RENEWAL_WAIT => return Err(late()),
                Some(_) => timer::sleep(LOOK_EACH).await,
            }
        }
    }
}

pub(crate) fn ended() -> Error {
    Error::unavailable("the cluster has gone on without this daemon")
        .with_sqlstate("57P01")
        .with_hint("connect to another daemon; this one has to be started again")
}

fn joining() -> Error {
    Error::unavailable("this daemon has not heard yet of all rows that others took in")
        .with_sqlstate("57P03")
        .with_hint("retry, or connect to another daemon")
}

fn late() -> Error {
    Error::unavailable("this daemon cannot tell whether the others still wait for it")
        .with_sqlstate("57P03")
        .with_hint("retry, or connect to another daemon")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_ready_only_while_the_database_is_away_or_has_just_come_back() {
        let exact = Exact::new();
        let long = RENEWAL_WAIT + Duration::from_secs(1);
        assert!(!exact.is_ready(|| true, Duration::ZERO), "has not heard of the others' rows");
        exact.set_complete();
        assert!(exact.is_ready(|| true, long));
        assert!(exact.is_ready(|| false, Duration::from_millis(100)));
        assert!(!exact.may_answer(|| false), "reads wait meanwhile");
        assert!(!exact.is_ready(|| false, long));
        exact.set_deadline(Some(Monotonic(Duration::MAX)));
        assert!(exact.is_ready(|| false, long));
        exact.end();
        assert!(!exact.is_ready(|| true, Duration::ZERO));
    }
}
