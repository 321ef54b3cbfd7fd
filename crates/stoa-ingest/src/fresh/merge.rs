//! Merging small chunks, so that a thousand appends of one row are not a thousand batches to scan.
//!
//! Chunks have levels by their number of rows. Whenever [`FAN_IN`] chunks of a level or below it
//! are neighbours at the end, they become one. So a row is copied once per level at most, and at
//! any time few chunks are small.

use std::sync::Arc;

use super::Chunk;

/// Neighbours that make a merge.
pub(super) const FAN_IN: usize = 16;

/// Chunks below as many rows are of level 0, 1, 2; larger ones stay as they are.
const LEVELS: [usize; 3] = [16, 256, 4096];

/// Bytes and rows at which a merged chunk is complete.
const BYTES_MAX: usize = 4 << 20;
const ROWS_MAX: usize = 8192;

/// Merges what is small at the end of `chunks`, which are in order.
pub(super) fn merge(chunks: &mut Vec<Arc<Chunk>>) {
    for rows_below in LEVELS {
        let small = |chunk: &&Arc<Chunk>| chunk.rows() < rows_below && chunk.bytes() < BYTES_MAX;
        let run = chunks.iter().rev().take_while(small).count();
        if run >= FAN_IN {
            let merged = merge_run(&chunks.split_off(chunks.len() - run));
            chunks.extend(merged);
        }
    }
}

/// Neighbours of one schema and one kind of durability together, as far as they fit. Those that can be divided stay apart
/// from others, with which they could not be any more.
fn merge_run(run: &[Arc<Chunk>]) -> Vec<Arc<Chunk>> {
    let mut merged = Vec::new();
    let mut rest = run;
    while let Some(first) = rest.first() {
        let (mut rows, mut bytes) = (0, 0);
        let fits = |chunk: &&Arc<Chunk>| {
            rows += chunk.rows();
            bytes += chunk.bytes();
            let alike = chunk.schema_id() == first.schema_id()
                && chunk.relaxed() == first.relaxed()
                && chunk.is_divisible() == first.is_divisible();
            alike && rows <= ROWS_MAX && bytes <= BYTES_MAX
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (group, others) = rest.split_at(count);
        let parts: Vec<&Chunk> = group.iter().map(Arc::as_ref).collect();
        match Chunk::concat(&parts) {
            Some(chunk) if count > 1 => merged.push(Arc::new(chunk)),
            _ => merged.extend(group.iter().cloned()),
        }
        rest = others;
    }
    merged
}
