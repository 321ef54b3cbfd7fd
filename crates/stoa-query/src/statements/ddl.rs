//! Statements that change the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use stoa_catalog::TableIdent;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_table::{
    ColumnPosition, DEFAULT_KEY, PartitionTerm, SortTerm, Table, TableChange, TableSpec,
};

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::allowed::check as check_plan;
use crate::statements::columns::{cast_to, named, storable_schema, with_declared_types};
use crate::statements::comment;
use crate::statements::defaults;
use crate::statements::external;
use crate::statements::like;
use crate::statements::maintain;
use crate::statements::outcome::count_written;
use crate::statements::roll_back;
use crate::statements::view;
use crate::tables::properties;
use stoa_semantics::errors::from_datafusion;
use stoa_sql::StatementKind;
use stoa_sql::identity::{IDENTITY_KEY, Identity};
use stoa_sql::{
    AlterAction, AlterTableStatement, AlterViewAction, AlterViewStatement, CreateTableStatement,
    name_parts,
};

/// Carries out a statement of this module; any other is a bug.
pub(crate) async fn run(
    session: &Session,
    kind: &StatementKind,
    guard: &QueryGuard,
) -> Result<Completion> {
    let completion = match kind {
        StatementKind::CreateTable(table) => create_table(session, table, guard).await,
        StatementKind::CreateSchema { name, if_not_exists } => {
            create_schema(session, &schema_name(name)?, *if_not_exists).await
        }
        StatementKind::DropSchema { name, if_exists, cascade } => {
            drop_schema(session, &schema_name(name)?, *if_exists, *cascade).await
        }
        StatementKind::DropTable { names, if_exists, purge } => {
            let mut completion = Completion::of("DROP TABLE");
            for name in names {
                let ident = session.table_ident(name)?;
                // Nobody goes back to the files of a temporary table.
                let purge = *purge || session.is_own_temporary(&ident.namespace);
                if let Some(notice) = drop_table(session, &ident, *if_exists, purge).await? {
                    completion.notices.push(notice);
                }
            }
            Ok(completion)
        }
        StatementKind::AlterTable(alter) => alter_table(session, alter, guard).await,
        StatementKind::Comment(statement) => comment::run(session, statement).await,
        StatementKind::CreateView(create) => view::create(session, create).await,
        StatementKind::AlterView(alter) => view::alter(session, alter).await,
        StatementKind::DropView { names, if_exists } => {
            view::drop(session, names, *if_exists).await
        }
        other => Err(Error::internal(format!("{other:?} is no definition"))),
    }?;
    session.data.refresh().await?;
    Ok(completion)
}

async fn create_schema(session: &Session, name: &str, if_not_exists: bool) -> Result<Completion> {
    session.caller.must_be_superuser("create schemas")?;
    if name.starts_with("pg_") {
        return Err(Error::invalid(format!("unacceptable schema name \"{name}\""))
            .with_sqlstate("42939")
            .with_hint("names that begin with pg_ are the system's"));
    }
    match session.data.warehouse().create_namespace(name, &BTreeMap::new()).await {
        Ok(()) => Ok(Completion::of("CREATE SCHEMA")),
        Err(error) if if_not_exists && error.kind() == ErrorKind::AlreadyExists => {
            Ok(Completion::of("CREATE SCHEMA").with_notice(format!("{error}, skipping")))
        }
        Err(error) => Err(error),
    }
}

/// Drops a schema; with `cascade` all that is in it, too.
///
/// # Errors
/// The catalog's, and those of rights.
pub(crate) async fn drop_schema(
    session: &Session,
    name: &str,
    if_exists: bool,
    cascade: bool,
) -> Result<Completion> {
    session.caller.must_be_superuser("drop schemas")?;
    let warehouse = session.data.warehouse();
    let is_there = warehouse.namespaces().await?.iter().any(|there| there == name);
    if cascade && is_there {
        for ident in warehouse.views(name).await? {
            view::remove(session, &ident).await?;
        }
        for ident in warehouse.tables(name).await? {
            remove(session, &ident, true).await?;
        }
    }
    match warehouse.drop_namespace(name).await {
        Ok(()) => Ok(Completion::of("DROP SCHEMA")),
        Err(error) if if_exists && error.kind() == ErrorKind::NotFound => {
            Ok(Completion::of("DROP SCHEMA").with_notice(format!("{error}, skipping")))
        }
        Err(error) => Err(error),
    }
}

