//! All plans of a catalog, and changes of them.

use std::collections::BTreeMap;

use stoa_error::{Error, Result};

use crate::change::{PlanChange, PoolSettings, PoolTarget};
use crate::destination::no_mapping;
use crate::mapping::Mapping;
use crate::plan::{PlanPool, PlanStatus, ResourcePlan, parent_of};
use crate::trigger::Trigger;

/// All plans of a catalog, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourcePlans(BTreeMap<String, ResourcePlan>);

impl FromIterator<ResourcePlan> for ResourcePlans {
    fn from_iter<T: IntoIterator<Item = ResourcePlan>>(plans: T) -> Self {
        Self(plans.into_iter().map(|plan| (plan.name.clone(), plan)).collect())
    }
}

impl ResourcePlans {
    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = &ResourcePlan> {
        self.0.values()
    }

    /// The plan that queries go by, if any.
    pub fn active(&self) -> Option<&ResourcePlan> {
        self.iter().find(|plan| plan.status == PlanStatus::Active)
    }

    /// The plan of this name.
    ///
    /// # Errors
    /// `NotFound` (42704).
    pub fn plan(&self, name: &str) -> Result<&ResourcePlan> {
        self.0.get(name).ok_or_else(|| no_plan(name))
    }

    /// The plans after a change, and what its user should know.
    ///
    /// # Errors
    /// `NotFound` (42704) and `AlreadyExists` (42710) for plans, pools, triggers and mappings; `Invalid` (55000) where
    /// the plan's status forbids the change, or something still uses what would go; `Invalid` (22023) for a plan with
    /// problems and for settings out of range.
    pub fn apply(&self, change: &PlanChange) -> Result<(Self, Vec<String>)> {
        let mut after = self.clone();
        let notices = after.change(change)?;
        Ok((after, notices))
    }

