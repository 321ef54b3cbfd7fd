//! `EXCEPT ALL` and `INTERSECT ALL`: of a row that is there m times on one side and n times on the other,
//! max(m - n, 0) and min(m, n) are left. The engine keeps all m or none.
//!
//! Equal rows are numbered on both sides, and the number is compared with the rest of the row.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder,
};

/// Name of the number among equal rows.
const NUMBER: &str = "__number_among_equals";

/// Counts rows in an `EXCEPT ALL` or an `INTERSECT ALL`.
pub(super) fn count_rows(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Join(join) if is_set_operation(&join) => {
            let columns = join.left.schema().columns();
            let (left, mut left_keys) = numbered(&join.left)?;
            let (right, mut right_keys) = numbered(&join.right)?;
            left_keys.push(Column::from_name(NUMBER));
            right_keys.push(Column::from_name(NUMBER));
            let joined = LogicalPlanBuilder::from(left)
                .join_detailed(
                    right,
                    join.join_type,
                    (left_keys, right_keys),
                    None,
                    NullEquality::NullEqualsNull,
                )?
                .project(columns.into_iter().map(Expr::Column))?
                .build()?;
            Ok(Transformed::yes(joined))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Orders the rows of a `DISTINCT ON` by each expression once: the engine fails on a second time.
pub(super) fn order_once(node: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Distinct(Distinct::On(mut on)) = node else { return Transformed::no(node) };
    let mut is_changed = false;
    if let Some(order) = &mut on.sort_expr {
        let before = order.len();
        let mut known: Vec<Expr> = Vec::new();
        order.retain(|sort| {
            let is_new = !known.contains(&sort.expr);
            known.extend(is_new.then(|| sort.expr.clone()));
            is_new
        });
        is_changed = order.len() != before;
    }
    Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), is_changed)
}

/// Nothing else joins so; a side without equal rows needs no numbers.
fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !matches!(&*join.left, LogicalPlan::Distinct(Distinct::All(_)))
        && join.left.schema().fields().iter().all(|field| field.name() != NUMBER)
}

fn numbered(side: &Arc<LogicalPlan>) -> Result<(LogicalPlan, Vec<Column>)> {
    let columns = side.schema().columns();
    let keys: Vec<Expr> = columns.iter().cloned().map(Expr::Column).collect();
    let number = row_number().partition_by(keys).build()?.alias(NUMBER);
    let plan = LogicalPlanBuilder::from(side.as_ref().clone()).window(vec![number])?.build()?;
    Ok((plan, columns))
}
