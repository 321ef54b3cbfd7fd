//! The only door to clock, randomness and spawning, so that a simulation can drive them.
//!
//! In: nothing. Out: time, random values, tasks. Every other crate is barred from the originals
//! by `clippy.toml`.
//!
//! Not here: settings (the binary reads them), runtimes' sizes (the binary chooses them).

pub mod clock;
pub mod descriptors;
pub mod executors;
pub mod failpoint;
pub mod random;
pub mod task;
