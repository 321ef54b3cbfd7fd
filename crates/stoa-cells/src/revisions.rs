//! Which of two writes is the later one.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use stoa_hql::TimestampSource;

/// Hands out revisions for cells whose timestamps were given by hand.
///
/// They are nanoseconds since 1970-01-01 UTC, as timestamps are, but do not use any up: each is higher
/// than all revisions and all timestamps before it.
#[derive(Debug, Default)]
pub(crate) struct Revisions {
    last: AtomicI64,
}

impl Revisions {
    /// The next one.
    pub(crate) fn next(&self, timestamps: &TimestampSource) -> i64 {
        let floor = timestamps.now_ns().max(timestamps.last().saturating_add(1));
        let next = |last: i64| last.saturating_add(1).max(floor);
        match self.last.fetch_update(Relaxed, Relaxed, |last| Some(next(last))) {
            Ok(last) | Err(last) => next(last),
        }
    }

    /// The newest one that was handed out.
    pub(crate) fn last(&self) -> i64 {
        self.last.load(Relaxed)
    }

    /// Makes all later ones higher than `revision`.
    pub(crate) fn continue_after(&self, revision: i64) {
        self.last.fetch_max(revision, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_higher_than_whatever_came_before() {
        let timestamps = TimestampSource::manual(100);
        let revisions = Revisions::default();
        assert_eq!(revisions.next(&timestamps), 100);
        assert_eq!(timestamps.reserve(5), 100);
        assert_eq!((revisions.next(&timestamps), revisions.next(&timestamps)), (105, 106));
        revisions.continue_after(1000);
        assert_eq!(revisions.next(&timestamps), 1001);
        assert_eq!(timestamps.reserve(1), 105);
    }
}
