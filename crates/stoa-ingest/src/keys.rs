//! What the rows of a flush are sorted by: partition values, then the table's own order.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ord::sort::{SortColumn, SortOptions};
use stoa_error::{Error, Result};
use stoa_table::{SortTerm, Table, Transform, transform_array};

/// One array per key with its order, for the rows of `batch` (which has the table's columns).
///
/// # Errors
/// `Invalid` where a value has no partition or sort value.
pub(crate) fn keys(table: &Table, batch: &RecordBatch) -> Result<Vec<SortColumn>> {
    let ascending = SortOptions { descending: false, nulls_first: true };
    let partitions = table.partition_columns(batch)?;
    let mut keys: Vec<SortColumn> = partitions
        .into_iter()
        .map(|values| SortColumn { values, options: Some(ascending) })
        .collect();
    for term in table.sort_terms() {
        let options = SortOptions { descending: term.descending, nulls_first: term.nulls_first };
        keys.push(SortColumn { values: sort_key(table, &term, batch)?, options: Some(options) });
    }
    Ok(keys)
}

/// Checks that every row of `batch` has its keys.
///
/// # Errors
/// As [`keys`].
pub(crate) fn check(table: &Table, batch: &RecordBatch) -> Result<()> {
    // The value itself always exists; only what is computed can fail.
    let computes = |transform: Transform| transform != Transform::Identity;
    if table.partition_terms().iter().any(|term| computes(term.transform)) {
        table.partition_columns(batch)?;
    }
    for term in table.sort_terms().iter().filter(|term| computes(term.transform)) {
        sort_key(table, term, batch)?;
    }
    Ok(())
}

fn sort_key(table: &Table, term: &SortTerm, batch: &RecordBatch) -> Result<ArrayRef> {
    let column = batch.column_by_name(&term.column).ok_or_else(|| {
        Error::internal(format!("sort column {:?} of {} is missing", term.column, table.ident()))
    })?;
    transform_array(term.transform, column)
}
