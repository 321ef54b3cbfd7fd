//! The messages of a file as they are written, decoded but not judged.
//!
//! In: the tail of a file, and ranges of it. Out: protocol buffer messages. Statistics stay encoded
//! until they are printed: few bytes can say a lot of them. Not here: whether they can be right
//! (`stoa-orc`, which has read the same tail before).

use std::ops::Range;

use bytes::Bytes;
use prost::Message;
use stoa_error::{Error, ErrorKind, Result};
use stoa_orc::inflate_section;
use stoa_orc::proto::{
    BloomFilterIndex, PostScript, Stream, StreamKind, StripeFooter, UserMetadataItem,
};

use super::bloom::Bits;
use super::names;
use crate::file::OrcFile;

/// No section of a file is larger than this when it is inflated.
const SECTION_BYTES_MAX: usize = 64 << 20;

/// The messages at the end of a file; empty for a file of zero bytes.
#[derive(Debug, Default)]
pub(crate) struct RawTail {
    pub(crate) footer: FooterView,
    pub(crate) metadata: MetadataView,
}

/// What [`super`] prints of the footer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FooterView {
    #[prost(message, repeated, tag = "5")]
    pub(crate) metadata: Vec<UserMetadataItem>,
    /// Encoded `ColumnStatistics` per column.
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub(crate) statistics: Vec<Bytes>,
}

/// The statistics of stripes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetadataView {
    /// Encoded `StripeStatistics` per stripe.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    stripes: Vec<Bytes>,
}

impl MetadataView {
    /// Encoded `ColumnStatistics` per column, for each stripe; none where they make no sense.
    pub(crate) fn stripes(&self) -> impl Iterator<Item = Vec<Bytes>> + '_ {
        let columns = |stripe: &Bytes| StripeStatisticsView::decode(stripe.clone());
        self.stripes.iter().map(move |stripe| columns(stripe).unwrap_or_default().columns)
    }
}

#[derive(Clone, PartialEq, Message)]
struct StripeStatisticsView {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    columns: Vec<Bytes>,
}

/// The row index of a column.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowIndexView {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    entries: Vec<Bytes>,
}

impl RowIndexView {
    /// The row groups; empty where they make no sense.
    pub(crate) fn entries(&self) -> impl Iterator<Item = RowGroupView> + '_ {
        let entry = |entry: &Bytes| RowGroupView::decode(entry.clone()).unwrap_or_default();
        self.entries.iter().map(entry)
    }
}

/// A row group in the row index of a column.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowGroupView {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) positions: Vec<u64>,
    /// Encoded `ColumnStatistics`.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) statistics: Option<Bytes>,
}

impl RawTail {
    /// Decodes the tail of `file`.
    pub(crate) fn read(file: &OrcFile) -> Result<Self> {
        let Some((length, body)) = file.tail.split_last() else { return Ok(Self::default()) };
        let end = body.len();
        let postscript = before(end, u64::from(*length))?;
        let message = PostScript::decode(&body[postscript.clone()])
            .map_err(|e| Error::corrupt(format!("postscript: {e}")))?;
        let footer = before(postscript.start, message.footer_length.unwrap_or(0))?;
        let metadata = before(footer.start, message.metadata_length.unwrap_or(0))?;
        Ok(Self {
            footer: decode(file, &file.tail.slice(footer), "footer")?,
            // Damaged statistics are left out, as readers do.
            metadata: decode(file, &file.tail.slice(metadata), "metadata").unwrap_or_default(),
        })
    }
}

/// A stream of a stripe and where it is in the file.
#[derive(Clone, Debug)]
pub(crate) struct PlacedStream {
    pub(crate) column: u32,
    /// `None` if the kind is not known.
    pub(crate) kind: Option<StreamKind>,
    pub(crate) range: Range<u64>,
}

/// What is said of [`Blooms::Unreadable`].
pub(crate) const UNREADABLE: &str = "not readable: of an early layout, or damaged";