    fn change(&mut self, change: &PlanChange) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        match change {
            PlanChange::CreatePlan { plan, if_not_exists, like, parallelism } => {
                if self.0.contains_key(plan) {
                    let error = exists("resource plan", plan);
                    if !if_not_exists {
                        return Err(error);
                    }
                    notices.push(format!("{error}, skipping"));
                    return Ok(notices);
                }
                let new = match like {
                    Some(like) => {
                        let (name, status) = (plan.clone(), PlanStatus::Disabled);
                        ResourcePlan { name, status, ..self.plan(like)?.clone() }
                    }
                    None => ResourcePlan::new(plan, *parallelism),
                };
                self.insert(new);
            }
            PlanChange::AlterPlan { plan, parallelism, default_pool } => {
                let plan = self.editable(plan)?;
                if let crate::Setting::Set(pool) = default_pool {
                    plan.must_have_pool(pool)?;
                }
                parallelism.apply(&mut plan.parallelism);
                default_pool.apply(&mut plan.default_pool);
            }
            PlanChange::RenamePlan { plan, to } => {
                self.editable(plan)?;
                self.rename(plan, to)?;
            }
            PlanChange::EnablePlan { plan, enable, activate, replace } => {
                self.enable(plan, *enable, *activate, *replace)?;
            }
            PlanChange::DisablePlan { plan } => {
                let plan = self.plan_mut(plan)?;
                must_not_be_active(plan)?;
                plan.status = PlanStatus::Disabled;
            }
            PlanChange::ReplacePlan { plan, with } => self.replace(plan.as_deref(), with)?,
            PlanChange::DropPlan { plan, if_exists } => match self.0.get(plan) {
                None if *if_exists => notices.push(format!("{}, skipping", no_plan(plan))),
                None => return Err(no_plan(plan)),
                Some(plan) => {
                    must_not_be_active(plan)?;
                    let name = plan.name.clone();
                    self.0.remove(&name);
                }
            },
            PlanChange::EnableManagement => {
                if self.active().is_none() {
                    notices.push(
                        "no resource plan is active: ALTER RESOURCE PLAN name ACTIVATE".to_owned(),
                    );
                }
            }
            PlanChange::DisableManagement => match self.active_mut() {
                Some(plan) => plan.status = PlanStatus::Enabled,
                None => notices.push("no resource plan is active".to_owned()),
            },
            PlanChange::CreatePool { plan, path, settings } => {
                self.editable(plan)?.create_pool(path, settings)?;
            }
            PlanChange::AlterPool { plan, path, settings } => {
                self.editable(plan)?.alter_pool(path, settings)?;
            }
            PlanChange::DropPool { plan, path } => self.editable(plan)?.drop_pool(path)?,
            PlanChange::CreateTrigger { plan, name, trigger } => {
                let plan = self.editable(plan)?;
                if plan.triggers.contains_key(name) {
                    return Err(exists("trigger", name).with_hint("ALTER TRIGGER changes it"));
                }
                plan.triggers.insert(name.clone(), trigger.clone());
            }
            PlanChange::AlterTrigger { plan, name, trigger } => {
                *self.editable(plan)?.trigger_mut(name)? = trigger.clone();
            }
            PlanChange::DropTrigger { plan, name } => self.editable(plan)?.drop_trigger(name)?,
            PlanChange::AddTrigger { plan, name, to } => {
                let plan = self.editable(plan)?;
                plan.trigger_mut(name)?;
                plan.triggers_of(to)?.insert(name.clone());
            }
            PlanChange::RemoveTrigger { plan, name, from } => {
                let plan = self.editable(plan)?;
                plan.trigger_mut(name)?;
                plan.triggers_of(from)?.remove(name);
            }
            PlanChange::CreateMapping { plan, mapping } => {
                self.editable(plan)?.create_mapping(mapping)?;
            }
            PlanChange::AlterMapping { plan, mapping } => {
                self.editable(plan)?.alter_mapping(mapping)?;
            }
            PlanChange::DropMapping { plan, kind, name } => {
                let plan = self.editable(plan)?;
                let at = plan.mapping_at(*kind, name);
                let at = at.ok_or_else(|| no_mapping(*kind, name, &plan.name))?;
                plan.mappings.remove(at);
            }
        }
        Ok(notices)
    }

    fn insert(&mut self, plan: ResourcePlan) {
        self.0.insert(plan.name.clone(), plan);
    }

    fn plan_mut(&mut self, name: &str) -> Result<&mut ResourcePlan> {
        self.0.get_mut(name).ok_or_else(|| no_plan(name))
    }

    fn active_mut(&mut self) -> Option<&mut ResourcePlan> {
        self.0.values_mut().find(|plan| plan.status == PlanStatus::Active)
    }

    /// A plan that can be changed.
    fn editable(&mut self, name: &str) -> Result<&mut ResourcePlan> {
        let plan = self.plan_mut(name)?;
        if plan.status == PlanStatus::Disabled {
            return Ok(plan);
        }
        let status = plan.status.name().to_lowercase();
        Err(state(format!("resource plan \"{name}\" is {status} and must be disabled to edit it"))
            .with_hint(format!(
                "edit a copy: CREATE RESOURCE PLAN copy LIKE {name}; then REPLACE RESOURCE PLAN {name} WITH copy"
            )))
    }

    fn rename(&mut self, name: &str, to: &str) -> Result<()> {
        if self.0.contains_key(to) {
            return Err(exists("resource plan", to));
        }
        let plan = self.0.remove(name).ok_or_else(|| no_plan(name))?;
        self.insert(ResourcePlan { name: to.to_owned(), ..plan });
        Ok(())
    }

    fn enable(&mut self, name: &str, enable: bool, activate: bool, replace: bool) -> Result<()> {
        let plan = self.plan(name)?;
        if plan.status == PlanStatus::Active {
            return match activate {
                true => Ok(()),
                false => must_not_be_active(plan),
            };
        }
        if plan.status == PlanStatus::Disabled {
            if !enable {
                return Err(state(format!("resource plan \"{name}\" is disabled"))
                    .with_hint(format!("ALTER RESOURCE PLAN {name} ENABLE ACTIVATE")));
            }
            must_be_valid(plan)?;
        }
        if !activate {
            self.plan_mut(name)?.status = PlanStatus::Enabled;
            return Ok(());
        }
        if replace && self.active().is_some() {
            return self.replace(None, name);
        }
        if let Some(before) = self.active_mut() {
            before.status = PlanStatus::Enabled;
        }
        self.plan_mut(name)?.status = PlanStatus::Active;
        Ok(())
    }

    /// A plan takes the name and the status of another one, or of the active one, which is kept under a name of its own.
    fn replace(&mut self, name: Option<&str>, with: &str) -> Result<()> {
        let replaced = match name {
            Some(name) => self.plan(name)?,
            None => self.active().ok_or_else(|| {
                state("no resource plan is active".to_owned())
                    .with_hint(format!("ALTER RESOURCE PLAN {with} ENABLE ACTIVATE"))
            })?,
        };
        let (name, status) = (replaced.name.clone(), replaced.status);
        let new = self.plan(with)?;
        if name == with {
            return Err(
                Error::invalid("a resource plan cannot replace itself").with_sqlstate("22023")
            );
        }
        must_not_be_active(new)?;
        if status != PlanStatus::Disabled {
            must_be_valid(new)?;
        }
        let mut number = 0_u32;
        let kept = loop {
            let kept = format!("{name}_old_{number}");
            if !self.0.contains_key(&kept) {
                break kept;
            }
            number += 1;
        };
        self.plan_mut(&name)?.status = PlanStatus::Disabled;
        self.rename(&name, &kept)?;
        self.plan_mut(with)?.status = status;
        self.rename(with, &name)
    }
}

