//! A result as a response body: encoded batch by batch, as fast as the client takes it.
//!
//! In: a row stream, of a query or of a result that is kept, and an encoder. Out: bytes in chunks of about [`CHUNK_BYTES`]. A result that
//! fits in the first chunk is sent whole, with its length; and an error before the first chunk is
//! complete becomes an error response with its own status. Later errors end the body as the format
//! says (`format::Ending`).
//!
//! **Invariant:** no more than one batch and one chunk are held. Dropping the body drops the row
//! stream, which cancels the query.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use stoa_error::{Error, Result};
use stoa_query::{Completion, RowStream};

use crate::app::Flight;
use crate::format::{Ending, ResultEncoder, Summary};
use crate::kept::Page;
use crate::problem;

/// A chunk is sent when it has grown to this size.
const CHUNK_BYTES: usize = 64 << 10;
/// Most rows that are encoded before the size of the chunk is looked at.
const ROWS_AT_ONCE: usize = 1024;

/// A statement that ended without rows.
pub(crate) struct Completed {
    pub(crate) completion: Completion,
    pub(crate) elapsed: Duration,
}

/// The body of a statement without rows.
pub(crate) fn completed(completed: Completed, mut encoder: Box<dyn ResultEncoder>) -> Result<Body> {
    let mut out = Vec::new();
    encoder.begin(&SchemaRef::new(Schema::empty()), &mut out)?;
    let Completion { tag, rows, notices, .. } = completed.completion;
    let summary = Summary {
        command: Some(tag),
        rows_affected: Some(rows),
        notices,
        elapsed_ms: milliseconds(completed.elapsed),
        ..Summary::default()
    };
    encoder.finish(&summary, &mut out)?;
    Ok(Body::from(out))
}

/// Where rows come from.
pub(crate) enum Rows {
    /// A query whose rows are gone once they are sent.
    Live(RowStream),
    /// A result that the server keeps.
    Kept(Page),
}

impl Rows {
    fn schema(&self) -> SchemaRef {
        match self {
            Self::Live(rows) => rows.schema(),
            Self::Kept(page) => page.schema(),
        }
    }

    /// The query's number in the registry.
    pub(crate) fn query_id(&self) -> u64 {
        match self {
            Self::Live(rows) => rows.query_id(),
            Self::Kept(page) => page.query_id(),
        }
    }

    fn bytes_read(&self) -> u64 {
        match self {
            Self::Live(rows) => rows.bytes_read(),
            Self::Kept(page) => page.bytes_read(),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        match self {
            Self::Live(rows) => rows.poll_next_unpin(cx),
            Self::Kept(page) => page.poll_next_unpin(cx),
        }
    }
}

/// The rows of a query on their way out.
pub(crate) struct ResultBody {
    /// `None` once all that is wanted was taken.
    rows: Option<Rows>,
    encoder: Box<dyn ResultEncoder>,
    /// What is left to encode of the current batch.
    pending: Option<RecordBatch>,
    out: Vec<u8>,
    rows_left: u64,
    summary: Summary,
    began: Instant,
    state: State,
    _flight: Flight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was encoded yet.
    New,
    Rows,
    /// The failed result must be broken off after what is in `out`.
    BreakOff,
    /// The last bytes were handed over; the connection may send them before it is broken off.
    Parting,
    Ended,
}

impl ResultBody {
    pub(crate) fn new(
        rows: Rows,
        encoder: Box<dyn ResultEncoder>,
        max_rows: u64,
        began: Instant,
        flight: Flight,
    ) -> Self {
        let summary = Summary { query_id: Some(rows.query_id()), ..Summary::default() };
        Self {
            rows: Some(rows),
            encoder,
            pending: None,
            out: Vec::with_capacity(4096),
            rows_left: max_rows,
            summary,
            began,
            state: State::New,
            _flight: flight,
        }
    }

