//! `stoa backup` and `stoa restore`: copies of a warehouse, taken while it is read and written.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use stoa_backup::{Backup, Progress, backups, restore, take, verify};
use stoa_env::clock::monotonic;
use stoa_error::{Error, Result};
use stoa_store::{Stores, literal_of, parse_location};
use stoa_table::{TableIdent, Warehouse};

use super::{print, settle};
use crate::client::ClientTls;
use crate::config::{Resolved, SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{block_on_until_ctrl_c, open_warehouse, start_log, warehouse_options};
use crate::shell::RemoteBackend;
use crate::units;

/// Arguments of `stoa backup`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_BACKUP)]
pub struct BackupArgs {
    /// Where to: a directory or s3://BUCKET/PREFIX, not within the warehouse
    #[arg(value_name = "TO")]
    to: String,

    /// The warehouse's server, http://HOST:PORT: it brings all rows from its log into files before
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Leave out rows that are only in commit logs
    #[arg(long, conflicts_with = "url")]
    without_log: bool,

    /// List the backups that are there, and take none
    #[arg(long, conflicts_with_all = ["url", "without_log"])]
    list: bool,

    /// Read a whole backup and compare it with its checksums, and take none; exit code 1 if it is damaged
    #[arg(long, conflicts_with_all = ["url", "without_log", "list"])]
    verify: bool,

    /// The backup to verify [default: the newest]
    #[arg(long, value_name = "ID", requires = "verify")]
    id: Option<String>,

    #[command(flatten)]
    tls: ClientTls,

    #[command(flatten)]
    common: Common,
}

const ABOUT_BACKUP: &str = "\
Copies the catalog (names, roles, grants, sequences), then all files that its tables and views need, while
servers go on. Every backup is whole; files that an earlier backup in the same place has are not copied again.

Examples:
  stoa backup /backup --url http://127.0.0.1:15002     while the server runs
  stoa backup s3://backups/stoa                        while no server runs
  stoa backup /backup --verify                         is it whole?
  stoa restore /backup --warehouse ./restored";

/// Arguments of `stoa restore`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_RESTORE)]
pub struct RestoreArgs {
    /// Where backups are: the TO of `stoa backup`
    #[arg(value_name = "FROM")]
    from: String,

    /// The backup to restore [default: the newest]
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    common: Common,
}

const ABOUT_RESTORE: &str = "\
Restores into --warehouse (and --catalog), which must be empty, and checks all tables afterwards. At another
place than before, the locations in the tables' metadata are changed to it.";

#[derive(Debug, Args)]
struct Common {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

pub fn run_backup(args: BackupArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.common.settings, file)?;
    start_log(&resolved, true);
    block_on_until_ctrl_c(&resolved.config, async {
        let to = literal_of(&parse_location(&args.to)?)?;
        if args.list {
            return list(&to, &args, &resolved).await.map_err(Failure::from);
        }
        if args.verify {
            return check(&to, &args, &resolved).await;
        }
        backup(&to, &args, &resolved).await.map_err(Failure::from)
    })
}

pub fn run_restore(args: RestoreArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.common.settings, file)?;
    start_log(&resolved, true);
    block_on_until_ctrl_c(&resolved.config, async {
        let from = literal_of(&parse_location(&args.from)?)?;
        let options = warehouse_options(&resolved.config)?;
        let meter = Meter::new("restored");
        let restored =
            restore(&from, args.id.as_deref(), &options, &|done| meter.show(done)).await?;
        meter.end();
        let (backup, tables) = (&restored.backup, restored.tables);
        if args.common.json {
            let value = json!({
                "backup": backup.id, "warehouse": restored.warehouse, "tables": tables,
                "files": backup.files.len(), "bytes": backup.bytes(),
            });
            return Ok(print(&format!("{value:#}\n"))?);
        }
        Ok(print(&format!(
            "restored backup {} into {}: {} in {} files, {} of tables and views; {tables} tables checked\n",
            backup.id,
            restored.warehouse,
            units::bytes(backup.bytes()),
            backup.files.len(),
            backup.relations.len(),
        ))?)
    })
}

