//! Protocol buffer messages of the ORC v1 file format, written by hand from `orc_proto.proto`
//! (apache/orc-format).
//!
//! Texts that other writers are known to damage (string statistics cut inside a character) are
//! `bytes` here, so that one bad text does not make a whole footer unreadable.
//!
//! Not here: geometry statistics and encryption keys; unknown fields are skipped.
#![allow(missing_docs)]

use prost::Message;

/// Statistics of integer columns.
#[derive(Clone, PartialEq, Message)]
pub struct IntegerStatistics {
    #[prost(sint64, optional, tag = "1")]
    pub minimum: Option<i64>,
    #[prost(sint64, optional, tag = "2")]
    pub maximum: Option<i64>,
    #[prost(sint64, optional, tag = "3")]
    pub sum: Option<i64>,
}

/// Statistics of FLOAT and DOUBLE columns.
#[derive(Clone, PartialEq, Message)]
pub struct DoubleStatistics {
    #[prost(double, optional, tag = "1")]
    pub minimum: Option<f64>,
    #[prost(double, optional, tag = "2")]
    pub maximum: Option<f64>,
    #[prost(double, optional, tag = "3")]
    pub sum: Option<f64>,
}

/// Statistics of STRING, VARCHAR and CHAR columns; texts are UTF-8 where the writer was right.
#[derive(Clone, PartialEq, Message)]
pub struct StringStatistics {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub minimum: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub maximum: Option<Vec<u8>>,
    /// Total length of all values in bytes.
    #[prost(sint64, optional, tag = "3")]
    pub sum: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub lower_bound: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub upper_bound: Option<Vec<u8>>,
}

/// Statistics of BOOLEAN columns: the number of true values.
#[derive(Clone, PartialEq, Message)]
pub struct BucketStatistics {
    #[prost(uint64, repeated, tag = "1")]
    pub count: Vec<u64>,
}

/// Statistics of DECIMAL columns, as decimal text.
#[derive(Clone, PartialEq, Message)]
pub struct DecimalStatistics {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub minimum: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub maximum: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub sum: Option<Vec<u8>>,
}

/// Statistics of DATE columns, in days since 1970-01-01.
#[derive(Clone, PartialEq, Message)]
pub struct DateStatistics {
    #[prost(sint32, optional, tag = "1")]
    pub minimum: Option<i32>,
    #[prost(sint32, optional, tag = "2")]
    pub maximum: Option<i32>,
}

/// Statistics of TIMESTAMP columns, in milliseconds since 1970-01-01.
#[derive(Clone, PartialEq, Message)]
pub struct TimestampStatistics {
    #[prost(sint64, optional, tag = "1")]
    pub minimum: Option<i64>,
    #[prost(sint64, optional, tag = "2")]
    pub maximum: Option<i64>,
    #[prost(sint64, optional, tag = "3")]
    pub minimum_utc: Option<i64>,
    #[prost(sint64, optional, tag = "4")]
    pub maximum_utc: Option<i64>,
    /// The six digits below the millisecond, plus one.
    #[prost(int32, optional, tag = "5")]
    pub minimum_nanos: Option<i32>,
    /// The six digits below the millisecond, plus one.
    #[prost(int32, optional, tag = "6")]
    pub maximum_nanos: Option<i32>,
}

/// Statistics of BINARY columns: total length in bytes.
#[derive(Clone, PartialEq, Message)]
pub struct BinaryStatistics {
    #[prost(sint64, optional, tag = "1")]
    pub sum: Option<i64>,
}

/// Statistics of LIST and MAP columns.
#[derive(Clone, PartialEq, Message)]
pub struct CollectionStatistics {
    #[prost(uint64, optional, tag = "1")]
    pub min_children: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub max_children: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub total_children: Option<u64>,
}

/// Statistics of one column over a file, a stripe or a row group.
#[derive(Clone, PartialEq, Message)]
pub struct ColumnStatistics {
    /// Number of values that are not NULL.
    #[prost(uint64, optional, tag = "1")]
    pub number_of_values: Option<u64>,
    #[prost(message, optional, tag = "2")]
    pub int_statistics: Option<IntegerStatistics>,
    #[prost(message, optional, tag = "3")]
    pub double_statistics: Option<DoubleStatistics>,
    #[prost(message, optional, tag = "4")]
    pub string_statistics: Option<StringStatistics>,
    #[prost(message, optional, tag = "5")]
    pub bucket_statistics: Option<BucketStatistics>,
    #[prost(message, optional, tag = "6")]
    pub decimal_statistics: Option<DecimalStatistics>,
    #[prost(message, optional, tag = "7")]
    pub date_statistics: Option<DateStatistics>,
    #[prost(message, optional, tag = "8")]
    pub binary_statistics: Option<BinaryStatistics>,
    #[prost(message, optional, tag = "9")]
    pub timestamp_statistics: Option<TimestampStatistics>,
    #[prost(bool, optional, tag = "10")]
    pub has_null: Option<bool>,
    #[prost(uint64, optional, tag = "11")]
    pub bytes_on_disk: Option<u64>,
    #[prost(message, optional, tag = "12")]
    pub collection_statistics: Option<CollectionStatistics>,
}