    /// Waits for the first chunk.
    ///
    /// # Errors
    /// Those of the query, if it fails before the first chunk is complete.
    pub(crate) async fn into_body(mut self) -> Result<Body> {
        let first = std::future::poll_fn(|cx| self.poll_chunk(cx)).await?;
        Ok(match self.state {
            State::Ended => Body::from(first),
            _ => Body::from_stream(stream::once(async { Ok(first) }).chain(self)),
        })
    }

    /// The next chunk; empty once all was given. Errors of the query and of encoding come out.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes>> {
        loop {
            if self.out.len() >= CHUNK_BYTES || self.state == State::Ended {
                return Poll::Ready(Ok(self.take_chunk()));
            }
            if self.state == State::New {
                if let Some(rows) = &self.rows {
                    self.encoder.begin(&rows.schema(), &mut self.out)?;
                }
                self.state = State::Rows;
            }
            if let Some(batch) = self.pending.take() {
                self.encode(batch)?;
                continue;
            }
            let Some(rows) = &mut self.rows else {
                self.finish()?;
                continue;
            };
            match rows.poll_next(cx) {
                Poll::Ready(Some(batch)) => self.take_batch(batch?),
                Poll::Ready(None) => self.end_rows(),
                // What is there goes out at once, but not a beginning without rows: the query may
                // still fail, and then an error with its status is better.
                Poll::Pending if self.out.is_empty() || self.summary.row_count == 0 => {
                    return Poll::Pending;
                }
                Poll::Pending => return Poll::Ready(Ok(self.take_chunk())),
            }
        }
    }

    fn take_chunk(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.out))
    }

    fn take_batch(&mut self, batch: RecordBatch) {
        let wanted = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
        if batch.num_rows() <= wanted {
            self.rows_left -= batch.num_rows() as u64;
            self.pending = (batch.num_rows() > 0).then_some(batch);
            return;
        }
        self.summary.truncated = true;
        self.pending = (wanted > 0).then(|| batch.slice(0, wanted));
        self.end_rows();
    }

    fn end_rows(&mut self) {
        if let Some(mut rows) = self.rows.take() {
            self.summary.bytes_read = rows.bytes_read();
            if let Rows::Kept(page) = &mut rows {
                self.summary.result = Some(page.finish());
            }
        }
    }

    fn encode(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = rows_at_once(&batch).min(batch.num_rows());
        self.encoder.batch(&batch.slice(0, rows), &mut self.out)?;
        self.summary.row_count += rows as u64;
        if rows < batch.num_rows() {
            self.pending = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.summary.elapsed_ms = milliseconds(self.began.elapsed());
        self.encoder.finish(&self.summary, &mut self.out)?;
        self.state = State::Ended;
        Ok(())
    }

    /// Ends a body of which the client has a part already.
    fn fail(&mut self, error: &Error) {
        problem::log(error);
        self.rows = None;
        self.pending = None;
        self.state = match self.encoder.fail(error, &mut self.out) {
            Ending::Complete => State::Ended,
            Ending::BreakOff => State::BreakOff,
        };
    }
}

impl Stream for ResultBody {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !matches!(this.state, State::BreakOff | State::Parting)
            && let Err(error) = ready!(this.poll_chunk(cx)).map(|chunk| this.out = chunk.into())
        {
            this.fail(&error);
        }
        let chunk = this.take_chunk();
        match this.state {
            _ if !chunk.is_empty() => Poll::Ready(Some(Ok(chunk))),
            State::BreakOff => {
                // The connection sends what it holds when the body has nothing for now.
                this.state = State::Parting;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            State::Parting => {
                this.state = State::Ended;
                Poll::Ready(Some(Err(std::io::Error::other("the query failed"))))
            }
            _ => Poll::Ready(None),
        }
    }
}

/// As many rows as make a chunk, by the batch's own size.
fn rows_at_once(batch: &RecordBatch) -> usize {
    let row_bytes = batch.get_array_memory_size() / batch.num_rows().max(1);
    (4 * CHUNK_BYTES / row_bytes.max(1)).clamp(1, ROWS_AT_ONCE)
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1000.0
}
