//! `stoa table`: look at tables and look after them, without SQL.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use chrono::DateTime;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stoa_error::{Error, Result};
use stoa_query::sql_type;
use stoa_table::{CheckReport, Orphan, RemovedOrphans, Table, TableIdent, Warehouse};

use super::{print, settle};
use crate::config::{SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{block_on_until_ctrl_c, open_warehouse, start_log, warehouse_options};
use crate::units;

/// What to do with tables.
#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// List tables with rows, files and sizes
    List(ListArgs),
    /// Show columns, partitioning, order, properties and the newest snapshot of a table
    Describe(DescribeArgs),
    /// Check that every file of a table exists, with its size and rows; exit code 1 if not
    Check(CheckArgs),
    /// Remove files that no snapshot and no table refers to, such as those of killed loads
    Clean(CleanArgs),
    /// Add tables that are in the warehouse but not in the catalog to the catalog
    Recover(RecoverArgs),
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only tables of this namespace
    #[arg(value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Arguments of `describe`.
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The table, as name or namespace.name
    #[arg(value_name = "TABLE")]
    table: String,
    #[command(flatten)]
    common: Common,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Tables, as name or namespace.name [default: all]
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,
    /// Read all data files and verify their checksums
    #[arg(long)]
    data: bool,
    #[command(flatten)]
    common: Common,
}

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Tables, as name or namespace.name [default: all]
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,

    /// Keep files younger than this; the files of a running load are orphans until it commits
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = units::parse_duration)]
    older_than: Duration,

    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    common: Common,
}

/// Arguments of `recover`.
#[derive(Debug, Args)]
#[command(after_help = RECOVER)]
pub struct RecoverArgs {
    #[command(flatten)]
    common: Common,
}

const RECOVER: &str = "\
For a warehouse whose catalog is lost or on another machine. Each table and view gets the name of its
directory and the state of its newest metadata file; tables that were dropped without their files come back.
Stop all servers that use another catalog of the same warehouse, and do not start them again: two
catalogs do not see each other's commits.";

#[derive(Debug, Args)]
struct Common {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

pub fn run(command: TableCommand, file: Option<PathBuf>) -> Result<(), Failure> {
    let common = match &command {
        TableCommand::List(args) => &args.common,
        TableCommand::Describe(args) => &args.common,
        TableCommand::Check(args) => &args.common,
        TableCommand::Clean(args) => &args.common,
        TableCommand::Recover(args) => &args.common,
    };
    let resolved = settle(&common.settings, file)?;
    start_log(&resolved, true);
    block_on_until_ctrl_c(&resolved.config, async {
        let mut options = warehouse_options(&resolved.config)?;
        options.new_catalog = matches!(command, TableCommand::Recover(_));
        let warehouse = open_warehouse(&options).await?;
        match &command {
            TableCommand::List(args) => list(&warehouse, args).await.map_err(Failure::from),
            TableCommand::Describe(args) => describe(&warehouse, args).await.map_err(Failure::from),
            TableCommand::Check(args) => check(&warehouse, args).await,
            TableCommand::Clean(args) => clean(&warehouse, args).await.map_err(Failure::from),
            TableCommand::Recover(args) => recover(&warehouse, args).await.map_err(Failure::from),
        }
    })
}

/// The table that `name` or `namespace.name` means; as in SQL, letters are lower case unless quoted.
pub(super) fn parse_ident(text: &str) -> Result<TableIdent> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.trim().chars() {
        match (c, parts.last_mut()) {
            ('"', _) => quoted = !quoted,
            ('.', _) if !quoted => parts.push(String::new()),
            (c, Some(last)) if quoted => last.push(c),
            (c, Some(last)) => last.extend(c.to_lowercase()),
            (_, None) => {}
        }
    }
    if parts.len() == 3 && parts.first().is_some_and(|part| part == stoa_query::DATABASE) {
        parts.remove(0);
    }
    match parts.as_slice() {
        [name] if !name.is_empty() && !quoted => {
            Ok(TableIdent::new(stoa_query::DEFAULT_NAMESPACE, name))
        }
        [namespace, name] if !name.is_empty() && !namespace.is_empty() && !quoted => {
            Ok(TableIdent::new(namespace, name))
        }
        _ => Err(Error::invalid(format!("{text:?} is not the name of a table"))
            .with_sqlstate("42602")
            .with_hint("write name or namespace.name")),
    }
}

async fn named_tables(warehouse: &Warehouse, names: &[String]) -> Result<Vec<TableIdent>> {
    match names.is_empty() {
        true => warehouse.all_tables().await,
        false => names.iter().map(|name| parse_ident(name)).collect(),
    }
}

fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

