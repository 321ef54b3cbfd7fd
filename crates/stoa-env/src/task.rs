//! Starting work beside the caller's.
#![allow(clippy::disallowed_methods)]

use std::future::Future;

use tokio::task::JoinHandle;

/// Starts a task on the current runtime. Dropping the handle leaves it running.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// Starts tasks later on the runtime that is current now: for what a `drop`, which may be on any thread, leaves to be
/// done.
#[derive(Clone, Debug)]
pub struct Spawner(Option<tokio::runtime::Handle>);

impl Spawner {
    /// That of the current runtime; without one, no task is ever started.
    pub fn current() -> Self {
        Self(tokio::runtime::Handle::try_current().ok())
    }

    /// Starts a task, and leaves it running.
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Some(runtime) = &self.0 {
            runtime.spawn(future);
        }
    }
}

/// Runs `work`, which may block, on the current runtime's pool for blocking work.
pub fn spawn_blocking<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(work)
}

/// Starts a thread of its own, named `name` (15 bytes show in tools).
///
/// # Errors
/// The operating system refused the thread.
pub fn spawn_thread<F>(name: &str, work: F) -> std::io::Result<std::thread::JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Bytes of the stacks of threads that parse, plan and execute statements, and drop what became of them.
/// All of these walk over trees as deep as a statement is; `stoa-query` refuses deeper ones than fit. A
/// stack takes memory only as far as it was ever used, and ends at a page that nobody may touch. Without
/// optimisation a step takes several times as much.
pub const DEEP_STACK_BYTES: usize = if cfg!(debug_assertions) { 512 << 20 } else { 256 << 20 };

/// As [`spawn_thread`], with a stack of [`DEEP_STACK_BYTES`], for work that has a result.
///
/// # Errors
/// The operating system refused the thread.
pub fn spawn_deep_thread<F, T>(name: &str, work: F) -> std::io::Result<std::thread::JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    std::thread::Builder::new().name(name.to_owned()).stack_size(DEEP_STACK_BYTES).spawn(work)
}
