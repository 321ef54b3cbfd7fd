//! Which scans are told what operators above them come to know.
//!
//! In: a plan that is about to run on this daemon. Out: the same plan, in which hash joins tell scans on their probe
//! side the keys of their build side, and sorts with a limit the worst of their best rows. The engine has a rule of its
//! own for that, which finds columns by name; here they are followed by their place.
//!
//! **Invariant:** a filter passes an operator only if leaving out rows below it leaves out no other rows above it.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result as EngineResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, lit};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use crate::tables::scan::OrcScanExec;

/// Places the filters that joins and sorts make.
///
/// # Errors
/// Those of operators that get other inputs.
pub(crate) fn place_filters(plan: Arc<dyn ExecutionPlan>) -> EngineResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let placed = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            of_join(join)?
        } else if let Some(sort) = node.downcast_ref::<SortExec>() {
            of_sort(&node, sort)?
        } else {
            None
        };
        Ok(placed.map_or_else(|| Transformed::no(node), Transformed::yes))
    })
    .data()
}

fn of_join(join: &HashJoinExec) -> EngineResult<Option<Arc<dyn ExecutionPlan>>> {
    let (_, tells_probe_side) = join.join_type().on_lr_is_preserved();
    // Of several keys, scans are told a list of values for each. NULL is in none of these, so it must not be equal to itself.
    let is_understood =
        join.on().len() == 1 || join.null_equality() == NullEquality::NullEqualsNothing;
    if !tells_probe_side || !is_understood || !join.dynamic_expressions_produced().is_empty() {
        return Ok(None);
    }
    let keys: Vec<_> = join.on().iter().map(|(_, right)| Arc::clone(right)).collect();
    let filter = Arc::new(DynamicFilterPhysicalExpr::new(keys, lit(true)));
    let told = Arc::clone(&filter) as Arc<dyn PhysicalExpr>;
    if !can_be_moved(&told)? {
        return Ok(None);
    }
    let Some(right) = told_below(join.right(), &told)? else { return Ok(None) };
    let inputs = vec![Arc::clone(join.left()), right];
    let join = join.builder().with_new_children(inputs)?.build()?;
    Ok(Some(Arc::new(join.with_dynamic_filter_expr(filter)?)))
}

fn of_sort(
    node: &Arc<dyn ExecutionPlan>,
    sort: &SortExec,
) -> EngineResult<Option<Arc<dyn ExecutionPlan>>> {
    let mut told = Arc::clone(sort.input());
    let mut is_told = false;
    for filter in sort.dynamic_expressions_produced() {
        if can_be_moved(&filter)?
            && let Some(below) = told_below(&told, &filter)?
        {
            (told, is_told) = (below, true);
        }
    }
    is_told.then(|| with_children(node, vec![told])).transpose()
}

fn with_children(
    node: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    Arc::clone(node)
        .replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}

/// `plan` with scans that are told of `filter`, which is over its columns; `None` where none is.
fn told_below(
    plan: &Arc<dyn ExecutionPlan>,
    filter: &Arc<dyn PhysicalExpr>,
) -> EngineResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<OrcScanExec>() {
        return Ok(Some(Arc::new(scan.told(filter)?)));
    }
    let mut children: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
    let mut is_told = false;
    for (child, place) in children.iter_mut().zip(ways_down(plan.as_ref())) {
        let Some(place) = place else { continue };
        let Some(moved) = moved(filter, &place, child.as_ref())? else { continue };
        if let Some(told) = told_below(child, &moved)? {
            (*child, is_told) = (told, true);
        }
    }
    is_told.then(|| with_children(plan, children)).transpose()
}

/// Where the columns of an operator come from: places in an input, in the order of the operator's columns.
type Places = Vec<Option<usize>>;

/// For each input of an operator, where its columns are there; `None` where filters do not pass.
fn ways_down(plan: &dyn ExecutionPlan) -> Vec<Option<Places>> {
    let same = || (0..plan.schema().fields().len()).map(Some).collect::<Places>();
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let kept = filter.projection().as_ref();
        let places = kept.map_or_else(same, |kept| kept.iter().copied().map(Some).collect());
        return vec![filter.fetch().is_none().then_some(places)];
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column =
            |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
        return vec![Some(projection.expr().iter().map(|one| column(&one.expr)).collect())];
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return vec![of_groups(aggregate)];
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return of_sides(join);
    }
    let passes = plan.is::<RepartitionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<UnionExec>()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some_and(|all| all.fetch().is_none())
        || plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none());
    plan.children().iter().map(|_| passes.then(same)).collect()
}

