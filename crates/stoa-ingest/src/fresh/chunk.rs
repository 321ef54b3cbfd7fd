//! Rows of one or more neighbouring appends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use stoa_error::{Error, Result};

use super::NewRows;
use crate::budget::rounded;

/// What a column costs beside its values: array, type, buffers' own heads.
const COLUMN_BYTES: usize = 192;

/// Numbers of chunks; none is given out twice in a process.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Rows with positions in `first..end`, all of one schema. Immutable.
#[derive(Debug)]
pub(crate) struct Chunk {
    number: u64,
    batch: RecordBatch,
    schema_id: i32,
    first: u64,
    end: u64,
    bytes: usize,
    relaxed: bool,
    since: Instant,
}

impl Chunk {
    pub(super) fn new(rows: NewRows, position: u64, since: Instant) -> Self {
        let NewRows { batch, schema_id, bytes, relaxed } = rows;
        let bytes = rounded(bytes);
        let (number, end) = (next_number(), position + 1);
        Self { number, batch, schema_id, first: position, end, bytes, relaxed, since }
    }

    /// One chunk with the rows of all, which are neighbours of one schema and one kind of
    /// durability. `None` where they do not fit into one batch.
    pub(super) fn concat(chunks: &[&Self]) -> Option<Self> {
        let (first, last) = (chunks.first()?, chunks.last()?);
        let batches = chunks.iter().map(|chunk| &chunk.batch);
        let batch = concat_batches(first.batch.schema_ref(), batches).ok()?;
        let before: usize = chunks.iter().map(|chunk| chunk.bytes).sum();
        Some(Self {
            // Room is given back only, never taken, when chunks merge.
            bytes: rounded(memory_bytes(&batch)).min(before),
            number: next_number(),
            batch,
            schema_id: first.schema_id,
            first: first.first,
            end: last.end,
            relaxed: first.relaxed,
            since: first.since,
        })
    }

    /// Not that of any other chunk.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    pub(crate) fn schema_id(&self) -> i32 {
        self.schema_id
    }

    pub(crate) fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Whether the rows may be seen before they are durable.
    pub(crate) fn relaxed(&self) -> bool {
        self.relaxed
    }
}

fn next_number() -> u64 {
    NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Bytes that `batch` needs if its buffers hold nothing else.
pub fn memory_bytes(batch: &RecordBatch) -> usize {
    let column = |array: &dyn Array| {
        let data = array.to_data();
        // Offsets into buffers that no size can be told of count as they are.
        data.get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
    };
    batch.columns().iter().map(|array| column(array) + COLUMN_BYTES).sum()
}

/// `batch` in buffers of its own, if it is a small part of larger ones, which it would keep alive.
///
/// # Errors
/// `Internal` where the rows cannot be copied.
pub(crate) fn detach(batch: RecordBatch) -> Result<RecordBatch> {
    if batch.get_array_memory_size() <= 2 * memory_bytes(&batch) {
        return Ok(batch);
    }
    // Concatenating one array alone would give the same buffers back.
    concat_batches(batch.schema_ref(), [&batch, &batch.slice(0, 0)])
        .map_err(|source| Error::internal("rows cannot be copied").with_source(source))
}
