//! `stoa log`: look into commit logs, and repair what a disk has damaged.
//!
//! In: the directory of a log, or one that holds logs. Out: text on standard output. Not here: the
//! work (`stoa-commitlog`).

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use stoa_commitlog::{
    Behind, DumpOptions, LogStorage, RepairPlan, dump, local_storage, plan_repair, verify,
};
use stoa_error::{Error, Result};
use stoa_table::Warehouse;

use super::{print, settle};
use crate::config::{SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{block_on, open_warehouse, start_log, warehouse_options};
use crate::shell::output_error;

/// What to do with commit logs.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Read logs completely; exit code 1 if one is damaged
    Verify(LogDirectory),
    /// Print the records of logs as JSON lines
    Dump(DumpArgs),
    /// Remove damage from a log, keeping a copy; without --yes, only show what would be lost
    Repair(RepairArgs),
}

/// Which logs.
#[derive(Debug, Args)]
pub struct LogDirectory {
    /// The directory of a log, or of several, such as ./stoa-data/_log
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    #[command(flatten)]
    place: LogDirectory,

    /// Only records from this sequence on
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    from: u64,

    /// Only records up to this sequence
    #[arg(long, value_name = "SEQUENCE", default_value_t = u64::MAX, hide_default_value = true)]
    to: u64,

    /// Print the contents of the records in hexadecimal
    #[arg(long)]
    payloads: bool,

    /// Also print intact records after damage
    #[arg(long)]
    behind_damage: bool,
}

/// Arguments of `repair`.
#[derive(Debug, Args)]
pub struct RepairArgs {
    #[command(flatten)]
    place: LogDirectory,

    /// Repair the log
    #[arg(long)]
    yes: bool,

    /// Drop intact records after the damage too, so that the log is a prefix of what was written
    #[arg(long)]
    give_up_behind: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

pub fn run(command: LogCommand, file: Option<PathBuf>) -> Result<(), Failure> {
    match command {
        LogCommand::Verify(place) => verify_all(&place),
        LogCommand::Dump(args) => dump_all(&args).map_err(Failure::from),
        LogCommand::Repair(args) => repair_all(&args, file),
    }
}

/// The logs in a directory: itself, and those of processes (`0`, `1`, …) and of a cluster's daemons
/// (`9805dd55b3b6e9bb`, …) in it.
fn logs_in(place: &LogDirectory) -> Result<Vec<Arc<dyn LogStorage>>> {
    let directory = &place.directory;
    let entries = std::fs::read_dir(directory).map_err(|e| {
        Error::not_found(format!("cannot read the directory {}", directory.display()))
            .with_sqlstate("58P01")
            .with_hint("name the directory of a log, such as ./stoa-data/_log")
            .with_source(e)
    })?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> = paths.filter(|path| path.is_dir() && has_segments(path)).collect();
    // Those of processes in the order of their numbers.
    logs.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    if logs.is_empty() || has_segments(directory) {
        logs.insert(0, directory.clone());
    }
    logs.iter().map(|path| local_storage(path)).collect()
}

fn has_segments(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| entry.path().extension().is_some_and(|ending| ending == "log"))
}

fn verify_all(place: &LogDirectory) -> Result<(), Failure> {
    let mut sound = true;
    for storage in logs_in(place)? {
        let report = verify(&storage)?;
        sound &= report.can_be_opened();
        print(&format!("{report}\n"))?;
    }
    if sound { Ok(()) } else { Err(Failure::Reported) }
}

fn dump_all(args: &DumpArgs) -> Result<()> {
    let options = DumpOptions {
        sequences: args.from..=args.to,
        payloads: args.payloads,
        behind_damage: args.behind_damage,
    };
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for storage in logs_in(&args.place)? {
        dump(&storage, &options, &mut out)?;
    }
    out.flush().map_err(output_error)
}

fn repair_all(args: &RepairArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.settings, file)?;
    start_log(&resolved, true);
    let published = block_on(&resolved.config, async {
        highest_published(&open_warehouse(&warehouse_options(&resolved.config)?).await?).await
    })?;
    let behind = if args.give_up_behind { Behind::GivenUp } else { Behind::Kept };
    for storage in logs_in(&args.place)? {
        match plan_repair(&storage)? {
            None => print(&format!("{}: needs no repair\n", storage.place()))?,
            Some(plan) => repair(&storage, &plan, behind, published, args.yes)?,
        }
    }
    Ok(())
}

fn repair(
    storage: &Arc<dyn LogStorage>,
    plan: &RepairPlan,
    behind: Behind,
    published: u64,
    really: bool,
) -> Result<()> {
    if !really {
        return print(&format!(
            "{}: {}\n  would be lost: {}\n  intact records after the damage: {}\n  \
             run again with --yes to repair it\n",
            storage.place(),
            plan.damage,
            ranges(&plan.lost(behind)),
            plan.frames_behind
        ));
    }
    let outcome = plan.apply(behind, published)?;
    print(&format!(
        "{}: repaired; lost: {}; copies: {}; continues at {}\n",
        storage.place(),
        ranges(&outcome.lost),
        outcome.copies.join(", "),
        outcome.next
    ))
}

/// The highest position that any table carries: the repaired log must go on behind it.
async fn highest_published(warehouse: &Warehouse) -> Result<u64> {
    let mut highest = 0;
    for ident in warehouse.all_tables().await? {
        let positions = warehouse.table(&ident).await?.log_positions()?;
        highest = positions.into_values().fold(highest, u64::max);
    }
    Ok(highest)
}

fn ranges(ranges: &[RangeInclusive<u64>]) -> String {
    let text = |range: &RangeInclusive<u64>| match range.start() == range.end() {
        true => format!("record {}", range.start()),
        false => format!("records {} to {}", range.start(), range.end()),
    };
    match ranges {
        [] => "nothing".to_owned(),
        some => some.iter().map(text).collect::<Vec<_>>().join(", "),
    }
}
