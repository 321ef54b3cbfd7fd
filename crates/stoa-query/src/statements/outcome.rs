//! What a statement gives back.

use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use stoa_error::Result;
use stoa_semantics::errors::from_datafusion;

use super::copy::CopyIn;
use crate::session::outcome::{Completion, RowStream};

/// What a statement gives back.
pub enum Outcome {
    /// Rows, as batches.
    Rows(RowStream),
    /// It is done; nothing to fetch.
    Done(Completion),
    /// The client is to send rows (`COPY … FROM STDIN`).
    CopyIn(CopyIn),
}

/// How far a statement got before its outcome is handed out.
pub(crate) enum Ran {
    Stream(SendableRecordBatchStream),
    Done(Completion),
    CopyIn(CopyIn),
}

/// Reads the one number that a writing plan returns.
pub(crate) async fn count_written(mut stream: SendableRecordBatchStream) -> Result<u64> {
    use arrow::array::{Array, UInt64Array};
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(from_datafusion)?;
        let counts = batch.column(0).as_any().downcast_ref::<UInt64Array>();
        rows += counts.map_or(0, |counts| counts.iter().flatten().sum::<u64>());
    }
    Ok(rows)
}
