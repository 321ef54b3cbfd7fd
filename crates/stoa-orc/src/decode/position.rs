//! Where row groups start in a column's streams, and which bytes a run of them needs.
//!
//! In: the ROW_INDEX of a column. Out: per stream the byte range and start of a run of row
//! groups. Positions of a column's streams follow each other, PRESENT first:
//!
//! ```text
//! stream          plain                      compressed
//! raw bytes       offset                     chunk offset, offset in content
//! byte RLE        …, values in run           …, values in run
//! integer RLE     …, values in run           …, values in run
//! boolean RLE     …, bytes in run, bits      …, bytes in run, bits
//! ```
//! **Invariant:** a range holds every chunk that the run's values touch; where the index says
//! something impossible, the answer is `None` and the whole stripe is read.

use std::ops::Range;

use crate::proto::StreamKind;
use crate::row_index::RowIndex;
use crate::schema::TypeKind;
use crate::stripe::Encoding;

/// Longest run of integers in bytes (patched base), rounded up.
const RUN_BYTES_MAX: u64 = 4608;

/// Smallest block size for which a run spans at most two chunks.
const TWO_CHUNK_BLOCK_BYTES: u64 = 2 * RUN_BYTES_MAX;

/// Bytes of a chunk header.
const HEADER_BYTES: u64 = 3;

/// How a stream is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Raw,
    /// Byte or integer RLE.
    Runs,
    Bits,
}

impl Codec {
    /// Numbers behind the offsets.
    fn extra(self) -> usize {
        match self {
            Self::Raw => 0,
            Self::Runs => 1,
            Self::Bits => 2,
        }
    }
}

/// The streams of a column that have positions, in the order of the index.
fn layout(
    kind: TypeKind,
    encoding: Encoding,
    is_decimal64: bool,
) -> &'static [(StreamKind, Codec)] {
    use StreamKind::{Data, Length, Secondary};
    match kind {
        TypeKind::Boolean => &[(Data, Codec::Bits)],
        TypeKind::Byte
        | TypeKind::Union
        | TypeKind::Short
        | TypeKind::Int
        | TypeKind::Long
        | TypeKind::Date => &[(Data, Codec::Runs)],
        TypeKind::Float | TypeKind::Double => &[(Data, Codec::Raw)],
        TypeKind::String | TypeKind::Varchar | TypeKind::Char if encoding.is_dictionary() => {
            &[(Data, Codec::Runs)]
        }
        TypeKind::String
        | TypeKind::Varchar
        | TypeKind::Char
        | TypeKind::Binary
        | TypeKind::Geometry
        | TypeKind::Geography => &[(Data, Codec::Raw), (Length, Codec::Runs)],
        TypeKind::Decimal if is_decimal64 => &[(Data, Codec::Runs)],
        TypeKind::Decimal => &[(Data, Codec::Raw), (Secondary, Codec::Runs)],
        TypeKind::Timestamp | TypeKind::TimestampInstant => {
            &[(Data, Codec::Runs), (Secondary, Codec::Runs)]
        }
        TypeKind::List | TypeKind::Map => &[(Length, Codec::Runs)],
        TypeKind::Struct => &[],
    }
}

/// Where a run of row groups is in one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunPosition {
    pub(crate) kind: StreamKind,
    /// Byte range in the stream.
    pub(crate) range: Range<u64>,
    pub(crate) skip_bytes: u64,
    pub(crate) skip_values: u64,
    pub(crate) skip_bits: u64,
}

/// What positions of a column are read with.
pub(crate) struct ColumnPositions<'a> {
    pub(crate) kind: TypeKind,
    pub(crate) encoding: Encoding,
    pub(crate) is_decimal64: bool,
    /// Block size in bytes, if the file is compressed.
    pub(crate) block_bytes: Option<u64>,
    pub(crate) index: &'a RowIndex,
    /// Length of a stream, `None` if the stripe does not have it.
    pub(crate) stream_bytes: &'a dyn Fn(StreamKind) -> Option<u64>,
}

