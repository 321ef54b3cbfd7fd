//! Rows and completions.
//!
//! Columns have the names that users know: [`stoa_sql::column_names`].
//!
//! **Invariant:** a [`RowStream`] ends its query in the registry exactly once: at its end, at its
//! first error, or when dropped. After an error it yields nothing more.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use stoa_error::{Error, Result};
use stoa_sql::column_names::{self, is_marked};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::run::registry::QueryGuard;
use crate::tables::transaction::Block;
use stoa_semantics::errors::from_datafusion;

/// How a statement without rows ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// PostgreSQL's command tag: `INSERT 0 5`, `CREATE TABLE`.
    pub tag: String,
    /// Rows written; 0 where that has no meaning.
    pub rows: u64,
    /// What the user should know although it went well.
    pub notices: Vec<String>,
}

impl Completion {
    /// A completion without rows.
    pub fn of(tag: &str) -> Self {
        Self { tag: tag.to_owned(), rows: 0, notices: Vec::new() }
    }

    /// A completion that wrote `rows`; the tag ends with their count.
    pub fn rows(command: &str, rows: u64) -> Self {
        let tag = match command {
            "INSERT" => format!("INSERT 0 {rows}"),
            other => format!("{other} {rows}"),
        };
        Self { tag, rows, notices: Vec::new() }
    }

    /// Adds a notice.
    #[must_use]
    pub fn with_notice(mut self, notice: impl Into<String>) -> Self {
        self.notices.push(notice.into());
        self
    }
}

/// Columns under the names that users know; `None` where they have them.
pub(crate) fn shown(schema: &SchemaRef) -> Option<SchemaRef> {
    let is_marked = |field: &FieldRef| is_marked(field.name());
    schema.fields().iter().any(&is_marked).then(|| {
        let fields = schema.fields().iter().map(|field| match is_marked(field) {
            true => Arc::new(field.as_ref().clone().with_name(column_names::shown(field.name()))),
            false => Arc::clone(field),
        });
        let fields: Fields = fields.collect();
        SchemaRef::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    })
}

/// A batch whose columns are called as in `schema`.
fn with_names(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> std::result::Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)
}

/// The rows of a query. Dropping it cancels what still runs.
pub struct RowStream {
    schema: SchemaRef,
    /// Whether the batches of `inner` have other names.
    is_renamed: bool,
    inner: Option<SendableRecordBatchStream>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    guard: QueryGuard,
    /// The transaction block that an error fails.
    block: Option<Arc<Block>>,
}

impl RowStream {
    pub(crate) fn new(
        inner: SendableRecordBatchStream,
        guard: QueryGuard,
        block: Option<Arc<Block>>,
    ) -> Self {
        let cancelled = Box::pin(guard.cancel_token().clone().cancelled_owned());
        let shown = shown(&inner.schema());
        let is_renamed = shown.is_some();
        let schema = shown.unwrap_or_else(|| inner.schema());
        Self { schema, is_renamed, inner: Some(inner), cancelled, guard, block }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// The query's number in the registry.
    pub fn query_id(&self) -> u64 {
        self.guard.id()
    }

    /// Bytes read from storage so far.
    pub fn bytes_read(&self) -> u64 {
        self.guard.progress().bytes_read.load(Ordering::Relaxed)
    }

    /// All rows at once; for small results and tests.
    pub fn collect(mut self) -> BoxFuture<'static, Result<Vec<RecordBatch>>> {
        Box::pin(async move {
            let mut batches = Vec::new();
            while let Some(batch) = self.next().await {
                batches.push(batch?);
            }
            Ok(batches)
        })
    }

    fn fail(&mut self, error: Error) -> Poll<Option<Result<RecordBatch>>> {
        self.inner = None;
        if let Some(block) = &self.block {
            block.fail();
        }
        self.guard.end(Err(&error));
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for RowStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        if this.cancelled.as_mut().poll_unpin_ready(cx) {
            let error = this.guard.cancelled_error();
            return this.fail(error);
        }
        match inner.poll_next_unpin(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(batch))) => {
                let rows = batch.num_rows() as u64;
                this.guard.progress().rows.fetch_add(rows, Ordering::Relaxed);
                if !this.is_renamed {
                    return Poll::Ready(Some(Ok(batch)));
                }
                match with_names(&batch, &this.schema) {
                    Ok(batch) => Poll::Ready(Some(Ok(batch))),
                    Err(error) => this.fail(from_datafusion(error.into())),
                }
            }
            Poll::Ready(Some(Err(error))) => this.fail(from_datafusion(error)),
            Poll::Ready(None) => {
                this.inner = None;
                this.guard.end(Ok(()));
                Poll::Ready(None)
            }
        }
    }
}

trait PollReady {
    fn poll_unpin_ready(&mut self, cx: &mut Context<'_>) -> bool;
}

impl PollReady for Pin<&mut WaitForCancellationFutureOwned> {
    fn poll_unpin_ready(&mut self, cx: &mut Context<'_>) -> bool {
        std::future::Future::poll(self.as_mut(), cx).is_ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_postgresqls() {
        assert_eq!(Completion::rows("INSERT", 5).tag, "INSERT 0 5");
        assert_eq!(Completion::rows("DELETE", 0).tag, "DELETE 0");
        assert_eq!(Completion::of("CREATE TABLE").tag, "CREATE TABLE");
        assert_eq!(Completion::of("CREATE TABLE").rows, 0);
        let done = Completion::rows("UPDATE", 2).with_notice("one").with_notice("two");
        assert_eq!((done.rows, done.notices.len()), (2, 2));
    }
}
