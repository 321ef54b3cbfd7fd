//! The only door to clock, randomness and spawning, so that a simulation can drive them; and to new files
//! of the server's own.
//!
//! In: nothing. Out: time, timers, random values, tasks. Every other crate is barred from the originals
//! by `clippy.toml`.
//!
//! There are two ways in. [`Env`] is a value that code is given, real or simulated: commit log, ingest and
//! tables live in one. The modules' functions are the real world's, for everything else.
//!
//! Not here: settings (the binary reads them), runtimes' sizes (the binary chooses them).

pub mod clock;
pub mod descriptors;
mod env;
pub mod executors;
pub mod failpoint;
pub mod private_files;
pub mod processes;
pub mod random;
mod simulation;
pub mod task;
pub mod timer;

pub use env::Env;
pub use simulation::Simulation;