/// The bloom filters of a column in a stripe.
#[derive(Debug)]
pub(crate) enum Blooms {
    None,
    /// They make no sense. The first writers had a layout of their own, which readers pass over: no
    /// reason to show nothing else of the file.
    Unreadable,
    /// One per row group.
    Filters(Vec<Bits>),
}

/// The directory of a stripe.
#[derive(Debug)]
pub(crate) struct RawStripe {
    pub(crate) footer: StripeFooter,
    pub(crate) streams: Vec<PlacedStream>,
}

impl RawStripe {
    /// Reads the footer of a stripe.
    pub(crate) fn read(file: &OrcFile, stripe: usize) -> Result<Self> {
        let info = &file.metadata.stripes[stripe];
        let range = info.footer_range();
        let place = |e: Error| {
            let offset = range.start;
            file.place(e.at(format!("stripe {stripe}: footer at offset {offset}")))
        };
        let bytes = file.read(range.clone())?;
        let footer: StripeFooter = decode(file, &bytes, "message").map_err(place)?;
        let streams = placed(&footer.streams, info.offset..range.start).map_err(place)?;
        Ok(Self { footer, streams })
    }

    /// The row index of a column, if the stripe has one.
    pub(crate) fn row_index(&self, file: &OrcFile, column: u32) -> Result<Option<RowIndexView>> {
        self.index(file, column, &[StreamKind::RowIndex])
    }

    /// The bloom filters of a column: the newer kind if the stripe has both.
    pub(crate) fn blooms(&self, file: &OrcFile, column: u32) -> Result<Blooms> {
        let kinds = [StreamKind::BloomFilterUtf8, StreamKind::BloomFilter];
        match self.index::<BloomFilterIndex>(file, column, &kinds) {
            Ok(None) => Ok(Blooms::None),
            Ok(Some(index)) => Ok(Blooms::Filters(Bits::of_index(&index))),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Blooms::Unreadable),
            Err(error) => Err(error),
        }
    }

    fn index<M: Message + Default>(
        &self,
        file: &OrcFile,
        column: u32,
        kinds: &[StreamKind],
    ) -> Result<Option<M>> {
        let find = |kind: &StreamKind| {
            self.streams.iter().find(|s| s.column == column && s.kind == Some(*kind))
        };
        let Some(stream) = kinds.iter().find_map(find) else { return Ok(None) };
        let bytes = file.read(stream.range.clone())?;
        let message = decode(file, &bytes, "message").map_err(|e| {
            let kind = names::stream(stream.kind);
            let offset = stream.range.start;
            file.place(e.at(format!("column {column}: {kind} stream at offset {offset}")))
        })?;
        Ok(Some(message))
    }
}

/// Where streams are: one after the other from the start of the stripe on.
fn placed(streams: &[Stream], within: Range<u64>) -> Result<Vec<PlacedStream>> {
    let mut at = within.start;
    let mut placed = Vec::with_capacity(streams.len());
    for stream in streams {
        let column = stream.column.unwrap_or(0);
        let length = stream.length.unwrap_or(0);
        let end = at.checked_add(length).filter(|end| *end <= within.end).ok_or_else(|| {
            Error::corrupt(format!(
                "stream of column {column} at offset {at} with {length} bytes ends behind the stripe"
            ))
        })?;
        let kind = StreamKind::try_from(stream.kind.unwrap_or(0)).ok();
        placed.push(PlacedStream { column, kind, range: at..end });
        at = end;
    }
    Ok(placed)
}

/// The `length` bytes before `end`.
fn before(end: usize, length: u64) -> Result<Range<usize>> {
    let start = usize::try_from(length).ok().and_then(|length| end.checked_sub(length));
    start.map(|start| start..end).ok_or_else(|| Error::corrupt("the tail is cut off"))
}

fn decode<M: Message + Default>(file: &OrcFile, section: &Bytes, name: &str) -> Result<M> {
    let about = &file.metadata;
    let (codec, block_bytes) = (about.compression, about.block_bytes);
    let bytes =
        inflate_section(codec, block_bytes, section, SECTION_BYTES_MAX).map_err(|e| e.at(name))?;
    M::decode(bytes).map_err(|e| Error::corrupt(format!("{name}: {e}")))
}
