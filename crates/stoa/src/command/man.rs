//! `stoa man`: manual pages, from the declarations of the command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use stoa_error::Error;

use super::Cli;
use crate::failure::Failure;

/// Write manual pages: stoa.1, and one page for each command. Packages install them already.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// The directory to write to; it is created if it does not exist
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

const EXAMPLES: &str = "\
Example:
  stoa man ~/.local/share/man/man1 && man stoa-load";

pub fn run(args: &ManArgs) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.directory));
    written.map_err(|error| {
        let directory = args.directory.display();
        Error::unavailable(format!("cannot write manual pages to {directory}")).with_source(error)
    })?;
    Ok(())
}
