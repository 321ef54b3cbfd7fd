//! The only door to clock, randomness and spawning, so that a simulation can drive them; and to new files
//! of the server's own.
//!
//! In: nothing. Out: time, random values, tasks. Every other crate is barred from the originals
//! by `clippy.toml`.
//!
//! Not here: settings (the binary reads them), runtimes' sizes (the binary chooses them).

pub mod clock;
pub mod descriptors;
pub mod executors;
pub mod failpoint;
pub mod private_files;
pub mod random;
pub mod task;
