//! Changes of resource plans, one for each statement.

use crate::mapping::{Mapping, MappingKind};
use crate::plan::SchedulingPolicy;
use crate::trigger::Trigger;

/// A change of resource plans.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "fields are named as in the syntax above them")]
pub enum PlanChange {
    /// `CREATE RESOURCE PLAN [IF NOT EXISTS] plan [LIKE like | WITH QUERY_PARALLELISM = n]`
    CreatePlan { plan: String, if_not_exists: bool, like: Option<String>, parallelism: Option<u32> },
    /// `ALTER RESOURCE PLAN plan SET … | UNSET …`
    AlterPlan { plan: String, parallelism: Setting<u32>, default_pool: Setting<String> },
    /// `ALTER RESOURCE PLAN plan RENAME TO name`
    RenamePlan { plan: String, to: String },
    /// `ALTER RESOURCE PLAN plan [ENABLE] [ACTIVATE [WITH REPLACE]]`
    EnablePlan { plan: String, enable: bool, activate: bool, replace: bool },
    /// `ALTER RESOURCE PLAN plan DISABLE`
    DisablePlan { plan: String },
    /// `REPLACE RESOURCE PLAN plan WITH with`, `REPLACE ACTIVE RESOURCE PLAN WITH with`
    ReplacePlan { plan: Option<String>, with: String },
    /// `DROP RESOURCE PLAN [IF EXISTS] plan`
    DropPlan { plan: String, if_exists: bool },
    /// `ENABLE WORKLOAD MANAGEMENT`: the plan that is active stays so.
    EnableManagement,
    /// `DISABLE WORKLOAD MANAGEMENT`: no plan is active any more.
    DisableManagement,
    /// `CREATE POOL plan.path WITH …`
    CreatePool { plan: String, path: String, settings: PoolSettings },
    /// `ALTER POOL plan.path SET … | UNSET SCHEDULING_POLICY`
    AlterPool { plan: String, path: String, settings: PoolSettings },
    /// `DROP POOL plan.path`
    DropPool { plan: String, path: String },
    /// `CREATE TRIGGER plan.name WHEN … DO …`
    CreateTrigger { plan: String, name: String, trigger: Trigger },
    /// `ALTER TRIGGER plan.name WHEN … DO …`
    AlterTrigger { plan: String, name: String, trigger: Trigger },
    /// `DROP TRIGGER plan.name`
    DropTrigger { plan: String, name: String },
    /// `ALTER POOL plan.path ADD TRIGGER name`, `ALTER TRIGGER plan.name ADD TO POOL path | UNMANAGED`
    AddTrigger { plan: String, name: String, to: PoolTarget },
    /// `ALTER POOL plan.path DROP TRIGGER name`, `ALTER TRIGGER plan.name DROP FROM POOL path | UNMANAGED`
    RemoveTrigger { plan: String, name: String, from: PoolTarget },
    /// `CREATE USER|GROUP|APPLICATION MAPPING 'name' IN plan TO pool | UNMANAGED [WITH ORDER n]`
    CreateMapping { plan: String, mapping: Mapping },
    /// `ALTER USER|GROUP|APPLICATION MAPPING 'name' IN plan TO pool | UNMANAGED [WITH ORDER n]`
    AlterMapping { plan: String, mapping: Mapping },
    /// `DROP USER|GROUP|APPLICATION MAPPING 'name' IN plan`
    DropMapping { plan: String, kind: MappingKind, name: String },
}

/// What becomes of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// It stays.
    #[default]
    Keep,
    /// It is no more.
    Unset,
    /// It is this from now on.
    Set(T),
}

impl<T> Setting<T> {
    pub(crate) fn apply(&self, to: &mut Option<T>)
    where
        T: Clone,
    {
        match self {
            Self::Keep => {}
            Self::Unset => *to = None,
            Self::Set(value) => *to = Some(value.clone()),
        }
    }
}

/// What is said of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolSettings {
    /// `ALLOC_FRACTION`, 0 to 1.
    pub alloc_fraction: Option<f64>,
    /// `QUERY_PARALLELISM`.
    pub parallelism: Option<u32>,
    /// `SCHEDULING_POLICY`.
    pub policy: Setting<SchedulingPolicy>,
    /// `PATH`: where it and the pools below it are from now on.
    pub path: Option<String>,
}

/// Whose queries a trigger holds for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolTarget {
    /// Those of the pool of this path.
    Pool(String),
    /// Those of no pool.
    Unmanaged,
}

impl PlanChange {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::CreatePlan { .. } => "CREATE RESOURCE PLAN",
            Self::AlterPlan { .. }
            | Self::RenamePlan { .. }
            | Self::EnablePlan { .. }
            | Self::DisablePlan { .. } => "ALTER RESOURCE PLAN",
            Self::ReplacePlan { .. } => "REPLACE RESOURCE PLAN",
            Self::DropPlan { .. } => "DROP RESOURCE PLAN",
            Self::EnableManagement => "ENABLE WORKLOAD MANAGEMENT",
            Self::DisableManagement => "DISABLE WORKLOAD MANAGEMENT",
            Self::CreatePool { .. } => "CREATE POOL",
            Self::AlterPool { .. } => "ALTER POOL",
            Self::DropPool { .. } => "DROP POOL",
            Self::CreateTrigger { .. } => "CREATE TRIGGER",
            Self::AlterTrigger { .. } | Self::AddTrigger { .. } | Self::RemoveTrigger { .. } => {
                "ALTER TRIGGER"
            }
            Self::DropTrigger { .. } => "DROP TRIGGER",
            Self::CreateMapping { .. } => "CREATE MAPPING",
            Self::AlterMapping { .. } => "ALTER MAPPING",
            Self::DropMapping { .. } => "DROP MAPPING",
        }
    }
}
