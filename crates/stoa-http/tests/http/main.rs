//! The HTTP API against an engine on a temporary warehouse, over real connections.

mod console;
mod errors;
mod foreign;
mod formats;
mod lifecycle;
mod queries;
mod support;
mod tables;
