//! SQL over Stoa's tables: sessions, dialect, scan operator, bulk writes.
//!
//! In: statements (text, parameters) and batches to load. Out: batch streams, completions, and
//! errors with SQLSTATE, message, detail and hint.
//!
//! ```text
//!  protocol crates ──► Session ──► Statement ──► Prepared ──► Outcome (rows | done | copy in)
//!                         │           dialect      plan          │
//!                      Engine (warehouse, memory pool, registry of queries, counters)
//!                         │                                      ▼
//!                  StoaTable (TableProvider) ──► OrcScanExec / TableSink ──► stoa-table, stoa-orc
//! ```
//!
//! **Invariants:** no protocol is known here. A scan never returns rows of two snapshots. Every
//! query that was started is ended exactly once in the [`QueryRegistry`], also when its stream is
//! dropped. Filters given to a scan only leave out what cannot match; the plan filters again.
//!
//! Not here: wire formats (`stoa-pgwire`, `stoa-http`), file parsing (`stoa-load`), commits
//! (`stoa-table`), settings from files or environment (the binary).

mod access;
mod admission;
mod append;
mod catalog;
mod cells;
mod changes;
mod cooperate;
mod copy;
mod ddl;
mod dialect;
mod dml;
mod engine;
mod error;
mod execution;
mod file_access;
mod file_cache;
mod filter;
mod fresh;
mod hot_list;
mod hql;
mod information_schema;
mod insert_values;
mod latency;
mod live_plan;
mod load;
mod logs;
mod maintain;
mod memory;
mod nested;
mod no_stores;
mod outcome;
mod parameters;
mod pg_catalog;
mod plain;
mod planners;
mod pools;
mod progress;
mod properties;
mod registry;
mod relational;
mod report;
mod results;
mod scan;
mod secrets;
mod seen;
mod semantics;
mod session;
mod settings;
mod shapes;
mod show;
mod sink;
mod spent;
mod statement;
mod stop;
mod system;
mod table;
mod table_status;
mod template;
mod transaction;
mod watch;

pub use access::login_error;
pub use admission::AdmissionStatus;
pub use append::{AppendTarget, BatchesIn, IfExists, IfMissing};
pub use cells::sql_columns;
pub use copy::CopyIn;
pub use dialect::{
    CopyStatement, CreateTableStatement, Isolation, TransactionControl, TransactionModes,
    number_parameters, split_statements,
};
pub use engine::{DATABASE, DEFAULT_NAMESPACE, Engine, EngineOptions};
pub use error::from_datafusion;
pub use file_access::FileAccess;
pub use latency::LatencyHistogram;
pub use live_plan::{PlanMetric, PlanNode, PlanUnit};
pub use load::{LoadRequest, LoadTarget};
pub use outcome::{Completion, Outcome, RowStream};
pub use plain::{plain_batch, plain_schema};
pub use pools::{DEFAULT_POOL, PoolOptions, PoolStatus, WorkloadRule};
pub use registry::{QueryInfo, QueryRegistry, QueryState, Totals};
pub use secrets::without_secrets;
pub use semantics::{NUMERIC, numeric_text};
pub use session::{Prepared, Session, SessionOptions};
pub use shapes::QueryShape;
pub use show::sql_type;
pub use spent::Spent;
pub use statement::Statement;
pub use table_status::TableStatus;
pub use watch::StallStatus;

/// What the engine of small writes is doing.
pub use stoa_ingest::{IngestStatus, MaintenanceStatus, TableIngestStatus};

/// How full the memory of reports is.
pub use stoa_report::{CacheStatus, DiskOptions};

/// A value bound to a parameter; DataFusion's own type.
pub use datafusion::common::ScalarValue;
