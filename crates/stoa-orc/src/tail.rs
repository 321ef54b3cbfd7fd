//! The tail of a file: postscript, footer and stripe statistics.
//!
//! ```text
//! … stripes · metadata (stripe statistics) · footer · postscript · u8 postscript length
//! ```
//!
//! In: the last bytes of a file. Out: [`FileMetadata`], or how many more bytes are needed.
//! **Invariant:** messages take no more memory than the limits say.
//! Not here: what was found (`metadata`), stripe footers and indexes (`stripe`).

use bytes::Bytes;
use prost::Message;

use crate::block_checksums::{self, BlockChecksums, CHECKSUMS_KEY, Seal};
use crate::compact_index;
use crate::compression::{
    BLOCK_BYTES_DEFAULT, CHUNK_BYTES_MAX, CompressionKind, Decompressor, decompress_section,
};
use crate::error::{Result, corrupt, exhausted};
use crate::limits::Limits;
use crate::message::Budget;
use crate::metadata::{FileMetadata, WriterId};
use crate::proto::{self, CalendarKind};
use crate::schema::TypeTree;
use crate::stripe_info::StripeInfo;

/// Bounds of the first read: a small file's whole tail, and what is still cheap for a large one.
const FIRST_READ_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=1 << 20;

/// Files hold about this many bytes per byte of tail (statistics and the compact index).
const FILE_BYTES_PER_TAIL_BYTE: u64 = 512;

/// A byte of a stripe holds no more rows: NULLs take a bit each, in runs of 1040 bits in two bytes, and
/// no codec makes them smaller than this.
const ROWS_PER_BYTE_MAX: u64 = 1 << 24;

const MAGIC: &str = "ORC";

/// What [`TailDecoder::decode`] came to.
#[derive(Debug)]
pub enum TailStep {
    /// Read this many bytes from the end of the file and call again.
    NeedsTail(u64),
    /// Done.
    Done(FileMetadata),
}

/// Decodes the tail of a file.
///
/// ```
/// use stoa_orc::{TailDecoder, TailStep};
/// # fn read(file: &[u8]) -> stoa_error::Result<()> {
/// let mut decoder = TailDecoder::new(file.len() as u64);
/// let mut wanted = decoder.first_read();
/// let metadata = loop {
///     let from = file.len() - wanted as usize;
///     match decoder.decode(bytes::Bytes::copy_from_slice(&file[from..]))? {
///         TailStep::NeedsTail(more) => wanted = more,
///         TailStep::Done(metadata) => break metadata,
///     }
/// };
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct TailDecoder {
    file_bytes: u64,
    limits: Limits,
    is_proleptic: bool,
}

impl TailDecoder {
    /// A decoder for a file of `file_len` bytes.
    pub fn new(file_len: u64) -> Self {
        Self { file_bytes: file_len, limits: Limits::default(), is_proleptic: false }
    }

    /// Sets limits other than the default ones.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Takes dates and timestamps for proleptic whatever the footer says. So it is in data files of
    /// Iceberg tables: Iceberg's own readers and writers look over the field, and what they write is
    /// proleptic in files that say otherwise or nothing.
    #[must_use]
    pub fn with_proleptic_dates(mut self) -> Self {
        self.is_proleptic = true;
        self
    }

    /// How many bytes to read from the end of the file at first, so that one read mostly does.
    pub fn first_read(&self) -> u64 {
        (self.file_bytes / FILE_BYTES_PER_TAIL_BYTE)
            .clamp(*FIRST_READ_BYTES.start(), *FIRST_READ_BYTES.end())
            .min(self.file_bytes)
    }

    /// Decodes `tail`, the last bytes of the file (or all of it).
    ///
    /// # Errors
    /// `Corrupt` if this is no ORC file or damaged, `Unsupported` for types or codecs that are
    /// not known, `Exhausted` beyond the limits.
    pub fn decode(&mut self, tail: Bytes) -> Result<TailStep> {
        if self.file_bytes == 0 {
            return Ok(TailStep::Done(FileMetadata::empty()?));
        }
        self.decode_tail(&tail).map_err(|e| e.at("file tail"))
    }

