//! Turns files into Arrow record batches of a target schema.
//!
//! In: CSV, TSV, NDJSON, PostgreSQL's COPY text and binary, Parquet, ORC and Arrow IPC, as files or
//! streams, text formats optionally compressed (.gz, .zst); the schema wanted; [`LoadOptions`]. Out: an
//! iterator of record batches ([`BatchReader`]) and counters that a progress bar reads
//! ([`Progress`]). [`infer_schema`] proposes a schema for files whose table does not exist yet,
//! [`infer_sample`] one for a file of which only a part is there.
//!
//! ```no_run
//! use stoa_load::{Input, LoadOptions, infer_schema, open};
//! # fn main() -> stoa_error::Result<()> {
//! let mut options = LoadOptions::default();
//! options.set("thousands_separator", ",")?;
//! let schema = infer_schema(&["trips.csv.gz".into()], &options)?;
//! for batch in open(vec![Input::Path("trips.csv.gz".into())], schema, options)? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok(()) }
//! ```
//!
//! # What is NULL
//!
//! CSV and TSV: a field that is one of the NULL texts (by default the empty text) and, in a text
//! column, does not stand in quotes; in columns of other types an empty field always. PgText: a
//! field that is the NULL text before escapes are taken out. NDJSON: `null` and missing keys.
//!
//! # Which field is which column
//!
//! With a header by name (case, blanks and marks do not count); if no name matches, by position.
//! The option `columns` overrides the header. Without a header by position. Columns that only one
//! side has are an error unless `missing_columns` or `extra_columns` says otherwise.
//!
//! # Bad lines
//!
//! The first one is an error that names file, line, column and value, and nothing more is read.
//! With `max_errors` so many are passed over, and copied to the `reject_file`: each after a line
//! of its own with the reason, bytes unchanged, with the line end of the input:
//!
//! ```text
//! # reject: data.csv line 17, column "trips": "1,137" is not a bigint
//! B00248,YELLOWSTONE TRANSPORTATION INC.,01/01/2015,"1,137",106
//! ```
//!
//! Corrected, that file loads with the option `comment` set to `# reject: ` and no header. Parquet,
//! ORC, Arrow and binary files have no lines: a value that does not fit there is always an error.
//!
//! **Invariants:**
//! - Memory is bounded: one batch, one line ([`LoadOptions::max_line_bytes`], of a stream at most 64 MiB), one
//!   read buffer.
//! - A value that does not fit its column is never changed or dropped in silence: it is an error
//!   that names file, line, column and value, or a line in the reject file.
//! - Lines are physical lines of the decompressed file, counted from 1.
//!
//! Not here: tables, partitioning, sorting, writing (`stoa-table`), SQL (`stoa-query`).

mod adapt;
mod arrow_ipc;
mod bad_value;
mod batch_reader;
mod batches;
mod checked_ipc;
mod column;
mod convert;
mod datetime;
mod delimited;
mod flat_size;
mod format;
mod header;
mod infer;
mod input;
mod ipc_message;
mod json_object;
mod line_buffer;
mod ndjson;
mod number;
mod options;
mod orc_file;
mod parquet_file;
mod pg_binary;
mod progress;
mod rejects;
mod settings;
mod spool;
mod type_name;

pub use adapt::Adapter;
pub use batch_reader::{BatchReader, open};
pub use format::{FileCompression, Format};
pub use infer::{infer_sample, infer_schema};
pub use input::Input;
pub use ipc_message::check_ipc_message;
pub use options::{ColumnPolicy, LineEnding, LoadOptions};
pub use progress::Progress;
pub use settings::SettingDescription;
pub use spool::Spool;