impl ResourcePlan {
    fn must_have_pool(&self, path: &str) -> Result<()> {
        if self.pools.contains_key(path) { Ok(()) } else { Err(no_pool(path, &self.name)) }
    }

    fn must_have_pool_of(&self, mapping: &Mapping) -> Result<()> {
        mapping.pool.as_deref().map_or(Ok(()), |path| self.must_have_pool(path))
    }

    fn pool_mut(&mut self, path: &str) -> Result<&mut PlanPool> {
        let name = &self.name;
        self.pools.get_mut(path).ok_or_else(|| no_pool(path, name))
    }

    fn create_pool(&mut self, path: &str, settings: &PoolSettings) -> Result<()> {
        let missing = |what: &str| {
            Error::invalid(format!("{what} should be specified for a pool")).with_sqlstate("42601")
        };
        let alloc_fraction =
            checked_fraction(settings.alloc_fraction.ok_or_else(|| missing("ALLOC_FRACTION"))?)?;
        let parallelism = settings.parallelism.ok_or_else(|| missing("QUERY_PARALLELISM"))?;
        if self.pools.contains_key(path) {
            return Err(exists("pool", path).with_hint("ALTER POOL changes it"));
        }
        if settings.path.is_some() {
            return Err(Error::invalid("a new pool has its path already").with_sqlstate("42601"));
        }
        self.must_have_parent(path)?;
        let mut pool =
            PlanPool { alloc_fraction, parallelism, policy: None, triggers: Default::default() };
        settings.policy.apply(&mut pool.policy);
        self.pools.insert(path.to_owned(), pool);
        Ok(())
    }

    fn must_have_parent(&self, path: &str) -> Result<()> {
        match parent_of(path) {
            Some(parent) if !self.pools.contains_key(parent) => {
                Err(no_pool(parent, &self.name).with_detail("it would be the parent"))
            }
            _ => Ok(()),
        }
    }

