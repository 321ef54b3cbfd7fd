//! The schema `system`: what the server does, as tables.
//!
//! In: a [`Server`], which gives its figures to whoever asks. Out: the schema. A table is a group of
//! figures that `stoa-figures` declares, with who may see it; its rows are made when the table is read.
//! Console and `/metrics` show the same numbers.
//!
//! ```text
//!  plan ─► SystemSchema ─► table ─► may its reader see it?    stoa-figures
//!                                     └► Server ─► Figures    rows, of what the reader may see
//! ```
//!
//! **Invariants:** a table whose declaration says nothing of who may see it is for superusers; its rows
//! are not made for anybody else. Tables are those that are declared.
//!
//! Not here: what is counted where; who may see a row about a table (who implements [`Figures`]).

mod rows;
mod schema;
mod server;
mod tables;
#[cfg(test)]
mod tests;

pub use schema::SystemSchema;
pub use server::{Figures, Server};
pub use tables::SYSTEM;
