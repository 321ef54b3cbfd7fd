//! Required ranges in, reads out.

use std::ops::Range;

use crate::PlanOptions;

/// One read and the required bytes it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRead {
    /// The bytes to read.
    pub range: Range<u64>,
    /// The required parts of `range`: sorted, disjoint, not touching.
    pub parts: Vec<Range<u64>>,
}

impl PlannedRead {
    /// Bytes somebody asked for.
    pub fn needed_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.end - part.start).sum()
    }

    /// Bytes read, needed or not.
    pub fn read_bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// Plans reads that cover `ranges` (any order, overlaps allowed, empty ones ignored).
///
/// The reads come sorted and disjoint; their parts together are exactly the union of `ranges`.
pub fn plan(ranges: &[Range<u64>], options: &PlanOptions) -> Vec<PlannedRead> {
    let max = options.max_read_bytes.max(1);
    let mut reads: Vec<PlannedRead> = Vec::new();
    for range in union(ranges).into_iter().flat_map(|range| split(range, max)) {
        match reads.last_mut() {
            Some(read)
                if range.start - read.range.end <= options.min_seek_size
                    && range.end - read.range.start <= max =>
            {
                extend(read, range);
            }
            _ => reads.push(PlannedRead { range: range.clone(), parts: vec![range] }),
        }
    }
    reads
}

/// The union of `ranges` as sorted, disjoint, non-touching, non-empty ranges.
pub(crate) fn union(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> =
        ranges.iter().filter(|range| range.start < range.end).cloned().collect();
    sorted.sort_unstable_by_key(|range| (range.start, range.end));
    let mut union: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match union.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => union.push(range),
        }
    }
    union
}

/// Cuts `range` into pieces of at most `max` bytes.
fn split(range: Range<u64>, max: u64) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        (start < range.end).then(|| {
            let end = start.saturating_add(max).min(range.end);
            let piece = start..end;
            start = end;
            piece
        })
    })
}

fn extend(read: &mut PlannedRead, range: Range<u64>) {
    read.range.end = range.end;
    match read.parts.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => read.parts.push(range),
    }
}