async fn drop_table(
    session: &Session,
    ident: &TableIdent,
    if_exists: bool,
    purge: bool,
) -> Result<Option<String>> {
    match remove(session, ident, purge).await {
        Ok(()) => {
            session.dropped(ident);
            Ok(None)
        }
        Err(error) if if_exists && error.kind() == ErrorKind::NotFound => {
            Ok(Some(format!("{error}, skipping")))
        }
        Err(error) => Err(error),
    }
}

/// Drops the table and its fresh rows.
async fn remove(session: &Session, ident: &TableIdent, purge: bool) -> Result<()> {
    let data = &session.data;
    let table = data.warehouse().table(ident).await.ok();
    match &table {
        Some(table) => session.caller.must_own(table)?,
        None => session.caller.must_be_superuser("drop tables that cannot be read")?,
    }
    let Some(table) = table else { return data.warehouse().drop_table(ident, purge).await };
    session.drop_only(&table, purge).await
}

async fn create_table(
    session: &Session,
    table: &CreateTableStatement,
    guard: &QueryGuard,
) -> Result<Completion> {
    let ident = session.ident_to_create(&table.name, table.is_temporary).await?;
    if !session.is_own_temporary(&ident.namespace) {
        session.caller.must_be_superuser("create tables")?;
    }
    if let Some(files) = &table.external {
        return external::create(session, table, files).await;
    }
    let table = &like::with_columns(session, table).await?;
    properties::check(texts(&table.properties))?;
    defaults::check_all(session, &table.columns, guard).await?;
    let Some(query) = &table.query else {
        let columns = defaults::with_sequences(session, &table.columns).await?;
        let schema = Arc::new(Schema::new(columns));
        let created = session.data.warehouse().create_table(&ident, spec_of(table, schema)).await;
        return match created {
            Err(error) if table.if_not_exists && error.kind() == ErrorKind::AlreadyExists => {
                Ok(Completion::of("CREATE TABLE").with_notice(format!("{error}, skipping")))
            }
            other => {
                session.created(&ident, other?.uuid()).await?;
                if table.drops_at_end {
                    session.drop_at_end(&ident).await?;
                }
                Ok(created_with_key(!table.primary_key.is_empty()))
            }
        };
    };
    if table.if_not_exists && session.data.warehouse().table(&ident).await.is_ok() {
        let notice = format!("table {ident} already exists, skipping");
        return Ok(Completion::of("CREATE TABLE").with_notice(notice));
    }
    let state = session.state();
    if stoa_pg_catalog::lists_names(&query.statement) {
        session.data.refresh().await?;
    }
    let with_names = session.with_temporary_names(&query.statement, &query.text)?;
    let statement = with_names.as_ref().unwrap_or(&query.statement);
    let plan = session.plan_defining(&state, statement, &table.column_names).await?;
    let expanded = session.expand_views(plan).await?;
    session.check_views(&expanded.views)?;
    check_plan(&expanded.plan)?;
    let plan = stoa_semantics::analyzed(&state, &expanded.plan).map_err(from_datafusion)?;
    let schema = storable_schema(&named(plan.schema().as_arrow(), &table.column_names)?)?;
    let schema = with_declared_types(&schema, &plan);
    let plan = cast_to(plan, &schema)?;
    let staged = session.data.warehouse().stage_table(&ident, spec_of(table, schema)).await?;
    let uuid = staged.uuid();
    let rows = append_plan(session, staged, plan, guard).await?;
    session.created(&ident, uuid).await?;
    if table.drops_at_end {
        session.drop_at_end(&ident).await?;
    }
    Ok(Completion { tag: format!("SELECT {rows}"), rows, notices: Vec::new() })
}

fn created_with_key(has_key: bool) -> Completion {
    let done = Completion::of("CREATE TABLE");
    match has_key {
        true => done.with_notice(KEY_NOTICE),
        false => done,
    }
}

/// Appends the rows of a logical plan to a table, which may be staged; its columns are the
/// table's, in order.
pub(crate) async fn append_plan(
    session: &Session,
    table: Table,
    plan: LogicalPlan,
    guard: &QueryGuard,
) -> Result<u64> {
    let name = table.ident().to_string();
    let source = provider_as_source(Arc::new(session.data.as_engine_table(table)));
    let plan = LogicalPlanBuilder::insert_into(plan, name, source, InsertOp::Append)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)?;
    let plan = session.pin_snapshots(plan).await?;
    count_written(session.stream(&plan, guard).await?).await
}

