//! What is known of a file as a whole: types, stripes, writer, statistics.
//!
//! In: what [`crate::TailDecoder`] found. Out: [`FileMetadata`]. Statistics stay encoded until they
//! are asked for. **Invariant:** every stripe lies inside the file.
//! Not here: what is in a stripe (`stripe`).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use crate::block_checksums::BlockChecksums;
use crate::compression::{BLOCK_BYTES_DEFAULT, CompressionKind};
use crate::error::Result;
use crate::message::field_count;
use crate::proto::{self, CalendarKind};
use crate::schema::{OrcType, TypeKind, TypeTree};
use crate::statistics::ColumnStatistics;
use crate::stripe::StripeMetadata;
use crate::stripe_info::StripeInfo;

/// Version of the experiment whose small decimals are plain integers.
const DECIMAL64_VERSION: (u32, u32) = (1, 9999);

/// Most digits of such a decimal.
const DECIMAL64_PRECISION_MAX: u32 = 18;

/// How the name of this crate's writers starts.
const SOFTWARE_PREFIX: &str = "stoa-";

/// More row groups than this in a stripe are not worth an index.
pub(crate) const GROUPS_MAX: u64 = 1 << 24;

/// The software that wrote a file, as far as it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterId {
    /// 0 Java, 1 C++, 2 Presto, 3 Go, 4 Trino, 5 cuDF.
    pub code: u32,
    /// Version of the writer (postscript): which known bugs its files have.
    pub version: u32,
    /// Version of the software in words.
    pub software: Option<String>,
}

impl WriterId {
    /// Code of ORC Java.
    pub const JAVA: u32 = 0;
    /// Code of ORC C++.
    pub const CPP: u32 = 1;

    /// Whether this is a writer of this crate.
    pub(crate) fn is_stoa(&self) -> bool {
        let is_ours = |software: &String| software.starts_with(SOFTWARE_PREFIX);
        self.code == Self::CPP && self.software.as_ref().is_some_and(is_ours)
    }

    /// Whether this is ORC Java before the writer version `version`.
    pub(crate) fn is_java_before(&self, version: u32) -> bool {
        self.code == Self::JAVA && self.version < version
    }
}

/// What the tail of a file says. Share it in an `Arc`; it never changes.
#[derive(Clone, Debug)]
pub struct FileMetadata {
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// The types; index = column id.
    pub types: TypeTree,
    /// Rows in the file.
    pub rows: u64,
    /// The stripes.
    pub stripes: Vec<StripeInfo>,
    /// Rows in a row group; 0 = the file has no row index.
    pub row_index_stride: u32,
    /// Codec.
    pub compression: CompressionKind,
    /// Largest content of a compression chunk in bytes.
    pub block_bytes: usize,
    /// Version of the format: (0, 11), (0, 12) or that of an experiment.
    pub version: (u32, u32),
    /// Who wrote the file.
    pub writer: WriterId,
    /// Calendar of dates and timestamps before 1582-10-15, as the footer or
    /// [`crate::TailDecoder::with_proleptic_dates`] says.
    pub calendar: CalendarKind,
    /// Keys of the user's own.
    pub user_metadata: BTreeMap<String, Bytes>,
    /// Columns that are encrypted (roots of subtrees): what is read of them is masked.
    pub encrypted_columns: Vec<u32>,
    /// Encoded `ColumnStatistics` per column.
    pub(crate) statistics: Vec<Bytes>,
    /// Encoded `StripeStatistics` per stripe; empty if the file has none, or too few.
    pub(crate) stripe_statistics: Vec<Bytes>,
    /// Checksums of all bytes in front of the tail, if the writer left some.
    pub(crate) checksums: Option<BlockChecksums>,
    /// Footers and row indexes of all stripes, if the tail had a copy; else empty.
    pub(crate) copied_stripes: Vec<Arc<StripeMetadata>>,
}

impl FileMetadata {
    /// Statistics of a column over the whole file.
    pub fn file_statistics(&self, column: u32) -> Option<ColumnStatistics> {
        let bytes = self.statistics.get(column as usize)?;
        parse_statistics(bytes.clone())
    }

    /// Statistics of all columns of a stripe, index = column id; `None` if the file has none.
    pub fn stripe_statistics(&self, stripe: usize) -> Option<Vec<ColumnStatistics>> {
        self.encoded_stripe_statistics(stripe)?.into_iter().map(parse_statistics).collect()
    }

