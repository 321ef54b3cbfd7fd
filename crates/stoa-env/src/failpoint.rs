//! Named points where a test makes code fail, die or wait.
//!
//! Code says `failpoint::at("commit.swapped").await?` where a crash would be interesting. Nothing
//! happens there, at the price of one relaxed atomic load, unless a test armed the point: for a
//! whole process ([`arm_process`], which the binary calls with what `STOA_FAILPOINTS` holds), or
//! for one future among many ([`Failpoints::scope`]), so that tests run beside each other.
//!
//! Names are `<subsystem>.<what has just happened>`. Not here: faults of files and stores, which
//! wrappers around those inject.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What happens at an armed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The code goes on with an error.
    Error,
    /// The process ends at once, as if it were killed.
    Abort,
    /// The code waits until [`Failpoints::release`].
    Pause,
}

/// The error of a point armed with [`Action::Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected {
    /// The point's name.
    pub point: String,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fail point {} was armed", self.point)
    }
}

impl std::error::Error for Injected {}

/// A set of armed points. Cheap to clone; clones share the points.
#[derive(Clone, Debug, Default)]
pub struct Failpoints {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    points: Mutex<HashMap<String, Point>>,
    /// Both wake whoever waits when a point is hit or released: tasks and threads.
    task_wake: Notify,
    thread_wake: Condvar,
}

#[derive(Debug)]
struct Point {
    action: Action,
    /// The hit, counted from 1, at which it acts.
    nth: u64,
    hits: u64,
    released: bool,
}

/// Whether any point was ever armed in this process.
static ARMED: AtomicBool = AtomicBool::new(false);

static PROCESS: LazyLock<Failpoints> = LazyLock::new(Failpoints::new);

tokio::task_local! {
    static SCOPED: Failpoints;
}

/// Passes the point `name`.
///
/// # Errors
/// [`Injected`] where the point is armed with [`Action::Error`].
pub async fn at(name: &str) -> Result<(), Injected> {
    if !ARMED.load(Ordering::Relaxed) {
        return Ok(());
    }
    match hit(name) {
        Some((points, Action::Pause)) => {
            points.paused(name).await;
            Ok(())
        }
        Some((_, action)) => act(name, action),
        None => Ok(()),
    }
}

/// Passes the point `name` in code that may block its thread.
///
/// # Errors
/// As [`at`].
pub fn at_blocking(name: &str) -> Result<(), Injected> {
    if !ARMED.load(Ordering::Relaxed) {
        return Ok(());
    }
    match hit(name) {
        Some((points, Action::Pause)) => {
            points.paused_blocking(name);
            Ok(())
        }
        Some((_, action)) => act(name, action),
        None => Ok(()),
    }
}

/// Arms points for the whole process: `name=action[@nth][;…]` with the actions `error`, `abort`
/// and `pause`; `nth` is the hit at which the point acts, 1 if left out.
///
/// # Errors
/// A sentence that names the part that cannot be read.
pub fn arm_process(text: &str) -> Result<(), String> {
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, action, nth) = parse(part).ok_or_else(|| {
            format!("fail point {part:?} is not name=error|abort|pause, with @hit behind it or not")
        })?;
        PROCESS.arm_nth(name, action, nth);
    }
    Ok(())
}

fn parse(part: &str) -> Option<(&str, Action, u64)> {
    let (name, how) = part.split_once('=')?;
    let (action, nth) = match how.split_once('@') {
        Some((action, nth)) => (action, nth.parse().ok().filter(|nth| *nth > 0)?),
        None => (how, 1),
    };
    let action = match action {
        "error" => Action::Error,
        "abort" => Action::Abort,
        "pause" => Action::Pause,
        _ => return None,
    };
    Some((name, action, nth))
}

/// What the scope of the task, else the process, has armed.
fn hit(name: &str) -> Option<(Failpoints, Action)> {
    let scoped = SCOPED.try_with(Clone::clone).ok();
    [scoped, Some(PROCESS.clone())]
        .into_iter()
        .flatten()
        .find_map(|points| points.hit(name).map(|action| (points, action)))
}

fn act(name: &str, action: Action) -> Result<(), Injected> {
    match action {
        Action::Abort => std::process::abort(),
        Action::Error => Err(Injected { point: name.to_owned() }),
        Action::Pause => Ok(()),
    }
}

