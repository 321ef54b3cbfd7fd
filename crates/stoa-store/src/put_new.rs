//! Writing an object that must not be there yet, whatever becomes of the answer.

use bytes::Bytes;
use object_store::{Error, ObjectStoreExt, PutMode, Result};

use crate::Location;
use crate::s3::is_lost;

/// How often an object is put whose fate is not known.
const TRIES: usize = 3;

impl Location {
    /// Writes a new object under a name that nobody else uses, durable when this returns.
    ///
    /// A store may have done a put whose answer was lost. What is found under the name is compared
    /// then: the same bytes are this put's, so the call may safely be made again.
    ///
    /// # Errors
    /// `AlreadyExists` where something else has the name; the store's.
    pub async fn put_new(&self, bytes: &Bytes) -> Result<()> {
        let mut tries = 0;
        loop {
            tries += 1;
            let payload = bytes.clone().into();
            match self.store.put_opts(&self.path, payload, PutMode::Create.into()).await {
                Ok(_) => return Ok(()),
                Err(error @ Error::AlreadyExists { .. }) => {
                    return if self.holds(bytes).await? { Ok(()) } else { Err(error) };
                }
                // `object_store` does not repeat what it does not know to be harmless.
                Err(error) if tries < TRIES && is_lost(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn holds(&self, bytes: &Bytes) -> Result<bool> {
        if self.store.head(&self.path).await?.size != bytes.len() as u64 {
            return Ok(false);
        }
        Ok(self.store.get(&self.path).await?.bytes().await? == bytes)
    }
}
