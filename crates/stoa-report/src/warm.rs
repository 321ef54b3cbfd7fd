//! Reading ahead of reports: a whole table.

use std::sync::Arc;

use arrow_schema::Field;
use stoa_error::Result;
use stoa_orc::FIELD_ID_KEY;
use stoa_rangeio::ReadMetrics;
use stoa_table::Table;

use crate::portion::FileWork;
use crate::report::{Column, kind_of};
use crate::reports::Reports;
use crate::view::TableView;

/// What [`Reports::warm`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmed {
    /// Chunks of the table that were read or were there.
    pub chunks: u64,
    /// Whether that is all of them; else there was no room for the others.
    pub complete: bool,
}

impl Reports {
    /// Reads a table's columns into memory, file after file, until nine tenths of it are full.
    ///
    /// # Errors
    /// Those of reading the table's files.
    pub async fn warm(&self, table: &Table) -> Result<Warmed> {
        let view = self.view(table).await?;
        let warmed = self.warm_on(&view, table).await;
        // As a report does where a file was overwritten.
        match warmed.is_err().then(|| self.renewed(table, &view)).flatten() {
            Some(view) => self.warm_on(&view, table).await,
            None => warmed,
        }
    }

    async fn warm_on(&self, view: &TableView, table: &Table) -> Result<Warmed> {
        let columns = columns_of(table);
        let all: Vec<&Column> = columns.iter().collect();
        let metrics = Arc::new(ReadMetrics::default());
        let mut warmed = Warmed { chunks: 0, complete: true };
        for file in view.files.iter().filter(|file| file.file.is_plain()) {
            let (tail, _) = self.read_zones(file, table, &all, &metrics).await?;
            let work = FileWork { file, tail, groups: Vec::new() };
            for group in 0..work.tail.groups.len() as u32 {
                if self.cache.bytes() > self.cache.warm_bytes_max() {
                    return Ok(Warmed { complete: false, ..warmed });
                }
                self.read_missing(&work, &[group], table, &all, &metrics).await?;
                warmed.chunks += all.len() as u64;
            }
        }
        Ok(warmed)
    }
}

/// The columns of a table that reports can use.
pub(crate) fn columns_of(table: &Table) -> Vec<Column> {
    table.schema().fields().iter().enumerate().filter_map(column_at).collect()
}

fn column_at((position, field): (usize, &Arc<Field>)) -> Option<Column> {
    kind_of(field.data_type())?;
    let field_id = field.metadata().get(FIELD_ID_KEY)?.parse().ok()?;
    Some(Column { position, field_id, data_type: field.data_type().clone() })
}
