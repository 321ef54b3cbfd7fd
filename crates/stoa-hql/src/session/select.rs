//! SELECT.

use futures::TryStreamExt;
use stoa_error::Result;

use super::Session;
use super::spec::ranges;
use crate::lang::ast::{Select, SelectOptions};
use crate::name::TableName;
use crate::output::{CellFormat, Output, OutputFile, Statistics};
use crate::scan::{KeyRange, ScanSpec};
use crate::schema::TableSchema;

impl Session {
    pub(super) async fn select(&self, select: &Select, out: &mut dyn Output) -> Result<()> {
        let (table, schema) = self.open(&select.table).await?;
        let options = &select.options;
        let spec = self.spec(&schema, &select.columns, &select.conditions)?;
        let spec = ScanSpec {
            matching_cells_only: select.cells,
            max_versions: options.max_versions.filter(|versions| *versions > 0),
            row_offset: options.row_offset.unwrap_or(0),
            row_limit: options.row_limit,
            cell_offset: options.cell_offset.unwrap_or(0),
            cell_limit: options.cell_limit,
            cell_limit_per_family: options.cell_limit_per_family,
            keys_only: options.keys_only,
            return_deletes: options.return_deletes,
            ..spec
        };
        let ranges = ranges(&schema, &select.conditions.keys)?;
        let specs = scans(spec, ranges, options.scan_and_filter_rows);
        let mut format = self.select_format(&schema, options);
        let file = options.into_file.as_deref();
        self.print_cells(&table, specs, &mut format, file, file.is_some(), out).await
    }

    fn select_format(&self, schema: &TableSchema, options: &SelectOptions) -> CellFormat {
        let mut format = CellFormat::new(schema);
        if let Some(separator) = options.field_separator {
            format = format.with_separator(separator);
        }
        if options.no_escape {
            format = format.without_escapes();
        }
        if options.keys_only {
            format = format.keys_only();
        }
        if options.display_revisions {
            format = format.with_revisions();
        }
        if options.display_timestamps {
            format = format.with_timestamps(self.options.timestamp_format, self.options.zone);
        }
        format
    }

    /// Prints the answers of scans, one after the other, to a file or as the result.
    pub(super) async fn print_cells(
        &self,
        table: &TableName,
        specs: Vec<ScanSpec>,
        format: &mut CellFormat,
        file: Option<&str>,
        header: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        let mut statistics = Statistics::start();
        let mut target = Target::open(self, file, out)?;
        if header {
            target.write(&format.header())?;
        }
        let mut text = Vec::new();
        for spec in specs {
            let mut cells = self.store.scan(table, spec).await?;
            while let Some(batch) = cells.try_next().await? {
                statistics.count(&batch);
                text.clear();
                format.write(&batch, &mut text);
                target.write(&text)?;
            }
        }
        target.finish()?;
        self.print_statistics(&statistics, false, out)
    }
}

/// One scan for each range; one for all of them if they are to be filtered on the way, so that
/// rows come in order and once.
fn scans(spec: ScanSpec, ranges: Option<Vec<KeyRange>>, filter: bool) -> Vec<ScanSpec> {
    let with = |ranges: Vec<KeyRange>| ScanSpec { ranges, ..spec.clone() };
    match ranges {
        None => vec![spec],
        Some(ranges) if filter => {
            let ranges = KeyRange::union(ranges);
            if ranges.is_empty() { Vec::new() } else { vec![with(ranges)] }
        }
        Some(ranges) => {
            let ranges = ranges.into_iter().filter(|range| !range.is_empty());
            ranges.map(|range| with(vec![range])).collect()
        }
    }
}

/// Where lines go.
enum Target<'a> {
    Result(&'a mut dyn Output),
    File(OutputFile),
}

impl<'a> Target<'a> {
    fn open(session: &Session, file: Option<&str>, out: &'a mut dyn Output) -> Result<Self> {
        match file {
            Some(name) => OutputFile::create(session.files.as_ref(), name).map(Self::File),
            None => Ok(Self::Result(out)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Result(out) => out.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Result(_) => Ok(()),
            Self::File(file) => file.finish(),
        }
    }
}
