//! `stoa sql`: the shell.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use stoa_error::Result;

use super::settle;
use crate::client::{ClientTls, local_url};
use crate::config::{Resolved, SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{LogUse, block_on, open_engine, start_log};
use crate::shell::{
    Backend, Editor, Format, LocalBackend, Next, RemoteBackend, Shell, ShellOptions, TextSource,
};

/// Run SQL on the server on this machine, on another server (--url), or directly on a warehouse
/// without a server (--warehouse). Reads statements from -c, from -f, from a pipe, or interactively.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SqlArgs {
    /// Run this statement and exit; can be repeated
    #[arg(short = 'c', long = "command", value_name = "STATEMENT")]
    commands: Vec<String>,

    /// Run the statements in this file and exit (- is stdin); can be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE", conflicts_with = "commands")]
    files: Vec<String>,

    /// The server to use, http://HOST:PORT or https://HOST:PORT [default: this machine, --http-port]
    #[arg(long, conflicts_with = "warehouse")]
    url: Option<String>,

    #[command(flatten)]
    tls: ClientTls,

    /// Format of the rows
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    /// Omit column names and row counts
    #[arg(long)]
    no_header: bool,

    /// Show one line per value
    #[arg(short = 'x', long)]
    expanded: bool,

    /// Show how long each statement takes
    #[arg(long)]
    timing: bool,

    /// Stop at the first error instead of continuing with the next statement
    #[arg(long)]
    stop_on_error: bool,

    /// Show only rows and errors
    #[arg(short = 'q', long)]
    quiet: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::SHELL }>,
}

const EXAMPLES: &str = "\
Examples:
  stoa sql                                                 a shell on the local server
  stoa sql --warehouse ./stoa-data                         a shell without a server
  stoa sql -c 'SELECT count(*) FROM ad_report'             one statement
  stoa sql --format csv -c 'SELECT * FROM t' > t.csv       rows for another program
  stoa sql -f report.sql --stop-on-error                   a script

The exit code is 1 if any statement failed. In the shell, \\? lists its commands.";

pub fn run(args: SqlArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.settings, file)?;
    start_log(&resolved, true);
    block_on(&resolved.config, run_shell(&args, &resolved))
}

async fn run_shell(args: &SqlArgs, resolved: &Resolved) -> Result<(), Failure> {
    let options = ShellOptions {
        format: args.format,
        header: !args.no_header,
        expanded: args.expanded,
        timing: args.timing,
        stop_on_error: args.stop_on_error,
        quiet: args.quiet,
    };
    let mut shell = Shell::new(open_backend(args, resolved).await?, options);
    let ended = run_sources(args, &mut shell).await;
    let closed = shell.close().await;
    ended.and(closed.map_err(Failure::from))
}

async fn run_sources(args: &SqlArgs, shell: &mut Shell) -> Result<(), Failure> {
    if !args.commands.is_empty() {
        for command in &args.commands {
            let mut source = TextSource::new("-c", std::io::Cursor::new(command.clone()));
            if shell.run(&mut source).await? == Next::Stop {
                break;
            }
        }
    } else if !args.files.is_empty() {
        for path in &args.files {
            if shell.run(&mut text_source(path)?).await? == Next::Stop {
                break;
            }
        }
    } else if std::io::stdin().is_terminal() {
        interact(shell, args.quiet).await?;
        return Ok(());
    } else {
        shell.run(&mut text_source("-")?).await?;
    }
    if shell.has_failed() { Err(Failure::Reported) } else { Ok(()) }
}

async fn interact(shell: &mut Shell, quiet: bool) -> Result<()> {
    if !quiet {
        println!("stoa {} on {}. \\? for help, \\q to quit.", crate::VERSION, shell.place());
    }
    let mut editor = Editor::new(shell.names())?;
    shell.run(&mut editor).await.map(drop)
}

fn text_source(path: &str) -> Result<TextSource> {
    match path {
        "-" => Ok(TextSource::new("stdin", std::io::stdin())),
        path => TextSource::open(path),
    }
}

async fn open_backend(args: &SqlArgs, resolved: &Resolved) -> Result<Backend> {
    if let Some(url) = &args.url {
        return RemoteBackend::connect(url, args.tls.client()?).await.map(Backend::Remote);
    }
    if resolved.is_flag("warehouse") {
        let engine = open_engine(&resolved.config, LogUse::Open).await?;
        return Ok(Backend::Local(LocalBackend::new(engine)));
    }
    let url = local_url(&resolved.config)?;
    RemoteBackend::connect(&url, args.tls.client()?).await.map(Backend::Remote)
}
