//! Arrow Flight SQL: rows in and out as Arrow batches, over gRPC.
//!
//! In: calls of ADBC, of the Flight SQL JDBC driver and of plain Flight clients, on a listener that
//! the caller bound, and an [`Engine`](stoa_query::Engine). Out: what the protocol's specification
//! says.
//!
//! ```text
//!  call ─► clients: whose session? ─┬─► query    GetFlightInfo plans, DoGet runs and streams
//!                                   ├─► prepared statements with parameters
//!                                   ├─► ingest   DoPut: batches ─► the commit log, or files
//!                                   ├─► metadata what there is, what the server can do
//!                                   └─► actions  cancel, settings of the session
//! ```
//!
//! **Invariants:**
//! - A ticket or handle is a random number that names something a daemon keeps, and the number of that daemon; it says
//!   nothing else, and works for the user only to whom it was given, on each daemon of the cluster (`elsewhere`).
//! - Rows of an ingest are durable and visible when its answer comes, all of them or none.
//! - A result needs the memory of one batch; a slow client slows its query down, and one that goes
//!   away cancels it.
//! - Whatever bytes a client sends, the answer is a status.
//! - If clients must log in, no message of a call without a valid role and password, or a token, is read
//!   (`let_in`); incoming messages of all calls together are bounded (`message_bytes`).
//!
//! Not here: SQL, passwords and what a role may do (`stoa-query`), certificates (`stoa-tls`), connection
//! limits before a login (`stoa-listen`), which addresses the server may listen on (the binary).

mod actions;
mod bound;
mod client;
mod clients;
mod columns;
mod connection;
mod elsewhere;
mod handles;
mod ingest;
mod let_in;
mod logins;
mod message_bytes;
mod metadata;
mod not_built;
mod options;
mod prepared;
mod query;
mod question;
mod rows_in;
mod server;
mod service;
mod session_options;
mod sql_info;
mod state;
mod status;
mod type_info;
mod whole_requests;

pub use options::FlightOptions;
pub use server::{serve, serve_with};
