//! `stoa catalog`: look after the database that holds the names of the tables.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use stoa_error::Error;
use stoa_table::{CATALOG_NAME, CatalogPlace};

use super::settle;
use crate::config::{SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{block_on_until_ctrl_c, named_catalog, start_log, warehouse_options};
use crate::shell::output_error;

/// What to do with a catalog.
#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Copy a catalog into another database: from a file into PostgreSQL, or back
    Migrate(MigrateArgs),
}

/// Arguments of `migrate`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_MIGRATION)]
pub struct MigrateArgs {
    /// Where to: a file, or postgres://USER@HOST/DATABASE
    #[arg(value_name = "TO")]
    to: String,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

const ABOUT_MIGRATION: &str = "\
Copies the names of all tables and views, where they are, roles, grants, owners and sequences: all or
nothing. The catalog of --catalog, or of the warehouse, stays as it is; the other must be empty. Rows
and files are not touched.

Stop all servers that use the catalog before, and start them with --catalog TO afterwards: two catalogs
do not see each other's commits.

Example:
  PGPASSWORD=… stoa catalog migrate postgres://stoa@db.example.com/stoa";

pub fn run(command: CatalogCommand, file: Option<PathBuf>) -> Result<(), Failure> {
    let CatalogCommand::Migrate(args) = command;
    let resolved = settle(&args.settings, file)?;
    start_log(&resolved, true);
    block_on_until_ctrl_c(&resolved.config, async {
        let from = warehouse_options(&resolved.config)?.catalog_place()?;
        let to = named_catalog(&args.to)?;
        if from.file().is_some_and(|file| !file.exists()) {
            let message = format!("there is no catalog {from}");
            return Err(Error::not_found(message)
                .with_hint("name it with --catalog, or its warehouse with --warehouse")
                .into());
        }
        if from == to {
            return Err(Error::invalid(format!("{to} is the catalog that is copied")).into());
        }
        migrate(&from, &to).await
    })
}

async fn migrate(from: &CatalogPlace, to: &CatalogPlace) -> Result<(), Failure> {
    let (source, target) = (from.open(CATALOG_NAME).await?, to.open(CATALOG_NAME).await?);
    let copied = source.copy_to(&target).await?;
    source.close().await;
    target.close().await;
    let mut text = format!("copied the catalog {from} to {to}\n");
    for (table, rows) in copied.rows {
        let _ = writeln!(text, "{rows:>8} rows of {table}");
    }
    Ok(std::io::stdout().write_all(text.as_bytes()).map_err(output_error)?)
}
