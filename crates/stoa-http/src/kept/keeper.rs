//! Reads the rows of a query as they are wanted, and keeps them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt;
use parking_lot::Mutex;
use stoa_env::timer;
use stoa_error::{Error, Result};
use stoa_query::{RowStream, plain_batch};
use tokio::sync::watch;

use super::Budget;
use super::chunks::{Chunks, Place, encode};

/// What keeper and readers share.
pub(super) struct Shared {
    pub(super) chunks: Mutex<Chunks>,
    pub(super) progress: watch::Sender<Progress>,
    /// What the first reader who gets there is told.
    pub(super) failure: Mutex<Option<Error>>,
    pub(super) bytes_read: AtomicU64,
    budget: Arc<Budget>,
}

/// How far a result is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub(super) rows: u64,
    pub(super) end: Option<End>,
}

/// How the rows of a result ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// There were more.
    Cut(Cut),
    Failed,
}

/// Why the server kept no more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nobody asked for more.
    Unwanted,
    /// The result, or all of them together, are as large as they may be.
    TooLarge,
    /// The disk took no more.
    Disk,
}

impl Shared {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            chunks: Mutex::default(),
            progress: watch::Sender::default(),
            failure: Mutex::default(),
            bytes_read: AtomicU64::new(0),
            budget,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.budget.give_back(self.chunks.get_mut().bytes());
    }
}

/// Takes rows from a query until they end, or nobody wants more.
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
    /// The columns in types that can be written.
    pub(super) schema: SchemaRef,
    pub(super) directory: PathBuf,
    pub(super) result_bytes_max: u64,
    pub(super) ahead_bytes: u64,
    pub(super) unwanted_max: Duration,
    /// Rows that readers have asked for so far; its sender is dropped with the result.
    pub(super) wanted: watch::Receiver<u64>,
}

/// The result is not kept any more.
struct Gone;

impl Keeper {
    pub(super) async fn run(mut self, mut rows: RowStream) {
        let end = match self.keep(&mut rows).await {
            Ok(Ok(end)) => end,
            Ok(Err(error)) => {
                *self.shared.failure.lock() = Some(error);
                End::Failed
            }
            Err(Gone) => return,
        };
        // The query ends before readers are told, so that what it holds is free by then.
        drop(rows);
        self.shared.progress.send_modify(|progress| progress.end = Some(end));
    }

    async fn keep(&mut self, rows: &mut RowStream) -> Result<Result<End>, Gone> {
        loop {
            if !self.wait_until_wanted().await? {
                return Ok(Ok(End::Cut(Cut::Unwanted)));
            }
            let batch = tokio::select! {
                batch = rows.next() => batch,
                () = gone(&mut self.wanted) => return Err(Gone),
            };
            let bytes_read = rows.bytes_read();
            self.shared.bytes_read.store(bytes_read, Ordering::Relaxed);
            let batch = match batch {
                Some(Ok(batch)) if batch.num_rows() == 0 => continue,
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Ok(Err(error)),
                None => return Ok(Ok(End::Complete)),
            };
            match self.add(&batch).await {
                Ok(None) => {}
                Ok(Some(cut)) => return Ok(Ok(End::Cut(cut))),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Whether more rows are wanted, after a wait; not if nobody asks for more for long.
    async fn wait_until_wanted(&mut self) -> Result<bool, Gone> {
        loop {
            let wanted = *self.wanted.borrow_and_update();
            let (kept, bytes) = {
                let chunks = self.shared.chunks.lock();
                (chunks.rows(), chunks.bytes())
            };
            if wanted > kept || bytes < self.ahead_bytes {
                return Ok(true);
            }
            match timer::timeout(self.unwanted_max, self.wanted.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Gone),
                Err(_) => return Ok(false),
            }
        }
    }

    async fn add(&self, batch: &RecordBatch) -> Result<Option<Cut>> {
        let rows = batch.num_rows() as u64;
        let bytes = encode(&plain_batch(batch, &self.schema)?)?;
        let (kept, is_for_disk, file) = {
            let chunks = self.shared.chunks.lock();
            (chunks.bytes(), chunks.is_for_disk(bytes.len()), chunks.file())
        };
        let length = bytes.len() as u64;
        if kept + length > self.result_bytes_max || !self.shared.budget.take(length) {
            return Ok(Some(Cut::TooLarge));
        }
        let place = match is_for_disk {
            false => Place::Memory(Bytes::from(bytes)),
            true => match Place::write(&self.directory, file, bytes).await {
                Ok(place) => place,
                Err(error) => {
                    self.shared.budget.give_back(length);
                    tracing::warn!(directory = %self.directory.display(), %error, "cannot keep a result");
                    return Ok(Some(Cut::Disk));
                }
            },
        };
        let rows = {
            let mut chunks = self.shared.chunks.lock();
            chunks.add(rows, place);
            chunks.rows()
        };
        self.shared.progress.send_modify(|progress| progress.rows = rows);
        Ok(None)
    }
}

/// Completes when the result is not kept any more.
async fn gone(wanted: &mut watch::Receiver<u64>) {
    while wanted.changed().await.is_ok() {}
}
