//! ORC measured against other libraries: one table, the same answers, CPU time of one thread.
//!
//! In: [`OrcOptions`] and contenders. Out: an [`OrcResult`]: per work and contender the median CPU
//! time over some rounds, and what Stoa takes relative to each other contender.
//!
//! ```text
//! ad-report table ─┬─► Parquet (parquet-rs)          kept in the work directory
//!                  ├─► stoa.orc   (stoa-orc)         written anew in each run
//!                  └─► pyarrow-….orc (ORC C++)       kept
//! for each work: every contender once, answers compared; then rounds of all contenders in turn
//! ```
//!
//! **Invariants:** no figure without an answer: what a contender reads is summed up, compared with
//! sums that the generator made before any file was, and only then measured; what it wrote is read
//! back the same way. Reads are of files in the page cache and end when the last batch is dropped;
//! CPU time is user and system time together.
//!
//! Not here: ORC itself (`stoa-orc`), command line (`stoa`), contenders that are not in the binary
//! (`benches/orc.rs`).

mod contender;
mod cpu;
mod in_process;
mod input;
mod outcome;
mod parquet;
mod pyarrow;
mod run;
mod stoa;
mod sums;
mod work;

pub use contender::{Answer, Contender, Format, Job, Outcome};
pub use in_process::{InProcess, Library, Sink};
pub use outcome::{Measurement, OrcResult, Quantity, Ratio};
pub use run::{OrcOptions, run};
pub use sums::{ColumnSums, Sums};
pub use work::Workload;
