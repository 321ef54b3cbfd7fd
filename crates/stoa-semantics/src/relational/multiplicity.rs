//! `EXCEPT ALL` and `INTERSECT ALL`: of a row that is there m times on one side and n times on the other,
//! max(m - n, 0) and min(m, n) are left. The engine keeps all m or none.
//!
//! Equal rows are numbered on both sides, and the number is compared with the rest of the row.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, Operator,
    lit,
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

/// Orders the rows of a `DISTINCT ON` by each expression once: the engine fails on a second time, also where it
/// finds two to be the same, as `b` and `b OR b`. What depends on columns only by which the rows are ordered
/// before orders nothing.
pub(super) fn order_once(node: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Distinct(Distinct::On(mut on)) = node else { return Transformed::no(node) };
    let mut is_changed = false;
    if let Some(order) = &mut on.sort_expr {
        let before = order.len();
        let mut known: Vec<Expr> = Vec::new();
        for sort in order.iter_mut().skip(on.on_expr.len()) {
            is_changed |= take_twice_the_same(&mut sort.expr);
        }
        order.retain(|sort| {
            let is_of_distinct = known.len() < on.on_expr.len();
            let is_new =
                !known.contains(&sort.expr) && (is_of_distinct || !depends_on(&sort.expr, &known));
            known.extend(is_new.then(|| sort.expr.clone()));
            is_new
        });
        is_changed |= order.len() != before;
    }
    Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), is_changed)
}

/// Makes `x | x` and its like `x`, as the engine does later; says whether it did.
fn take_twice_the_same(expr: &mut Expr) -> bool {
    let mut is_changed = false;
    while let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr
        && left == right
        && !left.is_volatile()
        && matches!(op, Operator::And | Operator::Or | Operator::BitwiseAnd | Operator::BitwiseOr)
    {
        *expr = std::mem::take(left.as_mut());
        is_changed = true;
    }
    is_changed
}

/// Whether an expression has one value wherever these have one each.
fn depends_on(expr: &Expr, known: &[Expr]) -> bool {
    let columns = expr.column_refs();
    let is_query = |part: &Expr| {
        matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        )
    };
    let is_known = |column: &&Column| {
        known.iter().any(|known| matches!(known, Expr::Column(known) if known == *column))
    };
    // The walk itself cannot fail.
    let has_query = expr.exists(|part| Ok(is_query(part))).unwrap_or(true);
    !columns.is_empty() && !has_query && !expr.is_volatile() && columns.iter().all(is_known)
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
    let keys = side.schema().iter().map(|(qualifier, field)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match field.data_type() {
            // Windows tell -0.0 from 0.0, which are equal.
            DataType::Float64 => column + lit(0.0_f64),
            DataType::Float32 => column + lit(0.0_f32),
            _ => column,
        }
    });
    let keys: Vec<Expr> = keys.collect();
    let number = row_number().partition_by(keys).build()?.alias(NUMBER);
    let plan = LogicalPlanBuilder::from(side.as_ref().clone()).window(vec![number])?.build()?;
    Ok((plan, columns))
}
