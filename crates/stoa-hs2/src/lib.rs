//! HiveServer2's protocol, over the engine's sessions: what beeline, Hive's JDBC drivers, PyHive and impyla speak.
//!
//! In: TCP connections, on a listener that the caller bound, and an [`Engine`](stoa_query::Engine). Out: what these
//! clients expect of HiveServer2.
//!
//! ```text
//!  first byte ─► connection: SASL PLAIN, or plain Thrift ─┐
//!           └──► http: POST /cliservice ──────────────────┴► service ─► sessions ─► operations ─► engine
//!                                                               │           rows: pages of Arrow as columns
//!                                                               └► catalog: databases, tables, columns
//! ```
//!
//! Statements are Stoa's SQL. `dialect` makes of a text what the engine reads: identifiers in backquotes, backslashes
//! in string literals (drivers put values into the text that way), the database `default`, which is the schema
//! `public`. `command` recognises what Hive's clients send by themselves.
//!
//! **Invariants:**
//! - Whatever bytes a client sends, the answer is a message or the end of its connection.
//! - A handle has a secret part, and works only for the role that it was given to.
//! - If clients must log in, no session begins without a role and its password.
//! - An operation keeps a small result, whose memory counts as the session's, or about
//!   [`PREFETCH_BYTES`](operation::PREFETCH_BYTES) of a larger one; a slow client slows its query down, and one that goes
//!   away cancels it.
//!
//! Not here: Thrift and the structs of calls (`stoa-thrift`), SQL, passwords and what a role may do (`stoa-query`),
//! certificates (`stoa-tls`), connection limits before a login (`stoa-listen`).

mod catalog;
mod column_type;
mod command;
mod connection;
mod dialect;
mod failure;
mod http;
mod info;
mod json;
mod like;
mod operation;
mod options;
mod page;
mod peer;
mod row_set;
mod server;
mod service;
mod sessions;
mod small_table;
mod statement;
mod text;
mod type_info;

pub use options::HiveOptions;
pub use server::{serve, serve_with};