    fn alter_pool(&mut self, path: &str, settings: &PoolSettings) -> Result<()> {
        let fraction = settings.alloc_fraction.map(checked_fraction).transpose()?;
        let pool = self.pool_mut(path)?;
        pool.alloc_fraction = fraction.unwrap_or(pool.alloc_fraction);
        pool.parallelism = settings.parallelism.unwrap_or(pool.parallelism);
        settings.policy.apply(&mut pool.policy);
        match &settings.path {
            Some(to) if to != path => self.move_pool(path, to),
            _ => Ok(()),
        }
    }

    /// Gives a pool and those below it another path, wherever they are named.
    fn move_pool(&mut self, from: &str, to: &str) -> Result<()> {
        if self.pools.contains_key(to) {
            return Err(exists("pool", to));
        }
        if is_below(to, from) {
            return Err(Error::invalid(format!("pool \"{from}\" cannot be below itself"))
                .with_sqlstate("22023"));
        }
        self.must_have_parent(to)?;
        let moved = |path: &str| match path.strip_prefix(from) {
            Some(rest) if path == from || is_below(path, from) => format!("{to}{rest}"),
            _ => path.to_owned(),
        };
        let pools = std::mem::take(&mut self.pools).into_iter();
        self.pools = pools.map(|(path, pool)| (moved(&path), pool)).collect();
        self.default_pool = self.default_pool.as_deref().map(moved);
        for mapping in &mut self.mappings {
            mapping.pool = mapping.pool.as_deref().map(moved);
        }
        Ok(())
    }

    fn drop_pool(&mut self, path: &str) -> Result<()> {
        self.must_have_pool(path)?;
        if self.pools.keys().any(|other| is_below(other, path)) {
            return Err(
                state(format!("pool \"{path}\" has pools below it")).with_hint("drop these first")
            );
        }
        if self.default_pool.as_deref() == Some(path) {
            return Err(state(format!("pool \"{path}\" is the default pool of the plan"))
                .with_hint(
                    "ALTER RESOURCE PLAN name SET DEFAULT POOL = …, or UNSET DEFAULT POOL",
                ));
        }
        if self.mappings.iter().any(|mapping| mapping.pool.as_deref() == Some(path)) {
            return Err(state(format!("mappings name pool \"{path}\""))
                .with_hint("drop or alter these mappings first"));
        }
        self.pools.remove(path);
        Ok(())
    }

    fn trigger_mut(&mut self, name: &str) -> Result<&mut Trigger> {
        let plan = &self.name;
        self.triggers.get_mut(name).ok_or_else(|| {
            Error::not_found(format!("resource plan \"{plan}\" has no trigger \"{name}\""))
                .with_sqlstate("42704")
                .with_hint(format!("SHOW RESOURCE PLAN {plan} lists triggers"))
        })
    }

    fn triggers_of(
        &mut self,
        target: &PoolTarget,
    ) -> Result<&mut std::collections::BTreeSet<String>> {
        match target {
            PoolTarget::Unmanaged => Ok(&mut self.unmanaged_triggers),
            PoolTarget::Pool(path) => Ok(&mut self.pool_mut(path)?.triggers),
        }
    }

    fn drop_trigger(&mut self, name: &str) -> Result<()> {
        self.trigger_mut(name)?;
        self.triggers.remove(name);
        self.unmanaged_triggers.remove(name);
        for pool in self.pools.values_mut() {
            pool.triggers.remove(name);
        }
        Ok(())
    }

    fn create_mapping(&mut self, mapping: &Mapping) -> Result<()> {
        if self.mapping_at(mapping.kind, &mapping.name).is_some() {
            let kind = mapping.kind.name().to_lowercase();
            return Err(exists(&format!("mapping of the {kind}"), &mapping.name)
                .with_hint("ALTER … MAPPING changes it"));
        }
        self.must_have_pool_of(mapping)?;
        self.mappings.push(mapping.clone());
        self.mappings.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Ok(())
    }

