//! `stoa completions`: what a shell needs to complete this command line, from its own declarations.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, print};
use crate::failure::Failure;

/// Print a script with which a shell completes `stoa`. Packages install it already.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(stoa completions bash)                                      this shell only
  stoa completions bash > ~/.local/share/bash-completion/completions/stoa
  stoa completions zsh > ~/.zfunc/_stoa                                with fpath+=~/.zfunc before compinit
  stoa completions fish > ~/.config/fish/completions/stoa.fish";

pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stoa", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(())
}
