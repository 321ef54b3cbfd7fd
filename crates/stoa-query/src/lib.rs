//! SQL over Stoa's tables: sessions, plans, scans, writes, and what is used again.
//!
//! In: statements (text, parameters) and batches to load. Out: batch streams, completions, and
//! errors with SQLSTATE, message, detail and hint.
//!
//! ```text
//!  protocol crates ──► Session ──► Statement ──► Prepared ──► Outcome (rows | done | copy in)
//!                         │        recognised      one of       │
//!                         │        or parsed      five ways     ▼
//!                      handles of the Engine: Data (tables), Gate (rights), Runner (threads, slots,
//!                         │                   memory, registry of queries), Reuse (forms, answers)
//!                  StoaTable (TableProvider) ──► OrcScanExec / TableSink ──► stoa-table, stoa-orc
//! ```
//!
//! The modules are rooms, and each uses only those before it: `run`, `access`, `tables`, `scripts`, `reuse`,
//! `settings`, `engine`, `catalogs`, `session`, `statements`, `dispatch`, `open` (ARCHITECTURE.md says
//! what is in them; `scripts/layers.py` checks it).
//!
//! **Invariants:** no protocol is known here. A scan never returns rows of two snapshots. Every
//! query that was started is ended exactly once in the [`QueryRegistry`], also when its stream is
//! dropped. Filters given to a scan only leave out what cannot match; the plan filters again.
//!
//! Public functions that wait give boxed futures: an `async fn` would be compiled again in each crate that awaits it.
//!
//! Not here: the language (`stoa-sql`), the meaning of expressions (`stoa-semantics`), `pg_catalog`,
//! `information_schema` and `system` (`stoa-pg-catalog`, `stoa-system`), wire formats (`stoa-pgwire`,
//! `stoa-http`), file parsing (`stoa-load`), commits (`stoa-table`), settings from files or environment
//! (the binary).

mod access;
mod catalogs;
mod dispatch;
mod engine;
mod open;
mod plain;
mod reuse;
mod run;
mod scripts;
mod session;
mod settings;
mod statements;
mod tables;

pub use access::{FileAccess, login_error};
pub use dispatch::hiveql::HiveOptions;
pub use dispatch::prepare::Prepared;
pub use engine::history::RECENT_S;
pub use engine::table_status::TableStatus;
pub use engine::watch::StallStatus;
pub use engine::{DATABASE, DEFAULT_NAMESPACE, Engine, EngineOptions, Joining};
pub use plain::{plain_batch, plain_schema};
pub use run::admission::AdmissionStatus;
pub use run::backends::SessionInfo;
pub use run::kept::Kept;
pub use run::latency::{LatencyHistogram, interpolated};
pub use run::live_plan::{PlanMetric, PlanNode, PlanUnit};
pub use run::paths::QueryPath;
pub use run::pool::{PoolOptions, PoolStatus};
pub use run::pools::{DEFAULT_POOL, WorkloadRule};
pub use run::refusals::RefusalStatus;
pub use run::registry::{QueryInfo, QueryRegistry, QueryState, Totals};
pub use run::shapes::QueryShape;
pub use run::spent::Spent;
pub use scripts::ScriptOptions;
pub use session::outcome::{Completion, RowStream};
pub use session::statement::Statement;
pub use session::{Session, SessionOptions};
pub use settings::{reported_settings, session_settings_markdown};
pub use statements::append::{AppendTarget, BatchesIn, IfExists, IfMissing};
pub use statements::copy::CopyIn;
pub use statements::file_columns::{FileColumns, file_columns};
pub use statements::load::{LoadRequest, LoadTarget};
pub use statements::outcome::Outcome;
pub use statements::show::sql_type;
pub use stoa_access::Standing;
pub use stoa_semantics::errors::from_datafusion;
pub use stoa_semantics::{NUMERIC, numeric_text, time_text};
pub use stoa_sql::secrets::without_secrets;
pub use stoa_sql::{
    CopyStatement, CreateTableStatement, Isolation, TransactionControl, TransactionModes,
    number_parameters, split_statements,
};
pub use stoa_table::DeclaredType;
pub use tables::cells::sql_columns;

pub use stoa_ingest::{IngestStatus, MaintenanceStatus, TableIngestStatus};
/// What the engine of small writes is doing.
pub use stoa_member::{Member, MembersStatus};

/// How full the memory of reports is.
pub use stoa_report::{CacheStatus, DiskOptions};

/// A value bound to a parameter; DataFusion's own type.
pub use datafusion::common::ScalarValue;
