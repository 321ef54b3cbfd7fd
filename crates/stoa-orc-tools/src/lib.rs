//! Looks into local ORC files, as the tools of Apache ORC do (`orc-tools meta|data|scan`).
//!
//! In: paths and options. Out: text on a [`std::io::Write`], and a report.
//!
//! - [`meta`]: what the file says about itself: schema, statistics, stripes, streams, indexes.
//! - [`data`]: rows as JSON lines.
//! - [`scan`]: reads everything; says which row groups and columns cannot be read.
//!
//! **Invariants:** memory is bounded by a stripe and a batch, however long the file; an error names
//! the file and, where it is known, stripe, column, stream and offset; `meta` shows what is written
//! in the file, whether a reader would trust it or not.
//!
//! Not here: decoding (`stoa-orc`), object stores, tables, printing errors.
//!
//! ```no_run
//! use stoa_orc_tools::{DataOptions, data};
//! # fn main() -> stoa_error::Result<()> {
//! let first_rows = DataOptions { limit: Some(10), ..DataOptions::default() };
//! data("visits.orc".as_ref(), &first_rows, &mut std::io::stdout())?;
//! # Ok(()) }
//! ```

mod data;
mod file;
mod meta;
mod output;
mod paths;
mod scan;
mod text;

pub use data::{DataOptions, DataReport, RowFormat, data};
pub use meta::{MetaOptions, failed_json, meta};
pub use paths::files_of;
pub use scan::{BadSpot, ScanOptions, ScanReport, scan};
