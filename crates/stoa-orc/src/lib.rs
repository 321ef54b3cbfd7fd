//! ORC v1 files to Arrow record batches and back, without I/O.
//!
//! **Reading.** In: the last bytes of a file and then the byte ranges that the decoder asks for.
//! Out: file metadata and Arrow record batches. The caller decides where bytes come from and how
//! ranges are merged.
//!
//! **Writing.** In: Arrow record batches. Out: bytes for a sink, and column metrics.
//!
//! **Invariants:** bytes from outside never panic, loop, or allocate beyond the declared limits;
//! pruning never drops a row that the predicate keeps; of a file with checksums no byte is looked
//! at before its checksum was compared; this crate does no I/O, spawns nothing and reads no clock.
//!
//! Not here: merging and executing range reads (`stoa-rangeio`), tables (`stoa-table`), encryption
//! keys (encrypted columns are read masked).

mod block_checksums;
mod bloom;
mod calendar;
mod checked_segments;
mod compact_index;
mod compression;
mod decode;
mod decoder;
mod encode;
mod error;
mod limits;
mod message;
mod metadata;
mod nan;
mod options;
mod predicate;
pub mod proto;
mod prune;
mod record;
mod rle_width;
mod row_index;
mod schema;
mod segments;
mod statistics;
mod stripe;
mod stripe_info;
mod tail;
mod validate;
mod value_checksum;
mod writer;

pub use block_checksums::BlockChecksums;
pub use compression::{Compression, CompressionKind, inflate_section};
pub use decode::union::null_union_slot;
pub use decoder::{DecodeMetrics, Decoder, Step};
pub use limits::Limits;
pub use metadata::{FileMetadata, WriterId};
pub use nan::{one_nan_32, one_nan_64, with_one_nan};
pub use options::{FieldMatching, Projection, ReadOptions};
pub use predicate::{ColumnRef, CompareOp, Literal, Predicate};
pub use row_index::RowIndex;
pub use schema::{
    ArrowOptions, FIELD_ID_KEY, OrcType, StringOutput, TimestampOutput, TypeKind, TypeTree,
    attribute,
};
pub use statistics::{ColumnStatistics, TimestampBound, ValueStatistics};
pub use stripe::StripeMetadata;
pub use stripe_info::StripeInfo;
pub use tail::{TailDecoder, TailStep};
pub use validate::{Validation, ValidationReport, Validator};
pub use writer::{ColumnMetrics, DictionaryChoice, FileSummary, Writer, WriterOptions};