    /// The same, of which each column is to be decoded by [`parse_statistics`].
    pub(crate) fn encoded_stripe_statistics(&self, stripe: usize) -> Option<Vec<Bytes>> {
        let bytes = self.stripe_statistics.get(stripe)?;
        if field_count(bytes.clone()).ok()? > self.types.len() {
            return None;
        }
        let message = StripeStatisticsView::decode(bytes.clone()).ok()?;
        Some(message.col_stats)
    }

    /// Whether a column is encrypted, itself or an ancestor.
    pub fn is_encrypted(&self, column: u32) -> bool {
        self.encrypted_columns
            .iter()
            .any(|root| (*root..self.types.subtree_end(*root)).contains(&column))
    }

    /// Whether values of a decimal are plain integers, without a scale for each: in an experiment
    /// with the format that was never released, if they are small.
    pub(crate) fn is_decimal64(&self, ty: &OrcType) -> bool {
        self.version == DECIMAL64_VERSION && (1..=DECIMAL64_PRECISION_MAX).contains(&ty.precision)
    }

    /// Number of row groups of a stripe: 1 if the file has no row index.
    pub fn row_groups(&self, stripe: usize) -> usize {
        self.stripes.get(stripe).map_or(0, |info| group_count(self, info))
    }

    /// Checksums of all bytes in front of the tail, if the writer left some: Stoa does.
    pub fn checksums(&self) -> Option<&BlockChecksums> {
        self.checksums.as_ref()
    }

    /// Whether the tail brought along the footers and row indexes of all stripes.
    pub fn has_copied_stripes(&self) -> bool {
        !self.copied_stripes.is_empty()
    }

    /// Memory that what is known of one of the stripes takes beside this, about, in bytes; 0 if all of it is here.
    pub fn memory_bytes_beside(&self, stripe: usize, known: &Arc<StripeMetadata>) -> usize {
        match self.copied_stripes.get(stripe) {
            Some(copied) if Arc::ptr_eq(copied, known) => 0,
            Some(copied) => known.memory_bytes_beside(copied),
            None => known.memory_bytes(),
        }
    }

    /// Memory this takes, about, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let statistics: usize = self.statistics.iter().map(Bytes::len).sum();
        let stripes: usize = self.stripe_statistics.iter().map(Bytes::len).sum();
        let keys: usize = self.user_metadata.values().map(Bytes::len).sum();
        let entries = self.statistics.len() + self.stripe_statistics.len();
        let copied: usize = self.copied_stripes.iter().map(|stripe| stripe.memory_bytes()).sum();
        let checksums = self.checksums.as_ref().map_or(0, BlockChecksums::memory_bytes);
        size_of::<Self>()
            + copied
            + checksums
            + statistics
            + stripes
            + keys
            + entries * size_of::<Bytes>()
            + self.stripes.len() * size_of::<StripeInfo>()
            + self.types.len() * size_of::<OrcType>()
    }

    /// Metadata of a file of zero bytes, which Hive writes for empty tables.
    pub(crate) fn empty() -> Result<Self> {
        Ok(Self {
            file_bytes: 0,
            types: TypeTree::new(vec![OrcType::new(TypeKind::Struct)])?,
            rows: 0,
            stripes: Vec::new(),
            row_index_stride: 0,
            compression: CompressionKind::None,
            block_bytes: BLOCK_BYTES_DEFAULT,
            version: (0, 12),
            writer: WriterId::default(),
            calendar: CalendarKind::Unknown,
            user_metadata: BTreeMap::new(),
            encrypted_columns: Vec::new(),
            statistics: Vec::new(),
            stripe_statistics: Vec::new(),
            checksums: None,
            copied_stripes: Vec::new(),
        })
    }
}

/// Number of row groups of a stripe; 1 if the file has no row index, or the stripe says that it
/// has more rows than an index could be for.
pub(crate) fn group_count(file: &FileMetadata, info: &StripeInfo) -> usize {
    let groups = match u64::from(file.row_index_stride) {
        0 => 1,
        stride => info.rows.div_ceil(stride),
    };
    if groups > GROUPS_MAX { 1 } else { groups as usize }
}

/// The statistics of one column.
pub(crate) fn parse_statistics(bytes: Bytes) -> Option<ColumnStatistics> {
    let message = proto::ColumnStatistics::decode(bytes).ok()?;
    Some(ColumnStatistics::from_proto(&message))
}

/// [`proto::StripeStatistics`], encoded per column.
#[derive(Clone, PartialEq, Message)]
struct StripeStatisticsView {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    col_stats: Vec<Bytes>,
}
