//! `DELETE FROM table AS alias`: the engine forgets the alias, so the rows are planned as a query's.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{DmlStatement, LogicalPlan, TableScan, WriteOp};
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::{Delete, FromTable, Statement, TableFactor};
use datafusion::sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use super::overwrite::parse;
use crate::session::Session;
use stoa_semantics::errors::from_datafusion;

/// The plan of such a statement; `None` for any other.
pub(crate) async fn plan_aliased_delete(
    session: &Session,
    statement: &EngineStatement,
) -> Result<Option<LogicalPlan>> {
    let Some((delete, table)) = aliased(statement) else { return Ok(None) };
    let condition = delete.selection.as_ref().map(|condition| format!(" WHERE {condition}"));
    let text = format!("SELECT * FROM {table}{}", condition.unwrap_or_default());
    let query = parse(&text, |parser: &mut Parser<'_>| parser.parse_statement())?;
    let query = EngineStatement::Statement(Box::new(query));
    let plan = session.state().statement_to_plan(query).await.map_err(from_datafusion)?;
    let LogicalPlan::Projection(projection) = plan else {
        return Err(Error::internal("a query is planned without its columns"));
    };
    let scan = scan_of(&projection.input)?;
    Ok(Some(LogicalPlan::Dml(DmlStatement::new(
        scan.table_name,
        scan.source,
        WriteOp::Delete,
        projection.input,
    ))))
}

fn aliased(statement: &EngineStatement) -> Option<(&Delete, &TableFactor)> {
    let EngineStatement::Statement(statement) = statement else { return None };
    let Statement::Delete(delete) = statement.as_ref() else { return None };
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let is_plain = delete.tables.is_empty()
        && delete.using.is_none()
        && delete.returning.is_none()
        && delete.order_by.is_empty()
        && delete.limit.is_none();
    match from.as_slice() {
        [table] if is_plain && table.joins.is_empty() => match &table.relation {
            relation @ TableFactor::Table { alias: Some(_), .. } => Some((delete, relation)),
            _ => None,
        },
        _ => None,
    }
}

fn scan_of(plan: &LogicalPlan) -> Result<TableScan> {
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found = Some(scan.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    found.ok_or_else(|| Error::unsupported("rows can be deleted from tables only"))
}