/// Where a row group starts in each stream of a column, and its statistics.
#[derive(Clone, PartialEq, Message)]
pub struct RowIndexEntry {
    #[prost(uint64, repeated, tag = "1")]
    pub positions: Vec<u64>,
    #[prost(message, optional, tag = "2")]
    pub statistics: Option<ColumnStatistics>,
}

/// The ROW_INDEX stream of a column.
#[derive(Clone, PartialEq, Message)]
pub struct RowIndex {
    #[prost(message, repeated, tag = "1")]
    pub entry: Vec<RowIndexEntry>,
}

/// One bloom filter (one row group).
#[derive(Clone, PartialEq, Message)]
pub struct BloomFilter {
    #[prost(uint32, optional, tag = "1")]
    pub num_hash_functions: Option<u32>,
    /// The bits of a BLOOM_FILTER stream.
    #[prost(fixed64, repeated, packed = "false", tag = "2")]
    pub bitset: Vec<u64>,
    /// The bits of a BLOOM_FILTER_UTF8 stream, as little-endian longs.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub utf8bitset: Option<Vec<u8>>,
}

/// The BLOOM_FILTER or BLOOM_FILTER_UTF8 stream of a column.
#[derive(Clone, PartialEq, Message)]
pub struct BloomFilterIndex {
    #[prost(message, repeated, tag = "1")]
    pub bloom_filter: Vec<BloomFilter>,
}

/// What a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum StreamKind {
    Present = 0,
    Data = 1,
    Length = 2,
    DictionaryData = 3,
    DictionaryCount = 4,
    Secondary = 5,
    RowIndex = 6,
    BloomFilter = 7,
    BloomFilterUtf8 = 8,
    EncryptedIndex = 9,
    EncryptedData = 10,
    StripeStatistics = 100,
    FileStatistics = 101,
}

/// One stream of a stripe; its offset is the sum of the lengths before it.
#[derive(Clone, PartialEq, Message)]
pub struct Stream {
    #[prost(enumeration = "StreamKind", optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub column: Option<u32>,
    /// Length in bytes in the file.
    #[prost(uint64, optional, tag = "3")]
    pub length: Option<u64>,
}

/// How a column's values are encoded in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EncodingKind {
    Direct = 0,
    Dictionary = 1,
    DirectV2 = 2,
    DictionaryV2 = 3,
}

/// Encoding of a column in a stripe.
#[derive(Clone, PartialEq, Message)]
pub struct ColumnEncoding {
    #[prost(enumeration = "EncodingKind", optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub dictionary_size: Option<u32>,
    /// 1 = timestamps in bloom filters are UTC (ORC-135).
    #[prost(uint32, optional, tag = "3")]
    pub bloom_encoding: Option<u32>,
}

/// Streams of an encrypted variant of some columns.
#[derive(Clone, PartialEq, Message)]
pub struct StripeEncryptionVariant {
    #[prost(message, repeated, tag = "1")]
    pub streams: Vec<Stream>,
    #[prost(message, repeated, tag = "2")]
    pub encoding: Vec<ColumnEncoding>,
}

/// The directory of a stripe.
#[derive(Clone, PartialEq, Message)]
pub struct StripeFooter {
    #[prost(message, repeated, tag = "1")]
    pub streams: Vec<Stream>,
    #[prost(message, repeated, tag = "2")]
    pub columns: Vec<ColumnEncoding>,
    #[prost(string, optional, tag = "3")]
    pub writer_timezone: Option<String>,
    #[prost(message, repeated, tag = "4")]
    pub encryption: Vec<StripeEncryptionVariant>,
}

