//! Hypertable's cells and its language HQL, over any store of cells.
//!
//! In: statements, load files, lines of a shell; a [`CellStore`] that keeps tables and cells. Out:
//! calls of the store, and what Hypertable would have printed.
//!
//! ```text
//! lines ─► Shell ─► Session ─► lang::parse ─► Statement
//!                     │                          │ names, conditions
//!                     │ load files ─► batches    ▼
//!                     ├──────────────────► CellStore: mutate, bulk_load, scan(ScanSpec), …
//!                     │                          │ sorted batches
//!                     │                    CellReader: merge, markers, versions, limits
//!                     └─► Output ◄─ CellFormat ◄─┘ the cells that are seen
//! ```
//!
//! - The **cell model**: [`Cell`], their order, [`CellBatch`] (an Arrow record batch of a fixed
//!   schema, see [`batch`]), [`TableSchema`], [`TimestampSource`].
//! - **Reading**: [`scan::ScanSpec`] says which cells are wanted, [`CellReader`] finds them in any
//!   number of sorted inputs, without I/O. A store needs nothing else to answer a query.
//! - **The language**: [`lang`]; what statements do: [`Session`]; what a terminal or a script
//!   meets: [`Shell`].
//! - [`MemoryCells`] is a store in memory, for tests.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use stoa_hql::{BufferOutput, MemoryCells, NoFiles, Session, SessionOptions};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = Arc::new(MemoryCells::default());
//! let mut session = Session::new(store, Arc::new(NoFiles), SessionOptions::default());
//! let mut out = BufferOutput::default();
//! session.run_text("CREATE TABLE fruit (tag, note MAX_VERSIONS 1)", &mut out).await.unwrap();
//! session.run_text("INSERT INTO fruit VALUES ('fig', 'tag:good', 'ripe')", &mut out).await.unwrap();
//! session.run_text("SELECT tag:^g FROM fruit WHERE ROW =^ 'f'", &mut out).await.unwrap();
//! assert_eq!(out.results, b"fig\ttag:good\tripe\n");
//! # });
//! ```
//!
//! **Invariants:** no text, file or stored byte makes this crate panic. Memory is bounded by
//! batches, a line (taken from a [`MemoryBudget`]), and what [`CellReader`] must hold of a row. Files are opened only through
//! [`Files`].
//!
//! Not here: how cells are stored, logged, compacted (a store does); HTTP; the interactive prompt
//! (the binary gives a [`LineSource`]). Grammar and differences from Hypertable: docs/hql.md.

pub mod batch;
mod budget;
mod cell;
mod escape;
mod files;
pub mod lang;
mod load;
mod memory;
mod name;
mod output;
mod pattern;
mod read;
pub mod scan;
mod schema;
mod session;
mod shell;
pub mod store;
mod time_text;
mod timestamp;
pub mod wire;

pub use batch::{CellBatch, CellBatchBuilder, CellColumns};
pub use budget::{MemoryBudget, Unlimited};
pub use cell::{Cell, CellKind, CellRef, FamilyId, WHOLE_ROW};
pub use files::{Files, LocalFiles, NoFiles, ReadFile};
pub use memory::MemoryCells;
pub use name::{NamespacePath, TableName};
pub use output::{BufferOutput, CellFormat, ConsoleOutput, Output};
pub use pattern::Pattern;
pub use read::{
    BUFFER_BYTES_MAX, CellReader, CellStream, Compaction, ReadStep, is_counter_value, read_stream,
};
pub use schema::{
    AccessGroup, AlterAction, ColumnFamily, FAMILIES_MAX, FamilyDefinition, FamilyOptions,
    GroupDefinition, GroupOptions, IndexDefinition, TableDefinitions, TableOptions, TableSchema,
    TimeOrder,
};
pub use session::{Session, SessionOptions};
pub use shell::{
    EXIT_ERROR, LineSource, ReaderLines, Shell, ShellOptions, Statements, StdinLines, TextLines,
    error_text,
};
pub use store::{BulkLoad, CellStore, CompactScope, ListingEntry};
pub use time_text::{TimestampFormat, Zone};
pub use timestamp::{TimestampSource, WriteUnderWay};
