//! Subqueries of one value, `x > (SELECT avg(y) FROM t)`, of a plan that several daemons compute.
//!
//! On one daemon, the engine computes them first, and operators look their values up in a place that all share. Other
//! daemons do not share it. So their values are computed before the plan is spread, and put into it as literals.
//!
//! Only conditions of filters are looked at: in other places, a literal could change what is known of a column.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use futures::TryStreamExt;

/// The subqueries of a plan, each with the plan of its value; none where the plan has no such subqueries.
pub(super) fn subqueries(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let subqueries = plan.downcast_ref::<ScalarSubqueryExec>();
    let links = subqueries.into_iter().flat_map(ScalarSubqueryExec::subqueries);
    links.map(|link| Arc::clone(&link.plan)).collect()
}

/// The plan with these values in the places of its subqueries; as many as there are [`subqueries`].
///
/// # Errors
/// Those of filters that get another condition.
pub(super) fn with_values(
    plan: &Arc<dyn ExecutionPlan>,
    values: Vec<ScalarValue>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let Some(around) = plan.downcast_ref::<ScalarSubqueryExec>() else {
        return Ok(Arc::clone(plan));
    };
    for (link, value) in around.subqueries().iter().zip(values) {
        around.results().set(link.index, value)?;
    }
    let replaced = Arc::clone(around.input()).transform_up(with_literals);
    // The plan itself may run after all.
    around.results().clear();
    replaced.map(|replaced| replaced.data)
}

/// As [`with_values`], with unknown values of the right types: whether that plan can be spread, the other can.
///
/// # Errors
/// As [`with_values`].
pub(super) fn with_unknown_values(
    plan: &Arc<dyn ExecutionPlan>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let types =
        subqueries(plan).into_iter().map(|subquery| match subquery.schema().fields().first() {
            Some(field) => ScalarValue::try_from(field.data_type()),
            None => Ok(ScalarValue::Null),
        });
    with_values(plan, types.collect::<EngineResult<_>>()?)
}

/// The value of a subquery; `None` where it has more than one, which is an error of the statement.
///
/// # Errors
/// Those of the subquery.
pub(super) async fn value_of(
    mut rows: SendableRecordBatchStream,
) -> EngineResult<Option<ScalarValue>> {
    let of = rows.schema();
    let mut value = None;
    while let Some(batch) = rows.try_next().await? {
        if batch.num_rows() == 0 {
            continue;
        }
        if batch.num_rows() > 1 || value.is_some() {
            return Ok(None);
        }
        value = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
    }
    match value {
        Some(value) => Ok(Some(value)),
        None => ScalarValue::try_from(of.field(0).data_type()).map(Some),
    }
}

fn with_literals(
    node: Arc<dyn ExecutionPlan>,
) -> EngineResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
    let predicate = Arc::clone(filter.predicate()).transform_up(literal)?;
    if !predicate.transformed {
        return Ok(Transformed::no(node));
    }
    let filter = FilterExecBuilder::from(filter).with_predicate(predicate.data).build()?;
    Ok(Transformed::yes(Arc::new(filter)))
}

fn literal(expr: Arc<dyn PhysicalExpr>) -> EngineResult<Transformed<Arc<dyn PhysicalExpr>>> {
    if !expr.is::<ScalarSubqueryExpr>() {
        return Ok(Transformed::no(expr));
    }
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    match expr.evaluate(&nothing)? {
        ColumnarValue::Scalar(value) => Ok(Transformed::yes(Arc::new(Literal::new(value)))),
        ColumnarValue::Array(_) => Ok(Transformed::no(expr)),
    }
}
