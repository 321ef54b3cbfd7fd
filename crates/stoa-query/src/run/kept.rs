//! What clients keep from one call to the next: prepared statements, values bound to them.
//!
//! In: who keeps something, and about how many bytes that takes. Out: a receipt; with its end they are given
//! back. **Invariant:** all clients together keep at most [`SHARE`] of the memory limit beside what queries
//! take of it, and one session at most a part of that: who prepares without end stops itself, not others.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stoa_error::{Error, ErrorKind, Result};

/// One part of so many of the memory limit is for what is kept, in addition.
const SHARE: usize = 8;

/// One part of so many of that is for one session.
const SESSION_SHARE: usize = 4;

/// What may be kept where the memory limit is small, bytes.
const LEAST_BYTES: usize = 64 << 20;

/// What all sessions of an engine keep.
pub(crate) struct KeptMemory(Counter);

/// What one session keeps.
pub(crate) struct KeptBySession {
    own: Counter,
    all: Arc<KeptMemory>,
}

/// Bytes, of at most so many.
struct Counter {
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// Something that is kept, for as long as this is there.
pub struct Kept {
    of: Arc<KeptBySession>,
    bytes: usize,
}

impl KeptMemory {
    /// For an engine whose queries may take so many bytes.
    pub(crate) fn new(memory_limit_bytes: usize) -> Self {
        Self(Counter::new((memory_limit_bytes / SHARE).max(LEAST_BYTES)))
    }

    /// Bytes that are kept now.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl KeptBySession {
    pub(crate) fn new(all: &Arc<KeptMemory>) -> Arc<Self> {
        let own = Counter::new(all.0.bytes_max / SESSION_SHARE);
        Arc::new(Self { own, all: Arc::clone(all) })
    }

    /// Counts so many bytes.
    ///
    /// # Errors
    /// This session, or all together, keep too much (53200).
    pub(crate) fn keep(self: &Arc<Self>, bytes: usize) -> Result<Kept> {
        if !self.own.take(bytes) {
            return Err(too_much("this session keeps", &self.own, bytes));
        }
        if !self.all.0.take(bytes) {
            self.own.give_back(bytes);
            return Err(too_much("all clients together keep", &self.all.0, bytes));
        }
        Ok(Kept { of: Arc::clone(self), bytes })
    }
}

fn too_much(who: &str, counter: &Counter, wanted: usize) -> Error {
    let (kept, max) = (counter.bytes.load(Ordering::Relaxed), counter.bytes_max);
    let message = format!(
        "{who} {kept} bytes of prepared statements and bound values; {wanted} more would be beyond {max}"
    );
    Error::new(ErrorKind::Exhausted, message).with_sqlstate("53200").with_hint(
        "deallocate statements and close portals that are not needed, or raise memory_limit",
    )
}

impl Counter {
    const fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max }
    }

    fn take(&self, bytes: usize) -> bool {
        let more = |kept: usize| kept.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.of.own.give_back(self.bytes);
        self.of.all.0.give_back(self.bytes);
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_its_part_and_gives_it_back() {
        let all = Arc::new(KeptMemory::new(SHARE * (400 << 20)));
        let (one, other) = (KeptBySession::new(&all), KeptBySession::new(&all));
        let first = one.keep(90 << 20).unwrap();
        let refused = one.keep(20 << 20).unwrap_err();
        assert_eq!(refused.sqlstate(), "53200");
        assert!(refused.message().starts_with("this session keeps 94371840 bytes"), "{refused}");
        let second = other.keep(100 << 20).unwrap();
        assert_eq!(all.bytes(), 190 << 20);
        drop(first);
        let _third = one.keep(100 << 20).unwrap();
        drop(second);
        assert_eq!(all.bytes(), 100 << 20);
    }

    #[test]
    fn all_together_have_a_bound() {
        let all = Arc::new(KeptMemory::new(0));
        let sessions: Vec<_> = (0..5).map(|_| KeptBySession::new(&all)).collect();
        let part = LEAST_BYTES / SESSION_SHARE;
        let kept: Vec<_> = sessions.iter().take(4).map(|one| one.keep(part).unwrap()).collect();
        let refused = sessions[4].keep(1).unwrap_err();
        assert!(refused.message().starts_with("all clients together keep"), "{refused}");
        drop(kept);
        sessions[4].keep(part).unwrap();
        assert_eq!(all.bytes(), 0);
        assert!(sessions[4].keep(usize::MAX).is_err());
    }
}
