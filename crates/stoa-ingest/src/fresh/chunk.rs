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
    /// Where each append begins, if the chunk can be divided between them.
    starts: Option<Vec<Start>>,
}

/// Where the rows of one append begin in a chunk.
#[derive(Clone, Copy, Debug)]
struct Start {
    position: u64,
    row: usize,
}

impl Chunk {
    pub(super) fn new(rows: NewRows, position: u64, since: Instant) -> Self {
        let NewRows { batch, schema_id, bytes, relaxed } = rows;
        let bytes = rounded(bytes);
        let (number, end) = (next_number(), position + 1);
        Self { number, batch, schema_id, first: position, end, bytes, relaxed, since, starts: None }
    }

    /// As [`Self::new`], and what the chunk becomes part of can be divided again ([`Self::behind`]).
    pub(super) fn divisible(rows: NewRows, position: u64, since: Instant) -> Self {
        let starts = Some(vec![Start { position, row: 0 }]);
        Self { starts, ..Self::new(rows, position, since) }
    }

    /// One chunk with the rows of all, which are neighbours of one schema and one kind of
    /// durability. `None` where they do not fit into one batch.
    pub(super) fn concat(chunks: &[&Self]) -> Option<Self> {
        let (first, last) = (chunks.first()?, chunks.last()?);
        let batches = chunks.iter().map(|chunk| &chunk.batch);
        let batch = concat_batches(first.batch.schema_ref(), batches).ok()?;
        let before: usize = chunks.iter().map(|chunk| chunk.bytes).sum();
        let starts = starts_of(chunks);
        let starts_bytes = starts.as_ref().map_or(0, |starts| starts.len() * size_of::<Start>());
        Some(Self {
            // Room is given back only, never taken, when chunks merge.
            bytes: rounded(memory_bytes(&batch) + starts_bytes).min(before),
            number: next_number(),
            batch,
            schema_id: first.schema_id,
            first: first.first,
            end: last.end,
            relaxed: first.relaxed,
            since: first.since,
            starts,
        })
    }

    /// The rows at `position` and behind it, of a chunk that can be divided; `None` where there are none.
    pub(super) fn behind(&self, position: u64) -> Option<Self> {
        let all = self.starts.as_deref()?;
        let left = &all[all.partition_point(|start| start.position < position)..];
        let first = *left.first()?;
        let batch = self.batch.slice(first.row, self.batch.num_rows() - first.row);
        let starts = left.iter().map(|start| Start { row: start.row - first.row, ..*start });
        Some(Self {
            number: next_number(),
            bytes: rounded(memory_bytes(&batch)).min(self.bytes),
            batch,
            schema_id: self.schema_id,
            first: first.position,
            end: self.end,
            relaxed: self.relaxed,
            since: self.since,
            starts: Some(starts.collect()),
        })
    }

    /// Whether a bound between two appends may be inside the chunk.
    pub(super) fn is_divisible(&self) -> bool {
        self.starts.is_some()
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

/// Those of the chunks together; `None` where one of them cannot be divided.
fn starts_of(chunks: &[&Chunk]) -> Option<Vec<Start>> {
    let mut rows_before = 0;
    let mut all = Vec::new();
    for chunk in chunks {
        let starts = chunk.starts.as_ref()?;
        all.extend(starts.iter().map(|start| Start { row: start.row + rows_before, ..*start }));
        rows_before += chunk.rows();
    }
    Some(all)
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
