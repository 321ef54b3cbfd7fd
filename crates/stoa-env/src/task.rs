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
