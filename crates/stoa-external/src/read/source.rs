//! The bytes of a file.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use stoa_error::{Error, Result};
use stoa_rangeio::{RangeReader, ReadMetrics};
use stoa_store::Location;

use crate::DataFile;

/// One file. A store that tells what an answer is from (S3) is asked for one and the same object throughout: a file that
/// is overwritten meanwhile is an error, not a mixture.
pub(super) struct Source {
    reader: RangeReader,
    pub(super) path: Path,
    pub(super) bytes: u64,
}

impl Source {
    pub(super) fn new(location: &Location, file: &DataFile, counters: &Arc<ReadMetrics>) -> Self {
        let mut reader = location.reader.clone().with_metrics(Arc::clone(counters));
        if !location.literal_of(&file.path).starts_with("file://") {
            reader = reader.with_pin(Arc::default());
        }
        Self { reader, path: file.path.clone(), bytes: file.bytes }
    }

    /// Some of its bytes, as offsets and chunks.
    pub(super) async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>> {
        if ranges.iter().any(|range| range.end > self.bytes) {
            return Err(Error::corrupt("the file ends before its own offsets"));
        }
        self.reader.read(&self.path, ranges).await
    }

    /// One range.
    pub(super) async fn one(&self, range: Range<u64>) -> Result<Bytes> {
        let range = range.start.min(self.bytes)..range.end.min(self.bytes);
        self.reader.read_one(&self.path, range).await
    }
}
