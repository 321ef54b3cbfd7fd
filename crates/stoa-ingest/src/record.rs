//! One record of the commit log: the rows of one append to one table.
//!
//! In: a table's uuid, the id of the schema the rows have, the rows, and maybe a tag of the
//! statement. Out: bytes, and back again. All integers are little-endian:
//!
//! ```text
//! offset  bytes  what
//!      0      1  version: 1
//!      1      1  0
//!      2      2  T, bytes of the tag
//!      4      4  schema id of the table's metadata (signed)
//!      8     16  table uuid, in the order in which it is written as text
//!     24      4  H, bytes of the header below, a multiple of 8
//!     28      4  number of rows
//!     32      T  tag, UTF-8, then zeros up to a multiple of 8
//!      …      H  Arrow IPC `Message` (flatbuffer) with a `RecordBatch`, padded with zeros
//!      …      …  Arrow IPC body: the batch's buffers, each padded to 8 bytes, to the end
//! ```
//! The header and body are those of Arrow's streaming format without its eight bytes in front; no
//! compression, no dictionaries. The schema is not repeated: it is the one of that id in the
//! table's metadata, with the Arrow types of [`stoa_table::Table::schema`].
//!
//! **Invariant:** whatever the bytes, decoding gives rows or an error. Checksums are the log's.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_ipc::{Message, MetadataVersion, reader, root_as_message};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use stoa_error::{Error, Result};
use uuid::Uuid;

/// The version of a record of one append.
const VERSION: u8 = 1;

/// The version of a record that holds those of several appends, which are made together:
///
/// ```text
/// offset  bytes  what
///      0      1  version: 2
///      1      3  0
///      4      4  number of records
///      …      8  bytes of the record that follows, then the record, padded to a multiple of 8
/// ```
const GROUP: u8 = 2;

/// Bytes in front of the tag.
const PREFIX: usize = 32;

/// What a record says about its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHead<'a> {
    /// The table.
    pub table: Uuid,
    /// The schema of the rows, by its id in the table's metadata.
    pub schema_id: i32,
    /// Says which statement wrote the rows; for people and tools, at most 65,535 bytes.
    pub tag: Option<&'a str>,
}

/// Makes a record of `batch`, whose columns are those of schema `head.schema_id`.
///
/// # Errors
/// `Invalid` (54000) for a tag or a batch that is too long; `Unsupported` for types that no table
/// has, such as dictionaries.
pub fn encode(head: &RecordHead<'_>, batch: &RecordBatch) -> Result<Bytes> {
    let tag = head.tag.unwrap_or_default();
    let tag_bytes = u16::try_from(tag.len()).map_err(|_| too_long("tag", tag.len()))?;
    let rows = u32::try_from(batch.num_rows()).map_err(|_| too_long("rows", batch.num_rows()))?;
    let (dictionaries, encoded) = IpcDataGenerator::default()
        .encode(
            batch,
            &mut DictionaryTracker::new(true),
            &write_options()?,
            &mut IpcWriteContext::default(),
        )
        .map_err(|source| Error::internal("rows cannot be encoded").with_source(source))?;
    if !dictionaries.is_empty() {
        return Err(Error::unsupported("rows with dictionaries cannot be logged"));
    }
    let (header, body) = (encoded.ipc_message, encoded.arrow_data);
    let header_bytes = header.len().next_multiple_of(8);
    let header_size = u32::try_from(header_bytes).map_err(|_| too_long("header", header_bytes))?;
    let tag_end = PREFIX + tag.len().next_multiple_of(8);

    let mut record = Vec::with_capacity(tag_end + header_bytes + body.len());
    record.extend([VERSION, 0]);
    record.extend(tag_bytes.to_le_bytes());
    record.extend(head.schema_id.to_le_bytes());
    record.extend(head.table.as_bytes());
    record.extend(header_size.to_le_bytes());
    record.extend(rows.to_le_bytes());
    record.extend(tag.as_bytes());
    record.resize(tag_end, 0);
    record.extend(header);
    record.resize(tag_end + header_bytes, 0);
    record.extend(body);
    Ok(record.into())
}

/// Makes one record of several, which [`encode`] made.
///
/// # Errors
/// `Invalid` (54000) for too many.
pub fn encode_group(records: &[Bytes]) -> Result<Bytes> {
    let count = u32::try_from(records.len()).map_err(|_| too_long("records", records.len()))?;
    let mut group = vec![GROUP, 0, 0, 0];
    group.extend(count.to_le_bytes());
    for record in records {
        group.extend((record.len() as u64).to_le_bytes());
        group.extend(record);
        group.resize(group.len().next_multiple_of(8), 0);
    }
    Ok(group.into())
}