    fn decode_tail(&self, tail: &Bytes) -> Result<TailStep> {
        let Some((length, rest)) = tail.split_last() else {
            return Ok(TailStep::NeedsTail(self.first_read()));
        };
        let length = usize::from(*length);
        let Some(start) = rest.len().checked_sub(length) else {
            return self.needs(length as u64 + 1);
        };
        let postscript = proto::PostScript::decode(&rest[start..])
            .map_err(|e| corrupt(format!("postscript: {e}")).with_hint(NOT_ORC_HINT))?;
        // The first files of Hive had the magic only at their start.
        let is_orc = match postscript.magic.as_deref() {
            Some(magic) => magic == MAGIC,
            None => postscript.footer_length.is_some_and(|length| length > 0),
        };
        if !is_orc {
            return Err(corrupt("postscript has no magic `ORC`").with_hint(NOT_ORC_HINT));
        }
        let footer_bytes = postscript.footer_length.unwrap_or(0);
        let metadata_bytes = postscript.metadata_length.unwrap_or(0);
        let wanted =
            (length as u64 + 1).saturating_add(footer_bytes).saturating_add(metadata_bytes);
        let body = &tail[..start];
        if wanted > tail.len() as u64 {
            return self.needs(wanted);
        }
        let seal = block_checksums::check_tail(&tail[tail.len() - wanted as usize..])?;
        let (before, footer) = body.split_at(body.len() - footer_bytes as usize);
        let metadata = &before[before.len() - metadata_bytes as usize..];
        let compression = CompressionKind::from_number(postscript.compression.unwrap_or(0))?;
        let block_bytes = block_bytes(&postscript, compression)?;
        let mut codec = Decompressor::new(compression);
        let mut inflate = |section: &[u8], name: &str| {
            let result = match compression {
                CompressionKind::None => Ok(section.to_vec()),
                _ => {
                    decompress_section(&mut codec, block_bytes, section, self.limits.metadata_bytes)
                }
            };
            result.map(Bytes::from).map_err(|e| e.at(name))
        };
        let footer = inflate(footer, "footer")?;
        let metadata = inflate(metadata, "metadata")?;
        let mut budget = Budget::new(self.limits.metadata_bytes);
        let footer: FooterView = budget.decode(footer).map_err(|e| e.at("footer"))?;
        // Stripe statistics are only ever a help: without them every stripe is read.
        let metadata = Budget::new(self.limits.metadata_bytes).decode(metadata);
        let metadata: MetadataView = metadata.unwrap_or_default();
        let mut file =
            self.build(&postscript, block_bytes, compression, footer, metadata, &mut budget)?;
        file.checksums = checksums(&mut file, seal, self.file_bytes.saturating_sub(wanted))?;
        Ok(TailStep::Done(file))
    }

    fn needs(&self, bytes: u64) -> Result<TailStep> {
        if bytes > self.file_bytes {
            let have = self.file_bytes;
            let message = format!("tail of {bytes} bytes in a file of {have} bytes");
            return Err(corrupt(message).with_hint(NOT_ORC_HINT));
        }
        if bytes > self.limits.metadata_bytes as u64 {
            let limit = self.limits.metadata_bytes;
            return Err(exhausted(format!("tail of {bytes} bytes exceeds {limit}")));
        }
        Ok(TailStep::NeedsTail(bytes))
    }

    fn build(
        &self,
        postscript: &proto::PostScript,
        block_bytes: usize,
        compression: CompressionKind,
        footer: FooterView,
        metadata: MetadataView,
        budget: &mut Budget,
    ) -> Result<FileMetadata> {
        check_count("types", footer.types.len(), self.limits.columns)?;
        check_count("stripes", footer.stripes.len(), self.limits.stripes)?;
        let types = footer
            .types
            .into_iter()
            .map(|ty| budget.decode_packed::<proto::Type>(ty, size_of::<u32>()))
            .collect::<Result<Vec<_>>>()
            .map_err(|e| e.at("footer: types"))?;
        let types = TypeTree::from_proto(&types)?;
        let encryption: proto::Encryption =
            budget.decode(footer.encryption.unwrap_or_default()).map_err(|e| e.at("footer"))?;
        let stripes = self.stripes(footer.stripes)?;
        let rows = stripes.last().map_or(0, |s| s.first_row + s.rows);
        if footer.number_of_rows.is_some_and(|n| n != rows) {
            let said = footer.number_of_rows.unwrap_or(0);
            return Err(corrupt(format!("footer says {said} rows, its stripes have {rows}")));
        }
        let version = postscript.version.as_slice();
        let enough = metadata.stripe_stats.len() >= stripes.len();
        let columns = types.len() as u32;
        let mut file = FileMetadata {
            file_bytes: self.file_bytes,
            rows,
            row_index_stride: footer.row_index_stride.unwrap_or(0),
            compression,
            block_bytes,
            version: (version.first().copied().unwrap_or(0), version.get(1).copied().unwrap_or(11)),
            writer: WriterId {
                code: footer.writer.unwrap_or(WriterId::JAVA),
                version: postscript.writer_version.unwrap_or(0),
                software: footer.software_version,
            },
            calendar: match footer.calendar.map(CalendarKind::try_from) {
                _ if self.is_proleptic => CalendarKind::ProlepticGregorian,
                Some(Ok(said)) => said,
                _ => CalendarKind::Unknown,
            },
            user_metadata: footer
                .metadata
                .into_iter()
                .map(|item| (item.name.unwrap_or_default(), item.value.unwrap_or_default()))
                .collect(),
            encrypted_columns: encryption
                .variants
                .iter()
                .filter_map(|variant| variant.root.filter(|root| *root < columns))
                .collect(),
            statistics: footer.statistics,
            stripe_statistics: if enough { metadata.stripe_stats } else { Vec::new() },
            checksums: None,
            copied_stripes: Vec::new(),
            types,
            stripes,
        };
        if let Some(copy) = file.user_metadata.remove(compact_index::COMPACT_INDEX_KEY) {
            let stripes = compact_index::stripe_metadata(&copy, &file.stripes, file.types.len());
            file.copied_stripes = stripes.unwrap_or_default();
        }
        Ok(file)
    }

