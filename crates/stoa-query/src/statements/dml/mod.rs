//! Statements that change rows: DELETE, UPDATE, MERGE INTO, TRUNCATE, INSERT OVERWRITE.
//!
//! In: a bound plan. Out: how many rows were changed, after one commit.
//!
//! Data files are never edited. Those that hold rows to change are found by the table's
//! statistics and a look into each; what they hold afterwards is written to new files, and one
//! commit puts these in the place of the old ones.
//!
//! **Invariants:** all or nothing. A statement reads one state of all its tables, taken when flushes
//! of the one that it changes are held; where somebody else changed meanwhile what it has read, it
//! runs again on the newer state, so that the result is as if both had run one after the other.
//! Rows that others insert meanwhile stay as they are.
//!
//! Not here: writing (`sink`), who must run again (`changes`), commits and their conflicts
//! (`stoa-table`).

mod alias;
mod clock;
mod insert;
mod merge;
mod overwrite;
mod plans;
mod returning;
mod rows;
mod shared_source;
mod target;
mod upsert;

pub(crate) use alias::plan_aliased_delete;
pub(crate) use clock::{all_at_one_time, at_one_time, both_at_one_time};
pub(crate) use insert::{insert, with_casts};
pub(crate) use overwrite::resolve_partition;
pub(crate) use returning::{Returning, check_returning};
pub(crate) use shared_source::{InsertPlan, read_once, together};
pub(crate) use upsert::upsert;

use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::dml::{InsertOp, MergeIntoAction};
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp};
use stoa_access::Privilege;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};
use stoa_ingest::FlushHold;
use stoa_orc::Predicate;
use stoa_table::{Isolation, ScanFile, Table};

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::columns;
use crate::statements::external;
use crate::statements::outcome::count_written;
use crate::tables::cells;
use crate::tables::changes::{Reading, Turn};
use crate::tables::filter::predicate_of_all;
use crate::tables::nested::engine_schema;
use crate::tables::sink::{Rows, WriteMode};
use crate::tables::table::{StoaTable, pin, stoa_table, tables_of};
use crate::tables::versions;
use stoa_semantics::errors::from_datafusion;

/// How often a statement starts again because somebody else changed the table.
const ATTEMPTS_MAX: usize = 10;

/// What a statement does to the rows of a table, as plans over some of its files.
trait RowChange: Send + Sync {
    /// Conditions on the table's columns without which no row is changed.
    fn conditions(&self) -> Vec<Expr>;

    /// The rows of `files` that are changed or deleted.
    fn changed(&self, files: Files) -> EngineResult<LogicalPlan>;

    /// What `files` hold afterwards: the table's columns, in order.
    fn rewritten(&self, files: Files) -> EngineResult<LogicalPlan>;

    /// Rows that come in addition.
    fn added(&self) -> EngineResult<Option<LogicalPlan>> {
        Ok(None)
    }

    /// The rows that are returned: the table's columns, in order; `None` where none can be.
    fn returned(&self, _files: Files) -> EngineResult<Option<LogicalPlan>> {
        Ok(None)
    }

    /// A plan that must have no rows, and the error if it has.
    fn violation(&self, _files: Files) -> EngineResult<Option<(LogicalPlan, Error)>> {
        Ok(None)
    }

    /// How many rows the statement reports.
    fn affected(&self, applied: &Applied) -> u64 {
        applied.rows_changed
    }
}

/// What a change came to.
struct Applied {
    /// Rows in the files that were replaced.
    rows_before: u64,
    /// Rows of these that were changed or deleted.
    rows_changed: u64,
    /// Rows in the files that replaced them.
    rows_written: u64,
}

/// Some of a table's data files.
type Files = Arc<[Arc<ScanFile>]>;

/// Whether a plan is one of the statements of this module.
pub(crate) fn changes_rows(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Dml(dml) = plan else { return false };
    matches!(
        dml.op,
        WriteOp::Delete
            | WriteOp::Update
            | WriteOp::Truncate
            | WriteOp::MergeInto(_)
            | WriteOp::Insert(InsertOp::Overwrite)
    )
}

/// Runs a statement that changes rows; `overwritten` is the condition on the rows that an INSERT
/// OVERWRITE replaces.
///
/// # Errors
/// What planning and execution find; `Conflict` where others change the tables all the time.
pub(crate) async fn run(
    session: &Session,
    plan: LogicalPlan,
    overwritten: Option<&Expr>,
    returning: Option<&Returning>,
    guard: &QueryGuard,
) -> Result<Completion> {
    for number in 1..=ATTEMPTS_MAX {
        // The first time nobody is kept from anything; after that other statements of this process are.
        let turn = match number {
            1 => None,
            // A block would keep everybody waiting until its COMMIT.
            _ if session.block.is_open() => None,
            _ => Some(session.data.changes().turn().await),
        };
        match attempt(session, plan.clone(), overwritten, returning, turn, guard).await {
            Err(error) if error.kind() == ErrorKind::Conflict && number < ATTEMPTS_MAX => {}
            ended => return ended,
        }
    }
    Err(Error::internal("a statement was not tried"))
}

