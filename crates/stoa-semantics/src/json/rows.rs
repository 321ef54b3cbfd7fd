//! Whole rows as records: `row_to_json(t)`, which `stoa-sql` writes as `row_to_json(t.*)`.
//!
//! In: a plan as it was made of the statement, with wildcards as operands. Out: the same with records of the columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{ColumnarValue, Expr, LogicalPlan};

use super::JsonKind;
use crate::call::{Operation, call, columns, unsupported};

/// Metadata: the field is called as a column is.
const COLUMN_KEY: &str = "stoa.column";

/// Whether a record's field has the name of a column, and not one that was made up.
pub(super) fn is_column(field: &Field) -> bool {
    field.metadata().contains_key(COLUMN_KEY)
}

/// The plan with records in the places of wildcards that are operands.
///
/// # Errors
/// 0A000 beside an outer join, where a row may be missing.
pub(crate) fn as_records(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let may_be_missing = may_be_missing(&node)?;
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let written = expr.transform_up(|expr| record(expr, &schema, may_be_missing))?;
            Ok(written.update_data(|expr| name.restore(expr)))
        })?
        .map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(plan.data)
}

fn may_be_missing(node: &LogicalPlan) -> Result<bool> {
    let mut is_outer = false;
    for input in node.inputs() {
        input.apply(|below| {
            if let LogicalPlan::Join(join) = below {
                is_outer |=
                    matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(is_outer)
}

fn record(expr: Expr, schema: &DFSchema, may_be_missing: bool) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(mut function) = expr else { return Ok(Transformed::no(expr)) };
    #[expect(deprecated)]
    let [Expr::Wildcard { qualifier: Some(table), .. }] = function.args.as_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    if may_be_missing {
        return Err(unsupported(
            format!("a row of {table} as a value is not supported beside an outer join"),
            "name the columns: json_build_object('a', t.a, …)",
        ));
    }
    function.args = vec![record_of(table, schema)];
    Ok(Transformed::yes(Expr::ScalarFunction(function)))
}

fn record_of(table: &TableReference, schema: &DFSchema) -> Expr {
    let is_shown = |name: &str| !stoa_sql::ordered_rows::is_hidden(name);
    let of_table = schema.iter().filter(|(qualifier, field)| {
        qualifier.is_some_and(|qualifier| qualifier.resolved_eq(table)) && is_shown(field.name())
    });
    let (mut fields, mut values) = (Vec::new(), Vec::new());
    for (qualifier, field) in of_table {
        fields.push((field.name().clone(), JsonKind::of_field(field)));
        values.push(Expr::Column(Column::new(qualifier.cloned(), field.name())));
    }
    call(Record { fields }, values)
}

/// A record of values; its fields are called as the columns, and may hold JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    fields: Vec<(String, Option<JsonKind>)>,
}

impl Record {
    fn fields(&self, types: &[DataType]) -> Fields {
        let fields = self.fields.iter().zip(types).map(|((name, json), of)| {
            let mut metadata = json.map_or_else(HashMap::new, JsonKind::metadata);
            metadata.insert(COLUMN_KEY.to_owned(), String::new());
            Arc::new(Field::new(name, of.clone(), true).with_metadata(metadata)) as FieldRef
        });
        fields.collect()
    }
}

impl Operation for Record {
    fn name(&self) -> &str {
        "record"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.fields(types)))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let types: Vec<DataType> =
            columns.iter().map(|column| column.data_type().clone()).collect();
        let record = StructArray::try_new_with_length(self.fields(&types), columns, None, rows)?;
        Ok(Arc::new(record))
    }
}
