//! The bytes of a stripe's runs of row groups.
//!
//! In: positions and what is read. Out: ranges to ask for, and then the starts of streams.

use std::collections::HashMap;
use std::ops::Range;

use super::task::at_stream;
use crate::checked_segments::CheckedSegments;
use crate::compression::CompressionKind;
use crate::decode::plan::Plan;
use crate::decode::position::ColumnPositions;
use crate::decode::source::StreamStart;
use crate::error::Result;
use crate::metadata::{FileMetadata, group_count};
use crate::proto::StreamKind;
use crate::stripe::StripeMetadata;
use crate::stripe_info::StripeInfo;

/// A run of row groups: its rows and where its streams are.
pub(super) struct RunData {
    /// Rows of the stripe.
    pub(super) rows: Range<u64>,
    streams: Vec<RunStream>,
}

/// A stream of a run.
struct RunStream {
    column: u32,
    kind: StreamKind,
    /// In the file.
    range: Range<u64>,
    /// Offset of the range in the stream.
    origin: u64,
    skip_bytes: u64,
    skip_values: u64,
    skip_bits: u64,
}

/// A run whose bytes are here.
pub(crate) struct OpenRun {
    pub(crate) rows: Range<u64>,
    pub(crate) streams: HashMap<(u32, StreamKind), StreamStart>,
}

/// All runs of a stripe.
pub(super) struct StripeData {
    pub(super) runs: Vec<OpenRun>,
}

impl StripeData {
    /// Takes the bytes of `runs` out of `segments`, which has them.
    ///
    /// # Errors
    /// `Corrupt` if they are not those written, naming column and stream.
    pub(super) fn take(
        runs: Vec<RunData>,
        file: &FileMetadata,
        segments: &mut CheckedSegments,
    ) -> Result<Self> {
        let open = |run: RunData| -> Result<OpenRun> {
            let streams = run.streams.into_iter().map(|stream| -> Result<_> {
                let data = segments
                    .get(&stream.range)
                    .map_err(|e| at_stream(e, file, stream.column, stream.kind))?;
                let start = StreamStart {
                    kind: stream.kind,
                    data: data.unwrap_or_default(),
                    origin: stream.origin,
                    file_offset: stream.range.start,
                    skip_bytes: stream.skip_bytes,
                    skip_values: stream.skip_values,
                    skip_bits: stream.skip_bits,
                };
                Ok(((stream.column, stream.kind), start))
            });
            Ok(OpenRun { rows: run.rows, streams: streams.collect::<Result<_>>()? })
        };
        Ok(Self { runs: runs.into_iter().map(open).collect::<Result<_>>()? })
    }
}

impl RunData {
    /// All row groups of a stripe.
    pub(super) fn whole(
        metadata: &StripeMetadata,
        plan: &Plan,
        file: &FileMetadata,
        info: &StripeInfo,
    ) -> Self {
        let streams = metadata.footer.streams.iter().filter(|stream| {
            is_data(stream.kind)
                && plan.columns.binary_search(&stream.column).is_ok()
                && (stream.column as usize) < file.types.len()
        });
        let streams =
            streams.map(|stream| RunStream::whole(stream.column, stream.kind, &stream.range));
        Self { rows: 0..info.rows, streams: streams.collect() }
    }

    /// The row groups `groups`; `None` if an index is missing or says something impossible.
    pub(super) fn of_groups(
        metadata: &StripeMetadata,
        plan: &Plan,
        file: &FileMetadata,
        info: &StripeInfo,
        groups: Range<usize>,
    ) -> Result<Option<Self>> {
        let stride = u64::from(file.row_index_stride);
        let rows = groups.start as u64 * stride..(groups.end as u64 * stride).min(info.rows);
        let count = group_count(file, info);
        let mut streams = Vec::new();
        for column in &plan.columns {
            let of_column = StreamsOfColumn { metadata, file, column: *column };
            if !of_column.of_groups(count, &groups, &mut streams)? {
                return Ok(None);
            }
        }
        Ok(Some(Self { rows, streams }))
    }

    /// Ranges of the file that hold bytes.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.streams.iter().map(|stream| stream.range.clone()).filter(|range| !range.is_empty())
    }
}

impl RunStream {
    /// All of a stream.
    fn whole(column: u32, kind: StreamKind, range: &Range<u64>) -> Self {
        let range = range.clone();
        Self { column, kind, range, origin: 0, skip_bytes: 0, skip_values: 0, skip_bits: 0 }
    }
}

/// The streams of one column in a stripe.
struct StreamsOfColumn<'a> {
    metadata: &'a StripeMetadata,
    file: &'a FileMetadata,
    column: u32,
}

impl StreamsOfColumn<'_> {
    /// Adds what row groups need; false if the index of `count` row groups does not say.
    fn of_groups(
        &self,
        count: usize,
        groups: &Range<usize>,
        out: &mut Vec<RunStream>,
    ) -> Result<bool> {
        let Some(ty) = self.file.types.get(self.column) else { return Ok(false) };
        if !self.metadata.streams_of(self.column).iter().any(|stream| is_data(stream.kind)) {
            return Ok(true);
        }
        let index = match self.metadata.row_index(self.column) {
            Some(index) if index.len() == count => index,
            _ => return Ok(false),
        };
        let is_framed = self.file.compression != CompressionKind::None;
        let encoding = self.metadata.encoding(self.column);
        let encoding = encoding.map_err(|e| e.at(self.file.types.place(self.column)))?;
        let positions = ColumnPositions {
            kind: ty.kind,
            encoding,
            is_decimal64: self.file.is_decimal64(ty),
            block_bytes: is_framed.then_some(self.file.block_bytes as u64),
            index,
            stream_bytes: &|kind| self.range(kind).map(|range| range.end - range.start),
        };
        let Some(runs) = positions.run(groups.clone()) else { return Ok(false) };
        for run in runs {
            let Some(stream) = self.range(run.kind) else { return Ok(false) };
            out.push(RunStream {
                column: self.column,
                kind: run.kind,
                range: stream.start + run.range.start..stream.start + run.range.end,
                origin: run.range.start,
                skip_bytes: run.skip_bytes,
                skip_values: run.skip_values,
                skip_bits: run.skip_bits,
            });
        }
        if encoding.is_dictionary() {
            for kind in [StreamKind::DictionaryData, StreamKind::Length] {
                let whole = |range| RunStream::whole(self.column, kind, range);
                out.extend(self.range(kind).map(whole));
            }
        }
        Ok(true)
    }

    /// Where a stream is, if the stripe has it.
    fn range(&self, kind: StreamKind) -> Option<&Range<u64>> {
        self.metadata.stream(self.column, kind).map(|stream| &stream.range)
    }
}

/// Whether a stream holds values (not an index).
fn is_data(kind: StreamKind) -> bool {
    matches!(
        kind,
        StreamKind::Present
            | StreamKind::Data
            | StreamKind::Length
            | StreamKind::DictionaryData
            | StreamKind::Secondary
    )
}

/// Runs of neighbouring row groups that are kept.
pub(super) fn runs_of(groups: &[bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (group, _) in groups.iter().enumerate().filter(|(_, keep)| **keep) {
        match runs.last_mut() {
            Some(run) if run.end == group => run.end += 1,
            _ => runs.push(group..group + 1),
        }
    }
    runs
}