/// The table that a statement changes, all of it in files, and what the statement has read.
struct Held {
    table: StoaTable,
    reading: Arc<Reading>,
    _hold: Option<FlushHold>,
}

/// Holds the table `ident`, and reads it and `others` in one state; `read` are those that the result
/// depends on.
async fn hold(
    session: &Session,
    table: StoaTable,
    others: &[TableIdent],
    read: Vec<TableIdent>,
    turn: Option<Turn>,
) -> Result<(Held, Vec<StoaTable>)> {
    let data = &session.data;
    let ident = table.table.ident().clone();
    let (table, others, reading, hold) = match data.ingest() {
        None => {
            let reading = data.changes().begin(read, &ident, turn).await;
            let all: Vec<TableIdent> = std::iter::once(&ident).chain(others).cloned().collect();
            let mut tables = data.tables(&all).await?;
            (tables.remove(0), tables, reading, None)
        }
        Some(ingest) => {
            // The table's fresh rows come into files first, and none while files are replaced.
            let mut hold = ingest.hold_flush(&table.table).await?;
            let reading = data.changes().begin(read, &ident, turn).await;
            let others = hold.read_with(others).await?;
            let others = others.into_iter().map(|other| data.at(other)).collect();
            (table.at(hold.table().clone()), others, reading, Some(hold))
        }
    };
    reading.note(others.iter().map(|other: &StoaTable| other.table.clone()).collect());
    Ok((Held { table, reading: Arc::new(reading), _hold: hold }, others))
}

async fn attempt(
    session: &Session,
    plan: LogicalPlan,
    overwritten: Option<&Expr>,
    returning: Option<&Returning>,
    turn: Option<Turn>,
    guard: &QueryGuard,
) -> Result<Completion> {
    let mut read = tables_of(&plan)?;
    let LogicalPlan::Dml(dml) = &plan else {
        return Err(Error::internal("a statement that changes rows has no such plan"));
    };
    let Some(planned) = stoa_table(&dml.target) else {
        cells::refuse_source(&dml.target)?;
        versions::refuse_writes(&dml.target)?;
        return Err(Error::unsupported(format!("{} cannot be changed", dml.table_name))
            .with_sqlstate("42809")
            .with_hint("system tables are read only"));
    };
    let ident = planned.table.ident();
    let table = session.data.table(ident).await?;
    if table.is_external() {
        return external::overwrite(session, table, plan, overwritten, guard).await;
    }
    cells::refuse_rows(&table.table)?;
    check_rights(session, dml, &table.table, overwritten.is_some())?;
    if let Some(returning) = returning {
        returning.check_rights(session, &table.table)?;
    }
    session.block.check_removal(&table.table)?;
    let others: Vec<TableIdent> = read.iter().filter(|other| *other != ident).cloned().collect();
    let is_blind = matches!(dml.op, WriteOp::Insert(_) | WriteOp::Truncate);
    if !is_blind && !read.contains(ident) {
        read.push(ident.clone());
    }
    let (held, mut tables) = hold(session, table, &others, read, turn).await?;
    tables = session.block.with_own(tables)?;
    tables.push(held.table.clone());
    let LogicalPlan::Dml(dml) = pin(plan, tables)? else {
        return Err(Error::internal("a statement that changes rows became another one"));
    };
    let table = &held.table;
    match &dml.op {
        WriteOp::Truncate => truncate(session, &held, &dml.table_name, guard).await,
        WriteOp::Delete => match rows::Delete::of(&dml, table)? {
            Some(delete) => apply(session, &held, &dml, &delete, returning, guard).await,
            None => {
                if let Some(returning) = returning {
                    let rows = all_rows(table, &dml.table_name).await?;
                    let rows = returning.rows_of(session, &rows, guard).await?;
                    returning.answer(session, &rows, guard).await?;
                }
                delete_all(session, &held, &dml.table_name, guard).await
            }
        },
        WriteOp::Update => {
            let update = rows::Update::of(&dml, table)?;
            apply(session, &held, &dml, &update, returning, guard).await
        }
        WriteOp::MergeInto(_) => {
            let merge = merge::Merge::of(session, &dml, table, guard).await?;
            apply(session, &held, &dml, &merge, returning, guard).await
        }
        WriteOp::Insert(_) => {
            let condition = overwritten.cloned();
            if condition.is_none() && !table.table.partition_terms().is_empty() {
                return overwrite_partitions(session, &held, &dml, guard).await;
            }
            let condition = condition.unwrap_or_else(overwrite::always);
            let overwrite = overwrite::Overwrite::of(&dml, table, condition);
            apply(session, &held, &dml, &overwrite, returning, guard).await
        }
        other => Err(Error::internal(format!("{} does not change rows in place", other.name()))),
    }
}

