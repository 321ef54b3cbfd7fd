//! CPU time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// User and system time of this thread so far.
fn of_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// What `work` returns, and the CPU time of this thread that it took.
pub(super) fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = of_thread();
    let value = work();
    (value, of_thread().saturating_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_and_waiting_does_not() {
        let (sum, busy) =
            measured(|| (0..3_000_000_u64).fold(0, |a, b| std::hint::black_box(a ^ b)));
        assert!(busy > Duration::from_micros(100), "{busy:?} for {sum}");
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let wait = Duration::from_millis(20);
        let (_, idle) = measured(|| receiver.recv_timeout(wait));
        drop(sender);
        assert!(idle < wait / 2, "{idle:?}");
    }
}
