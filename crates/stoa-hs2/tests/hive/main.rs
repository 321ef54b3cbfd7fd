//! The server over sockets: what no client library would send, and many clients at once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hostile;
mod idle;
mod support;
