//! Reads what can be read of a file in memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use stoa_error::{ErrorKind, Result};
use stoa_orc::{Decoder, FileMetadata, Limits, ReadOptions, Step, TailDecoder, TailStep};

/// Most batches to read of a file that may say that it has any number of rows.
pub const BATCHES_MAX: usize = 40;

/// Small ones: an execution has to be quick.
pub fn limits() -> Limits {
    Limits { metadata_bytes: 1 << 20, columns: 1 << 10, stripes: 1 << 10, batch_bytes: 16 << 20 }
}

/// Reads the tail.
pub fn tail(file: &Bytes) -> Result<Arc<FileMetadata>> {
    let mut decoder = TailDecoder::new(file.len() as u64).with_limits(limits());
    let mut wanted = decoder.first_read();
    for _ in 0..3 {
        let from = file.len() - wanted as usize;
        match decoder.decode(file.slice(from..)).inspect_err(expected)? {
            TailStep::NeedsTail(more) => {
                assert!(more > wanted && more <= file.len() as u64);
                wanted = more;
            }
            TailStep::Done(metadata) => return Ok(Arc::new(metadata)),
        }
    }
    panic!("the tail decoder asks again and again");
}

/// Reads at most `most` batches; whether that were all, and the error if there was one.
pub fn rows(
    file: &Bytes,
    metadata: &Arc<FileMetadata>,
    options: ReadOptions,
    most: usize,
) -> (Vec<RecordBatch>, Result<bool>) {
    let mut batches = Vec::new();
    let read = || {
        let mut decoder = Decoder::new(metadata.clone(), options)?;
        while batches.len() < most {
            match decoder.next()? {
                Step::NeedsData(ranges) => push(file, &mut decoder, ranges),
                Step::Batch(batch) => {
                    assert_eq!(batch.schema(), decoder.schema());
                    batches.push(batch);
                }
                Step::Finished => return Ok(true),
            }
        }
        Ok(false)
    };
    let done = read().inspect_err(expected);
    (batches, done)
}

fn push(file: &Bytes, decoder: &mut Decoder, ranges: Vec<std::ops::Range<u64>>) {
    for range in ranges {
        assert!(range.start < range.end && range.end <= file.len() as u64, "{range:?}");
        decoder.push(range.start, file.slice(range.start as usize..range.end as usize));
    }
}

/// Bytes of a file may be wrong, not supported or too large; all else is our fault.
fn expected(error: &stoa_error::Error) {
    let of_file = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::Exhausted];
    assert!(of_file.contains(&error.kind()), "{error:?}");
}

/// All rows in one batch.
pub fn concat(batches: &[RecordBatch]) -> Option<RecordBatch> {
    let first = batches.first()?;
    arrow_select::concat::concat_batches(&first.schema(), batches).ok()
}