    fn alter_mapping(&mut self, mapping: &Mapping) -> Result<()> {
        let at = self.mapping_at(mapping.kind, &mapping.name);
        let at = at.ok_or_else(|| no_mapping(mapping.kind, &mapping.name, &self.name))?;
        self.must_have_pool_of(mapping)?;
        self.mappings[at] = mapping.clone();
        Ok(())
    }
}

/// Whether a pool is below another one.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

/// Hive takes any number and complains when the plan is enabled.
fn checked_fraction(fraction: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    Err(Error::invalid(format!("ALLOC_FRACTION is from 0 to 1, not {fraction}"))
        .with_sqlstate("22023")
        .with_hint("it is the pool's share of what the pool above it has"))
}

fn must_be_valid(plan: &ResourcePlan) -> Result<()> {
    let problems = plan.problems();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!("resource plan \"{}\" is invalid", plan.name))
        .with_sqlstate("22023")
        .with_detail(problems.join("; "))
        .with_hint(format!("ALTER RESOURCE PLAN {} VALIDATE lists what is wrong", plan.name)))
}

fn must_not_be_active(plan: &ResourcePlan) -> Result<()> {
    if plan.status != PlanStatus::Active {
        return Ok(());
    }
    Err(state(format!("resource plan \"{}\" is active", plan.name))
        .with_hint("activate another plan first, or DISABLE WORKLOAD MANAGEMENT"))
}

fn state(message: String) -> Error {
    Error::invalid(message).with_sqlstate("55000")
}

fn exists(what: &str, name: &str) -> Error {
    Error::already_exists(format!("{what} \"{name}\" already exists")).with_sqlstate("42710")
}

fn no_plan(name: &str) -> Error {
    Error::not_found(format!("resource plan \"{name}\" does not exist"))
        .with_sqlstate("42704")
        .with_hint("SHOW RESOURCE PLANS lists them")
}

