//! Which partitions a condition leaves.
//!
//! **Invariant:** a partition is left out only if the condition is not true for its values, whatever its rows are.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::catalog::Session as EngineSession;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::Expr;
use stoa_error::{Error, Result};
use stoa_external::{Partition, partition_array};
use stoa_semantics::errors::from_datafusion;

/// Whether each partition may have rows for which all `filters` hold. Those that are not on `columns` alone, which are
/// the partition columns, are not judged.
///
/// # Errors
/// Types that partition columns cannot have.
pub(crate) fn kept(
    partitions: &[Partition],
    columns: &[FieldRef],
    filters: &[Expr],
    state: &dyn EngineSession,
) -> Result<Vec<bool>> {
    let mut kept = vec![true; partitions.len()];
    let judged: Vec<&Expr> = filters.iter().filter(|filter| is_on(filter, columns)).collect();
    if columns.is_empty() || judged.is_empty() || partitions.is_empty() {
        return Ok(kept);
    }
    let batch = values(partitions, columns)?;
    let schema = DFSchema::try_from(batch.schema().as_ref().clone()).map_err(from_datafusion)?;
    for filter in judged {
        let Ok(filter) = filter.clone().transform_up(without_qualifier) else { continue };
        // What cannot be computed here, the plan computes for each row.
        let Ok(computed) = state.create_physical_expr(filter.data, &schema) else { continue };
        let Ok(verdict) = computed.evaluate(&batch) else { continue };
        let Ok(verdict) = verdict.into_array(partitions.len()) else { continue };
        let Some(verdict) = verdict.as_boolean_opt() else { continue };
        for (at, kept) in kept.iter_mut().enumerate() {
            *kept &= verdict.is_valid(at) && verdict.value(at);
        }
    }
    Ok(kept)
}

/// The values of the partition columns, a row for each partition.
///
/// # Errors
/// As [`kept`].
pub(super) fn values(partitions: &[Partition], columns: &[FieldRef]) -> Result<RecordBatch> {
    let array = |(at, field): (usize, &FieldRef)| {
        let texts: Vec<Option<&str>> = partitions
            .iter()
            .map(|partition| partition.values.get(at).and_then(Option::as_deref))
            .collect();
        partition_array(&texts, field)
    };
    let arrays = columns.iter().enumerate().map(array).collect::<Result<Vec<_>>>()?;
    let nullable = columns.iter().map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Arc::new(Schema::new(nullable.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(partitions.len()));
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .map_err(|e| Error::internal("values of partitions make no batch").with_source(e))
}

/// Whether a filter is on these columns alone, and gives the same whenever it is computed.
pub(super) fn is_on(filter: &Expr, columns: &[FieldRef]) -> bool {
    let refs = filter.column_refs();
    let all = refs.iter().all(|column| columns.iter().any(|field| *field.name() == column.name));
    let is_odd = |expr: &Expr| {
        Ok(match expr {
            Expr::ScalarFunction(call) => {
                call.func.signature().volatility != datafusion::logical_expr::Volatility::Immutable
            }
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) => true,
            Expr::Placeholder(_) | Expr::OuterReferenceColumn(..) => true,
            _ => false,
        })
    };
    all && !refs.is_empty() && !filter.exists(is_odd).unwrap_or(true)
}

fn without_qualifier(expr: Expr) -> datafusion::error::Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Column(column) if column.relation.is_some() => {
            Transformed::yes(Expr::Column(Column::from_name(column.name)))
        }
        other => Transformed::no(other),
    })
}

/// Whether a type can be that of a partition column.
pub(crate) fn can_partition(of: &DataType) -> bool {
    !of.is_nested()
        && !matches!(of, DataType::Binary | DataType::FixedSizeBinary(_) | DataType::Time64(_))
}
