//! Portals: statements with their parameters bound, and how far their rows were fetched.
//!
//! **Invariant:** a portal's query runs once; a later `Execute` or `FETCH` goes on where the one
//! before stopped.

use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::StreamExt;
use stoa_query::{RowStream, ScalarValue};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::encode::{CopyTextEncoder, RowEncoder};
use crate::statement::SharedStatement;
use crate::wire::stream::{FLUSH_BYTES, Stop, Wire};

/// A bound statement, or a cursor.
pub(crate) struct Portal {
    pub(crate) statement: SharedStatement,
    /// Format codes of the result, as the client sent them.
    pub(crate) formats: Vec<i16>,
    pub(crate) state: PortalState,
    /// Outlives its transaction.
    pub(crate) hold: bool,
}

/// How far a portal got.
pub(crate) enum PortalState {
    /// Not executed yet.
    Bound(Vec<ScalarValue>),
    /// Executed; rows may be left.
    Open(Rows),
    /// All done.
    Ended,
}

/// The rows of a query, as far as they were not sent.
pub(crate) struct Rows {
    schema: SchemaRef,
    stream: Option<RowStream>,
    current: Option<(RecordBatch, usize)>,
    /// The statement's text, which the command tag depends on.
    pub(crate) text: String,
}

/// What one call sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) rows: u64,
    /// Whether the rows ended before the limit.
    pub(crate) ended: bool,
}

impl Rows {
    pub(crate) fn new(stream: RowStream, text: &str) -> Self {
        Self {
            schema: stream.schema(),
            stream: Some(stream),
            current: None,
            text: text.to_owned(),
        }
    }

    /// The columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// Sends at most `rows_max` rows.
    pub(crate) async fn send<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        wire: &mut Wire<S>,
        encoder: &RowEncoder,
        rows_max: usize,
        deadline: Option<Instant>,
    ) -> Result<Sent, Stop> {
        let mut left = rows_max;
        while left > 0 {
            let Some((batch, mut row)) = self.next_rows(wire, deadline).await? else {
                return Ok(Sent { rows: (rows_max - left) as u64, ended: true });
            };
            let columns = encoder.columns(&batch)?;
            let end = row.saturating_add(left).min(batch.num_rows());
            while row < end {
                let before = row;
                row = columns.put_rows(row..end, FLUSH_BYTES, wire.output.buffer())?;
                left -= row - before;
                if row < end {
                    wire.flush().await?;
                }
            }
            if row < batch.num_rows() {
                self.current = Some((batch, row));
            }
        }
        wire.flush_if_large().await?;
        Ok(Sent { rows: rows_max as u64, ended: false })
    }

    /// Leaves out at most `rows_max` rows.
    pub(crate) async fn skip<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        wire: &mut Wire<S>,
        rows_max: usize,
        deadline: Option<Instant>,
    ) -> Result<Sent, Stop> {
        let mut left = rows_max;
        while left > 0 {
            let Some((batch, row)) = self.next_rows(wire, deadline).await? else {
                return Ok(Sent { rows: (rows_max - left) as u64, ended: true });
            };
            let end = row.saturating_add(left).min(batch.num_rows());
            left -= end - row;
            if end < batch.num_rows() {
                self.current = Some((batch, end));
            }
        }
        Ok(Sent { rows: rows_max as u64, ended: false })
    }

    /// Sends all rows as lines of a COPY; returns how many.
    pub(crate) async fn copy_out<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        wire: &mut Wire<S>,
        encoder: &mut CopyTextEncoder,
        deadline: Option<Instant>,
    ) -> Result<u64, Stop> {
        let mut rows = 0;
        encoder.put_header(wire.output.buffer());
        while let Some((batch, _)) = self.next_rows(wire, deadline).await? {
            let columns = encoder.columns(&batch)?;
            for row in 0..columns.rows() {
                encoder.put_row(&columns, row, wire.output.buffer());
                wire.flush_if_large().await?;
            }
            rows += columns.rows() as u64;
        }
        Ok(rows)
    }

    /// The batch to go on with, and the row in it; `None` at the end.
    async fn next_rows<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        wire: &mut Wire<S>,
        deadline: Option<Instant>,
    ) -> Result<Option<(RecordBatch, usize)>, Stop> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        while let Some(stream) = &mut self.stream {
            match wire.watch(deadline, stream.next()).await? {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => return Ok(Some((batch, 0))),
                Some(Err(error)) => {
                    self.stream = None;
                    return Err(Stop::Failed(error));
                }
                None => self.stream = None,
            }
        }
        Ok(None)
    }
}
