//! Turns files into Arrow record batches of a target schema.
//!
//! In: CSV, TSV, NDJSON, PostgreSQL's COPY text, Parquet, ORC and Arrow IPC, as files or streams,
//! text formats optionally compressed (.gz, .zst); the schema wanted; [`LoadOptions`]. Out: an
//! iterator of record batches ([`BatchReader`]) and counters that a progress bar reads
//! ([`Progress`]). [`infer_schema`] proposes a schema for files whose table does not exist yet.
//!
//! **Invariants:**
//! - Memory is bounded: one batch, one line ([`LoadOptions::max_line_bytes`]), one read buffer.
//! - A value that does not fit its column is never changed or dropped in silence: it is an error
//!   that names file, line, column and value, or a line in the reject file.
//! - Lines are physical lines of the decompressed file, counted from 1.
//!
//! Not here: tables, partitioning, sorting, writing (`stoa-table`), SQL (`stoa-query`).

mod adapt;
mod arrow_ipc;
mod bad_value;
mod batch_reader;
mod column;
mod convert;
mod datetime;
mod delimited;
mod format;
mod header;
mod infer;
mod input;
mod line_buffer;
mod ndjson;
mod options;
mod orc_file;
mod parquet_file;
mod progress;
mod rejects;
mod settings;
mod type_name;

pub use batch_reader::{BatchReader, open};
pub use format::{FileCompression, Format};
pub use infer::infer_schema;
pub use input::Input;
pub use options::{ColumnPolicy, LineEnding, LoadOptions};
pub use progress::Progress;
pub use settings::SettingDescription;
