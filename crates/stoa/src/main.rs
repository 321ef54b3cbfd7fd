//! `stoa`: a report server in one binary.
//!
//! In: command line, environment, configuration file. Out: a running server, a shell, loaded tables,
//! measurements. This crate parses what the user says, settles the settings, starts the parts and
//! stops them in order; it is the only place that reads files, flags and environment for settings.
//!
//! Not here: SQL (`stoa-query`), protocols (`stoa-pgwire`, `stoa-http`), files (`stoa-load`).

mod aws;
mod client;
mod command;
mod config;
mod failure;
mod hql;
mod runtime;
mod server;
mod shell;
mod units;

use std::process::ExitCode;

use clap::Parser;
use stoa_error::Error;

use crate::command::Cli;
use crate::failure::Failure;

/// The version, with the commit where the build knows it: `0.1.0 (76b770e8a1c2)`.
pub const VERSION: &str = env!("STOA_VERSION");

/// Plans and batches are many small and some large pieces of memory, made on one thread and freed on
/// another; the C library's allocator takes twice as long for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Not a setting: no server that is used by anybody has it.
const FAILPOINTS: &str = "STOA_FAILPOINTS";

/// The allocator's option of how many milliseconds it keeps memory that nobody uses
/// (`mi_option_purge_delay` of mimalloc 3, which its Rust crate does not name).
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Makes the allocator give memory back after a millisecond. What is read, flushed or sent in large pieces
/// would otherwise stay with the process for a second each: `stoa bench ingest --duration 40s` took 1.1 GiB at
/// its peak instead of the 0.7 GiB with which memory is given back at once. At once would be too soon: what
/// one report gives back the next one takes, and a report of 370 lines cost 159 µs of CPU instead of 76, for
/// pages that came and went (measured with mimalloc 2).
#[allow(unsafe_code)]
fn give_memory_back() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    // SAFETY: sets a number among the allocator's options, before any other thread runs.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 1) };
}

fn main() -> ExitCode {
    give_memory_back();
    failure::install_panic_hook();
    if std::env::args_os().nth(1).is_some_and(|word| word == stoa_script::GUARD_WORD) {
        return stoa_script::guard(std::env::args_os().skip(2));
    }
    let cli = Cli::parse();
    // Commands without a server plan statements themselves, on a stack that fits what is refused.
    let work = move || arm_failpoints().and_then(|()| cli.run());
    let thread = match stoa_env::task::spawn_deep_thread("stoa-main", work) {
        Ok(thread) => thread,
        Err(error) => {
            let error = Error::unavailable("cannot start a thread").with_source(error);
            return Failure::from(error).report();
        }
    };
    // The hook has shown a panic; nothing else of it may reach the user.
    match thread.join() {
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