fn no_pool(path: &str, plan: &str) -> Error {
    Error::not_found(format!("resource plan \"{plan}\" has no pool \"{path}\""))
        .with_sqlstate("42704")
        .with_hint(format!("SHOW RESOURCE PLAN {plan} lists pools"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, MappingKind, Setting};

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn pool(path: &str, fraction: f64) -> PlanChange {
        let settings = PoolSettings {
            alloc_fraction: Some(fraction),
            parallelism: Some(1),
            ..PoolSettings::default()
        };
        PlanChange::CreatePool { plan: text("p"), path: text(path), settings }
    }

    fn created(plan: &str) -> PlanChange {
        PlanChange::CreatePlan {
            plan: text(plan),
            if_not_exists: false,
            like: None,
            parallelism: None,
        }
    }

    fn enabled(plan: &str, activate: bool) -> PlanChange {
        PlanChange::EnablePlan { plan: text(plan), enable: true, activate, replace: false }
    }

    fn after(changes: &[PlanChange]) -> ResourcePlans {
        let apply = |plans: ResourcePlans, change: &PlanChange| plans.apply(change).unwrap().0;
        changes.iter().fold(ResourcePlans::default(), apply)
    }

    fn check_refused(plans: &ResourcePlans, change: &PlanChange, sqlstate: &str) {
        let error = plans.apply(change).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate, "{change:?}: {error}");
        assert!(error.hint().is_some() || sqlstate == "42710", "{change:?}: {error}");
    }

    #[test]
    fn a_pool_that_moves_is_named_anew_everywhere() {
        let mapping = Mapping {
            kind: MappingKind::User,
            name: text("ann"),
            pool: Some(text("default.a")),
            order: 0,
        };
        let moved = PoolSettings { path: Some(text("def")), ..PoolSettings::default() };
        let plans = after(&[
            created("p"),
            pool("default.a", 1.0),
            pool("defaults", 0.0),
            PlanChange::CreateMapping { plan: text("p"), mapping },
            PlanChange::AlterPool { plan: text("p"), path: text("default"), settings: moved },
        ]);
        let plan = plans.plan("p").unwrap();
        let paths: Vec<&str> = plan.pools.keys().map(String::as_str).collect();
        assert_eq!(paths, ["def", "def.a", "defaults"]);
        assert_eq!(plan.default_pool.as_deref(), Some("def"));
        assert_eq!(plan.mappings[0].pool.as_deref(), Some("def.a"));
        let below = PoolSettings { path: Some(text("def.x")), ..PoolSettings::default() };
        let below = PlanChange::AlterPool { plan: text("p"), path: text("def"), settings: below };
        assert_eq!(plans.apply(&below).unwrap_err().sqlstate(), "22023");
    }

    #[test]
    fn only_a_valid_plan_is_enabled_and_only_one_is_active() {
        let plans = after(&[created("p"), created("q"), pool("a", 0.5)]);
        check_refused(&plans, &enabled("p", true), "22023");
        let fraction = PoolSettings { alloc_fraction: Some(0.5), ..PoolSettings::default() };
        let half =
            PlanChange::AlterPool { plan: text("p"), path: text("default"), settings: fraction };
        let (plans, _) = plans.apply(&half).unwrap();
        let (plans, _) = plans.apply(&enabled("p", true)).unwrap();
        check_refused(&plans, &half, "55000");
        check_refused(&plans, &PlanChange::DisablePlan { plan: text("p") }, "55000");
        check_refused(&plans, &PlanChange::DropPlan { plan: text("p"), if_exists: false }, "55000");
        let (plans, _) = plans.apply(&enabled("q", true)).unwrap();
        assert_eq!(plans.active().map(|plan| plan.name.as_str()), Some("q"));
        assert_eq!(plans.plan("p").unwrap().status, PlanStatus::Enabled);
        let (plans, _) = plans.apply(&PlanChange::DisableManagement).unwrap();
        assert_eq!(plans.active(), None);
        assert_eq!(plans.plan("q").unwrap().status, PlanStatus::Enabled);
    }

    #[test]
    fn a_plan_takes_the_place_of_another_one() {
        let plans = after(&[created("p"), created("q"), enabled("p", true)]);
        let replace = |plan: Option<&str>, with: &str| PlanChange::ReplacePlan {
            plan: plan.map(text),
            with: text(with),
        };
        check_refused(&plans, &replace(None, "nowhere"), "42704");
        assert_eq!(plans.apply(&replace(None, "p")).unwrap_err().sqlstate(), "22023");
        let (plans, _) = plans.apply(&replace(None, "q")).unwrap();
        let all: Vec<_> = plans.iter().map(|plan| (plan.name.as_str(), plan.status)).collect();
        assert_eq!(all, [("p", PlanStatus::Active), ("p_old_0", PlanStatus::Disabled)]);
    }

    #[test]
    fn triggers_that_move_queries_nowhere_are_a_problem() {
        let trigger =
            Trigger::new("BYTES_READ", "1", false, Action::Move(text("nowhere"))).unwrap();
        let plans = after(&[
            created("p"),
            PlanChange::CreateTrigger { plan: text("p"), name: text("t"), trigger },
            PlanChange::AddTrigger {
                plan: text("p"),
                name: text("t"),
                to: PoolTarget::Pool(text("default")),
            },
            PlanChange::AlterPlan {
                plan: text("p"),
                parallelism: Setting::Set(9),
                default_pool: Setting::Unset,
            },
        ]);
        let plan = plans.plan("p").unwrap();
        assert_eq!(plan.problems().len(), 1, "{:?}", plan.problems());
        assert_eq!(plan.warnings().len(), 1);
        let dropped = PlanChange::DropTrigger { plan: text("p"), name: text("t") };
        let (plans, _) = plans.apply(&dropped).unwrap();
        assert!(plans.plan("p").unwrap().problems().is_empty());
        check_refused(&plans, &dropped, "42704");
    }
}
