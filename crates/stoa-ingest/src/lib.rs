//! Durable small writes: commit log records, fresh rows, flushes.
//!
//! In: batches of rows for tables. Out: an acknowledgement once they are durable; consistent views
//! of a table (data files and the rows that are in none yet); sorted data files, later.
//!
//! ```text
//! append ─► conform ─► room? ─► record ─► commit log ─► fresh rows ─► fsync ─► acknowledged, visible
//!           types,     memory             position      in log order
//!           NOT NULL   bound                                │ by bytes, rows, age, pressure
//!                                                           ▼
//! reader ◄─ fresh rows from the position of          flush: sort ─► ORC files ─► one commit:
//!           its version of the table on                     rows and position
//!                                                           └► drop the rows, release the log
//! ```
//!
//! # Invariants
//!
//! A *position* is the sequence of a record in the log. Each table keeps, in the metadata version
//! that shows the rows, the first position of this log that is not in its files.
//!
//! 1. **Nothing acknowledged is lost.** An append is acknowledged after a sync of the log covers
//!    its record (or, for relaxed durability, after it was written). A record leaves the log only
//!    after its rows are in a committed snapshot, or its table is dropped.
//! 2. **Nothing is there twice.** A flush commits its rows together with the position behind them,
//!    on condition that the table is at the position in front of them. A replay begins at the
//!    position of each table.
//! 3. **Every reader sees every acknowledged row exactly once.** A reader who has a version of the
//!    table adds the fresh rows from that version's position on. Rows are dropped from memory only
//!    after a version that has them is committed; a reader whose version is older than what was
//!    dropped is told to look again. It does not matter what a flush knows of its own outcome.
//! 4. **Rows of one append become visible all at once**, when the log is durable up to them: they
//!    are one record, one position, and never split.
//! 5. **What is flushed is durable in the log first.** Else, after a power cut, the log could end
//!    before a position that a table is at, and give that position to other rows.
//! 6. **Nothing is acknowledged for a table that is gone.** An append looks the table up by its uuid
//!    after its rows are durable, so what goes with a dropped table came before the drop, whichever
//!    process dropped it.
//! 7. **Memory is bounded**: fresh rows by [`IngestOptions::fresh_bytes_max`], beyond which appends
//!    wait and then fail retryably; a flush by [`IngestOptions::flush_memory_bytes`] and the sort
//!    keys of [`FlushLimits::bytes`] of rows. Rows that a reader holds on to after a flush are the
//!    reader's.
//!
//! # Example
//!
//! ```no_run
//! # async fn example(warehouse: stoa_table::Warehouse, rows: arrow_array::RecordBatch)
//! # -> stoa_error::Result<()> {
//! use stoa_ingest::{Durability, Ingest, IngestOptions};
//! use stoa_table::TableIdent;
//!
//! let log = url::Url::parse("file:///var/lib/stoa/log").unwrap();
//! let (ingest, report) = Ingest::open(warehouse.clone(), &log, IngestOptions::default()).await?;
//! println!("{} rows were in the log only", report.rows);
//!
//! // INSERT, COPY: a small write. It is durable when this returns.
//! let ident = TableIdent::new("public", "report");
//! let table = warehouse.table(&ident).await?;
//! ingest.append(&table, rows, Durability::Table).await?;
//!
//! // A scan: one version of the table, and the rows to add to its data files.
//! let snapshot = match ingest.fresh_for(&table)? {
//!     Some(fresh) => stoa_ingest::TableSnapshot { table, fresh },
//!     // A flush has passed this version.
//!     None => ingest.snapshot(&ident).await?,
//! };
//! for batch in snapshot.fresh.batches() {
//!     println!("{} fresh rows", batch?.num_rows());
//! }
//!
//! // DELETE and whatever else rewrites files: first the rows into files, then no flush until done.
//! let hold = ingest.hold_flush(&snapshot.table).await?;
//! let rewrite = hold.table().rewrite(stoa_table::RewriteOptions::default())?;
//! // …
//! rewrite.commit().await?;
//! drop(hold);
//!
//! ingest.close(true).await
//! # }
//! ```
//!
//! Clock, timers, randomness and tasks are those of the warehouse ([`stoa_table::Warehouse::env`]), so that
//! a simulation can drive all of it (`tests/simulation`).
//!
//! Not here: SQL and protocols, the log's files (`stoa-commitlog`), data files, commits and their
//! conflicts (`stoa-table`).

mod append;
mod budget;
mod conform;
mod copies;
mod error;
mod existence;
mod flush;
mod flusher;
mod fresh;
mod hold;
mod ingest;
mod inner;
mod keys;
mod locate;
mod log;
mod maintenance;
mod missed;
mod options;
mod others;
mod outbox;
mod project;
mod receive;
mod record;
mod recovery;
mod shipping;
mod sorted;
mod status;
mod tables;
mod view;

pub use append::{Ack, TableRows};
pub use conform::conform;
pub use copies::{CopyStatus, CopyWatch, LogPart, ShippedTable};
pub use fresh::{FreshBatchId, FreshRows, memory_bytes};
pub use hold::FlushHold;
pub use ingest::Ingest;
pub use maintenance::{
    Maintenance, MaintenanceKind, MaintenanceOptions, MaintenanceStatus, MaintenanceWork, Share,
};
pub use options::{
    Durability, FLUSH_AGE_MS, FLUSH_BYTES, FLUSH_ROWS, FlushLimits, IngestOptions, LOG_STORE_WAIT,
    LOG_SYNC, PROPERTIES, check_properties, check_property,
};
pub use others::{OtherHold, Others, Turn, WriteClock};
pub use record::{Record, RecordHead, encode, encode_group};
pub use recovery::RecoveryReport;
pub use shipping::Shipping;
pub use sorted::{FlushOrder, SortedRows};
pub use status::{IngestStatus, TableIngestStatus};
pub use view::TableSnapshot;
