//! Pools: which queries share slots, a queue and memory, and when a query is ended.
//!
//! In: [`PoolOptions`] and [`WorkloadRule`]s. Out: the [`Pool`] of a session, by its user, its
//! program and its protocol. **Invariant:** the pool [`DEFAULT_POOL`] is always there and takes whoever
//! no rule names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stoa_error::{Error, ErrorKind, Result};

use crate::run::admission::{Admission, AdmissionStatus};

/// The pool of sessions that no rule names.
pub const DEFAULT_POOL: &str = "default";

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

/// Who goes into which pool. `*` in a pattern stands for any text; what is `None` takes anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadRule {
    /// Name of the user.
    pub user: Option<String>,
    /// Name of the client program (`application_name`).
    pub application: Option<String>,
    /// `postgresql`, `http`, `flight`, `hive`, `shell`.
    pub protocol: Option<String>,
    /// The pool.
    pub pool: String,
}

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
    memory_bytes: AtomicUsize,
    ended: AtomicU64,
}

/// All pools of an engine.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Arc<Pool>>,
    rules: Vec<WorkloadRule>,
}

impl Pools {
    /// With at least the default pool; `slots` and `queue_max` are those of pools that say nothing.
    ///
    /// # Errors
    /// Two pools of one name, and a rule whose pool is not there.
    pub(crate) fn new(
        pools: &[PoolOptions],
        rules: &[WorkloadRule],
        slots: usize,
        queue_max: usize,
    ) -> Result<Self> {
        let mut all: Vec<Arc<Pool>> = Vec::with_capacity(pools.len() + 1);
        let default = PoolOptions { name: DEFAULT_POOL.to_owned(), ..PoolOptions::default() };
        let has_default = pools.iter().any(|pool| pool.name == DEFAULT_POOL);
        for options in (!has_default).then_some(&default).into_iter().chain(pools) {
            if all.iter().any(|pool| pool.options.name == options.name) {
                return Err(Error::invalid(format!("there are two pools {}", options.name)));
            }
            all.push(Arc::new(Pool::new(options.clone(), slots, queue_max)));
        }
        let is_missing = |rule: &&WorkloadRule| all.iter().all(|p| p.options.name != rule.pool);
        if let Some(rule) = rules.iter().find(is_missing) {
            return Err(Error::invalid(format!("a workload rule names no pool: {}", rule.pool))
                .with_hint("add it to the setting pools"));
        }
        Ok(Self { pools: all, rules: rules.to_vec() })
    }

    /// The pool of a session: that of the first rule it meets.
    pub(crate) fn find(&self, user: &str, application: &str, protocol: &str) -> Arc<Pool> {
        let meets = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| matches(pattern, text))
        };
        let rule = self.rules.iter().find(|rule| {
            meets(&rule.user, user)
                && meets(&rule.application, application)
                && meets(&rule.protocol, protocol)
        });
        let name = rule.map_or(DEFAULT_POOL, |rule| &rule.pool);
        let found = self.pools.iter().find(|pool| pool.options.name == name);
        Arc::clone(found.unwrap_or(&self.pools[0]))
    }

    /// How busy they are.
    pub(crate) fn status(&self) -> Vec<PoolStatus> {
        self.pools.iter().map(|pool| pool.status()).collect()
    }
}

impl Pool {
    fn new(options: PoolOptions, slots: usize, queue_max: usize) -> Self {
        let admission =
            Admission::new(options.slots.unwrap_or(slots), options.queue_max.unwrap_or(queue_max));
        Self { options, admission, memory_bytes: AtomicUsize::new(0), ended: AtomicU64::new(0) }
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

    fn status(&self) -> PoolStatus {
        PoolStatus {
            name: self.options.name.clone(),
            admission: self.admission.status(),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
            memory_bytes_max: self.options.memory_bytes_max,
            ended: self.ended.load(Ordering::Relaxed),
        }
    }
}

/// Whether `text` is like `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pattern.contains('*').then(|| parts.next_back().unwrap_or("")) else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str) -> PoolOptions {
        PoolOptions { name: name.to_owned(), ..PoolOptions::default() }
    }

    #[test]
    fn patterns_match() {
        for (pattern, text, expected) in [
            ("etl", "etl", true),
            ("etl", "etl2", false),
            ("etl*", "etl2", true),
            ("*", "", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("ab*ba", "aba", false),
            ("*x", "axbx", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_first_rule_that_is_met_counts() {
        let rule = |user: &str, application: Option<&str>, pool: &str| WorkloadRule {
            user: Some(user.to_owned()),
            application: application.map(str::to_owned),
            protocol: None,
            pool: pool.to_owned(),
        };
        let rules = [rule("etl", Some("psql"), "default"), rule("etl*", None, "batch")];
        let pools = Pools::new(&[pool("batch")], &rules, 4, 10).unwrap();
        let name = |user, application| pools.find(user, application, "http").options.name.clone();
        assert_eq!(name("etl", "psql"), "default");
        assert_eq!(name("etl_7", "psql"), "batch");
        assert_eq!(name("ann", "psql"), "default");
        assert!(Pools::new(&[], &rules, 4, 10).is_err());
        assert!(Pools::new(&[pool("a"), pool("a")], &[], 4, 10).is_err());
    }

    #[test]
    fn bounds_hold() {
        let options = PoolOptions {
            memory_bytes_max: Some(100),
            timeout: Some(Duration::from_secs(5)),
            bytes_read_max: Some(1000),
            ..pool("small")
        };
        let pools = Pools::new(&[options], &[], 4, 10).unwrap();
        let pool = &pools.pools[1];
        pool.take(70).unwrap();
        assert_eq!(pool.take(40).unwrap_err().sqlstate(), "53200");
        pool.give_back(70);
        pool.take(100).unwrap();
        assert!(pool.check(Duration::from_secs(5), 1000).is_ok());
        let late = pool.check(Duration::from_secs(6), 0).unwrap_err();
        assert_eq!((late.sqlstate(), late.kind()), ("57014", ErrorKind::Cancelled));
        assert!(pool.check(Duration::ZERO, 1001).unwrap_err().hint().is_some());
        assert_eq!(pools.status()[1].ended, 2);
    }
}
