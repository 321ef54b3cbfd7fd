//! Large groupings that are made of chunks, in the place of the engine's partial aggregation.
//!
//! ```text
//! AggregateExec: Partial                        FoldScanExec ─ chunks, packed and coded ─► keys and states
//!   ProjectionExec, FilterExec      ─becomes─►    (AggregateExec: Partial … OrcScanExec, for what is not in chunks)
//!     OrcScanExec
//! ```
//! In: a plan that is about to run on this daemon. Out: the same plan, in which aggregations over scans of columns that
//! `stoa-report` keeps are made where the columns are ([`Fold`]). What cannot be put into its terms stays as it is.
//!
//! **Invariant:** the states are those that the engine's accumulators of the same functions give, so that they merge.

mod compile;
mod exec;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as EngineResult;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use super::{OrcScanExec, picks_sort_key};
use compile::folded;
use exec::FoldScanExec;

type Plan = Arc<dyn ExecutionPlan>;

/// Puts groupings of chunks in the place of partial aggregations.
///
/// # Errors
/// Those of operators that get other inputs.
pub(crate) fn place_folds(plan: Arc<dyn ExecutionPlan>) -> EngineResult<Arc<dyn ExecutionPlan>> {
    plan.transform_down(|node| {
        let Some(aggregate) = node.downcast_ref::<AggregateExec>() else {
            return Ok(Transformed::no(node));
        };
        match placed(aggregate)? {
            Some(placed) => Ok(Transformed::new(
                placed,
                true,
                datafusion::common::tree_node::TreeNodeRecursion::Jump,
            )),
            None => Ok(Transformed::no(node)),
        }
    })
    .data()
}

fn placed(aggregate: &AggregateExec) -> EngineResult<Option<Arc<dyn ExecutionPlan>>> {
    if *aggregate.mode() == AggregateMode::Partial
        && let Some(union) = union_below(aggregate.input())
    {
        return placed_in_parts(aggregate, union);
    }
    let Some(scan) = scan_below(aggregate.input()) else { return Ok(None) };
    // Few rows: the scan finds them by itself.
    if picks_sort_key(&scan.table, &scan.predicate) {
        return Ok(None);
    }
    let is_partial = match aggregate.mode() {
        AggregateMode::Partial => true,
        AggregateMode::Single => false,
        _ => return Ok(None),
    };
    if aggregate.limit_options().is_some() {
        return Ok(None);
    }
    let group_by = aggregate.group_expr();
    let partial = match is_partial {
        true => aggregate.clone(),
        false => {
            let (functions, filters) = (aggregate.aggr_expr(), aggregate.filter_expr());
            let (input, schema) = (Arc::clone(aggregate.input()), aggregate.input_schema());
            AggregateExec::try_new(
                AggregateMode::Partial,
                group_by.clone(),
                functions.to_vec(),
                filters.to_vec(),
                input,
                schema,
            )?
        }
    };
    let Some(folded) = folded(&partial)? else { return Ok(None) };
    let fold: Arc<dyn ExecutionPlan> = Arc::new(FoldScanExec::new(Arc::new(partial), folded));
    if is_partial {
        return Ok(Some(fold));
    }
    let functions = aggregate.aggr_expr().to_vec();
    let filters = vec![None; functions.len()];
    let whole = AggregateExec::try_new(
        AggregateMode::Final,
        group_by.as_final(),
        functions,
        filters,
        fold,
        aggregate.input_schema(),
    )?;
    // Columns are found by place, but a schema that differs would be seen.
    Ok((whole.schema() == aggregate.schema()).then(|| Arc::new(whole) as _))
}

/// States of a union are those of its parts, such as files and rows that are not in files yet.
fn placed_in_parts(
    aggregate: &AggregateExec,
    union: &UnionExec,
) -> EngineResult<Option<Arc<dyn ExecutionPlan>>> {
    // A union does not know which of its columns are equal to each other, and operators above may count on it.
    let properties = &aggregate.properties().eq_properties;
    if properties.eq_group().iter().any(|equal| equal.len() > 1) {
        return Ok(None);
    }
    let mut is_placed = false;
    let mut parts = Vec::with_capacity(union.inputs().len());
    for part in union.inputs() {
        let input = with_end(aggregate.input(), &|plan| {
            Ok(plan.is::<UnionExec>().then(|| Arc::clone(part)))
        })?;
        let partial = AggregateExec::try_new(
            AggregateMode::Partial,
            aggregate.group_expr().clone(),
            aggregate.aggr_expr().to_vec(),
            aggregate.filter_expr().to_vec(),
            input,
            aggregate.input_schema(),
        )?;
        let partial = match aggregate.limit_options() {
            Some(limit) => partial.with_limit_options(Some(limit)),
            None => partial,
        };
        match placed(&partial)? {
            Some(placed) => {
                is_placed = true;
                parts.push(placed);
            }
            None => parts.push(Arc::new(partial)),
        }
    }
    is_placed.then(|| UnionExec::try_new(parts)).transpose()
}

/// A chain of operators with another plan at its end: `end` makes it of the operator that is the end, and gives `None` for
/// all before.
fn with_end(plan: &Plan, end: &dyn Fn(&Plan) -> EngineResult<Option<Plan>>) -> EngineResult<Plan> {
    if let Some(end) = end(plan)? {
        return Ok(end);
    }
    let children = plan.children().into_iter().map(|child| with_end(child, end));
    let children = children.collect::<EngineResult<Vec<_>>>()?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(children, options)
}

/// The union at the end of a chain of projections and filters.
fn union_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&UnionExec> {
    let mut plan = plan;
    loop {
        if let Some(union) = plan.downcast_ref::<UnionExec>() {
            return Some(union);
        }
        plan = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            projection.input()
        } else {
            plan.downcast_ref::<FilterExec>()?.input()
        };
    }
}

/// The scan at the end of a chain of operators with one input each.
fn scan_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&OrcScanExec> {
    let mut plan = plan;
    loop {
        if let Some(scan) = plan.downcast_ref::<OrcScanExec>() {
            return Some(scan);
        }
        let [only] = plan.children()[..] else { return None };
        plan = only;
    }
}
