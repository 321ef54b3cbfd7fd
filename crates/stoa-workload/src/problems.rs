//! What is wrong with a plan.

use crate::plan::{ResourcePlan, parent_of};
use crate::trigger::Action;

/// Fractions whose sum differs from 1 by less are 1.
const EXACTNESS: f64 = 1e-5;

impl ResourcePlan {
    /// Why the plan cannot be enabled, in Hive's words; nothing if it can. Beyond Hive, triggers of pools must move
    /// queries to pools that are there.
    pub fn problems(&self) -> Vec<String> {
        let idle = self.pools.iter().filter(|(_, pool)| pool.parallelism == 0);
        let mut found: Vec<String> =
            idle.map(|(path, _)| format!("Invalid query parallelism for pool: {path}")).collect();
        let parallelism = self.pools_parallelism();
        if let Some(most) = self.parallelism.filter(|most| parallelism > u64::from(*most)) {
            found.push(format!(
                "Sum of all pools' query parallelism: {parallelism} exceeds resource plan query parallelism: {most}"
            ));
        }
        let sum = self.children_fraction(None);
        if (sum - 1.0).abs() > EXACTNESS {
            let sum = shown_fraction(sum);
            found.push(format!(
                "Sum of root children pools' alloc fraction should be 1.0 got: {sum} for pool: "
            ));
        }
        for path in self.pools.keys() {
            let sum = self.children_fraction(Some(path));
            if sum > 1.0 + EXACTNESS {
                let sum = shown_fraction(sum);
                found.push(format!(
                    "Sum of children pools' alloc fraction should be less than 1 got: {sum} for pool: {path}"
                ));
            }
        }
        let attached = self.pools.values().flat_map(|pool| &pool.triggers);
        let mut attached: Vec<&String> = attached.chain(&self.unmanaged_triggers).collect();
        attached.sort_unstable();
        attached.dedup();
        for name in attached {
            if let Some(Action::Move(pool)) = self.triggers.get(name).map(|trigger| &trigger.action)
                && !self.pools.contains_key(pool)
            {
                found.push(format!(
                    "Trigger {name} moves queries to a pool that does not exist: {pool}"
                ));
            }
        }
        found
    }

    /// What may not be meant, in Hive's words.
    pub fn warnings(&self) -> Vec<String> {
        let parallelism = self.pools_parallelism();
        let Some(most) = self.parallelism.filter(|most| parallelism < u64::from(*most)) else {
            return Vec::new();
        };
        vec![format!(
            "warn: Sum of all pools' query parallelism: {parallelism} is less than resource plan query parallelism: {most}"
        )]
    }

    fn pools_parallelism(&self) -> u64 {
        self.pools.values().map(|pool| u64::from(pool.parallelism)).sum()
    }

    fn children_fraction(&self, parent: Option<&str>) -> f64 {
        let children = self.pools.iter().filter(|(path, _)| parent_of(path) == parent);
        children.map(|(_, pool)| pool.alloc_fraction).sum()
    }
}

/// A fraction as Java shows it: with a point.
pub(crate) fn shown_fraction(fraction: f64) -> String {
    format!("{fraction:?}")
}