async fn recover(warehouse: &Warehouse, args: &RecoverArgs) -> Result<()> {
    let tables: Vec<String> = warehouse.recover().await?.iter().map(ToString::to_string).collect();
    if args.common.json {
        return print_json(&json!({ "recovered": tables }));
    }
    match tables.is_empty() {
        true => print("the catalog already has all tables and views of the warehouse\n"),
        false => print(&format!("recovered {}\n", tables.join(", "))),
    }
}

async fn list(warehouse: &Warehouse, args: &ListArgs) -> Result<()> {
    let tables = match &args.namespace {
        Some(namespace) => warehouse.tables(namespace).await?,
        None => warehouse.all_tables().await?,
    };
    let mut listed = Vec::with_capacity(tables.len());
    for ident in tables {
        let table = warehouse.table(&ident).await?;
        listed.push((ident.to_string(), Totals::of(&table)));
    }
    if args.common.json {
        let entry = |(name, totals): &(String, Totals)| json!({ "table": name, "rows": totals.rows, "files": totals.files, "bytes": totals.bytes });
        return print_json(&listed.iter().map(entry).collect());
    }
    let width = listed.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("table".len());
    let mut text = format!("{:width$} {:>15} {:>8} {:>11}\n", "table", "rows", "files", "size");
    for (name, totals) in &listed {
        let (rows, files) = (units::count(totals.rows), units::count(totals.files));
        let _ = writeln!(
            text,
            "{name:width$} {rows:>15} {files:>8} {:>11}",
            units::bytes(totals.bytes)
        );
    }
    print(&text)
}

/// What the newest snapshot says about the whole table.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    rows: u64,
    files: u64,
    bytes: u64,
}

impl Totals {
    fn of(table: &Table) -> Self {
        let summary = table.current_snapshot().map(|snapshot| snapshot.summary).unwrap_or_default();
        let number = |name: &str| summary.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            rows: number("total-records"),
            files: number("total-data-files"),
            bytes: number("total-files-size"),
        }
    }
}

async fn describe(warehouse: &Warehouse, args: &DescribeArgs) -> Result<()> {
    let table = warehouse.table(&parse_ident(&args.table)?).await?;
    if args.common.json {
        return print_json(&description(&table));
    }
    let mut text = format!("table {}\n\ncolumns\n", table.ident());
    let schema = table.schema();
    let width = schema.fields().iter().map(|field| field.name().len()).max().unwrap_or(0);
    for field in schema.fields() {
        let null = if field.is_nullable() { "" } else { " not null" };
        let _ = writeln!(text, "  {:width$}  {}{null}", field.name(), sql_type(field.data_type()));
    }
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = write!(text, "\n{title}\n  {}\n", lines.join("\n  "));
        }
    };
    section("partitioned by", table.partition_terms().iter().map(ToString::to_string).collect());
    section("ordered by", table.sort_terms().iter().map(ToString::to_string).collect());
    let properties = table.properties();
    section(
        "properties",
        properties.iter().map(|(name, value)| format!("{name} = {value}")).collect(),
    );
    let totals = Totals::of(&table);
    section(
        "contents",
        vec![
            format!("{} rows", units::count(totals.rows)),
            format!("{} files, {}", units::count(totals.files), units::bytes(totals.bytes)),
            match table.current_snapshot() {
                Some(snapshot) => format!(
                    "snapshot {} of {} ({}), one of {}",
                    snapshot.id,
                    time_text(snapshot.timestamp_ms),
                    snapshot.operation,
                    table.snapshots().len()
                ),
                None => "no snapshot".to_owned(),
            },
        ],
    );
    section("stored in", vec![table.location().to_owned(), table.metadata_location().to_owned()]);
    print(&text)
}

fn description(table: &Table) -> Value {
    let schema = table.schema();
    let column = |field: &std::sync::Arc<arrow_schema::Field>| {
        json!({
            "name": field.name(),
            "type": sql_type(field.data_type()),
            "nullable": field.is_nullable(),
        })
    };
    let totals = Totals::of(table);
    json!({
        "table": table.ident().to_string(),
        "location": table.location(),
        "metadata_location": table.metadata_location(),
        "columns": schema.fields().iter().map(column).collect::<Vec<_>>(),
        "partition_by": table.partition_terms().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "order_by": table.sort_terms().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "properties": table.properties(),
        "rows": totals.rows,
        "files": totals.files,
        "bytes": totals.bytes,
        "snapshot_id": table.current_snapshot().map(|snapshot| snapshot.id),
        "snapshots": table.snapshots().len(),
    })
}

