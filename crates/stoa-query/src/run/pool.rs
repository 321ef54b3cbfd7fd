//! A pool: queries that share slots, a queue and memory, and when one of them is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stoa_error::{Error, ErrorKind, Result};
use stoa_workload::{Action, Counter, Trigger};

use crate::run::admission::{Admission, AdmissionStatus, Order};
use crate::run::latency::LatencyHistogram;

/// A pool, as it is configured. What is `None` has no bound of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// Its name.
    pub name: String,
    /// Queries that may compute at the same time; as many as by default if `None`.
    pub slots: Option<usize>,
    /// Queries that may wait; as many as by default if `None`.
    pub queue_max: Option<usize>,
    /// Memory of all its queries together, bytes.
    pub memory_bytes_max: Option<usize>,
    /// A statement that takes longer is ended.
    pub timeout: Option<Duration>,
    /// A statement that reads more from storage is ended, bytes.
    pub bytes_read_max: Option<u64>,
}

/// What a query has spent so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueryCounters {
    /// Time since it began.
    pub(crate) elapsed: Duration,
    /// Time since it was let in.
    pub(crate) executing: Duration,
    /// Bytes that it read from storage.
    pub(crate) bytes_read: u64,
}

/// Triggers of a resource plan, by name.
pub(crate) type Triggers = Arc<[(String, Trigger)]>;

/// How busy a pool is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Slots and queue.
    pub admission: AdmissionStatus,
    /// Memory of its queries now, bytes.
    pub memory_bytes: usize,
    /// Bound on it, bytes.
    pub memory_bytes_max: Option<usize>,
    /// Statements ended since the start because they took too long or read too much.
    pub ended: u64,
}

/// Queries that share slots, a queue and memory.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) options: PoolOptions,
    pub(crate) admission: Admission,
    /// Those of its resource plan that hold for it; `None` where it is of no plan.
    pub(crate) triggers: Option<Triggers>,
    memory_bytes: AtomicUsize,
    ended: AtomicU64,
    /// How long its queries took that finished, waiting included.
    pub(crate) latency: LatencyHistogram,
    /// How long they waited for a slot, of those that needed one.
    pub(crate) waits: LatencyHistogram,
}

impl Pool {
    /// `slots` and `queue_max` are those of a pool that says nothing.
    pub(crate) fn new(options: PoolOptions, slots: usize, queue_max: usize) -> Self {
        let admission =
            Admission::new(options.slots.unwrap_or(slots), options.queue_max.unwrap_or(queue_max));
        Self::of(options, admission, None)
    }

    /// A pool of a resource plan.
    pub(crate) fn planned(
        options: PoolOptions,
        slots: usize,
        queue_max: usize,
        order: Order,
        triggers: Triggers,
    ) -> Self {
        Self::of(options, Admission::ordered(slots, queue_max, order), Some(triggers))
    }

    fn of(options: PoolOptions, admission: Admission, triggers: Option<Triggers>) -> Self {
        let (memory_bytes, ended) = (AtomicUsize::new(0), AtomicU64::new(0));
        let (latency, waits) = (LatencyHistogram::default(), LatencyHistogram::default());
        Self { options, admission, triggers, memory_bytes, ended, latency, waits }
    }

    /// Whether a statement must end now; counts it.
    ///
    /// # Errors
    /// `Cancelled` (57014) where it took too long or read too much.
    pub(crate) fn check(&self, elapsed: Duration, bytes_read: u64) -> Result<()> {
        let name = &self.options.name;
        let error = match (self.options.timeout, self.options.bytes_read_max) {
            (Some(timeout), _) if elapsed > timeout => Error::new(
                ErrorKind::Cancelled,
                format!("canceling statement due to the timeout of pool {name}"),
            )
            .with_detail(format!("a statement may take {} s there", timeout.as_secs_f64())),
            (_, Some(max)) if bytes_read > max => Error::new(
                ErrorKind::Cancelled,
                format!("canceling statement because it read too much for pool {name}"),
            )
            .with_detail(format!("it read {bytes_read} bytes; {max} are allowed"))
            .with_hint("ask for fewer columns, or for a part of the table's partitions"),
            _ => return Ok(()),
        };
        self.ended.fetch_add(1, Ordering::Relaxed);
        Err(error.with_sqlstate("57014"))
    }

