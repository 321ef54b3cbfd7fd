//! Tables of cells on Iceberg tables of ORC files, with a commit log in front.
//!
//! In: what HQL asks of a [`CellStore`](stoa_hql::CellStore). Out: the same store on disk: cells that
//! are durable when a write returns, tables that every engine reads which reads Iceberg.
//!
//! ```text
//! mutate ─► record of the log ─► fresh rows ─► flush ─┐                    ┌─ files ─┐
//! load, logged: the same, in large records            ├─► sorted ORC files │         ├─► CellReader ─► cells
//! load, else: sorted runs ────────────────────────────┘   one commit       └─ fresh ─┘
//!                                                              ▲ └─► compaction, with CellReader
//! ```
//!
//! # Wiring
//!
//! One [`CellTables`] per process, over the warehouse and the log that SQL uses, too:
//!
//! ```no_run
//! # async fn example(warehouse: stoa_table::Warehouse, log: url::Url) -> stoa_error::Result<()> {
//! use std::sync::Arc;
//! use stoa_cells::{CellFlushOrder, CellMergeHooks, CellOptions, CellTables};
//! use stoa_ingest::{Ingest, IngestOptions, Maintenance, MaintenanceOptions};
//!
//! // Fresh cells are sorted as cells, which is faster than by columns.
//! let ingest = IngestOptions { order: Some(Arc::new(CellFlushOrder)), ..Default::default() };
//! let (ingest, _) = Ingest::open(warehouse.clone(), &log, ingest).await?;
//! let options = CellOptions::default();
//! // Background compaction leaves out cells that nobody can see any more.
//! let hooks = CellMergeHooks::new(Arc::clone(&options.timestamps));
//! let maintenance = MaintenanceOptions { hooks: Some(Arc::new(hooks)), ..Default::default() };
//! let maintenance = Maintenance::start(warehouse.clone(), maintenance);
//! let cells = CellTables::open(warehouse, Some(ingest), options).await?;
//! // HQL: stoa_hql::Session::new(Arc::new(cells), files, options)
//! # drop((cells, maintenance));
//! # Ok(())
//! # }
//! ```
//!
//! SQL asks [`schema_of`] whether a table holds cells and which families it has, shows the raw cells
//! as it shows any table, and gets merged cells with [`CellTables::scan_ident`]. Statements of SQL
//! that change rows should refuse tables of cells: they know nothing of revisions and markers.
//!
//! Not here: the language and which cells are seen (`stoa-hql`), files, commits and which files are
//! compacted (`stoa-table`), the log (`stoa-ingest`).

mod catalog;
mod compact;
mod footers;
mod layout;
mod load;
mod names;
mod newest;
mod options;
mod order;
mod revisions;
mod scan;
mod state;
mod store;
mod table;
mod write;

pub use compact::CellMergeHooks;
pub use layout::{KIND_CELLS, KIND_PROPERTY, REVISION, ROW_BYTES, SCHEMA_PROPERTY, schema_of};
pub use names::{ROOT_NAMESPACE, ident_of, name_of, namespace_of, path_of};
pub use options::CellOptions;
pub use order::CellFlushOrder;
pub use store::CellTables;
