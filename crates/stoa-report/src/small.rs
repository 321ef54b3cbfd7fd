//! All rows of small tables, kept as the batch that a report gives, until the table changes.
//!
//! Statements join reports with small tables, and need all of their rows each time. **Invariant:** a batch is that of one
//! version of its table and of the fresh rows that this lacks. It takes its place in the cache as chunks do.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use foldhash::fast::FixedState;
use stoa_ingest::FreshRows;
use stoa_table::Table;

use crate::cache::Key;
use crate::outcome::Answer;
use crate::report::{Item, Report};
use crate::reports::Reports;
use crate::work::ReportWork;

/// A batch that takes more is not kept.
const BYTES_MAX: usize = 2 << 20;

/// All rows of some columns of a table.
pub(crate) struct SmallTable {
    /// The columns, by field id.
    fields: Vec<i32>,
    version: Version,
    batch: RecordBatch,
}

/// What the rows of a table depend on.
#[derive(PartialEq, Eq)]
struct Version {
    metadata_location: String,
    fresh_rows: u64,
    fresh_end: u64,
}

impl SmallTable {
    /// Its memory, bytes, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.batch.get_array_memory_size() + 4 * self.fields.len() + size_of::<Self>()
    }
}

impl Reports {
    /// The answer to a report that wants all rows of a table, if it was kept.
    pub(crate) fn small(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
    ) -> Option<Answer> {
        let fields = all_rows_of(report)?;
        let small = self.cache.small(key(table, &fields))?;
        let is_same = small.fields == fields
            && small.version.metadata_location == table.metadata_location()
            && small.version.fresh_rows == fresh.rows()
            && small.version.fresh_end == end_of(fresh);
        if !is_same {
            return None;
        }
        let rows = small.batch.num_rows();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let (schema, columns) = (Arc::clone(&report.schema), small.batch.columns().to_vec());
        let batch = RecordBatch::try_new_with_options(schema, columns, &options).ok()?;
        let (chunk_hits, rows_selected) = (fields.len() as u64, rows as u64);
        self.cache.count(chunk_hits, 0);
        Some(Answer { batch, work: ReportWork { chunk_hits, rows_selected, ..Default::default() } })
    }

    /// Keeps the answer to a report that wants all rows of a table, if it is small.
    pub(crate) fn keep_small(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        batch: &RecordBatch,
    ) {
        let Some(fields) = all_rows_of(report) else { return };
        if batch.get_array_memory_size() > BYTES_MAX {
            return;
        }
        let version = Version {
            metadata_location: table.metadata_location().to_owned(),
            fresh_rows: fresh.rows(),
            fresh_end: end_of(fresh),
        };
        let key = key(table, &fields);
        self.cache.put_small(key, Arc::new(SmallTable { fields, version, batch: batch.clone() }));
    }
}

/// The columns, by field id, of a report that wants all rows; `None` for others.
fn all_rows_of(report: &Report) -> Option<Vec<i32>> {
    let wants_all = !report.grouped
        && report.conditions.is_empty()
        && report.order.is_empty()
        && report.limit.is_none()
        && report.offset == 0;
    let field = |item: &Item| match item {
        Item::Column(column) => report.columns.get(*column).map(|column| column.field_id),
        Item::Aggregate(_) => None,
    };
    wants_all.then(|| report.items.iter().map(field).collect()).flatten()
}

/// Where fresh rows end, of which there may be none.
fn end_of(fresh: &FreshRows) -> u64 {
    if fresh.is_empty() { 0 } else { fresh.end_position() }
}

fn key(table: &Table, fields: &[i32]) -> Key {
    Key::Small { table: table.uuid(), columns: FixedState::default().hash_one(fields) }
}
