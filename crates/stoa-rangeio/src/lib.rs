//! Turns required byte ranges into few reads, and runs them.
//!
//! In: the byte ranges a decoder asks for, in any order, and a store. Out: the bytes, each asked
//! range whole inside one returned chunk.
//!
//! - [`plan`] decides, without I/O, which reads cover the ranges ([`PlanOptions`]).
//! - [`RangeReader`] runs a plan on an `object_store` and counts what it did ([`ReadMetrics`]).
//!
//! **Invariants:** every byte asked for is covered by exactly one read of the plan; no read is
//! larger than `max_read_bytes`. This crate knows nothing of ORC or any other format.

mod metrics;
mod options;
mod plan;
mod reader;

pub use metrics::{ReadCounts, ReadMetrics};
pub use options::{PlanOptions, ReaderOptions};
pub use plan::{PlannedRead, plan};
pub use reader::RangeReader;
