//! The resource plan that queries go by, as pools.
//!
//! In: a plan of the catalog, who is a member of which groups, what there is to share. Out: pools, who goes into which,
//! and the triggers of queries of no pool. A pool of a plan has as many slots as its `QUERY_PARALLELISM` says, and its
//! share of the memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stoa_workload::{Destination, PlanPool, ResourcePlan, SchedulingPolicy};

use crate::run::admission::Order;
use crate::run::pool::{Pool, PoolOptions, Triggers};

/// Groups by user.
pub(crate) type Groups = HashMap<String, Vec<String>>;

/// What the pools of a plan share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanSizes {
    /// Queries that may wait in each.
    pub(crate) queue_max: usize,
    /// Memory of all queries together, bytes.
    pub(crate) memory_bytes: usize,
}

/// A plan with its pools.
#[derive(Debug)]
pub(crate) struct ActivePlan {
    plan: ResourcePlan,
    groups: Groups,
    pools: BTreeMap<String, Arc<Pool>>,
    unmanaged_triggers: Triggers,
}

impl ActivePlan {
    /// Pools that are as `before` are the same ones.
    pub(crate) fn new(
        plan: ResourcePlan,
        groups: Groups,
        sizes: PlanSizes,
        before: Option<&Self>,
    ) -> Self {
        let pools = plan.pools.iter().map(|(path, pool)| {
            let kept = before.filter(|before| before.has_same(&plan, path, pool));
            let kept = kept.and_then(|before| before.pool(path));
            let pool = kept.unwrap_or_else(|| Arc::new(pool_of(&plan, path, pool, sizes)));
            (path.clone(), pool)
        });
        let pools = pools.collect();
        let unmanaged_triggers = triggers_of(&plan, &plan.unmanaged_triggers);
        Self { plan, groups, pools, unmanaged_triggers }
    }

    /// The pool of a user who comes through a program; `None` where the plan leaves it to the configuration.
    pub(crate) fn find(
        &self,
        user: &str,
        application: &str,
        wanted: Option<&str>,
    ) -> Option<Arc<Pool>> {
        let destination = match self.destination(user, application, wanted) {
            // It was not when the session began: it goes where it would have gone without a wish.
            Destination::Refused => self.destination(user, application, None),
            destination => destination,
        };
        match destination {
            Destination::Pool(path) => self.pool(path),
            Destination::Unmanaged | Destination::Refused => None,
        }
    }

    /// The name of the plan, if no mapping leads this session to the pool that it asks for.
    pub(crate) fn refuses(&self, user: &str, application: &str, wanted: &str) -> Option<&str> {
        let found = self.destination(user, application, Some(wanted));
        (found == Destination::Refused).then_some(&self.plan.name)
    }

    fn destination(&self, user: &str, application: &str, wanted: Option<&str>) -> Destination<'_> {
        let groups = self.groups.get(user).map_or(&[][..], Vec::as_slice);
        self.plan.destination(user, application, groups, wanted)
    }

    /// The pool of this path.
    pub(crate) fn pool(&self, path: &str) -> Option<Arc<Pool>> {
        self.pools.get(path).map(Arc::clone)
    }

    /// All of them.
    pub(crate) fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.values()
    }

    /// Those that hold for queries of no pool of the plan.
    pub(crate) fn unmanaged_triggers(&self) -> &Triggers {
        &self.unmanaged_triggers
    }

    /// Whether it has a pool that is just like this one of `plan`.
    fn has_same(&self, plan: &ResourcePlan, path: &str, pool: &PlanPool) -> bool {
        self.plan.name == plan.name
            && self.plan.pools.get(path) == Some(pool)
            && self.plan.share_of(path) == plan.share_of(path)
            && triggers_of(&self.plan, &pool.triggers) == triggers_of(plan, &pool.triggers)
    }
}

fn pool_of(plan: &ResourcePlan, path: &str, pool: &PlanPool, sizes: PlanSizes) -> Pool {
    let share = plan.share_of(path);
    // A pool without a share takes what others leave, as in Hive.
    let memory_bytes_max =
        (share > 0.0 && share < 1.0).then_some((sizes.memory_bytes as f64 * share) as usize);
    let slots = pool.parallelism as usize;
    let name = format!("{}.{path}", plan.name);
    let options =
        PoolOptions { name, slots: Some(slots), memory_bytes_max, ..PoolOptions::default() };
    let order = match pool.policy {
        Some(SchedulingPolicy::Fifo) => Order::Arrival,
        Some(SchedulingPolicy::Fair | SchedulingPolicy::Default) | None => Order::Smallest,
    };
    Pool::planned(options, slots, sizes.queue_max, order, triggers_of(plan, &pool.triggers))
}

fn triggers_of<'a>(plan: &ResourcePlan, names: impl IntoIterator<Item = &'a String>) -> Triggers {
    let named = |name: &String| plan.triggers.get(name).map(|found| (name.clone(), found.clone()));
    names.into_iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use stoa_workload::{Action, Trigger};

    use super::*;

    const SIZES: PlanSizes = PlanSizes { queue_max: 7, memory_bytes: 1000 };

    /// `default` with a half of what there is, `etl` with the other half, `etl.night` with a quarter of that.
    fn plan() -> ResourcePlan {
        let mut plan = ResourcePlan::new("p", None);
        let pool = |fraction: f64, parallelism: u32| PlanPool {
            alloc_fraction: fraction,
            parallelism,
            policy: None,
            triggers: ["slow".to_owned()].into(),
        };
        let pools =
            [("default", pool(0.5, 4)), ("etl", pool(0.5, 2)), ("etl.night", pool(0.25, 1))];
        plan.pools = pools.map(|(path, pool)| (path.to_owned(), pool)).into();
        let slow = Trigger::new("ELAPSED_TIME", "1sec", true, Action::Kill).unwrap();
        plan.triggers.insert("slow".to_owned(), slow);
        plan
    }

    #[test]
    fn pools_have_their_share() {
        let active = ActivePlan::new(plan(), Groups::new(), SIZES, None);
        let night = active.pool("etl.night").unwrap().status();
        let admission = night.admission;
        assert_eq!((night.name.as_str(), night.memory_bytes_max), ("p.etl.night", Some(125)));
        assert_eq!((admission.slots, admission.queue_max), (1, 7));
        assert_eq!(active.find("ann", "", None).unwrap().options.name, "p.default");
    }

    #[test]
    fn pools_that_stay_as_they_are_keep_their_queries() {
        let before = ActivePlan::new(plan(), Groups::new(), SIZES, None);
        let same = |after: &ActivePlan, path: &str| {
            Arc::ptr_eq(&before.pool(path).unwrap(), &after.pool(path).unwrap())
        };
        let mut changed = plan();
        changed.pools.get_mut("etl").unwrap().parallelism = 3;
        let after = ActivePlan::new(changed, Groups::new(), SIZES, Some(&before));
        assert!(same(&after, "default") && same(&after, "etl.night") && !same(&after, "etl"));
        let mut changed = plan();
        changed.triggers.get_mut("slow").unwrap().limit = 5;
        let after = ActivePlan::new(changed, Groups::new(), SIZES, Some(&before));
        assert!(!same(&after, "default"));
    }
}
