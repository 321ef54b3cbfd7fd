//! In which part of a table a report reads, so that daemons can share a table's parts among their caches.
//!
//! The parts are ranges of values of the first sort column with about as many rows each: those of the row groups of the
//! table's largest file. Every daemon finds the same ones for the same files; new files move them little, since they
//! are sorted as the largest one is.

use std::ops::RangeInclusive;
use std::sync::Arc;

use stoa_error::Result;
use stoa_rangeio::ReadMetrics;
use stoa_table::Table;

use crate::report::{Column, Report};
use crate::reports::Reports;
use crate::view::{TableView, ViewFile};

/// Parts of a table.
pub const PARTS: u32 = 256;

impl Reports {
    /// Bytes of the data files of a version.
    ///
    /// # Errors
    /// Those of listing its files.
    pub async fn table_bytes(&self, table: &Table) -> Result<u64> {
        Ok(self.view(table).await?.bytes())
    }

    /// The parts (of [`PARTS`], counted from 0) in which a report reads; `first_sort_column` is the field id of the
    /// column by which the table is sorted first. `None` where it has no condition on that column, or nothing is known
    /// of its values. Reads the tail of one file if it is not in memory.
    ///
    /// # Errors
    /// Those of reading the table's files.
    pub async fn parts(
        &self,
        table: &Table,
        report: &Report,
        first_sort_column: i32,
    ) -> Result<Option<RangeInclusive<u32>>> {
        let conditions = report.conditions.iter().filter_map(|condition| {
            let column: &Column = report.columns.get(condition.column)?;
            (column.field_id == first_sort_column).then_some((column, &condition.test))
        });
        let conditions: Vec<_> = conditions.collect();
        let Some((column, _)) = conditions.first() else { return Ok(None) };
        let view = self.view(table).await?;
        let Some(file) = largest(&view) else { return Ok(None) };
        let known = match self.known_zones(file.number, &[column]) {
            Some(known) => known,
            None => {
                let metrics = Arc::new(ReadMetrics::default());
                self.read_zones(file, table, &[column], &metrics).await?
            }
        };
        let (tail, zones) = known;
        let (Some(zones), groups) = (zones.first(), tail.groups.len()) else { return Ok(None) };
        if groups == 0 || !zones.ascend() {
            return Ok(None);
        }
        let all = conditions.iter().map(|(_, test)| zones.range(test));
        let range = all.fold(0..groups, |range, of_test| {
            range.start.max(of_test.start)..range.end.min(of_test.end)
        });
        // Values between two row groups, or behind the last, belong to the one before.
        let first = range.start.min(groups - 1);
        let last = range.end.saturating_sub(1).clamp(first, groups - 1);
        let part = |group: usize| (group as u64 * u64::from(PARTS) / groups as u64) as u32;
        Ok(Some(part(first)..=part(last)))
    }
}

fn largest(view: &TableView) -> Option<&ViewFile> {
    let plain = view.files.iter().filter(|file| file.file.is_plain());
    plain.max_by(|a, b| {
        // Of two of a size, daemons must take the same.
        a.file.rows.cmp(&b.file.rows).then_with(|| b.file.location.cmp(&a.file.location))
    })
}
