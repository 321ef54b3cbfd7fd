//! The directory of a stripe: its footer, row indexes and bloom filters.
//!
//! In: the bytes of a stripe footer, and indexes that were read. Out: [`StripeMetadata`].
//! **Invariant:** every stream lies inside the stripe.
//! Not here: which of them are needed (`decoder`), what a position means (`decode::position`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use crate::bloom::BloomIndex;
use crate::error::{Result, corrupt};
use crate::message::Budget;
use crate::proto::{self, EncodingKind, StreamKind};
use crate::row_index::RowIndex;
use crate::stripe_info::StripeInfo;

/// A stream of a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamInfo {
    pub(crate) column: u32,
    pub(crate) kind: StreamKind,
    /// Where it is in the file.
    pub(crate) range: Range<u64>,
}

/// How a column is encoded in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) kind: EncodingKind,
    pub(crate) dictionary_size: u32,
    /// Whether timestamps in bloom filters are UTC (ORC-135).
    pub(crate) bloom_is_utc: bool,
}

impl Encoding {
    /// Whether integers are RLE version 2.
    pub(crate) fn is_v2(self) -> bool {
        matches!(self.kind, EncodingKind::DirectV2 | EncodingKind::DictionaryV2)
    }

    /// Whether strings are indexes into a dictionary.
    pub(crate) fn is_dictionary(self) -> bool {
        matches!(self.kind, EncodingKind::Dictionary | EncodingKind::DictionaryV2)
    }
}

/// What is known about a stripe: always its footer, and the indexes of some columns.
///
/// Cheap to clone. To cache it, take it from [`crate::Decoder::stripe_metadata`] and hand it to
/// [`crate::ReadOptions::with_stripe_metadata`].
#[derive(Clone, Debug)]
pub struct StripeMetadata {
    pub(crate) footer: Arc<Footer>,
    pub(crate) row_indexes: BTreeMap<u32, Arc<RowIndex>>,
    pub(crate) blooms: BTreeMap<u32, Arc<BloomIndex>>,
}

/// A parsed stripe footer.
#[derive(Debug)]
pub(crate) struct Footer {
    /// Sorted by column and kind.
    pub(crate) streams: Vec<StreamInfo>,
    pub(crate) encodings: Vec<Encoding>,
    pub(crate) timezone: Option<String>,
}

impl StripeMetadata {
    /// Parses an inflated stripe footer, which may take as much memory as `budget` has.
    pub(crate) fn parse(
        info: &StripeInfo,
        columns: usize,
        bytes: Bytes,
        budget: &mut Budget,
    ) -> Result<Self> {
        let footer: StripeFooterView = budget.decode(bytes).map_err(|e| e.at("stripe footer"))?;
        let end = info.offset + info.index_bytes + info.data_bytes;
        let mut at = info.offset;
        let mut streams = Vec::with_capacity(footer.streams.len());
        for stream in &footer.streams {
            let length = stream.length.unwrap_or(0);
            let column = stream.column.unwrap_or(0);
            let next = at.checked_add(length).filter(|next| *next <= end).ok_or_else(|| {
                corrupt(format!(
                    "stripe footer: stream of column {column} at offset {at} with {length} bytes \
                     ends behind the stripe ({end})"
                ))
            })?;
            // A kind that is not known yet only takes its place.
            if let Ok(kind) = StreamKind::try_from(stream.kind.unwrap_or(0)) {
                streams.push(StreamInfo { column, kind, range: at..next });
            }
            at = next;
        }
        streams.sort_by_key(|s| (s.column, s.kind));
        if footer.columns.len() < columns {
            let have = footer.columns.len();
            return Err(corrupt(format!(
                "stripe footer: encodings of {have} columns, the file has {columns}"
            )));
        }
        let encodings =
            footer.columns.iter().enumerate().map(encoding).collect::<Result<Vec<_>>>()?;
        let footer = Footer { streams, encodings, timezone: footer.writer_timezone };
        Ok(Self { footer: Arc::new(footer), row_indexes: BTreeMap::new(), blooms: BTreeMap::new() })
    }

    /// A stream, if the stripe has it.
    pub(crate) fn stream(&self, column: u32, kind: StreamKind) -> Option<&StreamInfo> {
        let streams = &self.footer.streams;
        let found = streams.binary_search_by_key(&(column, kind), |s| (s.column, s.kind)).ok()?;
        streams.get(found)
    }

    /// The streams of a column.
    pub(crate) fn streams_of(&self, column: u32) -> &[StreamInfo] {
        let streams = &self.footer.streams;
        let start = streams.partition_point(|stream| stream.column < column);
        let length = streams[start..].partition_point(|stream| stream.column == column);
        &streams[start..start + length]
    }

    /// The encoding of a column; the error does not name it.
    pub(crate) fn encoding(&self, column: u32) -> Result<Encoding> {
        let encoding = self.footer.encodings.get(column as usize);
        encoding.copied().ok_or_else(|| corrupt("has no encoding"))
    }

    /// The writer's time zone, if the footer names it.
    pub fn timezone(&self) -> Option<&str> {
        self.footer.timezone.as_deref()
    }

    /// The row index of a column, if it was read.
    pub fn row_index(&self, column: u32) -> Option<&RowIndex> {
        self.row_indexes.get(&column).map(AsRef::as_ref)
    }

    /// Memory this takes, about, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let streams = self.footer.streams.len() * size_of::<StreamInfo>();
        let encodings = self.footer.encodings.len() * size_of::<Encoding>();
        let indexes: usize = self.row_indexes.values().map(|index| index.memory_bytes()).sum();
        let blooms: usize = self.blooms.values().map(|bloom| bloom.memory_bytes()).sum();
        size_of::<Self>() + streams + encodings + indexes + blooms
    }

    /// Memory this takes beside `other`, from which it may have indexes, about, in bytes.
    pub(crate) fn memory_bytes_beside(&self, other: &Self) -> usize {
        let indexes = self.row_indexes.iter().filter(|(column, index)| {
            !other.row_indexes.get(column).is_some_and(|of_other| Arc::ptr_eq(of_other, index))
        });
        let indexes: usize = indexes.map(|(_, index)| index.memory_bytes()).sum();
        let blooms: usize = self.blooms.values().map(|bloom| bloom.memory_bytes()).sum();
        size_of::<Self>() + indexes + blooms
    }
}

fn encoding((column, message): (usize, &proto::ColumnEncoding)) -> Result<Encoding> {
    let number = message.kind.unwrap_or(0);
    let kind = EncodingKind::try_from(number)
        .map_err(|_| corrupt(format!("stripe footer: column {column}: encoding {number}")))?;
    Ok(Encoding {
        kind,
        dictionary_size: message.dictionary_size.unwrap_or(0),
        bloom_is_utc: message.bloom_encoding == Some(1),
    })
}

/// [`proto::StripeFooter`] without what only the owner of a key can read.
#[derive(Clone, PartialEq, Message)]
struct StripeFooterView {
    #[prost(message, repeated, tag = "1")]
    streams: Vec<proto::Stream>,
    #[prost(message, repeated, tag = "2")]
    columns: Vec<proto::ColumnEncoding>,
    #[prost(string, optional, tag = "3")]
    writer_timezone: Option<String>,
}