/// Keys of groups come from the input: without a key's rows, its group is not there, and no other is another one.
fn of_groups(aggregate: &AggregateExec) -> Option<Places> {
    let group_by = aggregate.group_expr();
    if group_by.has_grouping_set() || aggregate.limit_options().is_some() {
        return None;
    }
    let keys = group_by.expr().iter();
    let mut places: Places =
        keys.map(|(key, _)| key.downcast_ref::<Column>().map(Column::index)).collect();
    places.resize(aggregate.schema().fields().len(), None);
    Some(places)
}

fn of_sides(join: &HashJoinExec) -> Vec<Option<Places>> {
    let (left, right) = (join.left().schema().fields().len(), join.right().schema().fields().len());
    let (left_passes, right_passes) = match join.join_type() {
        JoinType::Inner => (true, true),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (true, false)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (false, true)
        }
        JoinType::Full => (false, false),
    };
    // Columns of the join before its projection: of the left side, then of the right one, if it has both.
    let has_left = !matches!(
        join.join_type(),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
    );
    let left_end = if has_left { left } else { 0 };
    let count = join.schema().fields().len();
    let kept: Vec<usize> = match join.projection.as_ref() {
        Some(kept) => kept.iter().copied().collect(),
        None => (0..count).collect(),
    };
    let equal = equal_columns(join);
    let on_left = |at: &usize| (*at < left_end).then_some(*at);
    let on_right = |at: &usize| at.checked_sub(left_end).filter(|at| *at < right);
    let of_left = |at: &usize| {
        let key = |at| equal.iter().find(|(_, other)| *other == at).map(|(key, _)| *key);
        on_left(at).or_else(|| on_right(at).and_then(key))
    };
    let of_right = |at: &usize| {
        let key = |at| equal.iter().find(|(other, _)| *other == at).map(|(_, key)| *key);
        on_right(at).or_else(|| on_left(at).and_then(key))
    };
    vec![
        left_passes.then(|| kept.iter().map(of_left).collect()),
        right_passes.then(|| kept.iter().map(of_right).collect()),
    ]
}

/// Pairs of a column of the left side and one of the right side that are equal in all rows of an inner join, so that a
/// filter on one of them holds for the other: with `c.nation = s.nation AND s.nation = n.id`, a filter on `s.nation`,
/// made of the nations' keys, leaves out customers as well as suppliers.
fn equal_columns(join: &HashJoinExec) -> Vec<(usize, usize)> {
    if *join.join_type() != JoinType::Inner {
        return Vec::new();
    }
    let (left, right) = (join.left().schema(), join.right().schema());
    let place = |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().map(Column::index);
    let pairs = join.on().iter().filter_map(|(left, right)| Some((place(left)?, place(right)?)));
    // Equal floating-point numbers may have different bits, such as those of 0.0 and -0.0.
    let is_same = |(at, other): &(usize, usize)| {
        let kind = left.field(*at).data_type();
        kind == right.field(*other).data_type() && !kind.is_floating() && !kind.is_nested()
    };
    pairs.filter(is_same).collect()
}

/// `filter` over the columns of an input; `None` where it does not have them all.
fn moved(
    filter: &Arc<dyn PhysicalExpr>,
    places: &[Option<usize>],
    input: &dyn ExecutionPlan,
) -> EngineResult<Option<Arc<dyn PhysicalExpr>>> {
    let used: BTreeSet<usize> = collect_columns(filter).iter().map(Column::index).collect();
    if used.iter().any(|at| places.get(*at).copied().flatten().is_none()) {
        return Ok(None);
    }
    let schema = input.schema();
    let moved = Arc::clone(filter).transform_down(|expr| {
        let place = expr.downcast_ref::<Column>().and_then(|column| *places.get(column.index())?);
        Ok(match place {
            Some(place) => {
                Transformed::yes(Arc::new(Column::new(schema.field(place).name(), place)) as _)
            }
            None => Transformed::no(expr),
        })
    })?;
    Ok(Some(moved.data))
}

/// Whether no key of a filter is part of another key, as in `ORDER BY a - b, b`. The engine puts moved keys in the place of
/// the keys that the filter was made of, from the inside out (`DynamicFilterPhysicalExpr::remap_children`): once `b` has
/// another place, `a - b` is not found any more, and would be computed from other columns. A scan moves keys, too: to the columns
/// that they need.
fn can_be_moved(filter: &Arc<dyn PhysicalExpr>) -> EngineResult<bool> {
    let keys = filter.children();
    for key in &keys {
        for other in keys.iter().filter(|other| other.as_ref() != key.as_ref()) {
            if other.exists(|part| Ok(part.as_ref() == key.as_ref()))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
