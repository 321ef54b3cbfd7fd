//! One file on its way to the store.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use parking_lot::Mutex;
use stoa_error::{Place, Result};
use stoa_store::{Location, from_object_store};

use super::encoder::Encoder;
use crate::Definition;

/// Bytes of one part of an upload; a smaller file is put whole.
const PART_BYTES: usize = 8 << 20;

/// A file that is being written.
///
/// The mutexes are never locked: they make the whole `Sync`, so that futures that borrow it can move between threads.
pub(super) struct OpenFile {
    location: Location,
    encoder: Mutex<Encoder>,
    upload: Mutex<Option<Box<dyn MultipartUpload>>>,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    bytes: u64,
    encoder_bytes: usize,
}

impl OpenFile {
    pub(super) fn new(
        location: Location,
        definition: &Definition,
        schema: &SchemaRef,
    ) -> Result<Self> {
        let encoder = Mutex::new(Encoder::new(definition, schema)?);
        let upload = Mutex::new(None);
        let (pending, pending_bytes, bytes) = (Vec::new(), 0, 0);
        let encoder_bytes = 0;
        Ok(Self { location, encoder, upload, pending, pending_bytes, bytes, encoder_bytes })
    }

    pub(super) fn path(&self) -> &Path {
        &self.location.path
    }

    /// Bytes of memory that it holds, about.
    pub(super) fn memory_bytes(&self) -> usize {
        self.encoder_bytes + self.pending_bytes
    }

    /// Encoded bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) async fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.encoder.get_mut().write(rows)?;
        let output = self.encoder.get_mut().take_output();
        self.encoder_bytes = self.encoder.get_mut().memory_bytes();
        self.add(output);
        match self.pending_bytes >= PART_BYTES {
            true => self.send().await,
            false => Ok(()),
        }
    }

    fn add(&mut self, output: Bytes) {
        if !output.is_empty() {
            self.bytes += output.len() as u64;
            self.pending_bytes += output.len();
            self.pending.push(output);
        }
    }

    async fn send(&mut self) -> Result<()> {
        let place = self.location.literal_of(&self.location.path);
        let upload = match self.upload.get_mut() {
            Some(upload) => upload,
            none => {
                let begun = self.location.store.put_multipart(&self.location.path).await;
                none.insert(begun.map_err(|e| from_object_store(&place, e))?)
            }
        };
        let payload: PutPayload = std::mem::take(&mut self.pending).into_iter().collect();
        self.pending_bytes = 0;
        upload.put_part(payload).await.map_err(|e| from_object_store(&place, e))
    }

    /// Writes the rest and makes the file durable.
    pub(super) async fn finish(self) -> Result<()> {
        let Self { location, encoder, upload, mut pending, .. } = self;
        let place = location.literal_of(&location.path);
        let failed = |e| from_object_store(&place, e);
        let rest = encoder.into_inner().finish().map_err(|error| error.at(Place::file(&place)))?;
        pending.push(rest);
        let payload: PutPayload = pending.into_iter().filter(|bytes| !bytes.is_empty()).collect();
        let Some(mut upload) = upload.into_inner() else {
            return location.store.put(&location.path, payload).await.map(drop).map_err(failed);
        };
        if payload.content_length() > 0 {
            upload.put_part(payload).await.map_err(failed)?;
        }
        upload.complete().await.map(drop).map_err(failed)
    }

    /// Gives the file up.
    pub(super) async fn abort(self) {
        if let Some(mut upload) = self.upload.into_inner() {
            // Nothing of it is visible either way.
            let _ = upload.abort().await;
        }
    }
}
