//! Subqueries of one value, which depend on no row around them.
//!
//! In: an optimised plan. Out: the same plan with a place for each of their values, numbered behind those of the
//! template, and their plans. A head computes them first, from cores of their own.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The plan without its subqueries of one value, the first of which has the place behind `places` others; and their
/// plans.
///
/// # Errors
/// Those of walking the plan.
pub(super) fn taken_out(
    plan: &LogicalPlan,
    places: usize,
) -> EngineResult<(LogicalPlan, Vec<Arc<LogicalPlan>>)> {
    let mut subqueries: Vec<Arc<LogicalPlan>> = Vec::new();
    let plan = plan.clone().transform_up(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let taken = expr.transform_up(|expr| {
                let Expr::ScalarSubquery(subquery) = &expr else {
                    return Ok(Transformed::no(expr));
                };
                if !subquery.outer_ref_columns.is_empty() {
                    return Ok(Transformed::no(expr));
                }
                subqueries.push(Arc::clone(&subquery.subquery));
                let id = format!("${}", places + subqueries.len());
                let field = Some(Arc::new(Field::new(&id, type_of(&subquery.subquery), true)));
                Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
            })?;
            Ok(taken.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok((plan.data, subqueries))
}

/// The type of a subquery's value.
pub(super) fn type_of(subquery: &LogicalPlan) -> DataType {
    let mut columns = subquery.schema().fields().iter();
    columns.next().map_or(DataType::Null, |column| column.data_type().clone())
}

/// The value of a subquery that gave these rows: none is NULL. `None` where there are several, which is an error.
pub(super) fn value_of(rows: &RecordBatch) -> Option<ScalarValue> {
    let column = rows.columns().first()?;
    match rows.num_rows() {
        0 => ScalarValue::try_new_null(column.data_type()).ok(),
        1 => ScalarValue::try_from_array(column, 0).ok(),
        _ => None,
    }
}
