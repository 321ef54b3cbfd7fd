//! `INSERT | UPDATE | DELETE | MERGE … RETURNING columns`: the statement without it, and the query over its rows.
//!
//! In: a statement as it was parsed. Out: the same without RETURNING, and `SELECT columns FROM table [AS alias]`,
//! whose rows of the table are those that the statement changed. Not here: which rows these are (`stoa-query`,
//! `dml::returning`).

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    FromTable, Insert, OutputClause, SelectItem, SetExpr, Statement, TableAlias, TableFactor,
    TableObject,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

/// The columns that a statement returns; `None` where it returns none.
pub(super) fn columns_of(statement: &mut Statement) -> Option<&mut Vec<SelectItem>> {
    match statement {
        Statement::Insert(insert) => insert.returning.as_mut(),
        Statement::Update(update) => update.returning.as_mut(),
        Statement::Delete(delete) => delete.returning.as_mut(),
        Statement::Merge(merge) => match merge.output.as_mut() {
            Some(OutputClause::Returning { select_items, .. }) => Some(select_items),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a statement returns the rows that it changes.
pub fn is_in(statement: &EngineStatement) -> bool {
    let EngineStatement::Statement(statement) = statement else { return false };
    match statement.as_ref() {
        Statement::Insert(insert) => insert.returning.is_some(),
        Statement::Update(update) => update.returning.is_some(),
        Statement::Delete(delete) => delete.returning.is_some(),
        Statement::Merge(merge) => matches!(merge.output, Some(OutputClause::Returning { .. })),
        _ => false,
    }
}

/// Refuses what would return columns of a second table, which PostgreSQL does for `*`.
///
/// # Errors
/// 0A000.
pub fn check(statement: &mut EngineStatement) -> Result<()> {
    let EngineStatement::Statement(statement) = statement else { return Ok(()) };
    let has_source = match statement.as_ref() {
        Statement::Update(update) => update.from.is_some(),
        Statement::Delete(delete) => delete.using.is_some(),
        Statement::Merge(_) => true,
        _ => false,
    };
    let is_all = |column: &SelectItem| matches!(column, SelectItem::Wildcard(_));
    match columns_of(statement) {
        Some(columns) if has_source && columns.iter().any(is_all) => Err(Error::unsupported(
            "RETURNING * with columns of a second table is not supported",
        )
        .with_hint(
            "name the columns, or write RETURNING name.* for those of the table that is changed",
        )),
        _ => Ok(()),
    }
}

/// Takes the alias from an INSERT in which nothing can name it any more: the engine knows none.
pub(super) fn drop_alias(insert: &mut Insert) {
    if insert.on.is_none() && insert.returning.is_none() {
        insert.table_alias = None;
    }
}

/// Takes RETURNING out of a statement; gives the query over the rows of its table. `None` where there is none, or no
/// such table.
pub fn take(statement: &mut EngineStatement) -> Option<EngineStatement> {
    let EngineStatement::Statement(statement) = statement else { return None };
    let (columns, table) = match statement.as_mut() {
        Statement::Insert(insert) => {
            let TableObject::TableName(name) = &insert.table else { return None };
            let alias = insert.table_alias.as_ref().map(|alias| TableAlias {
                explicit: true,
                name: alias.alias.clone(),
                columns: Vec::new(),
                at: None,
            });
            let returned = insert.returning.take()?;
            let table = named_table(name, alias)?;
            drop_alias(insert);
            (returned, table)
        }
        Statement::Update(update) => (update.returning.take()?, update.table.relation.clone()),
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let [table] = from.as_slice() else { return None };
            (delete.returning.take()?, table.relation.clone())
        }
        Statement::Merge(merge) => match merge.output.take()? {
            OutputClause::Returning { select_items, .. } => (select_items, merge.table.clone()),
            OutputClause::Output { .. } => return None,
        },
        _ => return None,
    };
    let mut query = query("SELECT 1 FROM t")?;
    if let Statement::Query(query) = &mut query
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        select.projection = columns;
        select.from.first_mut()?.relation = table;
    }
    Some(EngineStatement::Statement(Box::new(query)))
}

fn named_table(
    name: &datafusion_sql::sqlparser::ast::ObjectName,
    alias: Option<TableAlias>,
) -> Option<TableFactor> {
    let Statement::Query(query) = query("SELECT 1 FROM t")? else { return None };
    let SetExpr::Select(mut select) = *query.body else { return None };
    let mut table = select.from.pop()?.relation;
    if let TableFactor::Table { name: own, alias: own_alias, .. } = &mut table {
        *own = name.clone();
        *own_alias = alias;
    }
    Some(table)
}

fn query(text: &str) -> Option<Statement> {
    Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?.parse_statement().ok()
}
