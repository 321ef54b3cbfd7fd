//! HTTP: SQL in, results out; what runs, what there is, how it is; and the console.
//!
//! In: requests on a listener that the caller bound, and an [`Engine`](stoa_query::Engine). Out:
//! responses as `docs/openapi.yaml` describes them, and the console's files, which are part of the
//! binary.
//!
//! ```text
//!  request ─► guard ─► routes ─┬─► sql ──► engine ──► format ──► body (streamed, bounded)
//!                              ├─► tables, files, queries, shapes, status, probes, prometheus
//!                              └─► assets (the console)
//! ```
//!
//! **Invariants:** a response needs the memory of one batch, however long it is. A result that
//! failed after its first bytes can always be told from a complete one. A client that goes away
//! cancels its query. Requests from other web sites are refused. No number loses digits.
//!
//! Not here: SQL and users (`stoa-query`), certificates (`stoa-tls`), ports and addresses (the
//! binary).

mod app;
mod arrivals;
mod asker;
mod assets;
mod body;
mod files;
mod format;
mod guard;
mod hql;
mod layout;
mod parameters;
mod probes;
mod problem;
mod process;
mod prometheus;
mod queries;
mod request;
mod rows;
mod sampler;
mod scalar;
mod server;
mod shapes;
mod spent;
mod sql;
mod status;
mod tables;

pub use server::{HttpOptions, Readiness, serve, serve_with};
