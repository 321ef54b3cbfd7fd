//! Looks after what runs: ends what its pool does not allow, and tells of threads that do not answer.
//!
//! A thread of its own, so that it works when all others are busy. Once in [`EVERY`] it asks every
//! pool whether its statements may go on, and, of a server, sends a task to the executors, to the threads
//! that plan, and to those that serve connections. A task that has not run after [`STALL_AFTER`] shows that something keeps these
//! threads busy without giving way; that is counted and logged once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use stoa_env::{clock, task};
use tokio::runtime::Handle;

use crate::engine::Engine;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(100);

/// Threads that do not run a task for so long are stalled.
const STALL_AFTER: Duration = Duration::from_secs(1);

/// How quickly threads take up tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallStatus {
    /// How long a task has been waiting now, microseconds; 0 where none does.
    pub waiting_us: u64,
    /// Times since the start that no thread took up a task for a second.
    pub stalls: u64,
    /// The longest that a task waited since the start, microseconds.
    pub wait_max_us: u64,
}

/// How quickly the threads of one runtime take up tasks.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    stalls: AtomicU64,
    wait_max_us: AtomicU64,
    waiting_us: AtomicU64,
    waits: Arc<AtomicBool>,
}

/// Of the three runtimes.
#[derive(Debug, Default)]
pub(crate) struct Pulses {
    /// Threads that serve connections.
    pub(crate) io: Pulse,
    pub(crate) executors: Pulse,
    pub(crate) planners: Pulse,
}

impl Pulse {
    pub(crate) fn status(&self) -> StallStatus {
        StallStatus {
            waiting_us: self.waiting_us.load(Ordering::Relaxed),
            stalls: self.stalls.load(Ordering::Relaxed),
            wait_max_us: self.wait_max_us.load(Ordering::Relaxed),
        }
    }

    fn note(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.wait_max_us.fetch_max(micros, Ordering::Relaxed);
        self.waiting_us.store(micros, Ordering::Relaxed);
    }
}

/// A task that was sent and has perhaps not run yet.
struct Sent {
    name: &'static str,
    at: Instant,
    is_told: bool,
}

/// Starts the thread; it ends soon after the engine.
///
/// # Errors
/// The operating system refused it.
pub(crate) fn start(engine: &Arc<Engine>) -> std::io::Result<()> {
    let (engine, io) = (Arc::downgrade(engine), Handle::try_current().ok());
    task::spawn_thread("stoa-watch", move || watch(&engine, io.as_ref())).map(drop)
}

fn watch(engine: &Weak<Engine>, io: Option<&Handle>) {
    let mut sent = ["io", "executor", "planner"].map(|name| Sent {
        name,
        at: clock::monotonic(),
        is_told: true,
    });
    loop {
        std::thread::sleep(EVERY);
        let Some(engine) = engine.upgrade() else { return };
        engine.queries().end_what_is_not_allowed(engine.handles.runner.pools());
        if !engine.options().watch_threads {
            continue;
        }
        let [io_sent, executor_sent, planner_sent] = &mut sent;
        if let Some(io) = io {
            beat(&engine.pulses.io, io_sent, |task| drop(io.spawn(task)));
        }
        beat(&engine.pulses.executors, executor_sent, |task| {
            drop(engine.executors().spawn(task));
        });
        beat(&engine.pulses.planners, planner_sent, |task| {
            drop(engine.handles.runner.planners().threads().spawn(task));
        });
    }
}

/// Sends the next task if the last one has run; else looks how long it waits.
fn beat(pulse: &Pulse, sent: &mut Sent, spawn: impl FnOnce(Answer)) {
    let now = clock::monotonic();
    if !pulse.waits.swap(true, Ordering::AcqRel) {
        pulse.waiting_us.store(0, Ordering::Relaxed);
        (sent.at, sent.is_told) = (now, false);
        spawn(Box::pin(answer(Arc::clone(&pulse.waits))));
        return;
    }
    let waited = now.duration_since(sent.at);
    pulse.note(waited);
    if waited > STALL_AFTER && !sent.is_told {
        sent.is_told = true;
        pulse.stalls.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(threads = sent.name, "no thread has taken up a task for a second");
    }
}

type Answer = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

async fn answer(waits: Arc<AtomicBool>) {
    waits.store(false, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_does_not_run_is_a_stall_and_counts_once() {
        let pulse = Pulse::default();
        let mut sent = Sent { name: "test", at: clock::monotonic(), is_told: true };
        let mut held = None;
        beat(&pulse, &mut sent, |task| held = Some(task));
        assert_eq!(pulse.status().stalls, 0);
        sent.at -= 2 * STALL_AFTER;
        beat(&pulse, &mut sent, |_| panic!("one task at a time"));
        beat(&pulse, &mut sent, |_| panic!("one task at a time"));
        assert_eq!(pulse.status().stalls, 1);
        assert!(pulse.status().waiting_us >= 2_000_000);
        assert!(pulse.status().wait_max_us >= 2_000_000);
        futures::executor::block_on(held.take().unwrap());
        beat(&pulse, &mut sent, |task| held = Some(task));
        assert!(held.is_some() && pulse.status().stalls == 1);
        assert_eq!(pulse.status().waiting_us, 0);
    }
}
