//! The world that code is given: clock, timers, randomness and tasks in one value.
//!
//! ```
//! # use std::time::Duration;
//! # use stoa_env::Env;
//! let real = Env::real();
//! assert!(real.unix_ms() > 0);
//!
//! let (env, world) = Env::simulated(42);
//! let before = env.monotonic();
//! world.advance(Duration::from_secs(3600));
//! assert_eq!(env.monotonic() - before, Duration::from_secs(3600));
//! ```
//!
//! **Invariant:** code that takes its time from an `Env` alone sees no other clock, so that a simulation
//! decides what happens when.
//!
//! Not here: how a simulated world is driven ([`Simulation`]).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::simulation::{Simulation, World};
use crate::{clock, random, task, timer};

/// How long a thread blocks at most before it looks at a simulated clock again.
const SIMULATED_PARK: Duration = Duration::from_millis(1);

/// Clock, timers, randomness and tasks. Cheap to clone; clones are the same world.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// `None` is the real world.
    world: Option<Arc<World>>,
}

impl Env {
    /// The machine's clock and randomness, the runtime's timers and tasks.
    pub fn real() -> Self {
        Self::default()
    }

    /// A world in which `seed` decides what is random, and time passes only as its [`Simulation`] says.
    pub fn simulated(seed: u64) -> (Self, Simulation) {
        let world = Arc::new(World::new(seed));
        (Self { world: Some(world.clone()) }, Simulation::of(world))
    }

    /// Wall-clock time; may step backwards.
    pub fn now(&self) -> SystemTime {
        self.world.as_ref().map_or_else(clock::now, |world| world.wall())
    }

    /// Wall-clock time in UTC.
    pub fn now_utc(&self) -> DateTime<Utc> {
        self.now().into()
    }

    /// Milliseconds since 1970-01-01 00:00:00 UTC, by the wall clock.
    pub fn unix_ms(&self) -> i64 {
        self.now_utc().timestamp_millis()
    }

    /// A clock that never steps backwards.
    pub fn monotonic(&self) -> Instant {
        self.world.as_ref().map_or_else(clock::monotonic, |world| world.monotonic())
    }

    /// Done after `duration`. In the real world it needs a runtime.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        let alarm = self.world.as_ref().map(|world| World::alarm(world, duration));
        let real = self.world.is_none().then(|| timer::sleep(duration));
        async move {
            if let Some(alarm) = alarm {
                alarm.await;
            }
            if let Some(real) = real {
                real.await;
            }
        }
    }

    /// What `work` gives; `None` where it is not done within `limit`. It is dropped then.
    pub async fn timeout<F: Future>(&self, limit: Duration, work: F) -> Option<F::Output> {
        let (mut work, mut late) = (pin!(work), pin!(self.sleep(limit)));
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => late.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    /// How long a thread that waits for `until` may block before it looks at the clock again; zero once
    /// it is there.
    pub fn park_time(&self, until: Instant) -> Duration {
        let left = until.saturating_duration_since(self.monotonic());
        match self.world {
            None => left,
            Some(_) => left.min(SIMULATED_PARK),
        }
    }

    /// 64 random bits.
    pub fn random_u64(&self) -> u64 {
        self.world.as_ref().map_or_else(random::u64, |world| world.bits())
    }

    /// A random (version 4) UUID.
    pub fn uuid(&self) -> Uuid {
        match &self.world {
            None => random::uuid(),
            Some(world) => {
                let bits = (u128::from(world.bits()) << 64) | u128::from(world.bits());
                uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
            }
        }
    }

    /// Starts a task on the current runtime. Dropping the handle leaves it running; a simulation can
    /// end it ([`Simulation::end_tasks`]).
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = task::spawn(future);
        if let Some(world) = &self.world {
            world.began(handle.abort_handle());
        }
        handle
    }

    /// Runs `work`, which may block, on the current runtime's pool for blocking work; in a simulation as
    /// a task like any other, so that no thread runs beside it.
    pub fn spawn_blocking<F, T>(&self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.world {
            None => task::spawn_blocking(work),
            Some(_) => self.spawn(async move { work() }),
        }
    }
}

#[cfg(test)]
mod tests;
