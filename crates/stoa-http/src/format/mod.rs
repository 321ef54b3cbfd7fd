//! Result formats: batches in, bytes of one representation out.
//!
//! In: a schema, then batches, then how the query ended. Out: bytes to append to the response.
//! An encoder holds no rows between calls, so a response needs the memory of one batch.
//!
//! How each format tells its reader that the query failed after rows were sent (see
//! [`Ending`]): JSON closes its document with an `error` member where `row_count` would be;
//! NDJSON sends a last line `{"error":…}` and breaks the transfer off; CSV and Arrow have no room
//! for an error and break the transfer off.
//!
//! Not here: choosing statements, running them (`sql`), HTTP bodies (`body`).

mod arrow;
mod csv;
mod json;
mod ndjson;
mod negotiate;
mod value;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde_json::Value;
use stoa_error::{Error, Result};

pub(crate) use negotiate::Format;

/// What is known about a query when its last row was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Number in the registry, if the statement has one.
    pub(crate) query_id: Option<u64>,
    /// Rows in this response.
    pub(crate) row_count: u64,
    /// Whether rows were left out because of `max_rows`.
    pub(crate) truncated: bool,
    /// Time from the arrival of the request, milliseconds.
    pub(crate) elapsed_ms: f64,
    /// Bytes read from storage.
    pub(crate) bytes_read: u64,
    /// Command tag of a statement without rows.
    pub(crate) command: Option<String>,
    /// Rows written by a statement without rows.
    pub(crate) rows_affected: Option<u64>,
    /// What the user should know although it went well.
    pub(crate) notices: Vec<String>,
    /// The result that the server keeps, if it does.
    pub(crate) result: Option<Value>,
}

/// How the bytes of a failed response end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The document says it itself and is complete.
    Complete,
    /// The transfer must be broken off, so that nobody takes it for complete.
    BreakOff,
}

/// Turns one result into bytes.
///
/// Calls come in this order: `begin`, any number of `batch`, then `finish` or `fail`.
pub(crate) trait ResultEncoder: Send {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<()>;
    fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()>;
    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) -> Result<()>;
    fn fail(&mut self, error: &Error, out: &mut Vec<u8>) -> Ending;
}

/// An encoder for `format`.
pub(crate) fn encoder(format: Format) -> Box<dyn ResultEncoder> {
    match format {
        Format::Json => Box::new(json::JsonEncoder::default()),
        Format::Ndjson => Box::new(ndjson::NdjsonEncoder::default()),
        Format::Csv => Box::new(csv::CsvEncoder),
        Format::Arrow => Box::new(arrow::ArrowEncoder::default()),
    }
}

fn cannot_encode(error: arrow_schema::ArrowError) -> Error {
    Error::internal("cannot encode the result").with_source(error)
}

#[cfg(test)]
mod tests;
