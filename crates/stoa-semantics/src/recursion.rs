//! `WITH RECURSIVE`: both parts of the query, and the table of its own rows, have columns of the same types.
//!
//! The engine plans the recursive part over a table with the columns of the first part as they were then; marks that
//! come from stored columns (field ids) it takes for a part of their type. What the second part gives it casts to the
//! types of the first, whatever it is; PostgreSQL does not. In: a recursive query as it was planned,
//! whose first part has got its types since. Out: the same; columns of both parts bear no marks, and the second
//! part reads and gives the types of the first.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinType};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, TableScan,
    TableScanBuilder, cast,
};

use stoa_error::Error;
use stoa_sql::recursive_terms::ROW_OF_RECURSION;

use super::call::{Operation, call, column};
use super::json_kind::JsonKind;
use super::operators::type_name;
use super::unify::{Branch, type_of_all};
use crate::errors::to_datafusion;

/// The query over a first part whose types are settled; `rewritten` is applied to the second part.
///
/// # Errors
/// The second part has aggregates or outer joins of its own rows (42P19), or gives a type that is not the first one's
/// (42804). Those of `rewritten`; those of the engine, where
/// the second part cannot be planned with the types of the first.
pub(super) fn with_same_columns(
    query: RecursiveQuery,
    rewritten: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    check_form(&query.recursive_term, &query.name)?;
    let first = Arc::unwrap_or_clone(query.static_term);
    let types = Arc::clone(first.schema());
    let first = unmarked(first, &types)?;
    // The second part may give NULL where the first does not.
    let fields = first.schema().fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    let own_rows = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    let table = provider_as_source(Arc::new(CteWorkTable::new(&query.name, own_rows)));
    let second = Arc::unwrap_or_clone(query.recursive_term).transform_up_with_subqueries(
        |node| match node {
            LogicalPlan::TableScan(scan) if reads_own_rows(&scan, &query.name) => {
                let TableScan { table_name, projection, filters, fetch, .. } = scan;
                let table = Arc::clone(&table);
                let scan = TableScanBuilder::new(table_name, table)
                    .with_projection(projection)
                    .with_filters(filters)
                    .with_fetch(fetch)
                    .build()?;
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            node => node.recompute_schema().map(Transformed::yes),
        },
    )?;
    let second = rewritten(second.data)?;
    check_types(&query.name, &second, &types)?;
    let second = unmarked(second, &types)?;
    let (first, second) = (Arc::new(first), Arc::new(second));
    let query = RecursiveQuery::try_new(query.name, first, second, query.is_distinct)?;
    Ok(LogicalPlan::RecursiveQuery(query))
}

/// Checks that the second part does not ask of its own rows what only all of them could tell; whether it reads them.
fn check_form(node: &LogicalPlan, name: &str) -> Result<bool> {
    let inputs = node.inputs().into_iter().map(|input| check_form(input, name));
    let inputs = inputs.collect::<Result<Vec<bool>>>()?;
    let refused = |what: String| {
        let error = Error::invalid(what).with_sqlstate("42P19");
        Err(to_datafusion(error))
    };
    let mut in_subquery = false;
    node.apply_subqueries(|query| {
        in_subquery |= check_form(query, name)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if in_subquery {
        let query = format!("recursive reference to query \"{name}\"");
        return refused(format!("{query} must not appear within a subquery"));
    }
    match (node, inputs.as_slice()) {
        (LogicalPlan::TableScan(scan), _) => return Ok(reads_own_rows(scan, name)),
        (LogicalPlan::Aggregate(of), [true]) if !of.aggr_expr.is_empty() => {
            let what = "aggregate functions are not allowed in a recursive query's recursive term";
            return refused(what.to_owned());
        }
        (LogicalPlan::Join(join), [left, right]) => {
            let is_outer = match join.join_type {
                JoinType::Left => *right,
                JoinType::Right => *left,
                JoinType::Full => *left || *right,
                _ => false,
            };
            if is_outer {
                let query = format!("recursive reference to query \"{name}\"");
                return refused(format!("{query} must not appear within an outer join"));
            }
        }
        _ => {}
    }
    Ok(inputs.contains(&true))
}

fn check_types(name: &str, second: &LogicalPlan, types: &DFSchema) -> Result<()> {
    let LogicalPlan::Projection(given) = second else { return Ok(()) };
    for (place, (expr, field)) in given.expr.iter().zip(types.fields()).enumerate() {
        let value = written(expr);
        let own = Branch::of(value, value.get_type(given.input.schema())?);
        let first = Branch { of: field.data_type().clone(), is_unknown: false };
        let overall = type_of_all("UNION", &[first.clone(), own])?;
        if let Some(overall) = overall.filter(|overall| *overall != first.of) {
            let place = place + 1;
            let (own, overall) = (type_name(&first.of), type_name(&overall));
            // Decimals of any size are one type.
            if own != overall {
                let message = format!(
                    "recursive query \"{name}\" column {place} has type {own} in non-recursive term but \
                     type {overall} overall"
                );
                let error = Error::invalid(message)
                    .with_sqlstate("42804")
                    .with_hint("cast the output of the non-recursive term to the correct type");
                return Err(to_datafusion(error));
            }
        }
    }
    Ok(())
}

/// What the statement has in the place of an item of the second part, without the engine's cast.
fn written(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => written(&alias.expr),
        Expr::Cast(outer) => match outer.expr.as_ref() {
            inner @ (Expr::ScalarFunction(_) | Expr::Alias(_)) => written(inner),
            column @ Expr::Column(_) => column,
            _ => expr,
        },
        Expr::ScalarFunction(call) if call.name() == ROW_OF_RECURSION => match call.args.first() {
            Some(item) => item,
            None => expr,
        },
        _ => expr,
    }
}

fn reads_own_rows(scan: &TableScan, name: &str) -> bool {
    source_as_provider(&scan.source).is_ok_and(|table| {
        table.downcast_ref::<CteWorkTable>().is_some_and(|own| own.name() == name)
    })
}

/// The rows of a part, as columns of `types`.
fn unmarked(part: LogicalPlan, types: &DFSchema) -> Result<LogicalPlan> {
    let own = Arc::clone(part.schema());
    let columns = part.schema().columns().into_iter().zip(own.fields()).zip(types.iter());
    let columns: Vec<Expr> = columns
        .map(|((column, own), (_, field))| {
            let name = column.name.clone();
            let value = match own.data_type() == field.data_type() {
                true => Expr::Column(column),
                false => cast(Expr::Column(column), field.data_type().clone()),
            };
            call(Unmarked { json: JsonKind::of_field(field) }, vec![value]).alias(name)
        })
        .collect();
    LogicalPlanBuilder::from(part).project(columns)?.build()
}

/// The same value, without a mark but that of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Unmarked {
    json: Option<JsonKind>,
}

impl Operation for Unmarked {
    fn name(&self) -> &str {
        ROW_OF_RECURSION
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn json(&self) -> Option<JsonKind> {
        self.json
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(",")
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        column(operands, rows)
    }
}
