//! The HTTP API against an engine on a temporary warehouse, over real connections.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod access;
mod arrow_in;
mod bucket;
mod busy;
mod connections;
mod console;
mod errors;
mod foreign;
mod formats;
mod grafana;
mod history;
mod hive_ui;
mod kept;
mod lifecycle;
mod live;
mod queries;
mod query_log;
mod sessions;
mod shapes;
mod stores;
mod support;
mod tables;
mod tls;
