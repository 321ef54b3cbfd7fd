//! One result that is kept, and its rows from some row on.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::stream::{BoxStream, Stream, StreamExt, unfold};
use parking_lot::Mutex;
use serde_json::{Value, json};
use stoa_env::{clock, task};
use stoa_error::{Error, ErrorKind, Result};
use stoa_query::{RowStream, Standing, plain_schema};
use tokio::sync::watch;

use super::keeper::{Cut, End, Keeper, Shared};
use super::{Budget, Results};
use crate::options::KeptOptions;

/// Whose a result is.
pub(crate) struct Reader {
    pub(crate) owner: String,
    /// What the role could read before the statement ran; `None` where nobody is asked who they are.
    pub(crate) standing: Option<Standing>,
}

/// A result that the server keeps. When it is dropped, a query that still runs is cancelled.
pub(crate) struct Kept {
    id: String,
    reader: Reader,
    query_id: u64,
    schema: SchemaRef,
    shared: Arc<Shared>,
    wanted: watch::Sender<u64>,
    read_at: Mutex<Instant>,
}

impl Kept {
    pub(super) fn new(
        id: String,
        reader: Reader,
        rows: RowStream,
        options: &KeptOptions,
        directory: &Path,
        budget: &Arc<Budget>,
    ) -> Self {
        let schema = plain_schema(&rows.schema());
        let shared = Arc::new(Shared::new(Arc::clone(budget)));
        let (wanted, receiver) = watch::channel(0);
        let query_id = rows.query_id();
        let keeper = Keeper {
            shared: Arc::clone(&shared),
            schema: Arc::clone(&schema),
            directory: directory.to_owned(),
            result_bytes_max: options.result_bytes_max,
            ahead_bytes: options.ahead_bytes,
            unwanted_max: Duration::from_millis(options.unwanted_ms_max),
            wanted: receiver,
        };
        task::spawn(keeper.run(rows));
        let read_at = Mutex::new(clock::monotonic());
        Self { id, reader, query_id, schema, shared, wanted, read_at }
    }

    pub(super) fn owner(&self) -> &str {
        &self.reader.owner
    }

    /// What the role could read before the statement ran.
    pub(crate) fn standing(&self) -> Option<&Standing> {
        self.reader.standing.as_ref()
    }

    pub(super) fn touch(&self) {
        *self.read_at.lock() = clock::monotonic();
    }

    pub(super) fn unread_for(&self) -> Duration {
        clock::monotonic().saturating_duration_since(*self.read_at.lock())
    }

    /// What clients are told of it: id, rows so far, and whether these are all.
    pub(crate) fn to_json(&self) -> Value {
        let progress = *self.shared.progress.borrow();
        let (state, reason) = match progress.end {
            None => ("running", None),
            Some(End::Complete) => ("complete", None),
            Some(End::Failed) => ("failed", None),
            Some(End::Cut(cut)) => ("cut", Some(reason(cut))),
        };
        let bytes = self.shared.chunks.lock().bytes();
        json!({ "id": self.id, "rows": progress.rows, "bytes": bytes, "state": state, "reason": reason })
    }

    /// The rows from number `from` on, counted from 0. `is_part`: the end of a result that was cut is an end like
    /// others; otherwise it is an error.
    fn batches(
        self: Arc<Self>,
        from: u64,
        is_part: bool,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let next = move |position: Option<u64>| {
            let kept = Arc::clone(&self);
            async move {
                let row = position?;
                match kept.batch_at(row, is_part).await {
                    Ok(Some(batch)) => {
                        let next = row + batch.num_rows() as u64;
                        Some((Ok(batch), Some(next)))
                    }
                    Ok(None) => None,
                    Err(error) => Some((Err(error), None)),
                }
            }
        };
        unfold(Some(from), next).boxed()
    }

    async fn batch_at(&self, row: u64, is_part: bool) -> Result<Option<RecordBatch>> {
        self.wanted.send_if_modified(|wanted| {
            let is_more = row >= *wanted;
            *wanted = (*wanted).max(row + 1);
            is_more
        });
        let mut progress = self.shared.progress.subscribe();
        loop {
            // The end is looked at first: no rows come after it.
            let end = progress.borrow_and_update().end;
            let place = self.shared.chunks.lock().find(row);
            if let Some((place, before)) = place {
                self.touch();
                let batch = place.read().await?;
                let before = usize::try_from(before).unwrap_or(usize::MAX).min(batch.num_rows());
                return Ok(Some(batch.slice(before, batch.num_rows() - before)));
            }
            match end {
                Some(End::Complete) => return Ok(None),
                Some(End::Cut(_)) if is_part => return Ok(None),
                Some(End::Cut(cut)) => return Err(self.cut(cut)),
                Some(End::Failed) => return Err(self.failure()),
                // An error would mean that the sender is gone, but it is in `self`.
                None => drop(progress.changed().await),
            }
        }
    }

    fn failure(&self) -> Error {
        let first = self.shared.failure.lock().take();
        first.unwrap_or_else(|| Error::unavailable("the statement failed before its last row"))
    }

    fn cut(&self, cut: Cut) -> Error {
        let rows = self.shared.chunks.lock().rows();
        Error::new(ErrorKind::Exhausted, format!("the server kept only the first {rows} rows of this result"))
            .with_sqlstate("54000")
            .with_detail(reason(cut))
            .with_hint("add partial=true for these rows; read all with `COPY (…) TO STDOUT`, or POST /v1/sql without keep")
    }
}

fn reason(cut: Cut) -> &'static str {
    match cut {
        Cut::Unwanted => "nobody asked for more rows in time, so the statement was ended",
        Cut::TooLarge => "the result is larger than the server keeps",
        Cut::Disk => "the disk for results took no more",
    }
}

/// Rows of a kept result, from some row on.
pub(crate) struct Page {
    batches: BoxStream<'static, Result<RecordBatch>>,
    kept: Arc<Kept>,
    /// Where the result is forgotten if the page is dropped before its end.
    unfinished: Option<Arc<Results>>,
}

impl Page {
    /// The beginning of a result that is new.
    pub(super) fn first(kept: Arc<Kept>, results: &Arc<Results>) -> Self {
        let batches = Arc::clone(&kept).batches(0, true);
        Self { batches, kept, unfinished: Some(Arc::clone(results)) }
    }

    /// The rows from number `from` on; see [`Kept::batches`].
    pub(crate) fn of(kept: Arc<Kept>, from: u64, is_part: bool) -> Self {
        Self { batches: Arc::clone(&kept).batches(from, is_part), kept, unfinished: None }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.kept.schema)
    }

    pub(crate) fn query_id(&self) -> u64 {
        self.kept.query_id
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.kept.shared.bytes_read.load(Ordering::Relaxed)
    }

    /// The page has all rows that were wanted: the result stays. What clients are told of it.
    pub(crate) fn finish(&mut self) -> Value {
        self.unfinished = None;
        self.kept.touch();
        self.kept.to_json()
    }
}

impl Stream for Page {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.poll_next_unpin(cx)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(results) = self.unfinished.take() {
            results.remove(&self.kept.id);
        }
    }
}