/// A record as it was read, its rows not decoded yet.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    table: Uuid,
    schema_id: i32,
    rows: u32,
    tag: &'a str,
    header: &'a [u8],
    body: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads a record of one append or of several that were made together.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_all(bytes: &'a [u8]) -> Result<Vec<Self>> {
        if bytes.first() != Some(&GROUP) {
            return Ok(vec![Self::parse(bytes)?]);
        }
        let broken = || Error::corrupt("a log record of several appends is broken");
        let (head, mut rest) = bytes.split_first_chunk::<8>().ok_or_else(broken)?;
        let count = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let mut records = Vec::new();
        for _ in 0..count {
            let (length, following) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
            let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| broken())?;
            let padded = length.checked_next_multiple_of(8).ok_or_else(broken)?;
            let (record, following) = following.split_at_checked(padded).ok_or_else(broken)?;
            records.push(Self::parse(record.get(..length).ok_or_else(broken)?)?);
            rest = following;
        }
        match rest.is_empty() {
            true => Ok(records),
            false => Err(broken()),
        }
    }

    /// Reads everything but the rows.
    ///
    /// # Errors
    /// `Unsupported` for a version this program does not know, `Corrupt` for anything else that
    /// [`encode`] does not write.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let short =
            || Error::corrupt(format!("a log record of {} bytes is too short", bytes.len()));
        match bytes.first() {
            Some(&VERSION) => {}
            Some(other) => return Err(unknown_version(*other)),
            None => return Err(short()),
        }
        let (prefix, rest) = bytes.split_first_chunk::<PREFIX>().ok_or_else(short)?;
        let number = |at: usize| {
            u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
        };
        let mut table = [0; 16];
        table.copy_from_slice(&prefix[8..24]);
        let tag_bytes = usize::from(u16::from_le_bytes([prefix[2], prefix[3]]));
        let (tag, rest) = rest.split_at_checked(tag_bytes.next_multiple_of(8)).ok_or_else(short)?;
        let (header, body) = rest.split_at_checked(number(24) as usize).ok_or_else(short)?;
        let tag = tag.get(..tag_bytes).and_then(|tag| std::str::from_utf8(tag).ok());
        Ok(Self {
            table: Uuid::from_bytes(table),
            schema_id: number(4).cast_signed(),
            rows: number(28),
            tag: tag.ok_or_else(|| Error::corrupt("the tag of a log record is not UTF-8"))?,
            header,
            body,
        })
    }

    /// The table.
    pub fn table(&self) -> Uuid {
        self.table
    }

    /// The schema of the rows.
    pub fn schema_id(&self) -> i32 {
        self.schema_id
    }

    /// How many rows there are.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The statement's tag, if it had one.
    pub fn tag(&self) -> Option<&'a str> {
        (!self.tag.is_empty()).then_some(self.tag)
    }

    /// The rows; `schema` is the one of [`Self::schema_id`]. They are copied out of the record.
    ///
    /// # Errors
    /// `Corrupt` where the rows are not such rows.
    pub fn batch(&self, schema: &SchemaRef) -> Result<RecordBatch> {
        let header = aligned(self.header);
        let message = root_as_message(&header)
            .map_err(|source| corrupt("its header is broken").with_source(source.to_string()))?;
        self.check(&message)?;
        let body = aligned(self.body);
        let batch = message.header_as_record_batch().ok_or_else(|| corrupt("it has no rows"))?;
        // What the checks above let through, and what a decoder that trusts its input might
        // still stumble over, is corruption too.
        let decode = || {
            let dictionaries = HashMap::new();
            let version = message.version();
            reader::read_record_batch(&body, batch, schema.clone(), &dictionaries, None, &version)
        };
        let decoded = catch_unwind(AssertUnwindSafe(decode))
            .map_err(|_| corrupt("its rows are broken"))?
            .map_err(|source| corrupt("its rows are broken").with_source(source))?;
        match decoded.num_rows() == self.rows as usize {
            true => Ok(decoded),
            false => Err(corrupt("its number of rows is wrong")),
        }
    }

    /// Checks what the decoder takes for granted.
    fn check(&self, message: &Message<'_>) -> Result<()> {
        let batch = message.header_as_record_batch().ok_or_else(|| corrupt("it has no rows"))?;
        let variadic = batch.variadicBufferCounts().is_some_and(|counts| !counts.is_empty());
        if batch.compression().is_some() || variadic {
            return Err(corrupt("its rows are encoded in an unknown way"));
        }
        if batch.length() != i64::from(self.rows) {
            return Err(corrupt("its number of rows is wrong"));
        }
        let outside = |buffer: &arrow_ipc::Buffer| {
            let end = buffer.offset().checked_add(buffer.length());
            buffer.offset() < 0
                || buffer.length() < 0
                || end.and_then(|end| usize::try_from(end).ok()).is_none_or(|e| e > self.body.len())
        };
        if batch.buffers().is_some_and(|buffers| buffers.iter().any(outside)) {
            return Err(corrupt("a buffer is outside of it"));
        }
        // No list in a table holds more values than the body has bytes times eight.
        let values_max = i64::try_from(self.body.len().saturating_mul(8)).unwrap_or(i64::MAX);
        let too_many = |node: &arrow_ipc::FieldNode| {
            let bound = values_max.max(i64::from(self.rows));
            !(0..=bound).contains(&node.length()) || !(0..=bound).contains(&node.null_count())
        };
        match batch.nodes().is_some_and(|nodes| nodes.iter().any(too_many)) {
            true => Err(corrupt("a column has an impossible number of values")),
            false => Ok(()),
        }
    }
}

/// Eight-byte alignment: padding to Arrow's usual 64 would make small records several times larger.
fn write_options() -> Result<IpcWriteOptions> {
    IpcWriteOptions::try_new(8, false, MetadataVersion::V5)
        .map_err(|source| Error::internal("no such Arrow IPC options").with_source(source))
}

/// A copy that is aligned for any Arrow type.
fn aligned(bytes: &[u8]) -> Buffer {
    let mut buffer = MutableBuffer::new(bytes.len());
    buffer.extend_from_slice(bytes);
    buffer.into()
}

fn corrupt(what: &str) -> Error {
    Error::corrupt(format!("a log record cannot be decoded: {what}"))
}

fn unknown_version(version: u8) -> Error {
    Error::unsupported(format!(
        "a log record has format version {version}; this program knows version {VERSION}"
    ))
    .with_hint("start the version of stoa that wrote the log, and let it flush and stop")
}

fn too_long(what: &str, length: usize) -> Error {
    Error::invalid(format!("the {what} of one append cannot be {length} long"))
        .with_sqlstate("54000")
        .with_hint("write fewer rows at a time")
}

#[cfg(test)]
mod tests;
