//! HTTP: SQL and HQL in, results out; running queries, tables, the server's state; and the console.
//!
//! In: requests on a listener that the caller bound, and an [`Engine`](stoa_query::Engine). Out:
//! responses as `docs/openapi.yaml` describes them, and the console's files, which are part of the
//! binary.
//!
//! ```text
//!  request ─► guard ─► routes ─┬─► sql ──► engine ──► format ──► body (streamed, bounded)
//!                              │          └─► kept ──► results (pages, downloads)
//!                              ├─► hql, rows (written), tables, files, queries, shapes
//!                              ├─► live: what changed in these, as a stream
//!                              ├─► status, probes, prometheus, description (OpenAPI)
//!                              ├─► cluster ──► other daemons' figures, merged
//!                              └─► assets (the console)
//!  once a second ─► history (of the engine), alerts ──► webhook
//! ```
//!
//! **Invariants:** a response needs the memory of one batch, however long it is. A result that
//! failed after its first bytes can always be told from a complete one. A client that goes away
//! cancels its query. Requests from other web sites are refused. No number loses digits. If clients must
//! log in, every route except `/health`, `/ready` and `/metrics` needs a role and its password (`asker`).
//!
//! Not here: SQL, passwords and what a role may do (`stoa-query`), certificates (`stoa-tls`), connection
//! limits (`stoa-listen`), ports and addresses (the binary).

mod alerts;
mod app;
mod arrivals;
mod asker;
mod assets;
mod body;
mod cluster;
mod compress;
mod description;
mod file_columns;
mod files;
mod format;
mod guard;
mod history;
mod hive_ui;
mod hql;
mod kept;
mod layout;
mod live;
mod me;
mod options;
mod parameters;
mod probes;
mod problem;
mod process;
mod prometheus;
mod queries;
mod query_log;
mod request;
mod results;
mod rows;
mod scalar;
mod server;
mod sessions;
mod shapes;
mod snapshot;
mod sql;
mod status;
mod streams;
mod tables;

pub use alerts::AlertOptions;
pub use options::{HttpOptions, KeptOptions, Readiness};
pub use server::{serve, serve_with};
