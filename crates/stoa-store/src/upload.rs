//! A file that is sent in parts, of which nothing stays if nobody wants it any more.
//!
//! Object stores keep, and bill, the parts of an upload that was begun and neither completed nor given up. Whoever sends
//! one may be dropped at any point, as a statement that is cancelled is.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, Result};
use stoa_env::task::{Spawner, spawn};
use tokio::task::JoinHandle;

use crate::also_charged;

/// An upload on its way. Dropped before it is complete, it is given up in the background.
pub struct Upload {
    /// `None` once it is complete or given up.
    begun: Option<Box<dyn MultipartUpload>>,
    in_flight: VecDeque<JoinHandle<Result<()>>>,
    spawner: Spawner,
}

impl Upload {
    /// Begins one, on a task of its own: also where nobody waits for it any more, it is known and given up.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn begin(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<Self> {
        let (store, path) = (Arc::clone(store), path.clone());
        let spawner = Spawner::current();
        let begin = async move {
            let begun = Some(store.put_multipart(&path).await?);
            Ok(Self { begun, in_flight: VecDeque::new(), spawner })
        };
        joined(spawn(also_charged(begin)).await)
    }

    /// Sends a part in the background, once fewer than `in_flight_max` are on their way.
    ///
    /// # Errors
    /// Those of the store, of this part or of one before.
    pub async fn put_part(&mut self, payload: PutPayload, in_flight_max: usize) -> Result<()> {
        self.landed(in_flight_max.saturating_sub(1)).await?;
        if let Some(begun) = &mut self.begun {
            self.in_flight.push_back(spawn(also_charged(begun.put_part(payload))));
        }
        Ok(())
    }

    /// Waits for all parts, and makes the file of them.
    ///
    /// # Errors
    /// Those of the store. It may be that the file is there, and only the answer got lost.
    pub async fn complete(mut self) -> Result<()> {
        self.landed(0).await?;
        let Some(begun) = &mut self.begun else { return Ok(()) };
        begun.complete().await?;
        self.begun = None;
        Ok(())
    }

    /// Gives it up: nothing of it stays.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn abort(mut self) -> Result<()> {
        let Some(given_up) = self.giving_up() else { return Ok(()) };
        joined(spawn(also_charged(given_up)).await)
    }

    /// Waits until `count` parts at most are on their way.
    async fn landed(&mut self, count: usize) -> Result<()> {
        while self.in_flight.len() > count
            && let Some(part) = self.in_flight.front_mut()
        {
            // It stays among those that are on their way until it has landed, whoever waits for that.
            let landed = joined(part.await);
            self.in_flight.pop_front();
            landed?;
        }
        Ok(())
    }

    fn giving_up(&mut self) -> Option<impl Future<Output = Result<()>> + Send + 'static> {
        let mut begun = self.begun.take()?;
        let in_flight = std::mem::take(&mut self.in_flight);
        Some(async move {
            for part in in_flight {
                // A part that arrives after the end of an upload may stay. How it ends does not matter.
                let _ = part.await;
            }
            begun.abort().await
        })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(given_up) = self.giving_up() {
            // Nobody is there to be told: what stays is removed by the rules of the bucket.
            self.spawner.spawn(async move { drop(given_up.await) });
        }
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({} parts on their way)", self.in_flight.len())
    }
}

/// What a task came to; one that was broken off is an error.
fn joined<T>(outcome: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    outcome.unwrap_or_else(|source| Err(Error::JoinError { source }))
}
