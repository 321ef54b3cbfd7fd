//! `INSERT OVERWRITE table [PARTITION (…)] query`: rows that take the place of others.
//!
//! | form | what goes |
//! |---|---|
//! | `PARTITION (column = value, …)` | rows with these values |
//! | no values, partitioned table | the table partitions into which rows come |
//! | no values, table without partitions | all rows |

use datafusion::common::Column;
use datafusion::common::TableReference;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{DmlStatement, Expr, Filter, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Ident, TableObject};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use stoa_error::{Error, Result};

use super::{Applied, Files, RowChange, scan};
use crate::session::Session;
use crate::statements::allowed::check as check_plan;
use crate::tables::table::StoaTable;
use stoa_semantics::errors::from_datafusion;
use stoa_sql::normalise;
use stoa_sql::syntax_error::from_sql_parser;

/// Rows in the place of those that meet a condition.
pub(super) struct Overwrite {
    pub(super) table: StoaTable,
    pub(super) name: TableReference,
    pub(super) condition: Expr,
    pub(super) content: LogicalPlan,
}

impl Overwrite {
    pub(super) fn of(dml: &DmlStatement, table: &StoaTable, condition: Expr) -> Self {
        Self {
            table: table.clone(),
            name: dml.table_name.clone(),
            condition,
            content: dml.input.as_ref().clone(),
        }
    }
}

impl RowChange for Overwrite {
    fn conditions(&self) -> Vec<Expr> {
        split_conjunction_owned(self.condition.clone())
    }

    fn changed(&self, files: Files) -> EngineResult<LogicalPlan> {
        let rows = LogicalPlanBuilder::from(scan(&self.table, &self.name, files)?);
        rows.filter(self.condition.clone())?.build()
    }

    fn rewritten(&self, files: Files) -> EngineResult<LogicalPlan> {
        let stays = Expr::IsNotTrue(Box::new(self.condition.clone()));
        let rows = LogicalPlanBuilder::from(scan(&self.table, &self.name, files)?);
        let schema = self.table.table.schema();
        let columns = schema.fields().iter().map(|field| {
            let column = Column::new(Some(self.name.clone()), field.name());
            Expr::Column(column).alias(field.name())
        });
        rows.filter(stays)?.project(columns.collect::<Vec<_>>())?.build()
    }

    fn added(&self) -> EngineResult<Option<LogicalPlan>> {
        Ok(Some(self.content.clone()))
    }

    fn affected(&self, applied: &Applied) -> u64 {
        let kept = applied.rows_before.saturating_sub(applied.rows_changed);
        applied.rows_written.saturating_sub(kept)
    }
}

/// What a statement's `PARTITION (…)` says: the statement without it, and the condition on the
/// rows that go.
pub(crate) async fn resolve_partition(
    session: &Session,
    statement: &EngineStatement,
) -> Result<Option<(EngineStatement, Option<Expr>)>> {
    let EngineStatement::Statement(inner) = statement else { return Ok(None) };
    let ast::Statement::Insert(insert) = inner.as_ref() else { return Ok(None) };
    let Some(terms) = &insert.partitioned else { return Ok(None) };
    let mut insert = insert.clone();
    insert.partitioned = None;
    let values = static_values(terms)?;
    let condition = match values.is_empty() {
        true => None,
        false => {
            append_values(session, &mut insert, &values).await?;
            Some(condition_on(session, &insert.table, &values).await?)
        }
    };
    let statement = ast::Statement::Insert(insert);
    Ok(Some((EngineStatement::Statement(Box::new(statement)), condition)))
}

/// The columns that have a value: `day = DATE '2025-01-01'`. Columns without one are dynamic.
fn static_values(terms: &[ast::Expr]) -> Result<Vec<(Ident, ast::Expr)>> {
    let mut values = Vec::new();
    for term in terms {
        match term {
            ast::Expr::Identifier(_) => {}
            ast::Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match left.as_ref() {
                ast::Expr::Identifier(column) => values.push((column.clone(), (**right).clone())),
                other => return Err(not_a_term(other)),
            },
            other => return Err(not_a_term(other)),
        }
    }
    Ok(values)
}

fn not_a_term(term: &ast::Expr) -> Error {
    Error::invalid(format!("{term} is neither a column nor column = value"))
        .with_sqlstate("42601")
        .with_hint("write PARTITION (column = value, …)")
}

/// Makes the values columns of the rows that are inserted.
async fn append_values(
    session: &Session,
    insert: &mut ast::Insert,
    values: &[(Ident, ast::Expr)],
) -> Result<()> {
    let names: Vec<String> = values.iter().map(|(column, _)| normalise(column)).collect();
    if insert.columns.is_empty() {
        let TableObject::TableName(name) = &insert.table else {
            return Err(Error::unsupported("INSERT into a function is not supported"));
        };
        let table = session.data.warehouse().table(&session.table_ident(name)?).await?;
        crate::tables::cells::refuse_rows(&table)?;
        let others = table
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .filter(|name| !names.contains(name))
            .collect::<Vec<_>>();
        insert.columns = others.into_iter().map(quoted).collect();
    }
    insert.columns.extend(names.into_iter().map(quoted));
    let source = insert
        .source
        .take()
        .ok_or_else(|| Error::invalid("INSERT OVERWRITE has no rows").with_sqlstate("42601"))?;
    // Named, since the rows may have a column of the same value.
    let named =
        |(at, (_, value)): (usize, &(Ident, ast::Expr))| format!("{value} AS \"partition {at}\"");
    let values: Vec<String> = values.iter().enumerate().map(named).collect();
    let text = format!("SELECT *, {} FROM ({source}) AS inserted", values.join(", "));
    insert.source = Some(parse(&text, |parser| parser.parse_query())?);
    Ok(())
}

fn quoted(name: String) -> ast::ObjectName {
    ast::ObjectName::from(vec![Ident::with_quote('"', name)])
}

/// The condition as the engine plans it for a DELETE.
async fn condition_on(
    session: &Session,
    table: &TableObject,
    values: &[(Ident, ast::Expr)],
) -> Result<Expr> {
    let terms: Vec<String> =
        values.iter().map(|(column, value)| format!("{column} = {value}")).collect();
    let text = format!("DELETE FROM {table} WHERE {}", terms.join(" AND "));
    let delete =
        EngineStatement::Statement(Box::new(parse(&text, |parser| parser.parse_statement())?));
    let plan = session.state().statement_to_plan(delete).await.map_err(from_datafusion)?;
    check_plan(&plan)?;
    let condition = match &plan {
        LogicalPlan::Dml(dml) => match dml.input.as_ref() {
            LogicalPlan::Filter(Filter { predicate, .. }) => Some(predicate.clone()),
            _ => None,
        },
        _ => None,
    };
    let condition = condition.ok_or_else(|| Error::internal("a condition was planned away"))?;
    if has_parameter(&condition)? {
        return Err(Error::unsupported("a parameter cannot stand in PARTITION (…)")
            .with_hint("write the value"));
    }
    Ok(condition)
}

fn has_parameter(expr: &Expr) -> Result<bool> {
    expr.exists(|inner| Ok(matches!(inner, Expr::Placeholder(_)))).map_err(from_datafusion)
}

pub(super) fn parse<T>(
    text: &str,
    part: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> Result<T> {
    let dialect = PostgreSqlDialect {};
    let parsed = Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| part(&mut parser));
    parsed.map_err(|error| from_sql_parser(&error, text))
}

/// A condition that holds for every row of the table.
pub(super) fn always() -> Expr {
    lit(true)
}
