//! The PostgreSQL protocol, version 3.0, over the engine's sessions.
//!
//! In: TCP connections. Out: rows, completions and errors as PostgreSQL's clients and drivers
//! expect them: simple and extended protocol, text and binary values, portals fetched in parts,
//! SQL cursors, COPY in both directions, cancel requests, ordered shutdown.
//!
//! **Invariants:**
//! - Whatever bytes a client sends, the answer is a message or the end of its connection.
//! - Memory per connection is bounded, and rows are encoded as they come: a slow client slows its
//!   query down.
//! - Outside a transaction block each statement commits by itself. This crate tracks the state of a
//!   block (`transaction`); what it has written, and what `COMMIT` and `ROLLBACK` do with it, is the
//!   session's (`stoa-query`).
//! - If clients must log in, no statement runs before the role has proved its password (`login`).
//!
//! Why the messages are read and written here instead of by the crate `pgwire`: its decoders
//! panic on truncated messages, its loop cannot suspend a portal's stream or notice a client that
//! leaves while a query runs, and rows encoded straight from Arrow arrays cost a fraction.
//!
//! With [`ServeOptions::tls`], all connections are encrypted except cancel requests, which older clients
//! send unencrypted.
//!
//! Not here: SQL, planning, `pg_catalog`, what a role may do (`stoa-query`); password secrets
//! (`stoa-access`), certificates (`stoa-tls`), connection limits before a login (`stoa-listen`), which
//! addresses the server may listen on (the binary).

mod cancel;
mod command;
mod connection;
mod copy;
mod encode;
mod execute;
mod extended;
mod format;
mod login;
#[doc(hidden)]
pub mod measure;
mod portal;
mod recent;
mod scroll;
mod server;
mod settings;
mod simple;
mod startup;
mod statement;
mod transaction;
mod types;
mod unsent;
mod wire;

pub use server::{ServeOptions, serve, serve_with, sockets_for};
