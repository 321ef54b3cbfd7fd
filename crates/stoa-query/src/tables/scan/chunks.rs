//! Scans that go through the chunks which reports use, because their columns have been scanned before.
//!
//! In: the columns wanted and a predicate. Out: what `stoa-report` needs to give them; `None` where it cannot, or
//! where the columns are not worth keeping (`Reports::admits`). **Invariant:** its filter keeps every row for which
//! the predicate may hold.

use std::sync::Arc;

use stoa_orc::Predicate;
use stoa_report::{ChunkScan, Column, Condition, ScanFilter};
use stoa_table::ScanFile;

use super::OrcScanExec;
use super::selected::{column, column_index, id_of, test_of};

impl OrcScanExec {
    /// The scan as one of chunks. Asking for it counts as a use of its columns. `passes`: whether chunks are worth
    /// making that are not kept.
    pub(super) fn chunk_scan(&self, passes: bool) -> Option<Arc<ChunkScan>> {
        let table = self.table.table.schema();
        let wanted = self.schema.fields().iter();
        let wanted = wanted.map(|field| column(&table, id_of(field.metadata())?));
        let mut columns = wanted.collect::<Option<Vec<Column>>>()?;
        if columns.is_empty() {
            return None;
        }
        let filter = filter_of(&self.predicate, &mut |id, test| {
            let column = column_index(&mut columns, &table, id)?;
            Some(Condition { column, test })
        });
        let scan = ChunkScan {
            table: self.table.table.clone(),
            columns,
            schema: Arc::clone(&self.schema),
            filter,
            batch_rows: self.batch_rows,
            judges: self.dynamic.iter().map(|filter| Arc::clone(filter) as _).collect(),
            keeps: false,
        };
        let splits = self.partitions.iter().flatten();
        let files: Vec<Arc<ScanFile>> = splits
            .filter(|split| split.part == 0 && split.file.is_plain())
            .map(|split| Arc::clone(&split.file))
            .collect();
        let statement = self.progress.read().number();
        let reports = &self.table.reports;
        let keeps = reports.admits(&scan, &files, statement);
        let is_chunks = keeps || passes && reports.passes(&scan, &files);
        is_chunks.then(|| Arc::new(ChunkScan { keeps, ..scan }))
    }
}

/// A predicate as a filter: what chunks cannot judge keeps all rows.
pub(super) fn filter_of(
    predicate: &Predicate,
    condition: &mut impl FnMut(i32, stoa_report::Test) -> Option<Condition>,
) -> ScanFilter {
    match predicate {
        Predicate::And(parts) => {
            ScanFilter::All(parts.iter().map(|part| filter_of(part, condition)).collect())
        }
        Predicate::Or(parts) => {
            ScanFilter::Any(parts.iter().map(|part| filter_of(part, condition)).collect())
        }
        one => {
            let condition = test_of(one).and_then(|(id, test)| condition(id, test));
            condition.map_or(ScanFilter::All(Vec::new()), ScanFilter::Test)
        }
    }
}
