//! Ranges packed into reads: gaps up to a bound are read over, long ranges are split.

use std::ops::Range;

/// One read and the required bytes it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRead {
    /// The bytes to read.
    pub range: Range<u64>,
    /// The required parts of `range`: sorted, disjoint, not touching. The first starts and the
    /// last ends with `range`.
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

/// The widest gap, at most `gap`, such that all gaps up to it together stay within
/// `max_over_read` times the needed bytes.
pub(crate) fn allowed_gap(wanted: &[Range<u64>], gap: u64, max_over_read: f64) -> u64 {
    if max_over_read.is_infinite() {
        return gap;
    }
    let needed: u64 = wanted.iter().map(|range| range.end - range.start).sum();
    let extra_max = needed as f64 * max_over_read.max(0.0);
    let mut gaps: Vec<u64> = gaps(wanted).filter(|found| *found <= gap).collect();
    gaps.sort_unstable();
    let mut extra = 0.0;
    let mut allowed = 0;
    for same in gaps.chunk_by(|a, b| a == b) {
        let Some(&width) = same.first() else {
            continue;
        };
        extra += width as f64 * same.len() as f64;
        if extra > extra_max {
            return allowed;
        }
        allowed = width;
    }
    gap
}

/// Bytes between neighbours.
pub(crate) fn gaps(wanted: &[Range<u64>]) -> impl Iterator<Item = u64> {
    wanted.windows(2).filter_map(|pair| match pair {
        [left, right] => Some(right.start - left.end),
        _ => None,
    })
}

/// Merges neighbours whose gap is at most `gap` into reads of at most `max` bytes, and splits
/// ranges larger than that into equal pieces.
pub(crate) fn pack(wanted: &[Range<u64>], gap: u64, max: u64) -> Vec<PlannedRead> {
    let mut reads: Vec<PlannedRead> = Vec::new();
    pieces(wanted, gap, max, |range, joins| match reads.last_mut() {
        Some(read) if joins => extend(read, range),
        _ => reads.push(PlannedRead { range: range.clone(), parts: vec![range] }),
    });
    reads
}

/// The sizes in bytes of the reads that [`pack`] would make.
pub(crate) fn pack_sizes(wanted: &[Range<u64>], gap: u64, max: u64, sizes: &mut Vec<u64>) {
    sizes.clear();
    let mut start = 0;
    pieces(wanted, gap, max, |range, joins| match sizes.last_mut() {
        Some(size) if joins => *size = range.end - start,
        _ => {
            start = range.start;
            sizes.push(range.end - range.start);
        }
    });
}

/// Calls `piece` for each range, or part of one, and whether it joins the read before it.
fn pieces(wanted: &[Range<u64>], gap: u64, max: u64, mut piece: impl FnMut(Range<u64>, bool)) {
    let mut open: Option<Range<u64>> = None;
    for range in wanted.iter().flat_map(|range| split(range.clone(), max)) {
        let joins = open
            .as_ref()
            .filter(|read| range.start - read.end <= gap && range.end - read.start <= max);
        let start = joins.map(|read| read.start);
        open = Some(start.unwrap_or(range.start)..range.end);
        piece(range, start.is_some());
    }
}

/// Cuts `range` into pieces of at most `max` bytes that differ by one byte at most.
fn split(range: Range<u64>, max: u64) -> impl Iterator<Item = Range<u64>> {
    let bytes = range.end - range.start;
    let pieces = bytes.div_ceil(max.max(1)).max(1);
    let (each, longer) = (bytes / pieces, bytes % pieces);
    let mut start = range.start;
    (0..pieces).map(move |piece| {
        let end = start + each + u64::from(piece < longer);
        let cut = start..end;
        start = end;
        cut
    })
}

fn extend(read: &mut PlannedRead, range: Range<u64>) {
    read.range.end = range.end;
    match read.parts.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => read.parts.push(range),
    }
}
