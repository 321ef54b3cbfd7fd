//! From a statement's text to its operation.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use stoa_error::{Condition, Error, Result};
use stoa_hiveql::{substituted, without_prefix};
use stoa_query::{Engine, HiveOptions, Prepared, Session};
use stoa_sql::path_of;

use crate::catalog;
use crate::command::Command;
use crate::dialect::{database_of, namespace_of, quoted, translate};
use crate::operation::Operation;
use crate::sessions::HiveSession;
use crate::small_table::{Cell, Of, small_table};
use stoa_thrift::OperationKind;

/// Schemas that are there and that no list of databases shows.
const HIDDEN_SCHEMAS: [&str; 3] = ["system", "pg_catalog", "information_schema"];
/// The variable that says where NULLs come in ascending order.
const NULLS_LAST: &str = "hive.default.nulls.last";
/// The variable that says whether scripts may end before they have read all their rows.
const PARTIAL_SCRIPTS: &str = "hive.exec.script.allow.partial.consumption";
/// What the names of Stoa's settings may begin with.
pub(crate) const SETTING_PREFIX: &str = "stoa.";

/// What a statement has become.
pub(crate) enum Begun {
    /// It has been answered.
    Done(Operation),
    /// It is planned, and is to be run.
    Planned(Operation, Prepared),
}

/// Answers or plans a statement.
///
/// # Errors
/// Those of the statement's text and of its plan; transactions, and several statements at once.
pub(crate) async fn begin(
    engine: &Engine,
    own: &HiveSession,
    text: &str,
    timeout: Option<Duration>,
) -> Result<Begun> {
    let session = &own.session;
    let text = text.trim().trim_end_matches(';');
    let substituted = match session.speaks_hive() {
        true => substituted(text, &|name| own.variable(name))?,
        false => text.to_owned(),
    };
    let text = substituted.as_str();
    if let Some(command) = Command::of(text)
        && let Some(rows) = answer(engine, own, command).await?
    {
        let operation = Operation::done(session, OperationKind::Statement, rows);
        return Ok(Begun::Done(operation));
    }
    let prepared = plan(own, text).await?;
    let operation = Operation::statement(session, &prepared, timeout);
    Ok(Begun::Planned(operation, prepared))
}

async fn plan(own: &HiveSession, text: &str) -> Result<Prepared> {
    let session = &own.session;
    let mut statements = match session.speaks_hive() {
        true => {
            let nulls_last = own.variable(NULLS_LAST).is_some_and(|value| value == "true");
            let partial_scripts =
                own.variable(PARTIAL_SCRIPTS).is_some_and(|value| value == "true");
            session.parse_hiveql(text, HiveOptions { nulls_last, partial_scripts }).await?
        }
        false => session.parse_sql(&translate(text)).await?,
    };
    let statement = statements.pop().filter(|statement| !statement.is_empty());
    let Some(statement) = statement.filter(|_| statements.is_empty()) else {
        return Err(Error::invalid("one statement is needed: there are several, or there is none")
            .with_sqlstate("42601")
            .with_hint("send statements one by one"));
    };
    if statement.transaction().is_some() {
        return Err(Error::unsupported("transactions over HiveServer2 are not supported")
            .with_hint("each statement commits by itself"));
    }
    session.prepare(statement, Vec::new()).await
}

