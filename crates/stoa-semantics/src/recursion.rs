//! `WITH RECURSIVE`: both parts of the query, and the table of its own rows, have columns of the same types.
//!
//! The engine plans the recursive part over a table with the columns of the first part as they were then; marks that
//! come from stored columns (field ids) it takes for a part of their type. In: a recursive query as it was planned,
//! whose first part has got its types since. Out: the same; columns of both parts bear no marks, and the second
//! part reads and gives the types of the first.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, TableScan, TableScanBuilder, cast,
};

use super::call::{Operation, call, column};
use super::json_kind::JsonKind;

/// The query over a first part whose types are settled; `rewritten` is applied to the second part.
///
/// # Errors
/// Those of `rewritten`; those of the engine, where the second part cannot be planned with the types of the first.
pub(super) fn with_same_columns(
    query: RecursiveQuery,
    rewritten: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    let first = Arc::unwrap_or_clone(query.static_term);
    let types = Arc::clone(first.schema());
    let first = unmarked(first, &types)?;
    let own_rows = Arc::new(first.schema().as_arrow().clone());
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
    let second = unmarked(rewritten(second.data)?, &types)?;
    let (first, second) = (Arc::new(first), Arc::new(second));
    let query = RecursiveQuery::try_new(query.name, first, second, query.is_distinct)?;
    Ok(LogicalPlan::RecursiveQuery(query))
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Unmarked {
    json: Option<JsonKind>,
}

impl Operation for Unmarked {
    fn name(&self) -> &str {
        "row_of_recursion"
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
