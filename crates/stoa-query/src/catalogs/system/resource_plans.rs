//! `system.wm_resourceplans` and the other tables about resource plans.

use stoa_error::Result;
use stoa_figures::{
    PlanMappingRow, PlanPoolRow, PlanRow, PlanTriggerRow, PoolTriggerRow, ResourcePlanRows,
};
use stoa_workload::{ResourcePlan, UNMANAGED, UNMANAGED_QUERIES};

use crate::engine::Engine;

/// All plans, as rows.
///
/// # Errors
/// The catalog's.
pub(super) async fn load(engine: &Engine) -> Result<ResourcePlanRows> {
    let plans = engine.rights().catalog().resource_plans().await?;
    let mut rows = ResourcePlanRows::default();
    for plan in plans.iter() {
        add(plan, &mut rows);
    }
    Ok(rows)
}

fn add(plan: &ResourcePlan, rows: &mut ResourcePlanRows) {
    let rp_name = || plan.name.clone();
    rows.plans.push(PlanRow {
        name: rp_name(),
        status: plan.status.name(),
        query_parallelism: plan.parallelism.map(u64::from),
        default_pool_path: plan.default_pool.clone(),
    });
    rows.pools.extend(plan.pools.iter().map(|(path, pool)| PlanPoolRow {
        rp_name: rp_name(),
        path: path.clone(),
        alloc_fraction: pool.alloc_fraction,
        query_parallelism: pool.parallelism.into(),
        scheduling_policy: pool.policy.map(|policy| policy.name()),
    }));
    rows.triggers.extend(plan.triggers.iter().map(|(name, trigger)| PlanTriggerRow {
        rp_name: rp_name(),
        name: name.clone(),
        trigger_expression: trigger.expression.clone(),
        action_expression: trigger.action.text(),
    }));
    let of_pool = |path: &str, name: &String| PoolTriggerRow {
        rp_name: rp_name(),
        pool_path: path.to_owned(),
        trigger_name: name.clone(),
    };
    let unmanaged = plan.unmanaged_triggers.iter();
    rows.pools_to_triggers.extend(unmanaged.map(|name| of_pool(UNMANAGED_QUERIES, name)));
    for (path, pool) in &plan.pools {
        rows.pools_to_triggers.extend(pool.triggers.iter().map(|name| of_pool(path, name)));
    }
    rows.mappings.extend(plan.mappings.iter().map(|mapping| PlanMappingRow {
        rp_name: rp_name(),
        entity_type: mapping.kind.name(),
        entity_name: mapping.name.clone(),
        pool_path: mapping.pool.clone().unwrap_or_else(|| UNMANAGED.to_owned()),
        ordering: mapping.order.into(),
    }));
}