/// The rows of a command, if it has any; the outer `None` leaves it to the engine.
async fn answer(
    engine: &Engine,
    own: &HiveSession,
    command: Command,
) -> Result<Option<Option<RecordBatch>>> {
    let session = &own.session;
    let rows = match command {
        Command::Use(database) => {
            use_database(engine, session, &database).await?;
            None
        }
        Command::Set(name, value) => return set(own, &name, &value),
        Command::SetAll => Some(column("set", own.variables())?),
        Command::Get(name) => Some(column("set", vec![get(own, &name)])?),
        Command::CurrentDatabase => {
            let database = database_of(&session.namespace()).to_owned();
            Some(column("_c0", vec![database])?)
        }
        Command::Databases(like) => {
            Some(column("database_name", catalog::databases(engine, like.as_deref()).await?)?)
        }
        Command::Tables { database, like, only_views } => {
            if let Some(database) = &database {
                check_database(engine, database).await?;
            }
            let namespace = namespace(session, database);
            let names =
                catalog::table_names(session, &namespace, like.as_deref(), only_views).await?;
            Some(column("tab_name", names)?)
        }
        Command::Partitions { database, table } => {
            let name = table_name(session, database, &table);
            let rows =
                catalog::texts(session, &format!("SHOW PARTITION NAMES FROM {name}")).await?;
            let names = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
            Some(column("partition", names.collect())?)
        }
        Command::CreateTable { database, table } => {
            let name = table_name(session, database, &table);
            let rows = catalog::texts(session, &format!("SHOW CREATE TABLE {name}")).await?;
            let text = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).next();
            let lines = text.unwrap_or_default().lines().map(str::to_owned).collect();
            Some(column("createtab_stmt", lines)?)
        }
        Command::Describe { database, table, is_detailed } => {
            let table = if session.speaks_hive() { table.to_lowercase() } else { table };
            let said =
                database.iter().chain([&table]).map(String::as_str).collect::<Vec<_>>().join(".");
            let namespace = namespace(session, database);
            let rows = catalog::describe(session, &namespace, &table, is_detailed).await?;
            Some(rows.ok_or_else(|| no_table(&said))?)
        }
    };
    Ok(Some(rows))
}

fn column(name: &str, texts: Vec<String>) -> Result<RecordBatch> {
    let rows: Vec<_> = texts.into_iter().map(|text| vec![Cell::Text(text)]).collect();
    small_table(&[(name, Of::Text)], &rows)
}

fn namespace(session: &Session, database: Option<String>) -> String {
    database.map_or_else(|| session.namespace(), |name| namespace_of(&name).to_owned())
}

/// A table as Stoa's SQL names it.
fn table_name(session: &Session, database: Option<String>, table: &str) -> String {
    let table = if session.speaks_hive() { table.to_lowercase() } else { table.to_owned() };
    format!("{}.{}", quoted(&namespace(session, database)), quoted(&table))
}

/// PyHive's dialect of SQLAlchemy looks for these words and the name as it has written it.
fn no_table(name: &str) -> Error {
    Error::not_found(format!("Table not found {name}"))
        .with_condition(Condition::UndefinedTable)
        .with_hint("SHOW TABLES lists the tables of the current database")
}

/// Makes a database the one of names without one.
///
/// # Errors
/// 3F000: there is none of this name.
pub(crate) async fn use_database(
    engine: &Engine,
    session: &Arc<Session>,
    database: &str,
) -> Result<()> {
    check_database(engine, database).await?;
    session.set("search_path", Some(&path_of(namespace_of(database))))
}

async fn check_database(engine: &Engine, database: &str) -> Result<()> {
    let namespace = namespace_of(database);
    if HIDDEN_SCHEMAS.contains(&namespace)
        || engine.namespaces().await?.iter().any(|one| one == namespace)
    {
        return Ok(());
    }
    Err(Error::not_found(format!("Database does not exist: {database}"))
        .with_condition(Condition::UndefinedSchema)
        .with_hint("SHOW DATABASES lists them"))
}

/// Sets one of Stoa's settings, or remembers a variable.
pub(crate) fn set(
    own: &HiveSession,
    name: &str,
    value: &str,
) -> Result<Option<Option<RecordBatch>>> {
    let variable = without_prefix(name);
    if let Some(setting) = name.strip_prefix(SETTING_PREFIX)
        && own.session.setting(setting).is_ok()
    {
        own.session.set(setting, Some(value.trim_matches('\'')))?;
        return Ok(Some(None));
    }
    if variable.len() == name.len() && own.session.setting(name).is_ok() {
        // The engine's own statement, with its own rules for values.
        return Ok(None);
    }
    own.set_variable(variable, value)?;
    Ok(Some(None))
}

fn get(own: &HiveSession, name: &str) -> String {
    let variable = without_prefix(name);
    let setting = variable.strip_prefix(SETTING_PREFIX).unwrap_or(variable);
    let value = own.variable(variable).or_else(|| own.session.setting(setting).ok());
    match value {
        Some(value) => format!("{name}={value}"),
        None => format!("{name} is undefined"),
    }
}