/// A type attribute.
#[derive(Clone, PartialEq, Message)]
pub struct StringPair {
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// Kind of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum TypeKind {
    Boolean = 0,
    Byte = 1,
    Short = 2,
    Int = 3,
    Long = 4,
    Float = 5,
    Double = 6,
    String = 7,
    Binary = 8,
    Timestamp = 9,
    List = 10,
    Map = 11,
    Struct = 12,
    Union = 13,
    Decimal = 14,
    Date = 15,
    Varchar = 16,
    Char = 17,
    TimestampInstant = 18,
    Geometry = 19,
    Geography = 20,
}

/// One type of the type tree.
#[derive(Clone, PartialEq, Message)]
pub struct Type {
    #[prost(enumeration = "TypeKind", optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(uint32, repeated, tag = "2")]
    pub subtypes: Vec<u32>,
    #[prost(string, repeated, tag = "3")]
    pub field_names: Vec<String>,
    #[prost(uint32, optional, tag = "4")]
    pub maximum_length: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub precision: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub scale: Option<u32>,
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<StringPair>,
}

/// Where a stripe is in the file; lengths in bytes.
#[derive(Clone, PartialEq, Message)]
pub struct StripeInformation {
    #[prost(uint64, optional, tag = "1")]
    pub offset: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub index_length: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub data_length: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub footer_length: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub number_of_rows: Option<u64>,
}

/// A key of the user's own.
#[derive(Clone, PartialEq, Message)]
pub struct UserMetadataItem {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub value: Option<bytes::Bytes>,
}

/// Statistics of all columns of one stripe.
#[derive(Clone, PartialEq, Message)]
pub struct StripeStatistics {
    #[prost(message, repeated, tag = "1")]
    pub col_stats: Vec<ColumnStatistics>,
}

/// Statistics of all stripes.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(message, repeated, tag = "1")]
    pub stripe_stats: Vec<StripeStatistics>,
}

/// The root column of an encrypted variant.
#[derive(Clone, PartialEq, Message)]
pub struct EncryptionVariant {
    #[prost(uint32, optional, tag = "1")]
    pub root: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub key: Option<u32>,
}

/// Which columns are encrypted.
#[derive(Clone, PartialEq, Message)]
pub struct Encryption {
    #[prost(message, repeated, tag = "3")]
    pub variants: Vec<EncryptionVariant>,
}

/// Calendar that dates and timestamps were counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CalendarKind {
    Unknown = 0,
    JulianGregorian = 1,
    ProlepticGregorian = 2,
}

/// The directory of a file.
#[derive(Clone, PartialEq, Message)]
pub struct Footer {
    #[prost(uint64, optional, tag = "1")]
    pub header_length: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub content_length: Option<u64>,
    #[prost(message, repeated, tag = "3")]
    pub stripes: Vec<StripeInformation>,
    #[prost(message, repeated, tag = "4")]
    pub types: Vec<Type>,
    #[prost(message, repeated, tag = "5")]
    pub metadata: Vec<UserMetadataItem>,
    #[prost(uint64, optional, tag = "6")]
    pub number_of_rows: Option<u64>,
    #[prost(message, repeated, tag = "7")]
    pub statistics: Vec<ColumnStatistics>,
    /// Rows in a row group; 0 = no row index.
    #[prost(uint32, optional, tag = "8")]
    pub row_index_stride: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    pub writer: Option<u32>,
    #[prost(message, optional, tag = "10")]
    pub encryption: Option<Encryption>,
    #[prost(enumeration = "CalendarKind", optional, tag = "11")]
    pub calendar: Option<i32>,
    #[prost(string, optional, tag = "12")]
    pub software_version: Option<String>,
}

/// The last message of a file, never compressed.
#[derive(Clone, PartialEq, Message)]
pub struct PostScript {
    #[prost(uint64, optional, tag = "1")]
    pub footer_length: Option<u64>,
    /// `CompressionKind` as a number.
    #[prost(int32, optional, tag = "2")]
    pub compression: Option<i32>,
    #[prost(uint64, optional, tag = "3")]
    pub compression_block_size: Option<u64>,
    #[prost(uint32, repeated, tag = "4")]
    pub version: Vec<u32>,
    #[prost(uint64, optional, tag = "5")]
    pub metadata_length: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    pub writer_version: Option<u32>,
    #[prost(uint64, optional, tag = "7")]
    pub stripe_statistics_length: Option<u64>,
    /// CRC-32C of the file's tail, these four bytes left out; ours, not of the specification.
    #[prost(fixed32, optional, tag = "7001")]
    pub tail_checksum: Option<u32>,
    /// `ORC`.
    #[prost(string, optional, tag = "8000")]
    pub magic: Option<String>,
}
