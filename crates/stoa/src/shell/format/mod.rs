//! Results as text: aligned table, expanded records, CSV, TSV, JSON lines.
//!
//! In: a schema, then batches. Out: text on a writer, as soon as it is known. **Invariant:** memory
//! is bounded by a batch and, for tables, the rows that the column widths are taken from
//! ([`table::SAMPLE_ROWS`]); results of any size stream.

mod delimited;
mod expanded;
mod json_lines;
mod table;
mod values;

#[cfg(test)]
mod tests;

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use clap::ValueEnum;
use stoa_error::{Error, Place, Result};

/// How rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns, for people.
    Table,
    /// Comma-separated, RFC 4180; NULL is empty, an empty text is `""`.
    Csv,
    /// Tab-separated with `\t`, `\n`, `\\` escaped; NULL is `\N`.
    Tsv,
    /// One JSON object per line.
    #[value(alias = "json", alias = "ndjson")]
    Jsonl,
}

/// Choices besides the format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) format: Format,
    /// Column names first (CSV, TSV, table).
    pub(super) header: bool,
    /// One line per value in place of one per row (table).
    pub(super) expanded: bool,
}

/// Writes one result. Calls: `begin`, any number of `batch`, `end`.
pub(super) trait RowWriter {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()>;
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()>;
    fn end(&mut self, out: &mut dyn Write) -> Result<()>;
}

/// A writer of rows of `schema`.
pub(super) fn row_writer(style: Style, schema: &SchemaRef) -> Box<dyn RowWriter + Send> {
    match style.format {
        Format::Table if style.expanded => Box::new(expanded::Expanded::new(schema)),
        Format::Table => Box::new(table::Table::new(schema, style.header)),
        Format::Csv => Box::new(delimited::Delimited::csv(schema, style.header)),
        Format::Tsv => Box::new(delimited::Delimited::tsv(schema, style.header)),
        Format::Jsonl => Box::new(json_lines::JsonLines),
    }
}

/// An error of the output; its source says whether nobody reads it any more.
pub fn output_error(error: std::io::Error) -> Error {
    Error::unavailable("cannot be written").at(Place::Output).with_source(error)
}
