//! A world whose time passes as a test says.
//!
//! In: a seed, and how far time goes. Out: what [`crate::Env`] tells whoever lives in it. Timers that are
//! due are woken in the order of their deadlines, those of one deadline in the order in which they were
//! set.
//!
//! **Invariant:** the monotonic clock never steps backwards; the wall clock does when told so.
//!
//! Not here: the order in which tasks run (the runtime's: one of a single thread keeps to an order of its
//! own), disks and networks (wrappers around those misbehave).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use tokio::task::AbortHandle;

use crate::clock;

/// Drives a world. Clones drive the same one.
#[derive(Clone, Debug)]
pub struct Simulation {
    world: Arc<World>,
}

/// What an [`crate::Env`] looks at.
#[derive(Debug)]
pub(crate) struct World {
    /// Only differences to it mean anything.
    origin: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Since the world began.
    elapsed: Duration,
    wall: SystemTime,
    random: u64,
    /// Who waits for which time since the beginning. Numbers tell timers of one time apart.
    timers: BTreeMap<(Duration, u64), Waker>,
    timers_set: u64,
    tasks: Vec<AbortHandle>,
}

impl Simulation {
    pub(crate) fn of(world: Arc<World>) -> Self {
        Self { world }
    }

    /// Lets `duration` pass, on both clocks, and wakes whoever has waited for it.
    pub fn advance(&self, duration: Duration) {
        let mut state = self.world.state();
        let until = state.elapsed.saturating_add(duration);
        state.go_to(until);
        let later = state.timers.split_off(&(until, u64::MAX));
        let due = std::mem::replace(&mut state.timers, later);
        // Whoever wakes may ask for the time at once.
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    /// How long until the first timer is due; `None` where nobody waits.
    pub fn next_timer(&self) -> Option<Duration> {
        let state = self.world.state();
        let (due, _) = state.timers.first_key_value()?.0;
        Some(due.saturating_sub(state.elapsed))
    }

    /// Sets the wall clock forwards; no time passes.
    pub fn jump_forwards(&self, by: Duration) {
        let mut state = self.world.state();
        state.wall = state.wall.checked_add(by).unwrap_or(state.wall);
    }

    /// Sets the wall clock backwards; no time passes.
    pub fn jump_backwards(&self, by: Duration) {
        let mut state = self.world.state();
        state.wall = state.wall.checked_sub(by).unwrap_or(state.wall);
    }

    /// Ends all tasks that were started in this world, each where it waits, as the death of a process
    /// does. They are gone once the runtime has come round to them.
    pub fn end_tasks(&self) {
        let tasks = std::mem::take(&mut self.world.state().tasks);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let state = State {
            elapsed: Duration::ZERO,
            // Libraries that stamp what they write with the machine's clock must not be far off.
            wall: clock::now(),
            random: seed,
            timers: BTreeMap::new(),
            timers_set: 0,
            tasks: Vec::new(),
        };
        Self { origin: clock::monotonic(), state: Mutex::new(state) }
    }

    pub(crate) fn monotonic(&self) -> Instant {
        self.origin + self.state().elapsed
    }

    pub(crate) fn wall(&self) -> SystemTime {
        self.state().wall
    }

    /// The next 64 bits of SplitMix64 (Steele, Lea, Flood 2014).
    pub(crate) fn bits(&self) -> u64 {
        let mut state = self.state();
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Takes note of a task that has begun.
    pub(crate) fn began(&self, task: AbortHandle) {
        let mut state = self.state();
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(task);
    }

    /// Done when `duration` has passed.
    pub(crate) fn alarm(world: &Arc<Self>, duration: Duration) -> Alarm {
        let mut state = world.state();
        state.timers_set += 1;
        let key = (state.elapsed.saturating_add(duration), state.timers_set);
        drop(state);
        Alarm { world: world.clone(), key }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that happens under the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn go_to(&mut self, elapsed: Duration) {
        let passed = elapsed.saturating_sub(self.elapsed);
        self.elapsed = elapsed;
        self.wall = self.wall.checked_add(passed).unwrap_or(self.wall);
    }
}

/// A timer of a world. Dropped, it wakes nobody.
pub(crate) struct Alarm {
    world: Arc<World>,
    key: (Duration, u64),
}

impl Future for Alarm {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.world.state();
        if state.elapsed >= self.key.0 {
            state.timers.remove(&self.key);
            return Poll::Ready(());
        }
        state.timers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.world.state().timers.remove(&self.key);
    }
}
