//! Resource plans, in tables with Hive's names and columns.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// All resource plans, as rows.
#[derive(Clone, Debug, Default)]
pub struct ResourcePlanRows {
    /// Plans.
    pub plans: Vec<PlanRow>,
    /// Their pools.
    pub pools: Vec<PlanPoolRow>,
    /// Their triggers.
    pub triggers: Vec<PlanTriggerRow>,
    /// For which pools triggers hold.
    pub pools_to_triggers: Vec<PoolTriggerRow>,
    /// Who goes into which pool.
    pub mappings: Vec<PlanMappingRow>,
}

/// One plan.
#[derive(Clone, Debug, Default)]
pub struct PlanRow {
    /// Its name.
    pub name: String,
    /// DISABLED, ENABLED or ACTIVE.
    pub status: &'static str,
    /// Queries that may run at the same time.
    pub query_parallelism: Option<u64>,
    /// The pool of everybody whom no mapping names.
    pub default_pool_path: Option<String>,
}

/// One pool.
#[derive(Clone, Debug, Default)]
pub struct PlanPoolRow {
    /// Its plan.
    pub rp_name: String,
    /// Its path.
    pub path: String,
    /// Its share of what the pool above it has.
    pub alloc_fraction: f64,
    /// Queries that may run at the same time.
    pub query_parallelism: u64,
    /// Who goes first among those that wait.
    pub scheduling_policy: Option<&'static str>,
}

/// One trigger.
#[derive(Clone, Debug, Default)]
pub struct PlanTriggerRow {
    /// Its plan.
    pub rp_name: String,
    /// Its name.
    pub name: String,
    /// Its condition.
    pub trigger_expression: String,
    /// What it does.
    pub action_expression: String,
}

/// A trigger that holds for a pool.
#[derive(Clone, Debug, Default)]
pub struct PoolTriggerRow {
    /// The plan.
    pub rp_name: String,
    /// The pool.
    pub pool_path: String,
    /// The trigger.
    pub trigger_name: String,
}

/// Who goes into which pool.
#[derive(Clone, Debug, Default)]
pub struct PlanMappingRow {
    /// The plan.
    pub rp_name: String,
    /// USER, GROUP or APPLICATION.
    pub entity_type: &'static str,
    /// Its name.
    pub entity_name: String,
    /// The pool.
    pub pool_path: String,
    /// The lowest counts.
    pub ordering: u64,
}

const QUERIES: Unit = Unit::Of("queries");
const PLAN: &str = "Name of the plan.";
/// Hive's tables have it.
const NS: &str = "Always default.";

const PLANS: &[Figure<PlanRow>] = &[
    Figure::<PlanRow>::key("name", PLAN, |s| &s.name),
    Figure::<PlanRow>::text("ns", NS, |_| "default"),
    Figure::<PlanRow>::text("status", "DISABLED, ENABLED or ACTIVE.", |s| s.status),
    Figure::<PlanRow>::maybe_gauge(
        "query_parallelism",
        QUERIES,
        "Queries that its pools may run at the same time; null where that is not checked.",
        |s| s.query_parallelism,
    ),
    Figure::<PlanRow>::maybe_text(
        "default_pool_path",
        "Path of the pool of everybody whom no mapping names.",
        |s| s.default_pool_path.as_deref(),
    ),
];

const POOLS: &[Figure<PlanPoolRow>] = &[
    Figure::<PlanPoolRow>::key("rp_name", PLAN, |s| &s.rp_name),
    Figure::<PlanPoolRow>::text("ns", NS, |_| "default"),
    Figure::<PlanPoolRow>::key("path", "Path of the pool.", |s| &s.path),
    Figure::<PlanPoolRow>::float(
        "alloc_fraction",
        Kind::Gauge,
        Unit::Of("of 1"),
        "Its share of what the pool above it has.",
        |s| s.alloc_fraction,
    ),
    Figure::<PlanPoolRow>::gauge(
        "query_parallelism",
        QUERIES,
        "Queries that may run at the same time.",
        |s| s.query_parallelism,
    ),
    Figure::<PlanPoolRow>::maybe_text(
        "scheduling_policy",
        "Who goes first among those that wait: fair, fifo or default.",
        |s| s.scheduling_policy,
    ),
];

const TRIGGERS: &[Figure<PlanTriggerRow>] = &[
    Figure::<PlanTriggerRow>::key("rp_name", PLAN, |s| &s.rp_name),
    Figure::<PlanTriggerRow>::text("ns", NS, |_| "default"),
    Figure::<PlanTriggerRow>::key("name", "Name of the trigger.", |s| &s.name),
    Figure::<PlanTriggerRow>::text("trigger_expression", "Its condition.", |s| {
        &s.trigger_expression
    }),
    Figure::<PlanTriggerRow>::text("action_expression", "KILL, or MOVE TO a pool.", |s| {
        &s.action_expression
    }),
];

const POOL_TRIGGERS: &[Figure<PoolTriggerRow>] = &[
    Figure::<PoolTriggerRow>::key("rp_name", PLAN, |s| &s.rp_name),
    Figure::<PoolTriggerRow>::text("ns", NS, |_| "default"),
    Figure::<PoolTriggerRow>::key(
        "pool_path",
        "Path of the pool; <unmanaged queries> for queries of no pool.",
        |s| &s.pool_path,
    ),
    Figure::<PoolTriggerRow>::key("trigger_name", "Name of the trigger.", |s| &s.trigger_name),
];

const MAPPINGS: &[Figure<PlanMappingRow>] = &[
    Figure::<PlanMappingRow>::key("rp_name", PLAN, |s| &s.rp_name),
    Figure::<PlanMappingRow>::text("ns", NS, |_| "default"),
    Figure::<PlanMappingRow>::key("entity_type", "USER, GROUP or APPLICATION.", |s| s.entity_type),
    Figure::<PlanMappingRow>::key("entity_name", "Name of the user, role or program.", |s| {
        &s.entity_name
    }),
    Figure::<PlanMappingRow>::text(
        "pool_path",
        "Path of the pool; <unmanaged> for no pool of the plan.",
        |s| &s.pool_path,
    ),
    Figure::<PlanMappingRow>::gauge("ordering", Unit::Of("places"), "The lowest counts.", |s| {
        s.ordering
    }),
];

/// `system.wm_resourceplans`.
pub static WM_RESOURCEPLANS: Group<PlanRow> =
    Group::new("wm_resourceplans", "ResourcePlan", "Resource plans.", Shape::Many, PLANS).table();

/// `system.wm_pools`.
pub static WM_POOLS: Group<PlanPoolRow> =
    Group::new("wm_pools", "PlanPool", "Pools of resource plans.", Shape::Many, POOLS).table();

/// `system.wm_triggers`.
pub static WM_TRIGGERS: Group<PlanTriggerRow> =
    Group::new("wm_triggers", "PlanTrigger", "Triggers of resource plans.", Shape::Many, TRIGGERS)
        .table();

/// `system.wm_pools_to_triggers`.
pub static WM_POOLS_TO_TRIGGERS: Group<PoolTriggerRow> = Group::new(
    "wm_pools_to_triggers",
    "PoolTrigger",
    "For which pools of resource plans their triggers hold.",
    Shape::Many,
    POOL_TRIGGERS,
)
.table();

/// `system.wm_mappings`.
pub static WM_MAPPINGS: Group<PlanMappingRow> = Group::new(
    "wm_mappings",
    "PlanMapping",
    "Who goes into which pool of a resource plan.",
    Shape::Many,
    MAPPINGS,
)
.table();
