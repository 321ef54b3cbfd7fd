//! Answers to chunks: extra bytes dropped or kept, split ranges joined again.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::PlannedRead;

/// Adds the answer of `read` to `chunks`: whole while its extra bytes are within `tolerance` of
/// the needed ones, else a copy of each part, so that the rest can be freed.
///
/// `bytes` has the length of the read.
pub(crate) fn take_parts(
    read: &PlannedRead,
    bytes: Bytes,
    tolerance: f64,
    chunks: &mut Vec<(u64, Bytes)>,
) {
    let needed = read.needed_bytes();
    let extra = read.read_bytes() - needed;
    if extra as f64 <= tolerance * needed as f64 {
        chunks.push((read.range.start, bytes));
        return;
    }
    // One buffer for all parts, as they will be dropped together more often than not.
    let mut compact = BytesMut::with_capacity(needed as usize);
    for part in &read.parts {
        let start = (part.start - read.range.start) as usize;
        let end = (part.end - read.range.start) as usize;
        compact.extend_from_slice(&bytes[start..end]);
    }
    for part in &read.parts {
        chunks.push((part.start, compact.split_to((part.end - part.start) as usize).freeze()));
    }
}

/// Joins chunks where a wanted range spans several of them.
///
/// `chunks` and `wanted` are sorted and disjoint.
pub(crate) fn stitch(chunks: Vec<(u64, Bytes)>, wanted: &[Range<u64>]) -> Vec<(u64, Bytes)> {
    let mut out: Vec<(u64, Bytes)> = Vec::with_capacity(chunks.len());
    let mut open: Option<(u64, BytesMut)> = None;
    let mut wanted = wanted.iter().peekable();
    for (offset, bytes) in chunks {
        let end = offset + bytes.len() as u64;
        while wanted.peek().is_some_and(|range| range.end <= end) {
            wanted.next();
        }
        // The range that crosses the end of this chunk, if any, goes on in the next one.
        let crossing = wanted.peek().filter(|range| range.start < end);
        match (open.take(), crossing) {
            (None, None) => out.push((offset, bytes)),
            (None, Some(range)) => {
                let mut joined = BytesMut::with_capacity((range.end - offset) as usize);
                joined.extend_from_slice(&bytes);
                open = Some((offset, joined));
            }
            (Some((start, mut joined)), crossing) => {
                joined.extend_from_slice(&bytes);
                if crossing.is_some() {
                    open = Some((start, joined));
                } else {
                    out.push((start, joined.freeze()));
                }
            }
        }
    }
    out.extend(open.map(|(start, joined)| (start, joined.freeze())));
    out
}