fn time_text(unix_ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(unix_ms);
    time.map_or_else(|| unix_ms.to_string(), |t| t.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

async fn check(warehouse: &Warehouse, args: &CheckArgs) -> Result<(), Failure> {
    let mut sound = true;
    let mut documents = Vec::new();
    for ident in named_tables(warehouse, &args.tables).await? {
        let table = warehouse.table(&ident).await?;
        let report = match args.data {
            true => table.check_data().await?,
            false => table.check().await?,
        };
        sound &= report.is_sound();
        if args.common.json {
            documents.push(check_json(&ident, &report));
        } else {
            print(&check_text(&ident, &report))?;
        }
    }
    if args.common.json {
        print_json(&Value::from(documents))?;
    }
    if sound { Ok(()) } else { Err(Failure::Reported) }
}

fn check_text(ident: &TableIdent, report: &CheckReport) -> String {
    let verdict = if report.is_sound() { "OK" } else { "DAMAGED" };
    let mut text = format!(
        "{ident}: {verdict}: {} rows, {} data files, {} manifests, {} snapshots",
        units::count(report.rows),
        units::count(report.data_files as u64),
        report.manifests,
        report.snapshots
    );
    if !report.orphans.is_empty() {
        let bytes = report.orphans.iter().map(|orphan| orphan.bytes).sum();
        let _ = write!(text, ", {} orphans of {}", report.orphans.len(), units::bytes(bytes));
    }
    if let Some(data) = report.data {
        let _ = write!(text, ", {} of data read", units::bytes(data.bytes));
        if data.without_checksums > 0 {
            let _ = write!(text, ", {} files without checksums", data.without_checksums);
        }
    }
    text.push('\n');
    for problem in &report.problems {
        let _ = writeln!(text, "  {}: {}", problem.place, problem.what);
    }
    text
}

fn check_json(ident: &TableIdent, report: &CheckReport) -> Value {
    let problem = |p: &stoa_table::Problem| json!({ "place": p.place, "what": p.what });
    let orphan = |o: &Orphan| json!({ "location": o.location, "bytes": o.bytes, "modified": o.modified.to_rfc3339() });
    json!({
        "table": ident.to_string(),
        "sound": report.is_sound(),
        "rows": report.rows,
        "bytes": report.bytes,
        "data_files": report.data_files,
        "manifests": report.manifests,
        "snapshots": report.snapshots,
        "data": report.data.map(|data| json!({
            "files": data.files, "bytes": data.bytes, "without_checksums": data.without_checksums,
        })),
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        "orphans": report.orphans.iter().map(orphan).collect::<Vec<_>>(),
    })
}

async fn clean(warehouse: &Warehouse, args: &CleanArgs) -> Result<()> {
    let mut documents = Vec::new();
    let mut report = |whose: &str, removed: RemovedOrphans| {
        let RemovedOrphans { files, bytes, kept } = removed;
        if args.common.json {
            documents.push(json!({
                "table": whose, "dry_run": args.dry_run,
                "files": files, "bytes": bytes, "kept": kept,
            }));
            return Ok(());
        }
        let verb = if args.dry_run { "would remove" } else { "removed" };
        let size = units::bytes(bytes);
        print(&format!("{whose}: {verb} {files} orphans of {size}, kept {kept} younger ones\n"))
    };
    for ident in named_tables(warehouse, &args.tables).await? {
        let table = warehouse.table(&ident).await?;
        let removed = match args.dry_run {
            true => would_remove(&table.check().await?.orphans, args.older_than),
            false => table.remove_orphans(args.older_than).await?,
        };
        report(&ident.to_string(), removed)?;
    }
    if args.tables.is_empty() {
        let removed = match args.dry_run {
            true => would_remove(&warehouse.abandoned().await?, args.older_than),
            false => warehouse.remove_abandoned(args.older_than).await?,
        };
        if removed.files + removed.kept > 0 {
            report("(no table)", removed)?;
        }
    }
    if args.common.json {
        print_json(&Value::from(documents))?;
    }
    Ok(())
}

fn would_remove(orphans: &[Orphan], older_than: Duration) -> RemovedOrphans {
    let age = chrono::TimeDelta::from_std(older_than).unwrap_or(chrono::TimeDelta::MAX);
    let oldest_kept = stoa_env::clock::now_utc().checked_sub_signed(age).unwrap_or_default();
    let (old, young): (Vec<_>, Vec<_>) =
        orphans.iter().partition(|orphan| orphan.modified <= oldest_kept);
    let bytes = old.iter().map(|orphan| orphan.bytes).sum();
    RemovedOrphans { files: old.len(), bytes, kept: young.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_sql() {
        let check = |text: &str, namespace: &str, name: &str| {
            assert_eq!(parse_ident(text).unwrap(), TableIdent::new(namespace, name), "{text}");
        };
        check("Trips", "public", "trips");
        check("a.B", "a", "b");
        check("stoa.a.b", "a", "b");
        check("a.\"B.c\"", "a", "B.c");
        for wrong in ["", "a.", ".b", "a.b.c", "\"a"] {
            assert!(parse_ident(wrong).is_err(), "{wrong}");
        }
    }
}
