//! Is every byte of a data file the one that was written?
//!
//! Stoa keeps checksums of its files in the files themselves: of each 16 KiB in the footer, and of
//! the tail, which holds those, in the postscript. Files of other writers have none: their rows are
//! read, which finds damage that makes no sense and no other.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use object_store::ObjectStoreExt;
use stoa_error::{Error, Place, Result};
use stoa_orc::{BlockChecksums, Decoder, FileMetadata, ReadOptions, Step, TimestampOutput};
use stoa_store::{Location, Stores, from_object_store};

use super::Problem;
use super::tail::{Described, is_damage, read_tail};

/// Files read at the same time.
const FILES_MAX: usize = 4;

/// Bytes read at a time: whole blocks of any size that a file may say.
const READ_BYTES: u64 = 8 << 20;

/// What was read to see whether it is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedData {
    /// Data files read as a whole.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// How many of the files have no checksums: Stoa did not write them, or an old version.
    pub without_checksums: usize,
}

/// Reads every file; gives back what was read and what is wrong.
pub(super) async fn check_contents(
    stores: &Stores,
    files: &[Described],
) -> Result<(CheckedData, Vec<Problem>)> {
    // Made before they are streamed; see `scan::plan`.
    let reads: Vec<_> = files.iter().map(|file| check_content(stores, file)).collect();
    let mut reads = futures::stream::iter(reads).buffered(FILES_MAX);
    let (mut data, mut problems) = (CheckedData::default(), Vec::new());
    while let Some(read) = reads.next().await {
        let (bytes, has_checksums, problem) = read?;
        data.files += 1;
        data.bytes += bytes;
        data.without_checksums += usize::from(!has_checksums);
        problems.extend(problem);
    }
    Ok((data, problems))
}

/// The bytes of a file, whether it has checksums, and what is wrong with it.
async fn check_content(stores: &Stores, file: &Described) -> Result<(u64, bool, Option<Problem>)> {
    let problem = |error: Error| match is_damage(&error) {
        true => Ok(Problem { place: file.location.clone(), what: error.message_with_sources() }),
        false => Err(error),
    };
    let metadata = match read_tail(stores, file).await {
        Ok(metadata) => metadata,
        // Told by the check of tails.
        Err(error) => return problem(error).map(|_| (file.bytes, true, None)),
    };
    let source = Source { place: stores.resolve(&file.location)?, location: &file.location };
    let has_checksums = metadata.checksums().is_some();
    let result = match metadata.checksums() {
        Some(checksums) => source.compare(&metadata, checksums).await,
        None => source.read_rows(metadata).await,
    };
    Ok((file.bytes, has_checksums, result.err().map(problem).transpose()?))
}

/// A data file to be read.
struct Source<'a> {
    place: Location,
    location: &'a str,
}

impl Source<'_> {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = self.place.store.get_range(&self.place.path, range).await;
        bytes.map_err(|source| from_object_store(self.location, source))
    }

    /// Compares all bytes in front of the tail with their checksums.
    async fn compare(&self, file: &FileMetadata, checksums: &BlockChecksums) -> Result<()> {
        let step = READ_BYTES.next_multiple_of(checksums.block_bytes());
        let mut at = 0;
        while at < checksums.content_bytes() {
            let bytes = self.read(at..checksums.content_bytes().min(at + step)).await?;
            for block in
                bytes.chunks(usize::try_from(checksums.block_bytes()).unwrap_or(usize::MAX))
            {
                checksums.check(at, block).map_err(|error| match stripe_at(file, at) {
                    Some(stripe) => error.at(Place::Stripe(stripe)),
                    None => error,
                })?;
                at += block.len() as u64;
            }
        }
        Ok(())
    }

    /// Reads all rows of all columns.
    async fn read_rows(&self, metadata: FileMetadata) -> Result<()> {
        let options = ReadOptions::default().with_timestamps(TimestampOutput::Micros);
        let mut decoder = Decoder::new(Arc::new(metadata), options)?;
        loop {
            match decoder.next()? {
                Step::NeedsData(ranges) => {
                    for range in ranges {
                        decoder.push(range.start, self.read(range).await?);
                    }
                }
                Step::Batch(_) => {}
                Step::Finished => return Ok(()),
            }
        }
    }
}

/// The stripe that the byte at `at` is in, or that begins behind it.
fn stripe_at(file: &FileMetadata, at: u64) -> Option<usize> {
    file.stripes.iter().position(|stripe| at < stripe.range().end)
}
