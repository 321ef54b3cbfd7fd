//! A simulated disk and a log that is run step by step: for tests, deterministic by seed.
//!
//! ```
//! use stoa_commitlog::sim::{SimDisk, open_stepped};
//! use stoa_commitlog::{Durability, LogOptions};
//!
//! let disk = SimDisk::new(42);
//! let (log, _, mut writer) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
//! let appended = log.append_blocking(&[b"kept"], Durability::Sync).unwrap();
//! writer.step();
//! let last = appended.wait().unwrap();
//! drop(writer);
//!
//! disk.power_cut();
//! let (_, recovery, _) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
//! assert_eq!(recovery.last, last);
//! ```
//!
//! Not here: anything that the log itself uses.

mod disk;
mod file;
mod random;

use std::sync::Arc;

use stoa_env::Env;
use stoa_error::Result;

pub use disk::{Fault, Operation, SimDisk};
pub use random::SimRandom;

use crate::storage::LogStorage;
use crate::writer::Writer;
use crate::{CommitLog, LogOptions, Recovery};

/// Opens a log without a thread: the caller writes its groups with [`Stepper::step`].
///
/// # Errors
/// As [`CommitLog::open`].
pub fn open_stepped(
    storage: Arc<dyn LogStorage>,
    options: LogOptions,
) -> Result<(CommitLog, Recovery, Stepper)> {
    open_stepped_in(&Env::real(), storage, options)
}

/// [`open_stepped`] in the world `env`.
///
/// # Errors
/// As [`CommitLog::open`].
pub fn open_stepped_in(
    env: &Env,
    storage: Arc<dyn LogStorage>,
    options: LogOptions,
) -> Result<(CommitLog, Recovery, Stepper)> {
    let (log, recovery, writer) = CommitLog::open_with_writer(env.clone(), storage, options)?;
    Ok((log, recovery, Stepper { writer }))
}

/// The writer of a log, run by hand. Dropped, it is as if the process had died: nothing more is
/// written, and whoever waits gets an error.
pub struct Stepper {
    writer: Writer,
}

impl Stepper {
    /// Writes the next group and syncs it if it asks for that; with nothing queued does what the
    /// log does when it is idle. False when there was nothing, or the log has stopped.
    pub fn step(&mut self) -> bool {
        self.writer.step()
    }

    /// Ends the log as [`CommitLog::close`] does, which the caller calls first.
    pub fn finish(mut self) {
        while self.writer.step() {}
        self.writer.finish();
    }
}
