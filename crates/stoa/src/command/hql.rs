//! `stoa hql`: Hypertable's shell.

use std::io::{BufReader, BufWriter, Cursor, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use stoa_error::{Error, Result};
use stoa_hql::lang::ast::Statement;
use stoa_hql::{
    BufferOutput, ConsoleOutput, LineSource, LocalFiles, Output, ReaderLines, SessionOptions,
    Shell, ShellOptions, StdinLines, TimestampFormat, Zone,
};
use stoa_query::Engine;

use super::settle;
use crate::client::{ClientTls, local_url};
use crate::config::{Resolved, SettingFlags, scope};
use crate::failure::Failure;
use crate::hql::{Editor, RemoteStatements};
use crate::runtime::{LogUse, block_on, open_engine, start_log};

/// How long statements under way may take at the end; there are none.
const GRACE: Duration = Duration::from_secs(1);

/// Run HQL, Hypertable's language, on tables of cells: on the server on this machine, on another
/// server (--url), or directly on a warehouse without a server (--warehouse).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HqlArgs {
    /// Run these statements and exit, with code 2 at the first error; can be repeated
    #[arg(short = 'e', long = "exec", value_name = "STATEMENTS")]
    exec: Vec<String>,

    /// Run the statements in this file and exit, with code 2 at the first error (- is stdin)
    #[arg(long, value_name = "FILE", conflicts_with = "exec")]
    command_file: Option<PathBuf>,

    /// Show no prompts; exit with code 2 at the first error
    #[arg(long)]
    batch: bool,

    /// Show no prompts
    #[arg(long)]
    no_prompt: bool,

    /// Omit statistics and progress
    #[arg(long)]
    silent: bool,

    /// Echo each line, omit statistics, continue after errors
    #[arg(long)]
    test_mode: bool,

    /// How SELECT prints timestamps: default, nanoseconds or usecs
    #[arg(long, value_name = "FORMAT", default_value = "default", value_parser = timestamp_format)]
    timestamp_format: TimestampFormat,

    /// Read dates as UTC rather than in the local time zone
    #[arg(long)]
    utc: bool,

    /// The namespace to start in
    #[arg(long, value_name = "PATH", default_value = "/")]
    namespace: String,

    /// The server to use, http://HOST:PORT or https://HOST:PORT [default: this machine, --http-port]
    #[arg(long, conflicts_with = "warehouse")]
    url: Option<String>,

    #[command(flatten)]
    tls: ClientTls,

    #[command(flatten)]
    settings: SettingFlags<{ scope::SHELL }>,
}

const EXAMPLES: &str = "\
Examples:
  stoa hql                                                 a shell on the local server
  stoa hql --warehouse ./stoa-data                         a shell without a server
  stoa hql -e 'SHOW TABLES;'
  stoa hql --batch --timestamp-format=usecs < dump.hql     a script, as for Hypertable's own shell

The exit code is 2 after an error with --batch, -e or --command-file, and if the last statement failed;
otherwise 0, or the code given to `exit`. docs/hql.md describes the language.";

/// The name of this machine's zone, in which a server reads this shell's dates: that of `TZ`, else of
/// the system.
fn local_zone() -> String {
    let name = match std::env::var_os("TZ") {
        Some(name) => name.to_str().map(|name| name.trim_start_matches(':').to_owned()),
        None => std::fs::read_link("/etc/localtime").ok().and_then(|file| {
            let file = file.to_str()?;
            file.split_once("zoneinfo/").map(|(_, name)| name.to_owned())
        }),
    };
    // Without either, a machine is at UTC.
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "UTC".to_owned());
    match Zone::from_name(&name) {
        Ok(_) => name,
        Err(_) => "local".to_owned(),
    }
}

fn timestamp_format(name: &str) -> Result<TimestampFormat, String> {
    TimestampFormat::from_name(name)
        .map_err(|error| format!("{error}; {}", error.hint().unwrap_or_default()))
}

pub fn run(args: HqlArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.settings, file)?;
    start_log(&resolved, true);
    match block_on(&resolved.config, run_shell(&args, &resolved))? {
        0 => Ok(()),
        code => Err(Failure::Exit(code)),
    }
}

async fn run_shell(args: &HqlArgs, resolved: &Resolved) -> Result<i32> {
    if resolved.is_flag("warehouse") {
        let engine = open_engine(&resolved.config, LogUse::Open).await?;
        let ran = run_local(args, &engine).await;
        engine.shutdown(GRACE).await;
        return ran;
    }
    let url = match &args.url {
        Some(url) => url.clone(),
        None => local_url(&resolved.config)?,
    };
    let files = Arc::new(LocalFiles::new("."));
    let (client, namespace) = (args.tls.client()?, args.namespace.clone());
    let statements =
        RemoteStatements::connect(&url, client, files, namespace, args.parameters()).await?;
    run_lines(args, Shell::new(statements, args.shell_options())).await
}

async fn run_local(args: &HqlArgs, engine: &Engine) -> Result<i32> {
    let options = SessionOptions {
        timestamp_format: args.timestamp_format,
        zone: if args.utc { Zone::Utc } else { Zone::Local },
        silent: args.silent || args.test_mode,
    };
    let mut session = engine.hql_session(Arc::new(LocalFiles::new(".")), options);
    if args.namespace != "/" {
        let statement = Statement::Use(args.namespace.clone());
        session.run(statement, &mut BufferOutput::default()).await?;
    }
    run_lines(args, Shell::new(session, args.shell_options())).await
}

async fn run_lines(args: &HqlArgs, mut shell: Shell) -> Result<i32> {
    let (results, notices) = (std::io::stdout(), std::io::stderr());
    let terminals = (results.is_terminal(), notices.is_terminal());
    let mut out = ConsoleOutput::new(BufWriter::new(results), notices)
        .with_terminals(terminals.0, terminals.1);
    let mut lines = args.lines()?;
    let code = shell.run(lines.as_mut(), &mut out).await?;
    out.flush()?;
    Ok(code)
}

impl HqlArgs {
    fn shell_options(&self) -> ShellOptions {
        ShellOptions {
            batch: self.batch || !self.exec.is_empty() || self.command_file.is_some(),
            no_prompt: self.no_prompt,
            test_mode: self.test_mode,
            allow_system: true,
        }
    }

    /// Those of `POST /v1/hql`.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let format = match self.timestamp_format {
            TimestampFormat::Default => "default",
            TimestampFormat::Nanoseconds => "nanoseconds",
        };
        vec![
            ("timestamp_format", format.to_owned()),
            ("zone", if self.utc { "utc".to_owned() } else { local_zone() }),
            ("silent", (self.silent || self.test_mode).to_string()),
        ]
    }

    fn lines(&self) -> Result<Box<dyn LineSource>> {
        if !self.exec.is_empty() {
            return Ok(Box::new(ReaderLines::new(Cursor::new(self.exec.join("\n")))));
        }
        if let Some(path) = self.command_file.as_ref().filter(|path| path.as_os_str() != "-") {
            let file = std::fs::File::open(path).map_err(|e| {
                Error::not_found(format!("cannot read {}", path.display())).with_source(e)
            })?;
            return Ok(Box::new(ReaderLines::new(BufReader::new(file))));
        }
        let quiet = self.batch || self.no_prompt || self.test_mode;
        if !quiet && self.command_file.is_none() && std::io::stdin().is_terminal() {
            println!("stoa {}, HQL. \"help\" for help, \"quit\" to quit.", crate::VERSION);
            return Ok(Box::new(Editor::new()?));
        }
        Ok(Box::new(StdinLines))
    }
}