impl ColumnPositions<'_> {
    /// Positions of the row groups `groups` in all streams that the stripe has.
    pub(crate) fn run(&self, groups: Range<usize>) -> Option<Vec<RunPosition>> {
        let has_present = (self.stream_bytes)(StreamKind::Present).is_some();
        let present: &[(StreamKind, Codec)] =
            if has_present { &[(StreamKind::Present, Codec::Bits)] } else { &[] };
        let streams = layout(self.kind, self.encoding, self.is_decimal64);
        let mut offset = 0;
        let mut positions = Vec::with_capacity(streams.len() + 1);
        for (kind, codec) in present.iter().chain(streams) {
            if let Some(length) = (self.stream_bytes)(*kind) {
                positions.push(self.stream_run(*kind, *codec, offset, length, &groups)?);
            }
            offset += self.numbers(*codec);
        }
        Some(positions)
    }

    /// Numbers per row group of a stream.
    fn numbers(&self, codec: Codec) -> usize {
        1 + usize::from(self.block_bytes.is_some()) + codec.extra()
    }

    /// Numbers per row group of all streams.
    fn total(&self) -> usize {
        let present = (self.stream_bytes)(StreamKind::Present).is_some();
        let present = if present { self.numbers(Codec::Bits) } else { 0 };
        let streams = layout(self.kind, self.encoding, self.is_decimal64);
        present + streams.iter().map(|(_, codec)| self.numbers(*codec)).sum::<usize>()
    }

    /// The numbers of one stream for a row group.
    fn entry(&self, group: usize, offset: usize, codec: Codec) -> Option<Entry> {
        let all = self.index.positions(group)?;
        if all.is_empty() && group == 0 {
            return Some(Entry::default());
        }
        // A writer may have left numbers of a PRESENT stream that it then dropped: they are first.
        let surplus = all.len().checked_sub(self.total())?;
        let numbers = all.get(surplus + offset..surplus + offset + self.numbers(codec))?;
        let (chunk, rest) = numbers.split_first()?;
        let mut rest = rest.iter().copied();
        let in_chunk = if self.block_bytes.is_some() { rest.next()? } else { 0 };
        Some(Entry {
            chunk: *chunk,
            in_chunk,
            values: rest.next().unwrap_or(0),
            bits: rest.next().unwrap_or(0),
        })
    }

    fn stream_run(
        &self,
        kind: StreamKind,
        codec: Codec,
        offset: usize,
        length: u64,
        groups: &Range<usize>,
    ) -> Option<RunPosition> {
        let start = if groups.start == 0 {
            Entry::default()
        } else {
            self.entry(groups.start, offset, codec)?
        };
        let end = match groups.end {
            end if end >= self.index.len() => length,
            end => self.end(codec, offset, length, end)?,
        };
        let possible = start.chunk <= end
            && end <= length
            && start.in_chunk <= self.block_bytes.unwrap_or(0)
            && start.values <= 512
            && start.bits <= 8;
        possible.then_some(RunPosition {
            kind,
            range: start.chunk..end,
            skip_bytes: start.in_chunk,
            skip_values: start.values,
            skip_bits: start.bits,
        })
    }

    /// An offset behind everything that rows before the row group `next` touch.
    fn end(&self, codec: Codec, offset: usize, length: u64, next: usize) -> Option<u64> {
        let entry = self.entry(next, offset, codec)?;
        let is_border = entry.values == 0 && entry.bits == 0;
        let Some(block_bytes) = self.block_bytes else {
            let slack = if is_border { 0 } else { RUN_BYTES_MAX };
            return Some(entry.chunk.saturating_add(slack).min(length));
        };
        if is_border && entry.in_chunk == 0 {
            return Some(entry.chunk.min(length));
        }
        // The chunk itself, and behind it what a run that starts in it may reach into.
        let overhang = if is_border { 0 } else { (RUN_BYTES_MAX - 1) / block_bytes + 1 };
        let chunks = 1 + overhang;
        let bound = entry.chunk.saturating_add(chunks * (HEADER_BYTES + block_bytes)).min(length);
        // Each chunk start that a later row group names ends one chunk at least.
        let exact = match (is_border, block_bytes >= TWO_CHUNK_BLOCK_BYTES) {
            (true, _) => Some(1),
            (false, true) => Some(2),
            (false, false) => None,
        };
        let Some(wanted) = exact else { return Some(bound) };
        let (mut seen, mut last) = (0, entry.chunk);
        for group in next + 1..self.index.len() {
            let chunk = self.entry(group, offset, codec)?.chunk;
            if chunk > last {
                (seen, last) = (seen + 1, chunk);
                if seen == wanted || chunk >= bound {
                    return Some(chunk.min(bound));
                }
            }
        }
        Some(bound)
    }
}

/// Numbers of a row group in a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Offset of the chunk in the stream; of the byte, if not compressed.
    chunk: u64,
    in_chunk: u64,
    values: u64,
    bits: u64,
}
