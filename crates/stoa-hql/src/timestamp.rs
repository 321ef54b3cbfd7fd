//! Timestamps that no two cells share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;

/// Hands out nanoseconds since 1970-01-01 UTC, each once, always growing.
///
/// One source serves all writers of a process. It follows the clock, and runs ahead of it where
/// more timestamps are asked for than nanoseconds pass or the clock steps back.
#[derive(Debug)]
pub struct TimestampSource {
    last: AtomicI64,
    clock: Clock,
    /// How many writes are under way, by what their timestamps are later than.
    under_way: Mutex<BTreeMap<i64, usize>>,
}

/// A write that has begun, until dropped: see [`TimestampSource::begin`].
#[derive(Debug)]
pub struct WriteUnderWay<'a> {
    source: &'a TimestampSource,
    after: i64,
}

#[derive(Debug)]
enum Clock {
    System,
    /// Set by hand, for tests.
    Manual(AtomicI64),
}

impl TimestampSource {
    /// Follows the machine's clock.
    pub fn system() -> Self {
        Self::with(Clock::System)
    }

    /// Starts at `start_ns` and moves only with [`advance`](Self::advance): for tests.
    pub fn manual(start_ns: i64) -> Self {
        Self::with(Clock::Manual(AtomicI64::new(start_ns)))
    }

    fn with(clock: Clock) -> Self {
        Self { last: AtomicI64::new(0), clock, under_way: Mutex::default() }
    }

    /// What time it is, in nanoseconds since 1970-01-01 UTC.
    pub fn now_ns(&self) -> i64 {
        match &self.clock {
            Clock::Manual(now) => now.load(Relaxed),
            Clock::System => {
                let since = stoa_env::clock::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
            }
        }
    }

    /// Moves a manual clock on; a source that follows the machine's clock stays as it is.
    pub fn advance(&self, ns: i64) {
        if let Clock::Manual(now) = &self.clock {
            now.fetch_add(ns, Relaxed);
        }
    }

    /// Lets so much time pass: waits, or moves a manual clock on.
    pub async fn pause(&self, time: std::time::Duration) {
        match self.clock {
            Clock::System => stoa_env::timer::sleep(time).await,
            Clock::Manual(_) => self.advance(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)),
        }
    }

    /// The first of `count` timestamps in a row that belong to the caller alone.
    pub fn reserve(&self, count: u32) -> i64 {
        let now = self.now_ns();
        let take = |last: i64| {
            let first = last.saturating_add(1).max(now);
            Some(first.saturating_add(i64::from(count) - 1))
        };
        let first_after = |last: i64| last.saturating_add(1).max(now);
        match self.last.fetch_update(Relaxed, Relaxed, take) {
            Ok(last) | Err(last) => first_after(last),
        }
    }

    /// A write begins, whose timestamps are handed out from now on. Hold what this returns until the cells are in the
    /// log or in a file, or nothing will come of them.
    pub fn begin(&self) -> WriteUnderWay<'_> {
        let mut under_way = self.under_way.lock();
        let after = self.pass();
        *under_way.entry(after).or_default() += 1;
        WriteUnderWay { source: self, after }
    }

    /// A time before all writes that are under way, and before all that begin from now on: their timestamps, and
    /// revisions, are later. Whatever was written until then is in the log or in files.
    pub fn settled(&self) -> i64 {
        self.settled_with(|| i64::MIN)
    }

    /// As [`Self::settled`], where `newest` knows of times that were given to writes and are not of this source.
    pub fn settled_with(&self, newest: impl FnOnce() -> i64) -> i64 {
        let under_way = self.under_way.lock();
        match under_way.first_key_value() {
            Some((after, _)) => *after,
            None => {
                self.continue_after(newest());
                self.pass()
            }
        }
    }

    /// Makes all later timestamps greater than what time it is, and than this, which it gives back.
    fn pass(&self) -> i64 {
        let now = self.now_ns().saturating_sub(1);
        self.last.fetch_max(now, Relaxed).max(now)
    }

    /// The newest timestamp that was handed out, or that it continues after.
    pub fn last(&self) -> i64 {
        self.last.load(Relaxed)
    }

    /// Makes all later timestamps greater than `timestamp`: for a store that finds newer cells than
    /// its clock knows when it opens.
    pub fn continue_after(&self, timestamp: i64) {
        self.last.fetch_max(timestamp, Relaxed);
    }
}

impl Drop for WriteUnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = self.source.under_way.lock();
        if let Some(count) = under_way.get_mut(&self.after) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.after);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_timestamp_comes_twice() {
        let source = TimestampSource::system();
        let mine = |_| (0..1000).map(|_| source.reserve(3)).collect::<Vec<_>>();
        let all: Vec<i64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || mine(i))).collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        let firsts: BTreeSet<i64> = all.iter().copied().collect();
        assert_eq!(firsts.len(), 4000);
        assert!(firsts.iter().zip(firsts.iter().skip(1)).all(|(a, b)| b - a >= 3));
    }

    #[test]
    fn it_grows_when_the_clock_stands_still() {
        let source = TimestampSource::manual(100);
        assert_eq!((source.reserve(2), source.reserve(1)), (100, 102));
        source.advance(50);
        assert_eq!(source.reserve(1), 150);
        source.continue_after(1000);
        assert_eq!(source.reserve(1), 1001);
    }

    #[test]
    fn what_is_settled_is_before_all_writes_that_are_under_way() {
        let source = TimestampSource::manual(100);
        let first = source.begin();
        let (one, two) = (source.reserve(1), source.begin());
        assert_eq!(one, 100, "beginning uses no timestamp up");
        assert!(source.settled() < one);
        source.advance(50);
        let later = source.begin();
        drop((later, first));
        let other = source.reserve(1);
        assert!((one..other).contains(&source.settled()), "the second is under way");
        drop(two);
        let settled = source.settled();
        assert!(settled >= other && source.settled() == settled);
        assert!(source.reserve(1) > settled);
    }
}