impl Failpoints {
    /// Nothing is armed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Arms `name`: `action` happens the next time it is passed.
    pub fn arm(&self, name: &str, action: Action) {
        self.arm_nth(name, action, 1);
    }

    /// Arms `name`: `action` happens the `nth` time it is passed from now on, counted from 1, and
    /// never again.
    pub fn arm_nth(&self, name: &str, action: Action, nth: u64) {
        let point = Point { action, nth, hits: 0, released: false };
        self.points().insert(name.to_owned(), point);
        ARMED.store(true, Ordering::Relaxed);
    }

    /// Runs `future` with these points armed for it. Tasks that it spawns do not see them.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        SCOPED.scope(self.clone(), future).await
    }

    /// How often an armed point was passed since it was armed.
    pub fn hits(&self, name: &str) -> u64 {
        self.points().get(name).map_or(0, |point| point.hits)
    }

    /// Waits until the point has acted.
    pub async fn reached(&self, name: &str) {
        self.until(|points| points.get(name).is_some_and(|point| point.hits >= point.nth)).await;
    }

    /// Lets whoever waits at `name` go on.
    pub fn release(&self, name: &str) {
        if let Some(point) = self.points().get_mut(name) {
            point.released = true;
        }
        self.wake();
    }

    fn hit(&self, name: &str) -> Option<Action> {
        let acts = {
            let mut points = self.points();
            let point = points.get_mut(name)?;
            point.hits += 1;
            (point.hits == point.nth).then_some(point.action)
        };
        self.wake();
        acts
    }

    async fn paused(&self, name: &str) {
        self.until(|points| points.get(name).is_none_or(|point| point.released)).await;
    }

    fn paused_blocking(&self, name: &str) {
        let mut points = self.points();
        while points.get(name).is_some_and(|point| !point.released) {
            points = self.inner.thread_wake.wait(points).unwrap_or_else(PoisonError::into_inner);
        }
    }

    async fn until(&self, reached: impl Fn(&HashMap<String, Point>) -> bool) {
        loop {
            // Asked for before the look, so that a change in between is not missed.
            let woken = self.inner.task_wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if reached(&self.points()) {
                return;
            }
            woken.await;
        }
    }

    fn wake(&self) {
        self.inner.task_wake.notify_waiters();
        self.inner.thread_wake.notify_all();
    }

    fn points(&self) -> MutexGuard<'_, HashMap<String, Point>> {
        // A panic cannot leave the map half changed.
        self.inner.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_point_acts_once_and_only_in_its_scope() {
        let points = Failpoints::new();
        points.arm_nth("here", Action::Error, 2);
        assert_eq!(at("here").await, Ok(()));
        let inside = async { (at("here").await, at("here").await, at_blocking("here")) };
        let injected = Err(Injected { point: "here".to_owned() });
        assert_eq!(points.scope(inside).await, (Ok(()), injected, Ok(())));
        assert_eq!(points.hits("here"), 3);
    }

    #[tokio::test]
    async fn who_pauses_goes_on_when_released() {
        let points = Failpoints::new();
        points.arm("task", Action::Pause);
        points.arm("thread", Action::Pause);
        let scoped = points.clone();
        let task = crate::task::spawn(async move { scoped.scope(at("task")).await });
        points.reached("task").await;
        assert!(!task.is_finished());
        points.release("task");
        assert_eq!(task.await.ok(), Some(Ok(())));

        let waiting = points.clone();
        let thread =
            crate::task::spawn_thread("waiting", move || waiting.paused_blocking("thread"));
        points.release("thread");
        assert!(thread.is_ok_and(|thread| thread.join().is_ok()));
    }

    #[test]
    fn texts_are_read_or_refused_whole() {
        assert_eq!(parse("a.b=abort@3"), Some(("a.b", Action::Abort, 3)));
        assert_eq!(parse("a=pause"), Some(("a", Action::Pause, 1)));
        for wrong in ["a", "a=", "a=die", "a=error@0", "a=error@x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert!(arm_process("never.reached=error@2; other.point=abort").is_ok());
        assert!(arm_process("x=y").is_err_and(|text| text.contains("x=y")));
    }
}
