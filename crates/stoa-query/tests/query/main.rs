//! Tests of the engine: statements, rights, transactions, reports, on tables in a folder of their own.
//!
//! One executable: each that is linked costs seconds and hundreds of megabytes.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod access;
mod admission;
mod bounds;
mod broken_table;
mod canaries;
mod chunk_scans;
mod composed;
mod conversions;
mod external;
mod files;
mod guarded;
mod hiveql;
mod insert_all;
mod lists;
mod load_data;
mod long_sums;
mod model;
mod names;
mod observed;
mod one_state;
mod properties;
mod read_only;
mod renewal;
mod reports;
mod resource_plans;
mod roll_back;
mod settings;
mod shared;
mod slt;
mod statements;
mod templates;
mod temporary;
mod texts;
mod time_travel;
mod transactions;
