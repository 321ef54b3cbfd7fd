//! DUMP TABLE: cells in a form that LOAD DATA INFILE reads back.
//!
//! Hypertable dumps ranges in turns, so that a later load meets all of its servers at once
//! (reference §1.1). Here every daemon takes writes for every table; cells come in their order,
//! and BUCKETS has nothing to decide.

use stoa_error::Result;

use super::Session;
use super::spec::ranges;
use crate::lang::ast::DumpTable;
use crate::output::{CellFormat, Output};
use crate::scan::{KeyRange, ScanSpec};
use crate::time_text::TimestampFormat;

impl Session {
    pub(super) async fn dump_table(&self, dump: &DumpTable, out: &mut dyn Output) -> Result<()> {
        let (table, schema) = self.open(&dump.table).await?;
        let spec = self.spec(&schema, &dump.columns, &dump.conditions)?;
        let max_versions = dump.max_versions.filter(|versions| *versions > 0);
        let spec = ScanSpec { max_versions, ..spec };
        // Each cell once, however often the conditions name it.
        let specs = match ranges(&schema, &dump.conditions.keys)? {
            None => vec![spec],
            Some(ranges) => {
                let ranges = KeyRange::union(ranges);
                let any = !ranges.is_empty();
                any.then_some(ScanSpec { ranges, ..spec }).into_iter().collect()
            }
        };
        let mut format = CellFormat::new(&schema);
        if !dump.no_timestamps {
            format = format.with_timestamps(TimestampFormat::Nanoseconds, self.options.zone);
        }
        if let Some(separator) = dump.field_separator {
            format = format.with_separator(separator);
        }
        if dump.no_escape {
            format = format.without_escapes();
        }
        self.print_cells(&table, specs, &mut format, dump.into_file.as_deref(), true, out).await
    }
}
