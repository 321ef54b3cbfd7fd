//! The columns of a query as those of a table or view: names, types that can be stored, casts to them.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, ident};
use stoa_error::{Error, Result};
use stoa_semantics::errors::from_datafusion;
use stoa_sql::column_names;

use crate::tables::storable::storable_type;

/// The columns of a query with the names that a statement gives to the first of them.
///
/// # Errors
/// 42601 where there are more names than columns.
pub(crate) fn named(schema: &Schema, names: &[String]) -> Result<Schema> {
    if names.len() > schema.fields().len() {
        let (names, columns) = (names.len(), schema.fields().len());
        let what = format!("{names} column names are given, and the query has {columns} columns");
        return Err(Error::invalid(what).with_sqlstate("42601"));
    }
    let field = |(at, field): (usize, &Arc<Field>)| match names.get(at) {
        Some(name) => field.as_ref().clone().with_name(name),
        None => field.as_ref().clone().with_name(column_names::shown(field.name())),
    };
    Ok(Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>()))
}

/// The columns of a query in types that Iceberg has.
///
/// # Errors
/// A column whose type cannot be stored (0A000), or two of the same name (42701).
pub(crate) fn storable_schema(schema: &Schema) -> Result<SchemaRef> {
    let mut fields: Vec<Field> = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        if fields.iter().any(|earlier| earlier.name() == field.name()) {
            let message = format!("column \"{}\" specified more than once", field.name());
            return Err(Error::invalid(message)
                .with_sqlstate("42701")
                .with_hint("name the columns of the query with AS"));
        }
        let data_type = storable_type(field.data_type())
            .map_err(|e| e.at(format!("column \"{}\"", field.name())))?;
        fields.push(Field::new(field.name(), data_type, true));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// `plan` with its columns cast to `schema` and called as there, where they differ.
pub(crate) fn cast_to(plan: LogicalPlan, schema: &Schema) -> Result<LogicalPlan> {
    let mut pairs = plan.schema().fields().iter().zip(schema.fields());
    if pairs.all(|(have, want)| have.data_type() == want.data_type() && have.name() == want.name())
    {
        return Ok(plan);
    }
    let columns: Vec<Expr> = plan
        .schema()
        .iter()
        .zip(schema.fields())
        .map(|((qualifier, have), want)| {
            let column = match qualifier {
                Some(qualifier) => {
                    col(datafusion::common::Column::new(Some(qualifier.clone()), have.name()))
                }
                None => ident(have.name()),
            };
            match have.data_type() == want.data_type() {
                true if have.name() == want.name() => column,
                true => column.alias(want.name()),
                false => cast(column, want.data_type().clone()).alias(want.name()),
            }
        })
        .collect();
    LogicalPlanBuilder::from(plan)
        .project(columns)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)
}