fn spec_of(table: &CreateTableStatement, schema: SchemaRef) -> TableSpec {
    TableSpec {
        schema,
        partition_by: table.partition_by.clone(),
        sort_by: table.sort_by.clone(),
        identifiers: table.primary_key.clone(),
        properties: table.properties.iter().cloned().collect(),
        comment: table.comment.clone(),
    }
}

/// A table's definition from parts that are not SQL: `stoa load --create`.
pub(crate) fn spec_from_parts(
    schema: SchemaRef,
    partition_by: Vec<PartitionTerm>,
    sort_by: Vec<SortTerm>,
    properties: BTreeMap<String, String>,
) -> TableSpec {
    TableSpec { partition_by, sort_by, properties, ..TableSpec::new(schema) }
}

/// What whoever declares a key should know.
const KEY_NOTICE: &str = "the PRIMARY KEY is declared, not enforced: INSERT and COPY do not look for rows of the same key; \
     INSERT … ON CONFLICT does";

async fn alter_table(
    session: &Session,
    alter: &AlterTableStatement,
    guard: &QueryGuard,
) -> Result<Completion> {
    let ident = session.table_ident(&alter.name)?;
    let warehouse = session.data.warehouse();
    let mut completion = Completion::of("ALTER TABLE");
    let table = match warehouse.table(&ident).await {
        Err(error) if alter.if_exists && error.kind() == ErrorKind::NotFound => {
            return Ok(completion.with_notice(format!("{error}, skipping")));
        }
        Err(error) if error.is(Condition::WrongObjectType) => {
            // As in PostgreSQL, what views have in common with tables is changed by either statement.
            let Some(of_view) = of_view(alter) else { return Err(error) };
            return view::alter(session, &of_view)
                .await
                .map(|done| Completion { notices: done.notices, ..completion });
        }
        other => other?,
    };
    crate::tables::cells::refuse_rows(&table)?;
    session.caller.must_own(&table)?;
    if let [AlterAction::SetOwner(owner)] = alter.actions.as_slice() {
        session.caller.may_give_to(owner)?;
        let rights = session.gate.rights();
        rights.catalog().set_owner(table.uuid(), owner).await?;
        rights.refresh().await?;
        return Ok(completion);
    }
    if let [AlterAction::RenameTable { to }] = alter.actions.as_slice() {
        let mut target = session.table_ident(to)?;
        if name_parts(to)?.len() == 1 {
            target.namespace.clone_from(&ident.namespace);
        }
        if target.namespace != ident.namespace {
            // Whoever has rights on that schema would have them on the table.
            session.caller.must_be_superuser("move tables to another schema")?;
        }
        warehouse.rename_only(&table, &target).await?;
        session.renamed(&ident, &target);
        return Ok(completion);
    }
    if let [AlterAction::RollBack(target)] = alter.actions.as_slice() {
        return roll_back::run(session, &table, target)
            .await
            .map(|done| completion.with_notice(done));
    }
    for action in &alter.actions {
        if let AlterAction::SetProperties(set) = action {
            properties::check(texts(set))?;
        }
    }
    external::check_changes(&table, &alter.actions)?;
    // What was acknowledged before is in what a tag names.
    let names_now =
        |action: &AlterAction| matches!(action, AlterAction::CreateTag { snapshot_id: None, .. });
    let table = match alter.actions.iter().any(names_now) {
        true => maintain::flushed(session, &table).await?,
        false => table,
    };
    let columns: Vec<String> =
        table.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut changes = Vec::with_capacity(alter.actions.len());
    for action in &alter.actions {
        if let AlterAction::SetDefault { name, .. } = action
            && let Some(text) = table.defaults().get(name)
            && Identity::of_default(text).is_some()
        {
            let message = format!("column \"{name}\" of relation {ident} is an identity column");
            return Err(Error::invalid(message).with_sqlstate("42601"));
        }
        if let AlterAction::SetDefault { name, default: Some(text) } = action {
            let schema = table.schema();
            let column = schema.field_with_name(name).map_err(|_| no_column(name))?;
            defaults::check(session, name, column.data_type(), text, guard).await?;
        }
        match change_of(action, &table, &columns)? {
            Planned::Change(change) => changes.push(change),
            Planned::Skip(notice) => completion.notices.push(notice),
        }
    }
    if !changes.is_empty() {
        table.alter(changes).await?;
    }
    Ok(completion)
}

