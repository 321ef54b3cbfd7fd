//! The command line: one module per subcommand.
//!
//! In: arguments. Out: work done, or a [`Failure`]. Help texts live here; settings, which are flags
//! too, are declared in `config`.

mod bench;
mod config;
mod hql;
mod load;
mod log;
mod orc;
mod server;
mod sql;
mod table;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::{Machine, Resolved, SettingFlags, Sources, resolve};
use crate::failure::Failure;

/// Stoa, a report server: loads data into Apache Iceberg tables of ORC files and answers SQL over
/// the PostgreSQL protocol and HTTP.
#[derive(Debug, Parser)]
#[command(name = "stoa", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Cli {
    /// Read settings from this TOML file [default: stoa.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stoa load visits.csv --into visits --create    make a table from a file
  stoa server                                    serve it: http://127.0.0.1:15002
  psql -h 127.0.0.1 -p 5433                      ask from any PostgreSQL client
  stoa sql -c 'SELECT count(*) FROM visits'      ask from here

Data is in ./stoa-data unless --warehouse names another place.
`stoa COMMAND --help` says more about a command.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve SQL over the PostgreSQL protocol and HTTP
    Server(server::ServerArgs),
    /// Run SQL, on a server or straight on a warehouse
    Sql(sql::SqlArgs),
    /// Run HQL, Hypertable's language, on tables of cells
    Hql(hql::HqlArgs),
    /// Load files into a table
    Load(load::LoadArgs),
    /// Look at tables and look after them
    #[command(subcommand)]
    Table(table::TableCommand),
    /// Look into ORC files
    #[command(subcommand)]
    Orc(orc::OrcCommand),
    /// Look into commit logs, and repair them
    #[command(subcommand)]
    Log(log::LogCommand),
    /// Show the settings in effect
    Config(config::ConfigArgs),
    /// Measure
    #[command(subcommand)]
    Bench(bench::BenchCommand),
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
            Command::Sql(args) => sql::run(args, file),
            Command::Hql(args) => hql::run(args, file),
            Command::Load(args) => load::run(args, file),
            Command::Table(command) => table::run(command, file),
            Command::Orc(command) => orc::run(command),
            Command::Log(command) => log::run(command, file),
            Command::Config(args) => config::run(args, file),
            Command::Bench(command) => bench::run(command, file),
        }
    }
}

/// Settles the settings for a command; what is wrong with them is a matter of usage.
fn settle<const SCOPE: u8>(
    flags: &SettingFlags<SCOPE>,
    file: Option<PathBuf>,
) -> Result<Resolved, Failure> {
    let sources = Sources::of_process(flags.given(), file.as_deref());
    resolve(&sources, &Machine::here()).map_err(Failure::Usage)
}