/// Whether the caller may do all that the statement may come to. Asked before any file is looked for:
/// that none can match tells of values, too.
fn check_rights(
    session: &Session,
    dml: &DmlStatement,
    table: &Table,
    has_condition: bool,
) -> Result<()> {
    let caller = &session.caller;
    for privilege in privileges_for(&dml.op) {
        caller.may_write(table, privilege)?;
    }
    match &dml.op {
        WriteOp::Truncate => Ok(()),
        WriteOp::Delete if !matches!(dml.input.as_ref(), LogicalPlan::Filter(_)) => Ok(()),
        WriteOp::Insert(_) if !has_condition => match table.partition_terms().is_empty() {
            true => caller.may_see(table),
            false => Ok(()),
        },
        _ => caller.may_select_all(table),
    }
}

/// What a statement needs beside reading the table, which all do that look for rows.
fn privileges_for(op: &WriteOp) -> Vec<Privilege> {
    match op {
        WriteOp::Update => vec![Privilege::Update],
        WriteOp::Delete | WriteOp::Truncate => vec![Privilege::Delete],
        WriteOp::Insert(_) => vec![Privilege::Insert, Privilege::Delete],
        WriteOp::MergeInto(merge) => {
            let needed = merge.clauses.iter().map(|clause| match clause.action {
                MergeIntoAction::Insert { .. } => Privilege::Insert,
                MergeIntoAction::Update(_) => Privilege::Update,
                MergeIntoAction::Delete => Privilege::Delete,
            });
            needed.collect()
        }
        _ => vec![Privilege::Insert, Privilege::Update, Privilege::Delete],
    }
}

/// `INSERT OVERWRITE` of the table partitions into which rows come.
async fn overwrite_partitions(
    session: &Session,
    held: &Held,
    dml: &DmlStatement,
    guard: &QueryGuard,
) -> Result<Completion> {
    let content = dml.input.as_ref().clone();
    let mode = WriteMode::ReplacePartitions;
    let rows = write(session, held, &dml.table_name, mode, content, guard).await?;
    Ok(Completion::rows("INSERT", rows))
}

/// The command as it is called in PostgreSQL's tags.
fn command(op: &WriteOp) -> &'static str {
    match op {
        WriteOp::Insert(_) => "INSERT",
        WriteOp::Delete => "DELETE",
        WriteOp::Update => "UPDATE",
        _ => "MERGE",
    }
}

async fn truncate(
    session: &Session,
    held: &Held,
    name: &TableReference,
    guard: &QueryGuard,
) -> Result<Completion> {
    delete_all(session, held, name, guard).await?;
    Ok(Completion::of("TRUNCATE TABLE"))
}

async fn delete_all(
    session: &Session,
    held: &Held,
    name: &TableReference,
    guard: &QueryGuard,
) -> Result<Completion> {
    let rows = match held.table.table.row_count() {
        Some(rows) => rows,
        None => count_live(session, &held.table, name, guard).await?,
    };
    let nothing = scan(&held.table, name, Arc::from([])).map_err(from_datafusion)?;
    write(session, held, name, WriteMode::ReplaceAll, nothing, guard).await?;
    Ok(Completion::rows("DELETE", rows))
}

/// How many rows the table has, where only reading it tells.
async fn count_live(
    session: &Session,
    table: &StoaTable,
    name: &TableReference,
    guard: &QueryGuard,
) -> Result<u64> {
    session.count_rows(all_rows(table, name).await?, guard).await
}

/// All rows of a table that is held.
async fn all_rows(table: &StoaTable, name: &TableReference) -> Result<LogicalPlan> {
    let files = table.table.plan_scan(&Predicate::always()).await?.files;
    scan(table, name, files.into()).map_err(from_datafusion)
}

/// How many rows some files have, without those that are deleted.
async fn rows_in(
    session: &Session,
    table: &StoaTable,
    name: &TableReference,
    files: &Files,
    guard: &QueryGuard,
) -> Result<u64> {
    if files.iter().all(|file| file.deletes.is_empty()) {
        return Ok(files.iter().map(|file| file.rows).sum());
    }
    let all = scan(table, name, Arc::clone(files)).map_err(from_datafusion)?;
    session.count_rows(all, guard).await
}

