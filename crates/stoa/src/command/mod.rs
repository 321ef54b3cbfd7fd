//! The command line: one module per subcommand.
//!
//! In: arguments. Out: work done, or a [`Failure`]. Help texts live here; settings, which are flags
//! too, are declared in `config`.

mod backup;
mod bench;
mod catalog;
mod completions;
mod config;
mod daemons;
mod figures;
mod hql;
mod load;
mod log;
mod man;
mod orc;
mod ready;
mod server;
mod sql;
mod table;

use std::io::Write;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::{Machine, Resolved, SettingFlags, Sources, resolve};
use crate::failure::Failure;
use crate::shell::output_error;

/// Stoa, a report server: loads data into Apache Iceberg tables of ORC files and answers SQL over
/// the PostgreSQL protocol, HTTP and Arrow Flight SQL.
#[derive(Debug, Parser)]
#[command(name = "stoa", version = crate::VERSION, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Cli {
    /// Read settings from this TOML file [default: stoa.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stoa load visits.csv --into visits --create    create a table from a file
  stoa server                                    serve it: http://127.0.0.1:15002
  psql -h 127.0.0.1 -p 5433                      query it with any PostgreSQL client
  stoa sql -c 'SELECT count(*) FROM visits'      query it with Stoa's own shell

Data is stored in ./stoa-data; --warehouse changes this.
`stoa COMMAND --help` describes a command.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve SQL over the PostgreSQL protocol, HTTP and Arrow Flight SQL
    Server(server::ServerArgs),
    /// Check whether a server takes statements
    Ready(ready::ReadyArgs),
    /// Run SQL, on a server or directly on a warehouse
    Sql(sql::SqlArgs),
    /// Run HQL, Hypertable's language, on tables of cells
    Hql(hql::HqlArgs),
    /// Load files into a table
    Load(load::LoadArgs),
    /// Inspect and maintain tables
    #[command(subcommand)]
    Table(table::TableCommand),
    /// Back up a warehouse, while it is read and written
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty warehouse
    Restore(backup::RestoreArgs),
    /// Move a catalog from a file into PostgreSQL, or back
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    /// List, drain and remove the daemons of a cluster
    #[command(subcommand)]
    Daemons(daemons::DaemonsCommand),
    /// Inspect ORC files
    #[command(subcommand)]
    Orc(orc::OrcCommand),
    /// Inspect and repair commit logs
    #[command(subcommand)]
    Log(log::LogCommand),
    /// Show the settings in effect
    Config(config::ConfigArgs),
    /// Show which figures a server has of itself
    Figures(figures::FiguresArgs),
    /// Measure performance and durability
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Write manual pages
    Man(man::ManArgs),
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// Why it could not.
    pub fn run(self) -> Result<(), Failure> {
        let file = self.config;
        match self.command {
            Command::Server(args) => server::run(args, file),
            Command::Ready(args) => ready::run(args, file),
            Command::Sql(args) => sql::run(args, file),
            Command::Hql(args) => hql::run(args, file),
            Command::Load(args) => load::run(args, file),
            Command::Table(command) => table::run(command, file),
            Command::Backup(args) => backup::run_backup(args, file),
            Command::Restore(args) => backup::run_restore(args, file),
            Command::Catalog(command) => catalog::run(command, file),
            Command::Daemons(command) => daemons::run(command, file),
            Command::Orc(command) => orc::run(command),
            Command::Log(command) => log::run(command, file),
            Command::Config(args) => config::run(args, file),
            Command::Figures(args) => figures::run(&args),
            Command::Bench(command) => bench::run(command, file),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        }
    }
}

/// Prints a whole text.
fn print(text: &str) -> stoa_error::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_error)
}

/// Settles the settings for a command; what is wrong with them is a matter of usage.
fn settle<const SCOPE: u8>(
    flags: &SettingFlags<SCOPE>,
    file: Option<PathBuf>,
) -> Result<Resolved, Failure> {
    let sources = Sources::of_process(flags.given(), file.as_deref());
    resolve(&sources, &Machine::here()).map_err(Failure::Usage)
}
