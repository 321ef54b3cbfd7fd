//! SQL files with their answers (`.slt`, the format of sqllogictest), run over every protocol.
//!
//! In: the files of [`folder`], and a [`Protocol`] that opens connections. Out: for each file the list
//! of all records that went another way, each with `file:line`. [`slt_tests!`](crate::slt_tests) makes
//! one test of each file.
//!
//! A file says in one form what every protocol answers ([`Cell`]): that of Arrow's own display, with
//! `NULL` and `(empty)`. What a protocol cannot have is marked in the file:
//!
//! - `onlyif NAME` and `skipif NAME` before a record, with the name of a protocol (`embedded`,
//!   `postgres`, `extended`, `http`, `flight`);
//! - a comment `# Protocols: embedded postgres` for the whole file.
//!
//! In records behind `control substitution on`, `$DIR` is a folder for files that statements read.
//!
//! **Invariant:** each file is run on an empty warehouse, and depends on no other file. Not here: the
//! clients; they are where their libraries are (`stoa-query/tests/query/slt.rs`, `stoa/tests/it/slt`).

mod cell;
mod files;
mod protocol;
mod runner;

pub use cell::{Cell, cells};
pub use files::{files, folder};
pub use protocol::{Answer, Connection, Failure, Protocol};
pub use runner::run;
