//! One file on its way to the store.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use object_store::PutPayload;
use parking_lot::Mutex;
use stoa_error::{Place, Result};
use stoa_store::Location;

use super::encoder::Encoder;
use super::sending::Sending;
use crate::Definition;

/// Bytes of one part of an upload; a smaller file is put whole.
const PART_BYTES: usize = 8 << 20;

/// A file that is being written.
///
/// The mutex is never locked: it makes the whole `Sync`, so that futures that borrow it can move between threads.
pub(super) struct OpenFile {
    sending: Sending,
    encoder: Mutex<Encoder>,
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
        let (pending, pending_bytes, bytes) = (Vec::new(), 0, 0);
        let (sending, encoder_bytes) = (Sending::new(location), 0);
        Ok(Self { sending, encoder, pending, pending_bytes, bytes, encoder_bytes })
    }

    /// The file in the store, which outlives this.
    pub(super) fn sending(&self) -> &Sending {
        &self.sending
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
        if self.pending_bytes < PART_BYTES {
            return Ok(());
        }
        let payload: PutPayload = std::mem::take(&mut self.pending).into_iter().collect();
        self.pending_bytes = 0;
        self.sending.put_part(payload).await
    }

    fn add(&mut self, output: Bytes) {
        if !output.is_empty() {
            self.bytes += output.len() as u64;
            self.pending_bytes += output.len();
            self.pending.push(output);
        }
    }

    /// Writes the rest and makes the file durable.
    pub(super) async fn finish(self) -> Result<()> {
        let Self { sending, encoder, mut pending, .. } = self;
        let rest = encoder.into_inner().finish();
        let rest = rest.map_err(|error| error.at(Place::file(sending.place())))?;
        pending.push(rest);
        sending.finish(pending.into_iter().filter(|bytes| !bytes.is_empty()).collect()).await
    }
}
