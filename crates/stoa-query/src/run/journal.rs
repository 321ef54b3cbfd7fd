//! Ended queries for whoever keeps them longer than the registry does.
//!
//! In: each query that ended. Out, to the one reader there may be: all that failed, were cancelled or took long, and at
//! most [`SAMPLED_PER_S`] of the others each second. Bounded: what a slow reader does not take is counted and dropped,
//! so that no query waits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

/// Queries that neither failed nor took long, each second.
const SAMPLED_PER_S: u64 = 10;
/// Entries that wait for the reader.
const WAITING_MAX: usize = 4096;
/// So many bits count the samples of a second.
const COUNT_BITS: u32 = 8;

/// Where ended queries are offered.
#[derive(Debug)]
pub(crate) struct Journal<T> {
    reader: OnceLock<Reader<T>>,
}

#[derive(Debug)]
struct Reader<T> {
    entries: mpsc::Sender<T>,
    slow_us: u64,
    /// The second of the last sample, and how many it had.
    sampled: AtomicU64,
}

impl<T> Default for Journal<T> {
    fn default() -> Self {
        Self { reader: OnceLock::new() }
    }
}

/// A query that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Whether it failed or was cancelled.
    pub(crate) failed: bool,
    pub(crate) elapsed_us: u64,
    pub(crate) at_unix_ms: u64,
}

impl<T> Journal<T> {
    /// The entries from now on; `None` if somebody reads them already. Queries of `slow_us` or longer are all there.
    pub(crate) fn read(&self, slow_us: u64) -> Option<mpsc::Receiver<T>> {
        let (entries, receiver) = mpsc::channel(WAITING_MAX);
        let reader = Reader { entries, slow_us, sampled: AtomicU64::new(0) };
        self.reader.set(reader).is_ok().then_some(receiver)
    }

    /// Tells the reader of a query, if there is one and it is to be told.
    pub(crate) fn offer(&self, ended: Ended, entry: impl FnOnce() -> T) {
        let Some(reader) = self.reader.get() else { return };
        if ended.failed || ended.elapsed_us >= reader.slow_us || reader.samples(ended.at_unix_ms) {
            // Who cannot keep up, or has gone, misses it.
            let _ = reader.entries.try_send(entry());
        }
    }
}

impl<T> Reader<T> {
    fn samples(&self, at_unix_ms: u64) -> bool {
        let second = at_unix_ms / 1000;
        let next = |before: u64| match before >> COUNT_BITS == second {
            true => {
                let count = before & ((1 << COUNT_BITS) - 1);
                (count < SAMPLED_PER_S).then(|| before + 1)
            }
            false => Some((second << COUNT_BITS) + 1),
        };
        self.sampled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_told_and_of_the_rest_a_few() {
        let journal = Journal::default();
        let quick = |at_unix_ms| Ended { failed: false, elapsed_us: 10, at_unix_ms };
        journal.offer(quick(1000), || panic!("nobody reads"));
        let mut entries = journal.read(1000).unwrap();
        assert!(journal.read(1000).is_none());
        for n in 0..100 {
            journal.offer(quick(5000 + n), || n);
        }
        journal.offer(quick(6000), || 200);
        journal.offer(Ended { failed: true, ..quick(6001) }, || 300);
        journal.offer(Ended { elapsed_us: 1000, ..quick(6002) }, || 301);
        let mut told = Vec::new();
        while let Ok(entry) = entries.try_recv() {
            told.push(entry);
        }
        assert_eq!(told[..SAMPLED_PER_S as usize], (0..SAMPLED_PER_S).collect::<Vec<_>>());
        assert_eq!(told[SAMPLED_PER_S as usize..], [200, 300, 301]);
    }
}
