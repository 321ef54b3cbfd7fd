//! `stoa figures`: what a server shows of itself.

use std::io::Write;

use clap::Args;
use stoa_figures::{markdown, openapi, types};

use crate::failure::Failure;
use crate::shell::output_error;

/// Print the reference page of all figures: what `/metrics`, `/v1/status`, the console and the tables
/// of the schema `system` show.
#[derive(Debug, Args)]
pub struct FiguresArgs {
    /// Print the reference page (docs/figures.md); what is printed without any option
    #[arg(long)]
    markdown: bool,

    /// Print the schemas of `docs/openapi.yaml` instead
    #[arg(long, conflicts_with_all = ["markdown", "types"])]
    openapi: bool,

    /// Print the types of `console/js/api.js` instead
    #[arg(long, conflicts_with = "markdown")]
    types: bool,
}

pub fn run(args: &FiguresArgs) -> Result<(), Failure> {
    let text = match (args.openapi, args.types) {
        (true, _) => openapi(),
        (_, true) => types(),
        _ => markdown(),
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(output_error)?;
    Ok(())
}
