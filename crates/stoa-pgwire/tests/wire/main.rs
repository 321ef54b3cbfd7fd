//! Tests of the PostgreSQL protocol: messages, drivers, TLS, rights.
//!
//! One executable: each that is linked costs seconds and hundreds of megabytes.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod access;
mod common;
mod connections;
mod driver;
mod messages;
mod sqlx;
mod tls;
