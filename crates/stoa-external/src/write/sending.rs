//! What the store has of a file, and what is on its way there.
//!
//! A statement may be given up while a request is under way, of which nobody would know then what it has left.
//! **Invariant:** every request runs to its end, whoever waits for it; [`Sending::give_up`] begins after that.

use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_store::{Location, Upload, also_charged, from_object_store};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Parts on their way at a time: while one is, the next is encoded.
const PARTS_IN_FLIGHT_MAX: usize = 1;

/// A file in the store. Clones are the same file.
#[derive(Clone)]
pub(super) struct Sending {
    location: Location,
    /// One that has begun and is not complete. Locked while a request is waited for.
    upload: Arc<Mutex<Option<Upload>>>,
}

impl Sending {
    pub(super) fn new(location: Location) -> Self {
        Self { location, upload: Arc::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.location.path
    }

    /// Where it is, for errors.
    pub(super) fn place(&self) -> String {
        self.location.literal_of(&self.location.path)
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.upload.try_lock().is_err()
    }

    /// Sends a part. The first one begins the upload.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn put_part(&self, payload: PutPayload) -> Result<()> {
        self.to_its_end(|location, mut upload| async move {
            let upload = match &mut *upload {
                Some(upload) => upload,
                none => none.insert(Upload::begin(&location.store, &location.path).await?),
            };
            upload.put_part(payload, PARTS_IN_FLIGHT_MAX).await
        })
        .await
    }

    /// Sends the rest, which makes the file complete and durable.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn finish(&self, payload: PutPayload) -> Result<()> {
        self.to_its_end(|location, mut upload| async move {
            let Some(mut begun) = upload.take() else {
                return location.store.put(&location.path, payload).await.map(drop);
            };
            if payload.content_length() > 0 {
                begun.put_part(payload, PARTS_IN_FLIGHT_MAX).await?;
            }
            begun.complete().await
        })
        .await
    }

    /// Takes away what is there, complete or not. What cannot be taken away stays hidden.
    pub(super) async fn give_up(self) {
        let upload = self.upload.lock().await.take();
        match upload {
            Some(upload) => drop(upload.abort().await),
            None => drop(self.location.store.delete(&self.location.path).await),
        }
    }

    /// Does `work` on a task of its own.
    async fn to_its_end<F, W>(&self, work: F) -> Result<()>
    where
        F: FnOnce(Location, OwnedMutexGuard<Option<Upload>>) -> W,
        W: Future<Output = object_store::Result<()>> + Send + 'static,
    {
        // Before the task begins, so that nobody gives the file up in between.
        let upload = Arc::clone(&self.upload).lock_owned().await;
        let place = self.place();
        let done = task::spawn(also_charged(work(self.location.clone(), upload))).await;
        let done = done.map_err(|source| {
            Error::internal("a request to the store was broken off").with_source(source)
        })?;
        done.map_err(|error| from_object_store(&place, error))
    }
}
