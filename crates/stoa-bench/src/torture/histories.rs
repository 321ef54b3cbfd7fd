//! Sessions that do what users do at the same time, and a check whether what they saw can be.
//!
//! ```text
//! round: tables ─► sessions on one or two servers, each statement noted ─► kill, or not ─► restart
//!                  ─► all into files ─► last reads ─► check of the round's histories
//! ```
//! | sessions | statements | what must hold |
//! |---|---|---|
//! | rows | INSERT (text, prepared), COPY, POST …/rows, Flight; DELETE | [`set`] |
//! | counters | UPDATE, MERGE of the table into itself, prepared UPDATE, INSERT OVERWRITE | [`counter`] |
//! | keepers | DELETE, MERGE, INSERT OVERWRITE from the table itself, FLUSH, COMPACT | they change no row |
//! | families | a parent, then its child; DELETE of children without a parent | there is none |
//! | bankers | transfers in one statement | each read has the same sum |
//! | names | prepared INSERTs, COPYs left open, Flight, HQL; DROP, CREATE, RENAME, TRUNCATE | [`names`] |
//!
//! Times are of one monotonic clock of the process that drives all servers.

pub(crate) mod counter;
mod link;
mod name_sessions;
pub(crate) mod names;
mod op;
mod round;
mod run;
mod sessions;
pub(crate) mod set;

pub use run::{HistoryOptions, HistoryResult, run_histories};
