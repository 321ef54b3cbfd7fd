//! Cells measured: the query log of 2008, loaded, dumped, asked for single rows, found again after a
//! restart.
//!
//! In: [`CellsOptions`]. Out: a [`CellsResult`]: per step medians over some runs of cells per second,
//! processor time per cell, bytes, syncs and peak memory.
//!
//! ```text
//! a.tsv … e.tsv ─┬─► LOAD … NO_LOG   sorted files, one commit per file ─► dump ─► COMPACT ─► dump
//!                └─► LOAD            through the log, synced ─► dump ─► rows ─► restart ─► count
//! ```
//! The log is synthetic, with the marginals of the one that Hypertable was measured on: 55 lines per
//! user with a long tail, 53.4 % of the lines with a click, 7-byte keys, 15-byte values, users in no
//! order.
//!
//! **Invariants:** the files are a pure function of lines and seed; each run counts what it finds and
//! compares it with lines + 2 × clicks, so it cannot be fast and wrong. Everything is in this process:
//! processor time and memory are those of parser, store and formatter together.
//!
//! Not here: tables of cells (`stoa-cells`), command line (`stoa`).

mod home;
mod outcome;
mod process;
mod query_log;
mod run;

#[cfg(test)]
mod tests;

pub use outcome::{CellsResult, CellsStep, RowReads};
pub use query_log::{QueryLog, QueryLogFile};
pub use run::{CellsOptions, run};
