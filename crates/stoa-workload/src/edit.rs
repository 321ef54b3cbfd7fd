//! All plans of a catalog, and changes of them.

use std::collections::BTreeMap;

use stoa_error::{Error, Result};

use crate::change::PlanChange;
use crate::destination::no_mapping;
use crate::failure::{exists, state};
use crate::plan::{PlanStatus, ResourcePlan};

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

fn no_plan(name: &str) -> Error {
    Error::not_found(format!("resource plan \"{name}\" does not exist"))
        .with_sqlstate("42704")
        .with_hint("SHOW RESOURCE PLANS lists them")
}

#[cfg(test)]
mod tests;
