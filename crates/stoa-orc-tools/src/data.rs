//! `data`: the rows of a file as JSON lines.
//!
//! In: a file. Out: one JSON object a row (or a plain value, if the file's type is not a struct).
//! **Invariant:** rows come in the order of the file; digits are never lost, but for timestamps as
//! told at [`DataReport::stripes_in_micros`].

mod nested;
mod rows;
mod values;

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use arrow_array::RecordBatch;
use stoa_error::{Error, ErrorKind, Result};
use stoa_orc::{Projection, ReadOptions, TimestampOutput, TypeKind, TypeTree};

use crate::file::OrcFile;
use crate::output::Output;
use rows::RowWriter;

/// How rows are written. Both forms name columns, and write binary values as lists of bytes and
/// maps as lists of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowFormat {
    /// As `orc-contents` of ORC C++ and the expected rows of ORC's example files: map entries are
    /// `{"key": …, "value": …}`, unions `{"tag": …, "value": …}`, decimals are numbers with all digits
    /// of their scale. Always valid JSON.
    #[default]
    Contents,
    /// As `orc-tools data` of ORC Java: map entries are `{"_key":…,"_value":…}`, unions are the bare
    /// value, decimals are strings without zeros at their end, floats are widened to doubles,
    /// `NaN` and infinities are bare words.
    Java,
}

/// What to print.
#[derive(Clone, Debug, Default)]
pub struct DataOptions {
    /// Most rows; `None` = all.
    pub limit: Option<u64>,
    /// Names of top-level columns, in the order to print them; `None` = all.
    pub columns: Option<Vec<String>>,
    /// How rows are written.
    pub format: RowFormat,
}

/// What was printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataReport {
    /// Rows.
    pub rows: u64,
    /// Stripes with timestamps outside of 1677-09-21 … 2262-04-11, whose timestamps are printed
    /// without the digits below the microsecond.
    pub stripes_in_micros: u64,
}

/// Prints the rows of a file.
///
/// # Errors
/// `NotFound`, `Forbidden` or `Unavailable` if the file cannot be read; `Corrupt` if it is damaged,
/// after the rows before the damage; `Invalid` for a column that does not exist; `Unavailable` with the
/// sink's error as source if the output cannot be written.
pub fn data(path: &Path, options: &DataOptions, sink: &mut dyn Write) -> Result<DataReport> {
    let file = OrcFile::open(path)?;
    let projection =
        projection(&file.metadata.types, options.columns.as_deref()).map_err(|e| file.place(e))?;
    let mut printer = Printer {
        rows: RowWriter::new(&file.metadata.types, options.format),
        has_timestamps: has_timestamps(&file.metadata.types),
        left: options.limit.unwrap_or(u64::MAX),
        projection,
        file,
        output: Output::new(sink),
        report: DataReport::default(),
    };
    for stripe in 0..printer.file.metadata.stripes.len() {
        if printer.left == 0 {
            break;
        }
        if let Err(error) = printer.stripe(stripe) {
            // What can be read is printed before the error is told.
            printer.output.finish()?;
            return Err(error);
        }
    }
    printer.output.finish()?;
    Ok(printer.report)
}

fn projection(types: &TypeTree, names: Option<&[String]>) -> Result<Projection> {
    let Some(names) = names else { return Ok(Projection::All) };
    let root = &types.types()[0];
    let columns = names.iter().map(|name| {
        let found = root.field_names.iter().position(|field| field == name);
        found.and_then(|index| root.children.get(index).copied()).ok_or_else(|| {
            let known = root.field_names.join(", ");
            Error::invalid(format!("no column {name:?}"))
                .with_sqlstate("42703")
                .with_hint(format!("top-level columns are: {known}"))
        })
    });
    columns.collect::<Result<_>>().map(Projection::Columns)
}

fn has_timestamps(types: &TypeTree) -> bool {
    let is_timestamp = |kind| matches!(kind, TypeKind::Timestamp | TypeKind::TimestampInstant);
    types.types().iter().any(|ty| is_timestamp(ty.kind))
}

/// Prints stripe after stripe.
struct Printer<'a> {
    file: OrcFile,
    projection: Projection,
    rows: RowWriter,
    has_timestamps: bool,
    /// Rows that may still be printed.
    left: u64,
    output: Output<'a>,
    report: DataReport,
}

impl Printer<'_> {
    fn stripe(&mut self, stripe: usize) -> Result<()> {
        let mut done = 0;
        let result = self.copy(stripe, TimestampOutput::Declared, &mut done);
        match result {
            // Nanoseconds of 64 bits do not reach all years: microseconds may.
            Err(error) if self.has_timestamps && error.kind() == ErrorKind::Corrupt => {
                self.copy(stripe, TimestampOutput::Micros, &mut done)?;
                self.report.stripes_in_micros += 1;
                Ok(())
            }
            result => result,
        }
    }

    /// Prints a stripe but for its first `done` rows, and counts those it printed there.
    fn copy(&mut self, stripe: usize, timestamps: TimestampOutput, done: &mut u64) -> Result<()> {
        let options = ReadOptions::default()
            .with_projection(self.projection.clone())
            .with_timestamps(timestamps)
            .with_batch_rows(batch_rows(self.left));
        let mut batches = self.file.stripe(stripe, options)?;
        let mut before = 0;
        while self.left > 0
            && let Some(batch) = batches.next()?
        {
            let rows = batch.num_rows() as u64;
            let skipped = done.saturating_sub(before).min(rows);
            let wanted = (rows - skipped).min(self.left);
            let wanted_rows = skipped as usize..(skipped + wanted) as usize;
            print(&self.rows, &batch, wanted_rows, &mut self.output)?;
            before += rows;
            *done += wanted;
            self.left -= wanted;
            self.report.rows += wanted;
        }
        Ok(())
    }
}

fn print(
    writer: &RowWriter,
    batch: &RecordBatch,
    rows: Range<usize>,
    output: &mut Output,
) -> Result<()> {
    let bound = writer.bind(batch)?;
    for row in rows {
        bound.write(row, &mut output.buffer);
        output.relieve()?;
    }
    Ok(())
}

/// Rows to decode at a time.
fn batch_rows(left: u64) -> usize {
    const BATCH_ROWS: u64 = 4096;
    left.min(BATCH_ROWS) as usize
}