/// The change of a table as one of a view; `None` for what views do not have.
fn of_view(alter: &AlterTableStatement) -> Option<AlterViewStatement> {
    let action = match alter.actions.as_slice() {
        [AlterAction::RenameTable { to }] => AlterViewAction::Rename(to.clone()),
        [AlterAction::SetOwner(owner)] => AlterViewAction::SetOwner(owner.clone()),
        _ => return None,
    };
    Some(AlterViewStatement { name: alter.name.clone(), if_exists: alter.if_exists, action })
}

fn texts(properties: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    properties.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

enum Planned {
    Change(TableChange),
    Skip(String),
}

fn change_of(action: &AlterAction, table: &Table, columns: &[String]) -> Result<Planned> {
    let exists = |name: &String| columns.contains(name);
    let is_tag = |name: &String| -> Result<bool> {
        Ok(table.named_snapshots()?.iter().any(|named| named.name == *name))
    };
    Ok(Planned::Change(match action.clone() {
        AlterAction::AddColumn { field, if_not_exists: true } if exists(field.name()) => {
            let notice = format!("column \"{}\" already exists, skipping", field.name());
            return Ok(Planned::Skip(notice));
        }
        AlterAction::DropColumn { name, if_exists: true } if !exists(&name) => {
            return Ok(Planned::Skip(format!("column \"{name}\" does not exist, skipping")));
        }
        AlterAction::CreateTag { name, if_not_exists: true, .. } if is_tag(&name)? => {
            return Ok(Planned::Skip(format!("tag \"{name}\" already exists, skipping")));
        }
        AlterAction::DropTag { name, if_exists: true } if !is_tag(&name)? => {
            return Ok(Planned::Skip(format!("tag \"{name}\" does not exist, skipping")));
        }
        AlterAction::CreateTag { name, snapshot_id, .. } => {
            TableChange::CreateTag { name, snapshot_id }
        }
        AlterAction::DropTag { name, .. } => TableChange::DropTag(name),
        AlterAction::AddColumn { field, .. } if field.metadata().contains_key(IDENTITY_KEY) => {
            return Err(Error::unsupported("ADD COLUMN of an identity column is not supported")
                .with_hint("make a new table, and INSERT the rows of this one into it"));
        }
        AlterAction::AddColumn { field, .. } if field.metadata().contains_key(DEFAULT_KEY) => {
            return Err(Error::unsupported("ADD COLUMN with a DEFAULT is not supported").with_hint(
                "add the column without it, set it with ALTER COLUMN … SET DEFAULT, and UPDATE the rows that are there",
            ));
        }
        AlterAction::AddColumn { field, .. } => {
            TableChange::AddColumn { field, position: ColumnPosition::Last }
        }
        AlterAction::DropColumn { name, .. } => TableChange::DropColumn(name),
        AlterAction::RenameColumn { from, to } => TableChange::RenameColumn { from, to },
        AlterAction::ChangeType { name, data_type, declared } => {
            TableChange::ChangeType { column: name, data_type, declared }
        }
        AlterAction::DropNotNull { name } => TableChange::SetNullable(name),
        AlterAction::SetDefault { name, default } => {
            TableChange::SetDefault { column: name, default }
        }
        AlterAction::Unsupported(clause) => {
            return Err(Error::unsupported(format!("ALTER TABLE … {clause} is not supported"))
                .with_hint("create a table as it should be, and copy the rows into it"));
        }
        AlterAction::SetProperties(properties) => {
            TableChange::SetProperties(properties.into_iter().collect())
        }
        AlterAction::UnsetProperties(names) => TableChange::UnsetProperties(names),
        AlterAction::SetSortOrder(terms) => TableChange::SetSortOrder(terms),
        AlterAction::RenameTable { .. } | AlterAction::SetOwner(_) | AlterAction::RollBack(_) => {
            let what = "RENAME TO, OWNER TO and ROLLBACK TO stand alone in an ALTER TABLE";
            return Err(Error::invalid(what).with_sqlstate("42601"));
        }
    }))
}

fn no_column(name: &str) -> Error {
    Error::not_found(format!("column \"{name}\" does not exist")).with_sqlstate("42703")
}

fn schema_name(name: &datafusion::sql::sqlparser::ast::ObjectName) -> Result<String> {
    let mut parts = name_parts(name)?;
    match (parts.pop(), parts.as_slice()) {
        (Some(name), []) => Ok(name),
        (Some(name), [database]) if database == crate::DATABASE => Ok(name),
        _ => Err(Error::invalid(format!("{name} is no namespace of database {}", crate::DATABASE))
            .with_sqlstate("3F000")
            .with_hint("namespaces have one level")),
    }
}
