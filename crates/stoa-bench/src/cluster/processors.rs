//! Processes that have one processor each.

use std::task::Poll;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use stoa_error::{Error, Result};

/// What `start` gives; processes that it starts run on one processor of this process's, the one of this number or that
/// many beyond the last. With `None` they run on all.
///
/// # Errors
/// Those of `start`; Unavailable where the system does not let this thread choose.
pub(super) async fn started_on<T>(
    processor: Option<usize>,
    start: impl Future<Output = Result<T>>,
) -> Result<T> {
    let Some(number) = processor else { return start.await };
    let mut start = std::pin::pin!(start);
    // A process has the processors of the thread that starts it: this one may run other tasks between two polls.
    std::future::poll_fn(|context| {
        let all = match sched_getaffinity(None) {
            Ok(all) => all,
            Err(error) => return Poll::Ready(Err(unavailable(error))),
        };
        if let Err(error) = sched_setaffinity(None, &one_of(&all, number)) {
            return Poll::Ready(Err(unavailable(error)));
        }
        let outcome = start.as_mut().poll(context);
        match sched_setaffinity(None, &all) {
            Ok(()) => outcome,
            Err(error) => Poll::Ready(Err(unavailable(error))),
        }
    })
    .await
}

fn one_of(all: &CpuSet, number: usize) -> CpuSet {
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).collect();
    let mut one = CpuSet::new();
    if let Some(cpu) = usable.get(number % usable.len().max(1)) {
        one.set(*cpu);
    }
    one
}

fn unavailable(error: rustix::io::Errno) -> Error {
    Error::unavailable("a daemon cannot be given a processor of its own").with_source(error)
}
