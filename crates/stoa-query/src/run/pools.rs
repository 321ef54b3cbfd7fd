//! Pools: which queries go into which.
//!
//! In: [`PoolOptions`] and [`WorkloadRule`]s of the configuration; the active resource plan of the catalog, if there is
//! one, which counts before them and may change while the server runs. Out: the [`Pool`] of a session, by its user, its
//! program and its protocol; where a trigger moves a query. **Invariant:** the pool [`DEFAULT_POOL`] is always there and
//! takes whoever neither the plan nor a rule names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use stoa_error::{Error, ErrorKind, Result};
use stoa_workload::ResourcePlan;

use crate::run::active_plan::{ActivePlan, Groups, PlanSizes};
use crate::run::pool::{Pool, PoolOptions, PoolStatus, QueryCounters};

/// The pool of sessions that no rule names.
pub const DEFAULT_POOL: &str = "default";

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

/// All pools of an engine.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Arc<Pool>>,
    rules: Vec<WorkloadRule>,
    sizes: PlanSizes,
    active: RwLock<Option<Arc<ActivePlan>>>,
    /// Changes of the active plan.
    generation: AtomicU64,
}

impl Pools {
    /// With at least the default pool; `slots` and `queue_max` are those of pools that say nothing. Pools of resource
    /// plans share `memory_bytes`.
    ///
    /// # Errors
    /// Two pools of one name, and a rule whose pool is not there.
    pub(crate) fn new(
        pools: &[PoolOptions],
        rules: &[WorkloadRule],
        slots: usize,
        queue_max: usize,
        memory_bytes: usize,
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
        Ok(Self {
            pools: all,
            rules: rules.to_vec(),
            sizes: PlanSizes { queue_max, memory_bytes },
            active: RwLock::default(),
            generation: AtomicU64::new(0),
        })
    }

    /// Goes by this plan from now on, or by none. Pools that are as before stay, with the queries in them; other queries
    /// end in the pools that they are in.
    pub(crate) fn follow(&self, plan: Option<&ResourcePlan>, groups: Groups) {
        let mut active = self.active.write();
        if plan.is_none() && active.is_none() {
            return;
        }
        let before = active.take();
        *active = plan.map(|plan| {
            Arc::new(ActivePlan::new(plan.clone(), groups, self.sizes, before.as_deref()))
        });
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Another number each time that sessions may belong into other pools than before.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The pool of who is in no session.
    pub(crate) fn find(&self, user: &str, application: &str, protocol: &str) -> Arc<Pool> {
        self.find_for(user, application, protocol, None)
    }

    /// The pool of a session, which may ask for the pool `wanted`: that of the active plan, or else that of the first rule
    /// it meets.
    pub(crate) fn find_for(
        &self,
        user: &str,
        application: &str,
        protocol: &str,
        wanted: Option<&str>,
    ) -> Arc<Pool> {
        let active = self.active.read();
        match active.as_ref().and_then(|plan| plan.find(user, application, wanted)) {
            Some(pool) => pool,
            None => self.configured(user, application, protocol),
        }
    }

    /// Whether a session may have the pool `wanted` of the active plan.
    ///
    /// # Errors
    /// `Forbidden` (42501) if none of its mappings leads there.
    pub(crate) fn check_wish(&self, user: &str, application: &str, wanted: &str) -> Result<()> {
        let active = self.active.read();
        let plan = active.as_ref().and_then(|active| active.refuses(user, application, wanted));
        let Some(plan) = plan else { return Ok(()) };
        Err(Error::new(
            ErrorKind::Forbidden,
            format!("resource plan \"{plan}\" does not let \"{user}\" into the pool \"{wanted}\""),
        )
        .with_hint(format!(
            "leave wmPool out; or let an administrator CREATE USER MAPPING '{user}' IN {plan} TO {wanted}, or one of a \
             group or application"
        )))
    }

    /// Where triggers move a query of `pool` that has spent so much.
    ///
    /// # Errors
    /// `Cancelled` (57014) where one of them ends it.
    pub(crate) fn triggered(
        &self,
        pool: &Pool,
        spent: &QueryCounters,
    ) -> Result<Option<Arc<Pool>>> {
        if pool.triggers.as_ref().is_some_and(|triggers| triggers.is_empty()) {
            return Ok(None);
        }
        let Some(active) = self.active.read().clone() else { return Ok(None) };
        let triggers = pool.triggers.as_ref().unwrap_or(active.unmanaged_triggers());
        let to = pool.triggered(triggers, spent)?;
        // A query whose plan is not active any more stays where it is, unless the new one has such a pool.
        Ok(to.and_then(|path| active.pool(path)))
    }

    /// The pool of a session by the rules of the configuration.
    pub(crate) fn configured(&self, user: &str, application: &str, protocol: &str) -> Arc<Pool> {
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

    /// The pool of the configuration of this name.
    #[cfg(test)]
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Pool>> {
        self.pools.iter().find(|pool| pool.options.name == name).map(Arc::clone)
    }

    /// All of them, those of the active plan last.
    pub(crate) fn all(&self) -> Vec<Arc<Pool>> {
        let active = self.active.read();
        let planned = active.iter().flat_map(|plan| plan.pools());
        self.pools.iter().chain(planned).map(Arc::clone).collect()
    }

    /// How busy they are.
    pub(crate) fn status(&self) -> Vec<PoolStatus> {
        let active = self.active.read();
        let planned = active.iter().flat_map(|plan| plan.pools());
        self.pools.iter().chain(planned).map(|pool| pool.status()).collect()
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
    use std::time::Duration;

    use stoa_error::ErrorKind;

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
        let pools = Pools::new(&[pool("batch")], &rules, 4, 10, 1000).unwrap();
        let name = |user, application| pools.find(user, application, "http").options.name.clone();
        assert_eq!(name("etl", "psql"), "default");
        assert_eq!(name("etl_7", "psql"), "batch");
        assert_eq!(name("ann", "psql"), "default");
        assert!(Pools::new(&[], &rules, 4, 10, 1000).is_err());
        assert!(Pools::new(&[pool("a"), pool("a")], &[], 4, 10, 1000).is_err());
    }

    #[test]
    fn bounds_hold() {
        let options = PoolOptions {
            memory_bytes_max: Some(100),
            timeout: Some(Duration::from_secs(5)),
            bytes_read_max: Some(1000),
            ..pool("small")
        };
        let pools = Pools::new(&[options], &[], 4, 10, 1000).unwrap();
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