    fn stripes(&self, encoded: Vec<Bytes>) -> Result<Vec<StripeInfo>> {
        let mut first_row = 0u64;
        let mut stripes = Vec::with_capacity(encoded.len());
        for (index, bytes) in encoded.into_iter().enumerate() {
            let stripe = proto::StripeInformation::decode(bytes)
                .map_err(|e| corrupt(format!("footer: stripe {index}: {e}")))?;
            let info = StripeInfo::of(&stripe, first_row);
            let end = [info.index_bytes, info.data_bytes, info.footer_bytes]
                .iter()
                .try_fold(info.offset, |sum, part| sum.checked_add(*part));
            if end.is_none_or(|end| end > self.file_bytes) {
                let message =
                    format!("stripe {index} at offset {} ends behind the file", info.offset);
                return Err(corrupt(message));
            }
            let bytes = info.range().end - info.offset;
            if info.rows / ROWS_PER_BYTE_MAX > bytes {
                let rows = info.rows;
                return Err(corrupt(format!(
                    "stripe {index}: too many rows: {rows} in {bytes} bytes"
                )));
            }
            first_row = first_row
                .checked_add(info.rows)
                .filter(|rows| i64::try_from(*rows).is_ok())
                .ok_or_else(|| corrupt(format!("stripe {index}: too many rows")))?;
            stripes.push(info);
        }
        Ok(stripes)
    }
}

/// The checksums in a footer. A tool that wrote the footer anew may have kept the key of a file that
/// was another one, but not the checksum of the tail.
fn checksums(
    file: &mut FileMetadata,
    seal: Seal,
    content_bytes: u64,
) -> Result<Option<BlockChecksums>> {
    let Some(value) = file.user_metadata.remove(CHECKSUMS_KEY) else { return Ok(None) };
    match seal {
        Seal::Sealed => BlockChecksums::parse(value, content_bytes).map(Some),
        Seal::Missing if file.writer.is_stoa() => {
            Err(corrupt("the checksum in the postscript is damaged"))
        }
        Seal::Missing => Ok(None),
    }
}

const NOT_ORC_HINT: &str = "is this an ORC file, and was it written to its end?";

fn check_count(what: &str, count: usize, limit: usize) -> Result<()> {
    if count > limit {
        return Err(exhausted(format!("{count} {what} exceed the limit of {limit}")));
    }
    Ok(())
}

fn block_bytes(postscript: &proto::PostScript, compression: CompressionKind) -> Result<usize> {
    let said = postscript.compression_block_size.unwrap_or(BLOCK_BYTES_DEFAULT as u64);
    if compression != CompressionKind::None && !(1..=CHUNK_BYTES_MAX as u64).contains(&said) {
        return Err(corrupt(format!("compression block size of {said} bytes")));
    }
    Ok(usize::try_from(said).unwrap_or(BLOCK_BYTES_DEFAULT))
}

/// [`proto::Footer`] whose repeated messages stay encoded: a small footer can say a lot of them.
#[derive(Clone, PartialEq, Message)]
struct FooterView {
    #[prost(bytes = "bytes", repeated, tag = "3")]
    stripes: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "4")]
    types: Vec<Bytes>,
    #[prost(message, repeated, tag = "5")]
    metadata: Vec<proto::UserMetadataItem>,
    #[prost(uint64, optional, tag = "6")]
    number_of_rows: Option<u64>,
    #[prost(bytes = "bytes", repeated, tag = "7")]
    statistics: Vec<Bytes>,
    #[prost(uint32, optional, tag = "8")]
    row_index_stride: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    writer: Option<u32>,
    #[prost(bytes = "bytes", optional, tag = "10")]
    encryption: Option<Bytes>,
    #[prost(int32, optional, tag = "11")]
    calendar: Option<i32>,
    #[prost(string, optional, tag = "12")]
    software_version: Option<String>,
}

/// [`proto::Metadata`], encoded per stripe.
#[derive(Clone, PartialEq, Message)]
struct MetadataView {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    stripe_stats: Vec<Bytes>,
}
