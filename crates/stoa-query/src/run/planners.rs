//! Threads that parse and plan, so that those that serve connections do not.
//!
//! In: futures that compute. Out: their results, for whoever still waits. A statement that takes long to
//! plan keeps one of these threads busy and nobody else: who waits for it is free to go at any time, and
//! the work is dropped as soon as it returns to its thread. What the work asks of the network or of
//! timers is served by the threads of its caller.
//!
//! **Invariant:** at most [`PLACES`] pieces of work are there at the same time; the next is refused
//! with an error to be retried (53300).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use stoa_env::executors::Executors;
use stoa_error::{Error, ErrorKind, Result};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::run::stop::Stops;

/// Statements that may be parsed or planned, or wait for it, at the same time.
const PLACES: usize = 4096;

/// Threads for each executor: one that plans for long leaves room for others.
const THREADS_PER_EXECUTOR: usize = 2;
const THREADS_MIN: usize = 4;

/// The threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Planners {
    threads: Executors,
    places: Arc<Semaphore>,
    stops: Arc<Stops>,
}

impl Planners {
    /// Starts threads beside so many executors.
    ///
    /// # Errors
    /// The operating system refused them.
    pub(crate) fn start(executors: usize, stops: Arc<Stops>) -> std::io::Result<Self> {
        let count = (THREADS_PER_EXECUTOR * executors).max(THREADS_MIN);
        let threads = Executors::named("stoa-planner", count)?;
        Ok(Self { threads, places: Arc::new(Semaphore::new(PLACES)), stops })
    }

    /// The threads, for those who look whether they answer.
    pub(crate) fn threads(&self) -> &Executors {
        &self.threads
    }

    /// Waits for what `work` comes to. Dropped, it does not wait any more.
    ///
    /// # Errors
    /// Too much is planned already (53300); the work panicked.
    pub(crate) async fn run<F>(&self, work: F) -> Result<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let place = self.place()?;
        let (stop, waiting) = self.stops.begin();
        let (mut done, wait) = oneshot::channel();
        self.spawn(async move {
            let _held = (place, stop);
            let result = tokio::select! {
                biased;
                () = done.closed() => return,
                result = work => result,
            };
            drop(done.send(result));
        });
        let result = wait.await;
        drop(waiting);
        result.map_err(|gone| Error::internal("planning failed").with_source(gone))
    }

    /// Starts work that sees by itself when nobody waits for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let caller = Handle::try_current().ok();
        drop(self.threads.spawn(OnBehalf { caller, work: Box::pin(work) }));
    }

    fn place(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            Error::new(ErrorKind::Exhausted, "the server is busy: too many statements are planned")
                .with_sqlstate("53300")
                .with_hint("send the statement again in a second or two")
        })
    }
}

/// Work in whose tasks, sockets and timers the caller's runtime has a part, not that of the planners.
struct OnBehalf<F> {
    caller: Option<Handle>,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for OnBehalf<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _entered = this.caller.as_ref().map(Handle::enter);
        this.work.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    fn planners() -> (Planners, Arc<Stops>) {
        let stops = Arc::new(Stops::default());
        (Planners::start(1, Arc::clone(&stops)).unwrap(), stops)
    }

    #[tokio::test]
    async fn work_runs_elsewhere_with_the_callers_timers() {
        let (planners, stops) = planners();
        let here = std::thread::current().id();
        let there = planners.run(async {
            stoa_env::timer::timeout(Duration::ZERO, std::future::pending::<()>())
                .await
                .unwrap_err();
            std::thread::current().id()
        });
        assert_ne!(there.await.unwrap(), here);
        let nothing = std::hint::black_box(None::<u8>);
        let panicked = planners.run(async move { nothing.expect("as a bug would") }).await;
        assert_eq!(panicked.unwrap_err().sqlstate(), "XX000");
        while stops.overdue(Duration::ZERO) > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_goes_away_does_not_wait_for_a_thread_that_is_busy() {
        let (planners, stops) = planners();
        let release = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicBool::new(false));
        let (held, begins) = (Arc::clone(&release), Arc::clone(&begun));
        let mut busy = Box::pin(planners.run(async move {
            begins.store(true, Ordering::Relaxed);
            while !held.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }));
        assert!((&mut busy).now_or_never().is_none());
        // What has not begun is not done for somebody who is gone.
        while !begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        drop(busy);
        assert_eq!(planners.run(async { 7 }).await.unwrap(), 7);
        while stops.overdue(Duration::ZERO) == 0 {
            tokio::task::yield_now().await;
        }
        release.store(true, Ordering::Relaxed);
        while stops.overdue(Duration::ZERO) > 0 {
            tokio::task::yield_now().await;
        }
    }
}
