//! `CREATE TABLE … LIKE`: what a new table takes over from another one.

use stoa_error::{Condition, Error, Result};
use stoa_sql::identity::{IDENTITY_KEY, Identity};
use stoa_sql::{COMMENT_KEY, CreateTableStatement, Like};
use stoa_table::{DEFAULT_KEY, FIELD_ID_KEY, Table};

use crate::session::Session;
use crate::statements::show;

/// The statement with the columns of the tables that it names.
///
/// # Errors
/// No such table (42P01), a view (0A000), rights (42501), a column or a key twice (42701, 42601).
pub(super) async fn with_columns(
    session: &Session,
    statement: &CreateTableStatement,
) -> Result<CreateTableStatement> {
    let mut statement = statement.clone();
    // From the last on, so that what is inserted moves nothing that is still to come.
    for like in std::mem::take(&mut statement.likes).iter().rev() {
        let table = find(session, like).await?;
        take_columns(&mut statement, like, &table);
        if like.including.key && !table.identifiers().is_empty() {
            if !statement.primary_key.is_empty() {
                return Err(Error::invalid("a table has one PRIMARY KEY").with_sqlstate("42601"));
            }
            statement.primary_key = table.identifiers();
        }
        if like.including.layout {
            take_layout(&mut statement, &table);
        }
    }
    Ok(statement)
}

/// The table, of which the caller must know all columns.
async fn find(session: &Session, like: &Like) -> Result<Table> {
    let table = show::find_known(session, &like.table).await.map_err(|error| {
        match error.is(Condition::WrongObjectType) {
            true => Error::unsupported("LIKE of a view is not supported")
                .with_hint("write CREATE TABLE … AS SELECT … LIMIT 0"),
            false => error,
        }
    })?;
    let columns = table.schema();
    if session.caller.known_columns(&table, &columns).len() < columns.fields().len() {
        session.caller.may_select_all(&table)?;
    }
    Ok(table)
}

fn take_columns(statement: &mut CreateTableStatement, like: &Like, table: &Table) {
    let defaults = table.defaults();
    let including = like.including;
    for (index, field) in table.schema().fields().iter().enumerate() {
        let mut field = field.as_ref().clone();
        let metadata = field.metadata_mut();
        metadata.remove(FIELD_ID_KEY);
        if !including.comments {
            metadata.remove(COMMENT_KEY);
        }
        metadata.remove(DEFAULT_KEY);
        match defaults.get(field.name()).map(|text| (Identity::of_default(text), text)) {
            Some((Some((identity, _)), _)) if including.identity => {
                field.metadata_mut().insert(IDENTITY_KEY.to_owned(), identity.written());
            }
            Some((None, text)) if including.defaults => {
                field.metadata_mut().insert(DEFAULT_KEY.to_owned(), text.clone());
            }
            _ => {}
        }
        statement.columns.insert(like.at + index, field);
    }
}

/// What the statement does not say itself.
fn take_layout(statement: &mut CreateTableStatement, table: &Table) {
    if statement.partition_by.is_empty() {
        statement.partition_by = table.partition_terms();
    }
    if statement.sort_by.is_empty() {
        statement.sort_by = table.sort_terms();
    }
    for (key, value) in table.properties() {
        let is_free = !stoa_external::Definition::is_own_property(&key);
        if is_free && !statement.properties.iter().any(|(own, _)| *own == key) {
            statement.properties.push((key.clone(), value.clone()));
        }
    }
}
