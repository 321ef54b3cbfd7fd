//! Threads for work that keeps a processor busy, apart from those that serve connections.
//!
//! Executors run with a lower priority (on Linux), so that whoever only has to answer quickly, or to
//! pass bytes on, gets a processor at once however many queries compute.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

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
        let count = count.max(1);
        let runtime = Builder::new_multi_thread()
            .worker_threads(count)
            .thread_name("stoa-executor")
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
