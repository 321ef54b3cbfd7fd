//! INSERT of rows with fewer values than the table has columns: the columns that get them are named.
//!
//! In: a parsed statement without names of columns. Out: the same with those of its first columns; `None` where nothing is to
//! be named. Not here: what the other columns hold (`defaults`).

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::{
    Ident, Insert, ObjectName, SelectItem, SetExpr, Statement, TableObject,
};
use stoa_error::{ErrorKind, Result};

use crate::session::Session;
use crate::tables::cells;

/// An INSERT of a query that has fewer columns than the table, with the names of the columns that get values. The others
/// get their defaults, as in PostgreSQL. Hive refuses such an INSERT.
///
/// # Errors
/// As [`named`].
pub(crate) async fn with_columns_of_query(
    session: &Session,
    parsed: &EngineStatement,
) -> Result<Option<EngineStatement>> {
    let EngineStatement::Statement(statement) = parsed else { return Ok(None) };
    let Statement::Insert(insert) = statement.as_ref() else { return Ok(None) };
    let (TableObject::TableName(name), Some(query)) = (&insert.table, &insert.source) else {
        return Ok(None);
    };
    let is_meant = !session.speaks_hive()
        && insert.columns.is_empty()
        && insert.assignments.is_empty()
        && insert.partitioned.is_none()
        && !insert.overwrite
        && !matches!(query.body.as_ref(), SetExpr::Values(_));
    if !is_meant {
        return Ok(None);
    }
    let width = match listed_columns(&query.body) {
        Some(width) => width,
        None => {
            let query = Box::new(Statement::Query(query.clone()));
            let query = EngineStatement::Statement(query);
            // What is wrong with it is said where the whole statement is planned.
            match session.plan_parsed(&session.planner().state, query).await {
                Ok(plan) => plan.schema().fields().len(),
                Err(_) => return Ok(None),
            }
        }
    };
    named(session, insert, name, width).await
}

/// How many columns a query has, where that is to be seen without the tables it reads.
fn listed_columns(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| {
                matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
            };
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::SetOperation { left, .. } => listed_columns(left),
        SetExpr::Query(query) => listed_columns(&query.body),
        _ => None,
    }
}

/// The INSERT with the names of its first `width` columns; `None` where the table has no more.
///
/// # Errors
/// Those of the catalog, other than that there is no such table.
pub(super) async fn named(
    session: &Session,
    insert: &Insert,
    name: &ObjectName,
    width: usize,
) -> Result<Option<EngineStatement>> {
    let ident = session.table_ident(name)?;
    let table = match session.data.table(&ident).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    session.caller.must_know(&table.table)?;
    let schema = datafusion::catalog::TableProvider::schema(&table);
    // A table of cells shows other columns than it has, and takes no rows.
    if cells::refuse_rows(&table.table).is_err() || width >= schema.fields().len() {
        return Ok(None);
    }
    let quoted =
        |field: &Arc<Field>| ObjectName::from(vec![Ident::with_quote('"', field.name().clone())]);
    let mut insert = insert.clone();
    insert.columns = schema.fields().iter().take(width).map(quoted).collect();
    Ok(Some(EngineStatement::Statement(Box::new(Statement::Insert(insert)))))
}
