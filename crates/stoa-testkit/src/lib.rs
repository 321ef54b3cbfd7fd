//! What tests share. Not for use outside of tests.
//!
//! [`shared_dir`] finds the input data that is not part of the repository; a test that needs it
//! and does not find it says `skipped` and returns. [`FaultyDisk`] is a disk that fails on command,
//! below a program that is run for it. [`PostgresServer`] is a server of PostgreSQL. [`Authority`] issues certificates. [`until`] waits for a fact,
//! and [`vault`] is a table to test rights with.

#[expect(clippy::expect_used, reason = "for tests")]
mod certificates;
#[expect(clippy::expect_used, reason = "for tests")]
mod faulty_disk;
#[cfg(unix)]
#[expect(clippy::expect_used, reason = "for tests")]
mod postgres_server;
#[cfg(feature = "slt")]
#[expect(clippy::expect_used, reason = "for tests")]
pub mod slt;
pub mod vault;
#[expect(clippy::expect_used, reason = "for tests")]
mod waiting;

pub use certificates::{Authority, Certificate, Key, Usage, hash_of};
pub use faulty_disk::{Fault, FaultyDisk, Plan, call};
#[cfg(unix)]
pub use postgres_server::PostgresServer;
pub use waiting::{ENDLESS, until};

use std::path::{Path, PathBuf};

/// The folder `name` of data shared beside the checkout (`orc-corpus`, `data`), if it is there.
///
/// Prints `skipped: …` where it is not, so that a run tells what it left out.
pub fn shared_dir(name: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found =
        here.ancestors().map(|dir| dir.join("../shared").join(name)).find(|dir| dir.is_dir());
    if found.is_none() {
        eprintln!("skipped: shared/{name} is not present");
    }
    found
}
