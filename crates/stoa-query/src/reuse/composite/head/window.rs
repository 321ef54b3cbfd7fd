//! Window functions over rows that are all there.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::SchemaRef;
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::error::Result as EngineResult;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::sort_batch;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use super::batch_of;

/// Functions over the same partitions in the same order.
pub(super) struct Windows {
    functions: Vec<Arc<dyn WindowExpr>>,
    /// By partition, then as the functions want it; `None` where any order does.
    order: Option<LexOrdering>,
    partition_by: Vec<PhysicalSortExpr>,
    schema: SchemaRef,
}

impl Windows {
    /// Those of an operator, and what it reads; `None` for other operators.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<(Self, &Arc<dyn ExecutionPlan>)> {
        let (functions, input) = if let Some(plan) = plan.downcast_ref::<WindowAggExec>() {
            (plan.window_expr(), plan.input())
        } else {
            let plan = plan.downcast_ref::<BoundedWindowAggExec>()?;
            (plan.window_expr(), plan.input())
        };
        let first = functions.first()?;
        let is_same = |other: &Arc<dyn WindowExpr>| {
            other.partition_by() == first.partition_by() && other.order_by() == first.order_by()
        };
        if !functions.iter().all(is_same) {
            return None;
        }
        let ascending = |key: &Arc<dyn PhysicalExpr>| {
            PhysicalSortExpr::new_default(Arc::clone(key)).asc().nulls_last()
        };
        let partition_by: Vec<_> = first.partition_by().iter().map(ascending).collect();
        let keys = partition_by.iter().chain(first.order_by()).cloned();
        let windows = Self {
            order: LexOrdering::new(keys),
            functions: functions.to_vec(),
            partition_by,
            schema: plan.schema(),
        };
        Some((windows, input))
    }

    /// The rows with one more column for each function.
    ///
    /// # Errors
    /// Those of expressions and window functions.
    pub(super) fn compute(&self, batch: &RecordBatch) -> EngineResult<RecordBatch> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let sorted = match &self.order {
            Some(order) if rows > 1 => sort_batch(batch, order, None)?,
            _ => batch.clone(),
        };
        let keys = self.partition_by.iter().map(|key| key.evaluate_to_sort_column(&sorted));
        let keys = keys.collect::<EngineResult<Vec<_>>>()?;
        let partitions = evaluate_partition_ranges(rows, &keys)?;
        let mut columns = sorted.columns().to_vec();
        for function in &self.functions {
            let value = |range: &std::ops::Range<usize>| {
                function.evaluate(&sorted.slice(range.start, range.len()))
            };
            let values = partitions.iter().map(value).collect::<EngineResult<Vec<ArrayRef>>>()?;
            columns.push(match values.as_slice() {
                [one] => Arc::clone(one),
                many => concat(&many.iter().map(AsRef::as_ref).collect::<Vec<_>>())?,
            });
        }
        batch_of(&self.schema, columns, rows)
    }
}
