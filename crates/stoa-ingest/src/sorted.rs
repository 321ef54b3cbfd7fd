//! The rows of a flush in the order in which they are written.
//!
//! In: batches of one schema. Out: batches sorted by partition values, then by the table's order.
//! Memory beside the input: the sort keys, twelve bytes per row, and one batch.

use std::collections::VecDeque;
use std::fmt;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use arrow_select::interleave::interleave_record_batch;
use stoa_error::{Error, Result};
use stoa_table::Table;

use crate::keys;

/// Rows per batch that comes out.
const BATCH_ROWS: usize = 8192;

/// Batches that follow each other in the order of a table.
pub type SortedRows = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Knows the order of some tables better than their columns tell.
pub trait FlushOrder: Send + Sync + fmt::Debug {
    /// The rows of `batches` (the table's columns; oldest first) in the order of `table`; of rows that
    /// mean the same it may leave out all but one. `None` for a table that it does not know. Takes CPU
    /// time; not for async tasks.
    ///
    /// # Errors
    /// Whatever the implementation finds; the rows stay fresh then.
    fn sort(&self, table: &Table, batches: &[RecordBatch]) -> Result<Option<SortedRows>>;
}

/// The rows of `batches`, which have the columns of `table`, in its order.
///
/// # Errors
/// As [`FlushOrder::sort`]; `Invalid` where a value has no partition or sort value.
pub(crate) fn sorted(
    table: &Table,
    batches: Vec<RecordBatch>,
    order: Option<&dyn FlushOrder>,
) -> Result<SortedRows> {
    if let Some(order) = order
        && let Some(sorted) = order.sort(table, &batches)?
    {
        return Ok(sorted);
    }
    Ok(Box::new(Sorted::new(table, batches)?))
}

/// Batches in order; see the module.
struct Sorted {
    batches: Vec<RecordBatch>,
    /// Batch and row, in order; `None` where any order will do.
    order: Option<VecDeque<(u32, u32)>>,
    next: usize,
}

impl Sorted {
    /// Sorts `batches`, which have the columns of `table`. Takes CPU time; not for async tasks.
    ///
    /// # Errors
    /// `Invalid` where a value has no partition or sort value.
    fn new(table: &Table, batches: Vec<RecordBatch>) -> Result<Self> {
        let order = order(table, &batches)?;
        Ok(Self { batches, order, next: 0 })
    }

    fn gather(&mut self) -> Option<Result<RecordBatch>> {
        let order = self.order.as_mut()?;
        let count = order.len().min(BATCH_ROWS);
        if count == 0 {
            return None;
        }
        let rows = order.drain(..count).map(|(batch, row)| (batch as usize, row as usize));
        let rows: Vec<(usize, usize)> = rows.collect();
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        Some(interleave_record_batch(&batches, &rows).map_err(failed))
    }

    fn as_they_are(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.batches.get(self.next)?.clone();
        self.next += 1;
        Some(Ok(batch))
    }
}

impl Iterator for Sorted {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.order {
            Some(_) => self.gather(),
            None => self.as_they_are(),
        }
    }
}

fn order(table: &Table, batches: &[RecordBatch]) -> Result<Option<VecDeque<(u32, u32)>>> {
    let keys = batches.iter().map(|batch| keys::keys(table, batch)).collect::<Result<Vec<_>>>()?;
    let Some(first) = keys.first().filter(|keys| !keys.is_empty()) else { return Ok(None) };
    let columns = (0..first.len()).map(|nth| key_column(&keys, nth)).collect::<Result<Vec<_>>>()?;
    let sorted = lexsort_to_indices(&columns, None).map_err(failed)?;
    let origin: Vec<(u32, u32)> = batches
        .iter()
        .zip(0_u32..)
        .flat_map(|(batch, nth)| (0..batch.num_rows() as u32).map(move |row| (nth, row)))
        .collect();
    let place = |row: &u32| origin.get(*row as usize).copied().ok_or_else(out_of_range);
    sorted.values().iter().map(place).collect::<Result<_>>().map(Some)
}

/// Key `nth` of all batches together.
fn key_column(keys: &[Vec<SortColumn>], nth: usize) -> Result<SortColumn> {
    let parts: Vec<&SortColumn> = keys.iter().filter_map(|keys| keys.get(nth)).collect();
    let options = parts.first().and_then(|key| key.options);
    let arrays: Vec<&dyn arrow_array::Array> =
        parts.iter().map(|key| key.values.as_ref() as &dyn arrow_array::Array).collect();
    let values: ArrayRef = concat(&arrays).map_err(failed)?;
    Ok(SortColumn { values, options })
}

fn failed(source: ArrowError) -> Error {
    Error::internal("fresh rows cannot be sorted").with_source(source)
}

fn out_of_range() -> Error {
    Error::internal("a sorted row is none of the fresh rows")
}