    /// Whether a statement must end now because of the memory that it uses on other daemons; counts it.
    ///
    /// # Errors
    /// 53200: together with what the pool uses here, that is more than it may use.
    pub(crate) fn check_elsewhere(&self, memory_elsewhere: u64) -> Result<()> {
        let Some(max) = self.options.memory_bytes_max.filter(|_| memory_elsewhere > 0) else {
            return Ok(());
        };
        let here = self.memory_bytes.load(Ordering::Relaxed);
        if here as u64 + memory_elsewhere <= max as u64 {
            return Ok(());
        }
        self.ended.fetch_add(1, Ordering::Relaxed);
        let name = &self.options.name;
        Err(Error::new(ErrorKind::Exhausted, format!("the memory of pool {name} is used up"))
            .with_sqlstate("53200")
            .with_detail(format!(
                "{here} bytes are in use here, {memory_elsewhere} by the statement on other daemons; {max} are allowed"
            )))
    }

    /// The path of the pool that one of `triggers` moves a query to which has spent so much, if any does.
    ///
    /// # Errors
    /// `Cancelled` (57014) where one of them ends it.
    pub(crate) fn triggered<'a>(
        &self,
        triggers: &'a [(String, Trigger)],
        spent: &QueryCounters,
    ) -> Result<Option<&'a str>> {
        let mut pulled = triggers.iter().filter(|(_, trigger)| is_pulled(trigger, spent));
        let kills = |(_, trigger): &&(String, Trigger)| trigger.action == Action::Kill;
        if let Some((name, trigger)) = pulled.clone().find(kills) {
            let why = format!("trigger {name} ends it: {}", trigger.expression);
            return Err(self.killed(&why));
        }
        Ok(pulled.find_map(|(_, trigger)| match &trigger.action {
            Action::Move(path) => Some(path.as_str()),
            Action::Kill => None,
        }))
    }

    /// The error of a query that a trigger ends; counts it.
    pub(crate) fn killed(&self, why: &str) -> Error {
        self.ended.fetch_add(1, Ordering::Relaxed);
        let name = &self.options.name;
        Error::new(
            ErrorKind::Cancelled,
            format!("canceling statement due to a trigger of pool {name}"),
        )
        .with_sqlstate("57014")
        .with_detail(why)
    }

    /// Takes memory for a query.
    ///
    /// # Errors
    /// `Exhausted` (53200) beyond the pool's bound.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        let max = self.options.memory_bytes_max.unwrap_or(usize::MAX);
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= max);
        let taken = self.memory_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(drop).map_err(|used| {
            let name = &self.options.name;
            Error::new(ErrorKind::Exhausted, format!("the memory of pool {name} is used up"))
                .with_sqlstate("53200")
                .with_detail(format!("{used} of {max} bytes are in use, {bytes} more are needed"))
        })
    }

    /// Takes memory for a query that has it already.
    pub(crate) fn take_anyway(&self, bytes: usize) {
        self.memory_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives memory back.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.memory_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How busy it is.
    pub(crate) fn status(&self) -> PoolStatus {
        PoolStatus {
            name: self.options.name.clone(),
            admission: self.admission.status(),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
            memory_bytes_max: self.options.memory_bytes_max,
            ended: self.ended.load(Ordering::Relaxed),
        }
    }
}

/// Whether a query has spent more than a trigger allows.
fn is_pulled(trigger: &Trigger, spent: &QueryCounters) -> bool {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let value = match trigger.counter {
        Counter::ElapsedTime => millis(spent.elapsed),
        Counter::ExecutionTime => millis(spent.executing),
        Counter::BytesRead => spent.bytes_read,
    };
    value > trigger.limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_that_kills_counts_before_one_that_moves() {
        let pool = Pool::new(PoolOptions { name: "p".to_owned(), ..PoolOptions::default() }, 1, 1);
        let trigger = |name: &str, counter: &str, limit: &str, action: Action| {
            (name.to_owned(), Trigger::new(counter, limit, true, action).unwrap())
        };
        let triggers = [
            trigger("moves", "BYTES_READ", "1kb", Action::Move("q".to_owned())),
            trigger("kills", "EXECUTION_TIME", "1sec", Action::Kill),
            trigger("late", "ELAPSED_TIME", "1min", Action::Kill),
        ];
        let seconds = Duration::from_secs;
        let check = |elapsed: u64, executing: u64, bytes_read: u64| {
            let (elapsed, executing) = (seconds(elapsed), seconds(executing));
            pool.triggered(&triggers, &QueryCounters { elapsed, executing, bytes_read })
        };
        assert_eq!(check(60, 1, 1024).unwrap(), None);
        assert_eq!(check(60, 1, 1025).unwrap(), Some("q"));
        for (elapsed, executing, name) in [(50, 2, "kills"), (61, 0, "late")] {
            let error = check(elapsed, executing, 1025).unwrap_err();
            assert_eq!((error.sqlstate(), error.kind()), ("57014", ErrorKind::Cancelled));
            assert!(error.detail().is_some_and(|detail| detail.contains(name)), "{error}");
        }
        assert_eq!(pool.status().ended, 2);
    }
}
