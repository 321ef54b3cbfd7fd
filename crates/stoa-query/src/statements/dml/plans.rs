//! Running the plans that a statement is made of.

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use futures::{StreamExt, TryStreamExt};
use stoa_error::{Error, Result};

use crate::run::registry::QueryGuard;
use crate::session::Session;
use stoa_semantics::errors::from_datafusion;

impl Session {
    /// All rows of a plan, in memory.
    pub(in crate::statements) async fn collect(
        &self,
        plan: &LogicalPlan,
        guard: &QueryGuard,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let stream = self.stream(plan, guard).await?;
        let schema = stream.schema();
        let batches = stream.try_collect().await.map_err(from_datafusion)?;
        Ok((schema, batches))
    }

    /// Whether a plan has any rows; stops at the first.
    pub(super) async fn has_rows(&self, plan: LogicalPlan, guard: &QueryGuard) -> Result<bool> {
        let first = LogicalPlanBuilder::from(plan)
            .limit(0, Some(1))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_datafusion)?;
        let mut stream = self.stream(&first, guard).await?;
        while let Some(batch) = stream.next().await {
            if batch.map_err(from_datafusion)?.num_rows() > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many rows a plan has.
    pub(super) async fn count_rows(&self, plan: LogicalPlan, guard: &QueryGuard) -> Result<u64> {
        let counted = LogicalPlanBuilder::from(plan)
            .aggregate(Vec::<Expr>::new(), vec![count(lit(1))])
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_datafusion)?;
        let (_, batches) = self.collect(&counted, guard).await?;
        let counts = batches.iter().find(|batch| batch.num_rows() > 0);
        let rows = counts
            .and_then(|batch| batch.column(0).as_any().downcast_ref::<Int64Array>())
            .filter(|counts| !counts.is_null(0))
            .ok_or_else(|| Error::internal("a count has no row"))?;
        Ok(rows.value(0).unsigned_abs())
    }
}
