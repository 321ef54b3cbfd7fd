//! Flight SQL against an engine on a temporary warehouse, over real connections.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod access;
mod hostile;
mod ingest;
mod lifecycle;
mod metadata;
mod prepared;
mod queries;
mod sessions;
mod support;
mod tls;
