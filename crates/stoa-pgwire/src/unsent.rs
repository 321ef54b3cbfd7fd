//! The rows of a query, as far as they were not sent: all at once, or so many a call.

use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::cast;
use futures::StreamExt;
use stoa_error::{Error, Result};
use stoa_query::RowStream;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::encode::{CopyEncoder, RowEncoder};
use crate::wire::stream::{FLUSH_BYTES, Stop, Wire};

/// The rows of a query, as far as they were not sent.
pub(crate) struct UnsentRows {
    schema: SchemaRef,
    /// The query gives other types than were described to the client (a parameter of another
    /// type, a table altered since): they are cast.
    cast: bool,
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

impl UnsentRows {
    /// `described` is what the client was told about the columns.
    ///
    /// # Errors
    /// There are other columns now (0A000).
    pub(crate) fn new(stream: RowStream, text: &str, described: Option<SchemaRef>) -> Result<Self> {
        let given = stream.schema();
        let schema = described.unwrap_or_else(|| SchemaRef::clone(&given));
        if schema.fields().len() != given.fields().len() {
            return Err(Error::unsupported("cached plan must not change result type")
                .with_hint("prepare the statement again: a table it reads was altered"));
        }
        let mut pairs = schema.fields().iter().zip(given.fields());
        let cast = pairs.any(|(told, given)| told.data_type() != given.data_type());
        Ok(Self { schema, cast, stream: Some(stream), current: None, text: text.to_owned() })
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

    /// Sends all rows as those of a COPY; returns how many.
    pub(crate) async fn copy_out<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        wire: &mut Wire<S>,
        encoder: &mut CopyEncoder,
        deadline: Option<Instant>,
    ) -> Result<u64, Stop> {
        let mut rows = 0;
        encoder.put_header(wire.output.buffer())?;
        while let Some((batch, _)) = self.next_rows(wire, deadline).await? {
            let columns = encoder.columns(&batch)?;
            for row in 0..columns.rows() {
                encoder.put_row(&columns, row, wire.output.buffer())?;
                wire.flush_if_large().await?;
            }
            rows += columns.rows() as u64;
        }
        encoder.put_trailer(wire.output.buffer())?;
        Ok(rows)
    }

    /// The next batch, whole; `None` at the end. Not for rows of which some were sent.
    pub(crate) async fn next_batch<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        wire: &mut Wire<S>,
        deadline: Option<Instant>,
    ) -> Result<Option<RecordBatch>, Stop> {
        Ok(self.next_rows(wire, deadline).await?.map(|(batch, _)| batch))
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
                Some(Ok(batch)) if self.cast => return Ok(Some((self.as_described(&batch)?, 0))),
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

    fn as_described(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.schema.fields().iter().zip(batch.columns());
        let columns = columns.map(|(field, column)| cast(column, field.data_type()));
        columns
            .collect::<std::result::Result<_, _>>()
            .and_then(|columns| RecordBatch::try_new(self.schema(), columns))
            .map_err(|source| {
                Error::invalid("the result has other types than were described")
                    .with_source(source)
                    .with_sqlstate("0A000")
                    .with_hint("prepare the statement again, or cast its parameters")
            })
    }
}
