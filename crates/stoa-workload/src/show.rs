//! `SHOW RESOURCE PLAN name`: a plan as lines.

use crate::mapping::{Mapping, MappingKind};
use crate::plan::{PlanPool, ResourcePlan, parent_of};
use crate::problems::shown_fraction;
use crate::trigger::Trigger;

impl ResourcePlan {
    /// The plan as lines, as Hive shows it: pools with those of the largest share first.
    pub fn lines(&self) -> Vec<String> {
        let shown = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
        let mut lines = vec![format!(
            "{}[status={},parallelism={},defaultPool={}]",
            self.name,
            self.status.name(),
            shown(self.parallelism.map(|most| most.to_string())),
            shown(self.default_pool.clone())
        )];
        self.add_pools(None, 0, &mut lines);
        let (triggers, mapped) = (self.named(&self.unmanaged_triggers), self.mapped_to(None));
        if !triggers.is_empty() || !mapped.is_empty() {
            lines.push(" +  <unmanaged queries>".to_owned());
            add_triggers(&triggers, 1, &mut lines);
            lines.extend(mapped.into_iter().map(|mapped| format!("{}{mapped}", bar(1))));
        }
        let is_used = |name: &String| {
            self.unmanaged_triggers.contains(name)
                || self.pools.values().any(|pool| pool.triggers.contains(name))
        };
        let unused: Vec<_> = self.triggers.iter().filter(|(name, _)| !is_used(name)).collect();
        if !unused.is_empty() {
            lines.push(" +  <unused triggers>".to_owned());
            add_triggers(&unused, 1, &mut lines);
        }
        lines
    }

    fn add_pools(&self, parent: Option<&str>, depth: usize, lines: &mut Vec<String>) {
        let children = self.pools.iter().filter(|(path, _)| parent_of(path) == parent);
        let mut children: Vec<(&String, &PlanPool)> = children.collect();
        children.sort_by(|(_, a), (_, b)| b.alloc_fraction.total_cmp(&a.alloc_fraction));
        for (path, pool) in children {
            let name = path.rsplit('.').next().unwrap_or(path);
            lines.push(format!(
                "{} +  {name}[allocFraction={},schedulingPolicy={},parallelism={}]",
                "    ".repeat(depth),
                shown_fraction(pool.alloc_fraction),
                pool.policy.map_or("null", |policy| policy.name()),
                pool.parallelism
            ));
            add_triggers(&self.named(&pool.triggers), depth + 1, lines);
            let mapped = self.mapped_to(Some(path)).into_iter();
            lines.extend(mapped.map(|mapped| format!("{}{mapped}", bar(depth + 1))));
            if self.default_pool.as_ref() == Some(path) {
                lines.push(format!("{}mapped for default", bar(depth + 1)));
            }
            self.add_pools(Some(path), depth + 1, lines);
        }
    }

    fn named<'a>(
        &'a self,
        names: &'a std::collections::BTreeSet<String>,
    ) -> Vec<(&'a String, &'a Trigger)> {
        names.iter().filter_map(|name| self.triggers.get_key_value(name)).collect()
    }

    /// Who goes into a pool, a text for each kind of mapping.
    fn mapped_to(&self, pool: Option<&str>) -> Vec<String> {
        let kinds = [
            (MappingKind::User, "users"),
            (MappingKind::Group, "groups"),
            (MappingKind::Application, "applications"),
        ];
        let of = |(kind, called): (MappingKind, &str)| {
            let is = |mapping: &&Mapping| mapping.kind == kind && mapping.pool.as_deref() == pool;
            let names = self.mappings.iter().filter(is).map(|mapping| mapping.name.as_str());
            let names: Vec<&str> = names.collect();
            (!names.is_empty()).then(|| format!("mapped for {called}: {}", names.join(", ")))
        };
        kinds.into_iter().filter_map(of).collect()
    }
}

/// What stands before what belongs to a pool.
fn bar(depth: usize) -> String {
    format!("{} |  ", "    ".repeat(depth))
}

fn add_triggers(triggers: &[(&String, &Trigger)], depth: usize, lines: &mut Vec<String>) {
    for (name, trigger) in triggers {
        let Trigger { expression, action, .. } = trigger;
        lines.push(format!(
            "{}trigger {name}: if ({expression}) {{ {} }}",
            bar(depth),
            action.text()
        ));
    }
}
