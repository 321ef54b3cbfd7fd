//! A resource plan, as it is stored.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stoa_error::{Error, Result};

use crate::mapping::Mapping;
use crate::trigger::Trigger;

/// The pool that a new plan has.
pub(crate) const FIRST_POOL: &str = "default";

/// Queries that run at the same time in the pool of a new plan.
const FIRST_PARALLELISM: u32 = 4;

/// Whether a plan is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PlanStatus {
    /// It can be changed.
    #[default]
    Disabled,
    /// It is valid and can be activated.
    Enabled,
    /// Queries go by it.
    Active,
}

impl PlanStatus {
    /// Its name, as Hive shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "DISABLED",
            Self::Enabled => "ENABLED",
            Self::Active => "ACTIVE",
        }
    }
}

/// Who goes first among those of a pool that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchedulingPolicy {
    /// As without one.
    Default,
    /// The smallest query, and who waits gains.
    Fair,
    /// Who came first.
    Fifo,
}

impl SchedulingPolicy {
    /// Its name, as Hive shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Fair => "fair",
            Self::Fifo => "fifo",
        }
    }

    /// The policy of this name, in whatever case.
    ///
    /// # Errors
    /// `Invalid` (22023).
    pub fn parse(name: &str) -> Result<Self> {
        [Self::Default, Self::Fair, Self::Fifo]
            .into_iter()
            .find(|policy| policy.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                Error::invalid(format!("invalid scheduling policy \"{name}\""))
                    .with_sqlstate("22023")
                    .with_hint("use 'fair', 'fifo' or 'default'")
            })
    }
}

/// A pool of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanPool {
    /// Its share of what the pool above it has, 0 to 1; pools without one above share all there is.
    pub alloc_fraction: f64,
    /// Queries that may run at the same time.
    pub parallelism: u32,
    /// Who goes first among those that wait.
    pub policy: Option<SchedulingPolicy>,
    /// Names of triggers that hold for its queries.
    pub triggers: BTreeSet<String>,
}

/// A resource plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourcePlan {
    /// Its name.
    pub name: String,
    /// Whether it is in use.
    pub status: PlanStatus,
    /// Queries that may run at the same time in all of its pools together; only checked when it is enabled.
    pub parallelism: Option<u32>,
    /// Path of the pool of everybody whom no mapping names.
    pub default_pool: Option<String>,
    /// Pools by path: the names of a pool and of those above it, with dots between them.
    pub pools: BTreeMap<String, PlanPool>,
    /// Triggers by name.
    pub triggers: BTreeMap<String, Trigger>,
    /// Names of triggers that hold for queries of no pool.
    pub unmanaged_triggers: BTreeSet<String>,
    /// Who goes into which pool.
    pub mappings: Vec<Mapping>,
}

impl ResourcePlan {
    /// A disabled plan with the pool `default`, which is everybody's.
    pub fn new(name: &str, parallelism: Option<u32>) -> Self {
        let pool = PlanPool {
            alloc_fraction: 1.0,
            parallelism: FIRST_PARALLELISM,
            policy: None,
            triggers: BTreeSet::new(),
        };
        Self {
            name: name.to_owned(),
            status: PlanStatus::Disabled,
            parallelism,
            default_pool: Some(FIRST_POOL.to_owned()),
            pools: BTreeMap::from([(FIRST_POOL.to_owned(), pool)]),
            triggers: BTreeMap::new(),
            unmanaged_triggers: BTreeSet::new(),
            mappings: Vec::new(),
        }
    }

    /// The share of a pool of all there is, 0 to 1: its own, times those of the pools above it. 0 if there is none of
    /// this path.
    pub fn share_of(&self, path: &str) -> f64 {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        let own = |end: usize| self.pools.get(&path[..end]).map_or(0.0, |pool| pool.alloc_fraction);
        ends.map(own).product()
    }

    /// The text that is stored.
    ///
    /// # Errors
    /// `Internal`, which does not happen.
    pub fn to_text(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|e| Error::internal("a resource plan cannot be written").with_source(e))
    }

    /// The plan of a stored text.
    ///
    /// # Errors
    /// `Corrupt` where it is none.
    pub fn from_text(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|e| Error::corrupt("a stored resource plan cannot be read").with_source(e))
    }
}

/// The path of the pool above one.
pub(crate) fn parent_of(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_path() {
        let mut plan = ResourcePlan::new("p", None);
        let pool =
            |fraction: f64| PlanPool { alloc_fraction: fraction, ..plan.pools[FIRST_POOL].clone() };
        let pools = [("etl", pool(0.5)), ("etl.night", pool(0.25))];
        plan.pools.extend(pools.map(|(path, pool)| (path.to_owned(), pool)));
        for (path, share) in [("default", 1.0), ("etl", 0.5), ("etl.night", 0.125), ("x.y", 0.0)] {
            assert_eq!(plan.share_of(path), share, "{path}");
        }
    }

    #[test]
    fn what_is_stored_is_read() {
        let plan = ResourcePlan::new("p", Some(3));
        assert_eq!(ResourcePlan::from_text(&plan.to_text().unwrap()).unwrap(), plan);
        assert!(ResourcePlan::from_text("{}").is_err());
    }
}
