//! `stoa`: a report server in one binary.
//!
//! In: command line, environment, configuration file. Out: a running server, a shell, loaded tables,
//! measurements. This crate parses what the user says, settles the settings, starts the parts and
//! stops them in order; it is the only place that reads files, flags and environment for settings.
//!
//! Not here: SQL (`stoa-query`), protocols (`stoa-pgwire`, `stoa-http`), files (`stoa-load`).

mod aws;
mod command;
mod config;
mod failure;
mod hql;
mod runtime;
mod server;
mod shell;
mod units;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use stoa_error::Error;

use crate::command::Cli;
use crate::failure::Failure;

/// Plans and batches are many small and some large pieces of memory, made on one thread and freed on
/// another; the C library's allocator takes twice as long for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Not a setting: no server that is used by anybody has it.
const FAILPOINTS: &str = "STOA_FAILPOINTS";

fn main() -> ExitCode {
    failure::install_panic_hook();
    let cli = Cli::parse();
    // The hook has shown a panic; nothing else of it may reach the user.
    match catch_unwind(AssertUnwindSafe(|| arm_failpoints().and_then(|()| cli.run()))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => Failure::Reported.report(),
    }
}

/// Where crash tests want this process to die; see `stoa_env::failpoint`.
#[allow(clippy::disallowed_methods)] // It is no setting.
fn arm_failpoints() -> Result<(), Failure> {
    let Ok(points) = std::env::var(FAILPOINTS) else { return Ok(()) };
    stoa_env::failpoint::arm_process(&points)
        .map_err(|why| Failure::Usage(Error::invalid(format!("{FAILPOINTS}: {why}"))))
}
