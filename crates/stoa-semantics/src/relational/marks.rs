//! EXISTS in the list of a SELECT, in an aggregate, in a join's condition of its own: the engine knows it in
//! WHERE only. A join marks the rows for which the subquery has some; the mark is what EXISTS says.
//!
//! **Invariant:** a node gives the columns it gave. What cannot be joined so stays as it is: the engine refuses it.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, TableReference};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, lit};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

use super::predicates::Names;

/// Puts joins below a node for each EXISTS in its expressions.
pub(super) fn join_marks(node: LogicalPlan, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    if !computes_values(&node) {
        return Ok(Transformed::no(node));
    }
    replace_by_joins(node, &mut |below, expr| match expr {
        Expr::Exists(exists) => join_mark(below.joined, exists, names),
        _ => Ok(None),
    })
}

/// Whether the expressions of a node are values of its rows.
pub(super) fn computes_values(node: &LogicalPlan) -> bool {
    matches!(
        node,
        LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_)
    )
}

/// What is below a node.
pub(super) struct Below<'a> {
    /// As it was.
    pub(super) unchanged: &'a LogicalPlan,
    /// With what was joined to it so far.
    pub(super) joined: &'a LogicalPlan,
}

/// Gives what is below an expression with one more join, and the expression that takes its place; `None` to leave it.
type Join<'a> = &'a mut dyn FnMut(&Below<'_>, &Expr) -> Result<Option<(LogicalPlan, Expr)>>;

/// Replaces parts of the expressions of a node that has one input by columns that are joined to it. The node gives the
/// columns it gave.
pub(super) fn replace_by_joins(
    node: LogicalPlan,
    join: Join<'_>,
) -> Result<Transformed<LogicalPlan>> {
    let [unchanged] = node.inputs()[..] else { return Ok(Transformed::no(node)) };
    let (mut joined, mut any) = (unchanged.clone(), false);
    let columns = node.schema().columns();
    let saver = NamePreserver::new(&node);
    let mut expressions = Vec::new();
    for expr in node.expressions() {
        let name = saver.save(&expr);
        let replaced = expr.transform_up(|expr| {
            let below = Below { unchanged, joined: &joined };
            Ok(match join(&below, &expr)? {
                Some((more, column)) => {
                    joined = more;
                    Transformed::yes(column)
                }
                None => Transformed::no(expr),
            })
        })?;
        any |= replaced.transformed;
        expressions.push(name.restore(replaced.data));
    }
    if !any {
        return Ok(Transformed::no(node));
    }
    let replaced = node.with_new_exprs(expressions, vec![joined])?;
    if replaced.schema().fields().len() == columns.len() {
        return Ok(Transformed::yes(replaced));
    }
    let columns = columns.into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(replaced).project(columns)?.build().map(Transformed::yes)
}

/// EXISTS in VALUES, which have no rows to mark: whether a first row can be counted.
pub(super) fn counted_in_values(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !matches!(node, LogicalPlan::Values(_)) {
        return Ok(Transformed::no(node));
    }
    node.map_expressions(|expr| {
        expr.transform_up(|expr| match expr {
            Expr::Exists(exists) if exists.subquery.outer_ref_columns.is_empty() => {
                count_first(exists).map(Transformed::yes)
            }
            other => Ok(Transformed::no(other)),
        })
    })
}

fn count_first(exists: Exists) -> Result<Expr> {
    let Exists { subquery, negated } = exists;
    let counted = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
        .limit(0, Some(1))?
        .aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64))])?;
    let counted_rows = Expr::Column(Column::from(counted.schema().qualified_field(0)));
    let is_there = match negated {
        true => counted_rows.eq(lit(0_i64)),
        false => counted_rows.gt(lit(0_i64)),
    };
    let counted = counted.project([is_there.alias("exists")])?.build()?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(counted), ..subquery }))
}

/// `input` with a mark for the rows for which the subquery has some; `None` where it cannot be joined.
fn join_mark(
    input: &LogicalPlan,
    exists: &Exists,
    names: &mut Names,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let mut pull_up = PullUpCorrelatedExpr::new().with_exists_sub_query(true);
    let rows = exists.subquery.subquery.as_ref().clone().rewrite(&mut pull_up)?.data;
    if !pull_up.can_pull_up || !rows.all_out_ref_exprs().is_empty() {
        return Ok(None);
    }
    let name = names.next("exists");
    let inner: Vec<Column> =
        pull_up.correlated_subquery_cols_map.values().flatten().cloned().collect();
    let filter = conjunction(pull_up.join_filters)
        .map(|filter| qualified(filter, &inner, &name))
        .transpose()?;
    let rows = match &filter {
        // One row says as much as many.
        None => LogicalPlanBuilder::from(rows).limit(0, Some(1))?,
        Some(_) => LogicalPlanBuilder::from(rows),
    };
    let rows = rows.alias(name.as_str())?.build()?;
    let joined = LogicalPlanBuilder::from(input.clone())
        .join_on(rows, JoinType::LeftMark, Some(filter.unwrap_or_else(|| lit(true))))?
        .build()?;
    let mark = Expr::Column(Column::new(Some(TableReference::bare(name)), "mark"));
    Ok(Some((joined, if exists.negated { !mark } else { mark })))
}

/// A condition on columns of the subquery, which now has a name.
fn qualified(filter: Expr, inner: &[Column], name: &str) -> Result<Expr> {
    let renamed = filter.transform_up(|expr| match expr {
        Expr::Column(column) if inner.contains(&column) => {
            let relation = Some(TableReference::bare(name.to_owned()));
            Ok(Transformed::yes(Expr::Column(Column::new(relation, column.name))))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(renamed.data)
}