/// Writes the rows of a plan, whose columns are the table's, in the place of all that it has. The
/// plan runs once: `Conflict` where somebody else changed the table meanwhile.
pub(crate) async fn replace_all(
    session: &Session,
    ident: &TableIdent,
    content: LogicalPlan,
    guard: &QueryGuard,
) -> Result<u64> {
    let table = session.data.table(ident).await?;
    let (held, _) = hold(session, table, &[], Vec::new(), None).await?;
    let name = TableReference::partial(ident.namespace.as_str(), ident.name.as_str());
    let content = columns::cast_to(content, &engine_schema(&held.table.table.schema()))?;
    write(session, &held, &name, WriteMode::ReplaceAll, content, guard).await
}

async fn apply(
    session: &Session,
    held: &Held,
    dml: &DmlStatement,
    change: &dyn RowChange,
    returning: Option<&Returning>,
    guard: &QueryGuard,
) -> Result<Completion> {
    let table = &held.table;
    let touched = touched_files(session, table, change, guard).await?;
    let plan = |planned: EngineResult<LogicalPlan>| planned.map_err(from_datafusion);
    if let Some((rows, error)) = change.violation(Arc::clone(&touched)).map_err(from_datafusion)?
        && session.has_rows(rows, guard).await?
    {
        return Err(error);
    }
    if let Some(returning) = returning {
        let rows = change.returned(Arc::clone(&touched)).map_err(from_datafusion)?;
        let rows = rows.ok_or_else(|| Error::unsupported("RETURNING is not supported here"))?;
        let rows = returning.rows_of(session, &rows, guard).await?;
        returning.answer(session, &rows, guard).await?;
    }
    let changed = plan(change.changed(Arc::clone(&touched)))?;
    let mut applied = Applied {
        rows_before: rows_in(session, table, &dml.table_name, &touched, guard).await?,
        rows_changed: session.count_rows(changed, guard).await?,
        rows_written: 0,
    };
    let added = change.added().map_err(from_datafusion)?;
    if applied.rows_changed > 0 || added.is_some() {
        let mut content = plan(change.rewritten(Arc::clone(&touched)))?;
        if let Some(added) = added {
            let both = LogicalPlanBuilder::from(content).union(added);
            content = plan(both.and_then(LogicalPlanBuilder::build))?;
        }
        let name = &dml.table_name;
        let rows = if dml.op == WriteOp::Delete { Rows::Same } else { Rows::Changed };
        let mode = WriteMode::Replace(touched, isolation(table, &dml.op, change)?, rows);
        applied.rows_written = write(session, held, name, mode, content, guard).await?;
    }
    Ok(Completion::rows(command(&dml.op), change.affected(&applied)))
}

/// What others may commit meanwhile. An INSERT OVERWRITE does not depend on what it replaces.
fn isolation(table: &StoaTable, op: &WriteOp, change: &dyn RowChange) -> Result<Isolation> {
    let command = match op {
        WriteOp::Insert(_) => return Ok(Isolation::Snapshot),
        WriteOp::Delete => "delete",
        WriteOp::Update => "update",
        _ => "merge",
    };
    let predicate = predicate_of_all(&change.conditions(), &table.table.schema());
    table.table.isolation(command, predicate)
}

/// The files that hold rows to change.
async fn touched_files(
    session: &Session,
    table: &StoaTable,
    change: &dyn RowChange,
    guard: &QueryGuard,
) -> Result<Files> {
    let predicate = predicate_of_all(&change.conditions(), &table.table.schema());
    let mut touched = Vec::new();
    for file in table.table.plan_scan(&predicate).await?.files {
        let changed = change.changed(Arc::from([Arc::clone(&file)])).map_err(from_datafusion)?;
        if session.has_rows(changed, guard).await? {
            touched.push(file);
        }
    }
    Ok(touched.into())
}

/// Writes `content` in one commit; returns its rows.
async fn write(
    session: &Session,
    held: &Held,
    name: &TableReference,
    mode: WriteMode,
    content: LogicalPlan,
    guard: &QueryGuard,
) -> Result<u64> {
    let target = target::source(held.table.table.clone(), mode, Arc::clone(&held.reading));
    let plan = LogicalPlanBuilder::insert_into(content, name.clone(), target, InsertOp::Append)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)?;
    count_written(session.stream(&plan, guard).await?).await
}

/// A scan of some files of the table, under the name that the statement's columns have.
fn scan(table: &StoaTable, name: &TableReference, files: Files) -> EngineResult<LogicalPlan> {
    let provider = Arc::new(table.clone().only(files));
    let source = datafusion::datasource::provider_as_source(provider);
    LogicalPlanBuilder::scan(name.clone(), source, None)?.build()
}
