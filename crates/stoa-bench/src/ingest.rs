//! Measures durable writes: rows per second and time to the acknowledgement, over every protocol.
//!
//! In: the `stoa` binary, protocols, numbers of writers. Out: [`IngestRun`]s beside what a bare sync of
//! the same disk takes ([`SyncTimes`]).
//!
//! **Invariant:** after each run the server is killed, and started again; rows and sums are compared
//! with what was acknowledged. A run cannot be fast and forgetful.
//!
//! Not here: what is lost when servers are killed while they write (`torture`).

mod paced;
mod run;
mod summary;
mod sync;

pub use paced::PacedWriters;
pub use run::{IngestOptions, IngestResult, IngestRun, run};
pub use sync::SyncTimes;
