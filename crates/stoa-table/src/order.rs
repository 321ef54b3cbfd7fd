//! The table's sort order, on Arrow rows.
//!
//! In: batches of the table's columns. Out: keys that compare as bytes in the order of the table,
//! and whether rows are in that order.
//!
//! **Invariant:** the order is Arrow's with the options of the sort terms, the same that DataFusion
//! sorts by: NaN above all numbers, -0 below +0, text by bytes.

use std::cmp::Ordering;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::SortOptions;
use arrow_select::take::take;
use stoa_error::{Error, Result};

use crate::transform::transform_array;
use crate::{Table, Transform};

/// How rows of a table are ordered.
#[derive(Debug)]
pub(crate) struct TableOrder {
    terms: Vec<Term>,
    /// The id under which the table keeps this order.
    id: i32,
}

#[derive(Debug)]
struct Term {
    column: usize,
    transform: Transform,
    options: SortOptions,
}

impl TableOrder {
    /// The default order of `table`; `None` where there is none, or one that cannot be followed
    /// wholly (by a nested column, or by an unknown transform).
    pub(crate) fn of(table: &Table) -> Option<Self> {
        let order = table.metadata().default_sort_order();
        let sort_terms = table.sort_terms();
        if sort_terms.is_empty() || sort_terms.len() != order.fields.len() {
            return None;
        }
        let schema = table.schema();
        let term = |term: &crate::SortTerm| {
            let column = schema.index_of(&term.column).ok()?;
            let options =
                SortOptions { descending: term.descending, nulls_first: term.nulls_first };
            Some(Term { column, transform: term.transform, options })
        };
        let terms = sort_terms.iter().map(term).collect::<Option<Vec<_>>>()?;
        Some(Self { terms, id: i32::try_from(order.order_id).ok()? })
    }

    /// What files in this order are marked with.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// The column that leads, if its own values are what is sorted by, and how.
    pub(crate) fn leading_column(&self) -> Option<(usize, SortOptions)> {
        let first = self.terms.first()?;
        (first.transform == Transform::Identity).then_some((first.column, first.options))
    }

    /// A converter of rows of `batch`'s types to keys.
    pub(crate) fn converter(&self, batch: &RecordBatch) -> Result<RowConverter> {
        let columns = self.columns(batch)?;
        let fields = columns
            .iter()
            .zip(&self.terms)
            .map(|(column, term)| {
                SortField::new_with_options(column.data_type().clone(), term.options)
            })
            .collect();
        RowConverter::new(fields).map_err(failed)
    }

    /// The keys of the rows of `batch`, one after the other.
    pub(crate) fn keys(&self, converter: &RowConverter, batch: &RecordBatch) -> Result<Rows> {
        converter.convert_columns(&self.columns(batch)?).map_err(failed)
    }

    fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let column = |term: &Term| {
            let column = batch.columns().get(term.column).ok_or_else(|| {
                Error::internal(format!("a batch lacks column {} to sort by", term.column))
            })?;
            transform_array(term.transform, column)
        };
        self.terms.iter().map(column).collect()
    }

    fn comparators(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Result<Vec<DynComparator>> {
        let pairs = left.iter().zip(right).zip(&self.terms);
        pairs
            .map(|((left, right), term)| make_comparator(left, right, term.options).map_err(failed))
            .collect()
    }
}

/// Watches rows go by and notes whether they are in order.
#[derive(Debug, Default)]
pub(crate) struct OrderWatch {
    /// Sort columns of the last row.
    last: Option<Vec<ArrayRef>>,
    broken: bool,
}

impl OrderWatch {
    /// Whether no row has come after one that is behind it.
    pub(crate) fn in_order(&self) -> bool {
        !self.broken
    }

    /// Looks at the next rows.
    pub(crate) fn observe(&mut self, order: &TableOrder, batch: &RecordBatch) -> Result<()> {
        if self.broken || batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = order.columns(batch)?;
        if let Some(last) = &self.last {
            self.broken = compare(&order.comparators(last, &columns)?, 0, 0).is_gt();
        }
        let inside = order.comparators(&columns, &columns)?;
        self.broken |= (1..batch.num_rows()).any(|row| compare(&inside, row - 1, row).is_gt());
        // Copied, so that the batch is not kept for the sake of one row.
        let row = UInt32Array::from(vec![u32::try_from(batch.num_rows() - 1).unwrap_or(0)]);
        let last = columns.iter().map(|column| take(column, &row, None).map_err(failed));
        self.last = Some(last.collect::<Result<_>>()?);
        Ok(())
    }
}

fn compare(columns: &[DynComparator], left: usize, right: usize) -> Ordering {
    let orders = columns.iter().map(|compare| compare(left, right));
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn failed(source: arrow_schema::ArrowError) -> Error {
    Error::internal("rows cannot be put into the order of the table").with_source(source)
}
