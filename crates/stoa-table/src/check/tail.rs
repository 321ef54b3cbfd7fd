//! Does a data file open, and does it hold the rows that its manifest says?

use bytes::Bytes;
use futures::StreamExt;
use object_store::ObjectStoreExt;
use stoa_error::{Error, ErrorKind, Result};
use stoa_orc::{FileMetadata, TailDecoder, TailStep};
use stoa_store::{Stores, from_object_store};

use super::Problem;

/// Tails read at the same time.
const READS_MAX: usize = 16;

/// A data file, as its manifest describes it.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) location: String,
    pub(super) bytes: u64,
    pub(super) rows: u64,
}

/// Reads the tail of every file; gives back what is wrong.
pub(super) async fn check_tails(stores: &Stores, files: &[Described]) -> Result<Vec<Problem>> {
    // Made before they are streamed; see `scan::plan`.
    let reads: Vec<_> = files.iter().map(|file| check_tail(stores, file)).collect();
    let mut reads = futures::stream::iter(reads).buffered(READS_MAX);
    let mut problems = Vec::new();
    while let Some(problem) = reads.next().await {
        problems.extend(problem?);
    }
    Ok(problems)
}

async fn check_tail(stores: &Stores, file: &Described) -> Result<Option<Problem>> {
    let what = match read_tail(stores, file).await.map(|metadata| metadata.rows) {
        Ok(rows) if rows == file.rows => return Ok(None),
        Ok(rows) => format!("the data file has {rows} rows, its manifest says {}", file.rows),
        Err(error) if is_damage(&error) => error.message_with_sources(),
        Err(error) => return Err(error),
    };
    Ok(Some(Problem { place: file.location.clone(), what }))
}

/// Whether an error is one of the file, not of the store.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported)
}

/// Reads the tail of a file.
pub(super) async fn read_tail(stores: &Stores, file: &Described) -> Result<FileMetadata> {
    let place = stores.resolve(&file.location)?;
    let mut decoder = TailDecoder::new(file.bytes);
    let mut wanted = decoder.first_read();
    loop {
        let range = file.bytes.saturating_sub(wanted)..file.bytes;
        let tail: Bytes = match range.is_empty() {
            true => Bytes::new(),
            false => place
                .store
                .get_range(&place.path, range)
                .await
                .map_err(|source| from_object_store(&file.location, source))?,
        };
        match decoder.decode(tail)? {
            TailStep::NeedsTail(more) => wanted = more,
            TailStep::Done(metadata) => return Ok(metadata),
        }
    }
}
