//! Threads for work that keeps a processor busy, apart from those that serve connections.
//!
//! Executors run with a lower priority (on Linux), so that whoever only has to answer quickly, or to
//! pass bytes on, gets a processor at once however many queries compute. Their stacks are as large as
//! statements may be deep ([`DEEP_STACK_BYTES`]).

use std::future::Future;
use std::sync::{Arc, OnceLock};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinHandle;

use crate::task::DEEP_STACK_BYTES;

/// Steps by which executors give way; 5 leaves them a third of a processor that others want, too.
const NICENESS: i32 = 5;

/// A runtime of its own. Cheap to clone; its threads end with the last clone.
#[derive(Clone, Debug)]
pub struct Executors(Arc<Threads>);

#[derive(Debug)]
struct Threads {
    runtime: Option<Runtime>,
    count: usize,
}

impl Executors {
    /// Starts `count` threads (at least one).
    ///
    /// # Errors
    /// The operating system refused them.
    pub fn start(count: usize) -> std::io::Result<Self> {
        Self::named("stoa-executor", count)
    }

    /// Starts `count` threads (at least one) of this name.
    ///
    /// # Errors
    /// The operating system refused them.
    pub fn named(name: &str, count: usize) -> std::io::Result<Self> {
        let count = count.max(1);
        let runtime = Builder::new_multi_thread()
            .worker_threads(count)
            .thread_name(name)
            .thread_stack_size(DEEP_STACK_BYTES)
            .on_thread_start(give_way)
            .enable_all()
            .build()?;
        Ok(Self(Arc::new(Threads { runtime: Some(runtime), count })))
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.0.count
    }

    /// Starts a task on them. Dropping the handle leaves it running.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.0.runtime {
            Some(runtime) => runtime.spawn(future),
            // Never so while a clone is there.
            None => crate::task::spawn(future),
        }
    }
}

/// A thread of lower priority for work that nobody waits for, such as merging files. All servers of the process share it. It
/// never ends, because connections that are opened on it may be used elsewhere.
///
/// # Errors
/// The operating system refused it.
pub fn background() -> std::io::Result<&'static Executors> {
    static BACKGROUND: OnceLock<Executors> = OnceLock::new();
    if let Some(executors) = BACKGROUND.get() {
        return Ok(executors);
    }
    let started = Executors::named("stoa-background", 1)?;
    Ok(BACKGROUND.get_or_init(|| started))
}

/// Runs `work`, which may take long, while another thread takes over what else this one had to do. Only
/// for work that is begun rarely: a thread is woken for it. Where there is nobody to take over, it just
/// runs.
pub fn hand_over<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(work)
        }
        _ => work(),
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Waiting for threads is not allowed on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(target_os = "linux")]
fn give_way() {
    // Priorities are those of threads here. Without the right to change it, it stays.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// As deep as the argument says, with something on each step's stack.
    fn descend(depth: usize) -> usize {
        let step = std::hint::black_box([depth; 64]);
        match depth {
            0 => 0,
            _ => 1 + descend(depth - 1).min(step[0]),
        }
    }

    #[tokio::test]
    async fn executors_have_deep_stacks() {
        let executors = Executors::start(1).unwrap();
        // 50 MB at least; a thread has 2 otherwise.
        let depth = executors.spawn(async { descend(100_000) }).await.unwrap();
        assert_eq!(depth, 100_000);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_background_gives_way() {
        let name_and_niceness = || {
            let name = std::thread::current().name().map(str::to_owned);
            (name, rustix::process::getpriority_process(Some(rustix::thread::gettid())).ok())
        };
        let (_, own) = name_and_niceness();
        let background = background().unwrap();
        let (name, niceness) = background.spawn(async move { name_and_niceness() }).await.unwrap();
        assert_eq!(name.as_deref(), Some("stoa-background"));
        assert_eq!(niceness, own.map(|own| (own + NICENESS).min(19)));
        assert_eq!(background.count(), 1);
    }

    #[tokio::test]
    async fn who_hands_over_keeps_nobody_waiting() {
        let executors = Executors::start(1).unwrap();
        let (go, wait) = mpsc::channel();
        // The only thread waits for what only another thread can do.
        let waiting = executors.spawn(async move { hand_over(|| wait.recv().is_ok()) });
        executors.spawn(async move { go.send(()) }).await.unwrap().unwrap();
        assert!(waiting.await.unwrap());
        assert_eq!(hand_over(|| 1), 1);
    }
}
