//! Running: who may compute and when, on which threads, with how much memory, and what is known of it.
//!
//! In: physical plans, and statements that begin and end. Out: batches, and the registry of queries. Knows
//! neither tables nor statements. [`runner::Runner`] is what all sessions share of it.

pub(crate) mod active_plan;
pub(crate) mod admission;
pub(crate) mod advisory;
pub(crate) mod analyzed;
pub(crate) mod backends;
pub(crate) mod cooperate;
pub(crate) mod execution;
pub(crate) mod explained;
pub(crate) mod journal;
pub(crate) mod kept;
pub(crate) mod latency;
pub(crate) mod live_plan;
pub(crate) mod memory;
pub(crate) mod paths;
pub(crate) mod planners;
pub(crate) mod pool;
pub(crate) mod pools;
pub(crate) mod progress;
pub(crate) mod query_pool;
pub(crate) mod refusals;
pub(crate) mod registry;
pub(crate) mod runner;
mod scalars;
pub(crate) mod shapes;
pub(crate) mod spent;
pub(crate) mod spread;
pub(crate) mod stop;