async fn backup(to: &str, args: &BackupArgs, resolved: &Resolved) -> Result<()> {
    let options = warehouse_options(&resolved.config)?;
    let place = options.catalog_place()?;
    if place.file().is_some_and(|file| !file.exists()) {
        return Err(Error::not_found(format!("there is no catalog {place}"))
            .with_hint("name the warehouse with --warehouse, and its catalog with --catalog"));
    }
    let warehouse = open_warehouse(&options).await?;
    match &args.url {
        Some(url) => flush(&warehouse, url, &args.tls).await?,
        None if args.without_log => {}
        None => refuse_open_logs(&warehouse).await?,
    }
    let meter = Meter::new("copied");
    let taken = take(&warehouse, to, &|done| meter.show(done)).await?;
    meter.end();
    let backup = &taken.backup;
    if args.common.json {
        let value = json!({
            "backup": backup.id, "relations": backup.relations.len(), "files": backup.files.len(),
            "bytes": backup.bytes(), "copied_files": taken.copied_files, "copied_bytes": taken.copied_bytes,
        });
        return print(&format!("{value:#}\n"));
    }
    print(&format!(
        "backup {}: {} tables and views, {} in {} files; copied now: {} in {} files\n",
        backup.id,
        backup.relations.len(),
        units::bytes(backup.bytes()),
        backup.files.len(),
        units::bytes(taken.copied_bytes),
        taken.copied_files,
    ))
}

/// Lets a server bring the rows of all tables into files.
async fn flush(warehouse: &Warehouse, url: &str, tls: &ClientTls) -> Result<()> {
    let server = RemoteBackend::connect(url, tls.client()?).await?;
    for ident in warehouse.all_tables().await? {
        match server.execute(&format!("FLUSH TABLE {}", quoted(&ident))).await {
            // It was dropped meanwhile.
            Err(error) if error.sqlstate() == "42P01" => {}
            other => other?,
        }
    }
    Ok(())
}

fn quoted(ident: &TableIdent) -> String {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    format!("{}.{}", quote(&ident.namespace), quote(&ident.name))
}

/// Rows that are only in a log would be missing.
async fn refuse_open_logs(warehouse: &Warehouse) -> Result<()> {
    let logs = warehouse.catalog().known_logs().await?;
    let Some(open) = logs.iter().find(|log| log.closed_at.is_none()) else { return Ok(()) };
    Err(Error::conflict(format!("the commit log {} may hold rows that are in no file yet", open.place))
        .with_detail("they would not be in the backup")
        .with_hint("name the server that has it with --url; or stop it with SIGTERM before (after a crash, start it once); or leave such rows out with --without-log"))
}

async fn list(to: &str, args: &BackupArgs, resolved: &Resolved) -> Result<()> {
    let stores = Stores::with_s3(warehouse_options(&resolved.config)?.s3);
    let ids = backups(&stores, to).await?;
    if args.common.json {
        return print(&format!("{:#}\n", json!({ "backups": ids })));
    }
    match ids.is_empty() {
        true => print(&format!("there is no backup in {to}\n")),
        false => print(&format!("{}\n", ids.join("\n"))),
    }
}

async fn check(to: &str, args: &BackupArgs, resolved: &Resolved) -> Result<(), Failure> {
    let stores = Stores::with_s3(warehouse_options(&resolved.config)?.s3);
    let meter = Meter::new("read");
    let verified = verify(&stores, to, args.id.as_deref(), &|done| meter.show(done)).await?;
    meter.end();
    let (backup, problems): (&Backup, _) = (&verified.backup, &verified.problems);
    if args.common.json {
        let value = json!({
            "backup": backup.id, "files": backup.files.len(), "bytes": backup.bytes(), "problems": problems,
        });
        print(&format!("{value:#}\n"))?;
    } else if problems.is_empty() {
        print(&format!(
            "backup {} is whole: {} in {} files\n",
            backup.id,
            units::bytes(backup.bytes()),
            backup.files.len()
        ))?;
    } else {
        print(&format!("backup {} is damaged:\n{}\n", backup.id, problems.join("\n")))?;
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Reported) }
}

/// Shows on a terminal how far something is.
struct Meter {
    what: &'static str,
    shown: Option<Mutex<Instant>>,
}

impl Meter {
    /// Time between two lines.
    const PAUSE: Duration = Duration::from_millis(200);

    fn new(what: &'static str) -> Self {
        let shown = std::io::stderr().is_terminal().then(|| Mutex::new(monotonic()));
        Self { what, shown }
    }

    fn show(&self, done: Progress) {
        let Some(shown) = &self.shown else { return };
        let Ok(mut last) = shown.lock() else { return };
        if last.elapsed() < Self::PAUSE {
            return;
        }
        *last = monotonic();
        let bytes = units::bytes(done.bytes);
        eprint!("\r\x1b[K{} of {} files, {bytes} {}", done.files, done.files_total, self.what);
    }

    fn end(&self) {
        if self.shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
