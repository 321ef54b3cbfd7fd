//! A door to the encoder for the example that measures it. Not part of the interface.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::Result;

use crate::encode::{Style, uniform};
use crate::format::Format;

/// Appends all rows of a batch as `DataRow` messages.
///
/// # Errors
/// A row is too large.
pub fn put_data_rows(batch: &RecordBatch, binary: bool, out: &mut Vec<u8>) -> Result<()> {
    let format = if binary { Format::Binary } else { Format::Text };
    let encoder = uniform(Arc::clone(batch.schema_ref()), format, Style::default());
    encoder.columns(batch)?.put_rows(0..batch.num_rows(), usize::MAX, out)?;
    Ok(())
}
