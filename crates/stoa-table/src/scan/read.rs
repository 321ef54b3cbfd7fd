//! What every reader of a data file does first: its tail; and what it says when the file is not there.
//!
//! Not here: decoding rows, which each reader does in its own way.

use futures::future::BoxFuture;
use stoa_error::{Error, ErrorKind, Place, Result};
use stoa_orc::{FileMetadata, TailDecoder, TailStep};
use stoa_rangeio::RangeReader;

use super::ScanFile;

impl ScanFile {
    /// Reads the file's tail through `reader`, which counts.
    ///
    /// # Errors
    /// `Corrupt` for a damaged or missing file; those of the store.
    pub fn read_metadata<'a>(
        &'a self,
        reader: &'a RangeReader,
    ) -> BoxFuture<'a, Result<FileMetadata>> {
        Box::pin(async move {
            let mut tail = TailDecoder::new(self.file_bytes).with_proleptic_dates();
            let mut wanted = tail.first_read();
            loop {
                let range = self.file_bytes.saturating_sub(wanted)..self.file_bytes;
                let bytes = reader.read_one(&self.path, range).await;
                let bytes = bytes.map_err(|error| self.failed(error))?;
                match tail.decode(bytes).map_err(|error| error.at(Place::file(&self.location)))? {
                    TailStep::NeedsTail(more) => wanted = more,
                    TailStep::Done(metadata) => return Ok(metadata),
                }
            }
        })
    }

    /// A store's error about this file. A snapshot names the file, so its absence is damage, not a
    /// wrong request.
    pub fn failed(&self, error: Error) -> Error {
        let location = &self.location;
        match error.kind() {
            ErrorKind::NotFound => Error::corrupt(format!("data file {location} is missing"))
                .with_hint("`stoa table check` lists what else is missing; restore the file")
                .with_source(error),
            _ => error.at(Place::file(location)),
        }
    }
}
