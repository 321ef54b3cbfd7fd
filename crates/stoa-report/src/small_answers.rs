//! Reports that want all rows of a small table: answered with the batch that was kept of it.

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
use crate::small::{SmallTable, Version};
use crate::work::ReportWork;

/// A batch that takes more is not kept.
const BYTES_MAX: usize = 2 << 20;

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
        let kept = small.batch_of(&fields, &Version::of(table, fresh))?;
        let rows = kept.num_rows();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let (schema, columns) = (Arc::clone(&report.schema), kept.columns().to_vec());
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
        if batch.get_array_memory_size() <= BYTES_MAX {
            let key = key(table, &fields);
            let small = SmallTable::new(fields, Version::of(table, fresh), batch.clone());
            self.cache.put_small(key, Arc::new(small));
        }
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

fn key(table: &Table, fields: &[i32]) -> Key {
    Key::Small { table: table.uuid(), columns: FixedState::default().hash_one(fields) }
}
