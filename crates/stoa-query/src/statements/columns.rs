//! The columns of a query as those of a table or view: names, types that can be stored, casts to them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::JoinType;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, cast, col, ident};
use datafusion::sql::parser::Statement as EngineStatement;
use stoa_error::{Error, ErrorKind, Result, Subject};
use stoa_semantics::errors::from_datafusion;
use stoa_sql::column_names;
use stoa_table::{DECLARED_TYPE_KEY, DeclaredType};

use crate::session::Session;
use crate::statements::show::sql_type;
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

/// A statement whose records of JSON have the columns of tables (`json_populate_record(NULL::t, …)`); `None` where it has
/// none.
///
/// # Errors
/// A table that is not there is no type (42704), or is not to be known (42501).
pub(crate) async fn populated(
    session: &Session,
    parsed: &EngineStatement,
    text: &str,
) -> Result<Option<EngineStatement>> {
    if !stoa_sql::populated::may_be_in(text) {
        return Ok(None);
    }
    let mut statement = parsed.clone();
    let mut columns = HashMap::new();
    for name in stoa_sql::populated::tables_of(&mut statement)? {
        let table = session.data.warehouse().table(&session.table_ident(&name)?).await;
        let table = table.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let said = format!("type \"{name}\" does not exist");
                Error::not_found(said).with_sqlstate("42704").about(Subject::Type(name.to_string()))
            }
            _ => error,
        })?;
        session.caller.must_know(&table)?;
        let schema = table.schema();
        let known = session.caller.known_columns(&table, &schema);
        let known = schema.fields().iter().enumerate().filter(|(place, _)| known.contains(place));
        let typed = known.map(|(_, field)| (field.name().clone(), sql_type(field.data_type())));
        columns.insert(name.to_string(), typed.collect());
    }
    if columns.is_empty() {
        return Ok(None);
    }
    stoa_sql::populated::write_columns(&mut statement, &columns)?;
    Ok(Some(statement))
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

/// The columns with the types that are declared of what they are: as in PostgreSQL, a column keeps its length, and a
/// cast gives one.
pub(crate) fn with_declared_types(schema: &Schema, plan: &LogicalPlan) -> SchemaRef {
    let field = |(place, field): (usize, &Arc<Field>)| match declared_type(plan, place) {
        Some(declared) => Arc::new(declared.declare(field.as_ref().clone())),
        // The engine lets a cast keep what is said of its operand.
        None if field.metadata().contains_key(DECLARED_TYPE_KEY) => {
            let mut field = field.as_ref().clone();
            field.metadata_mut().remove(DECLARED_TYPE_KEY);
            Arc::new(field)
        }
        None => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>()))
}

/// The declared type of a column of a plan, if it is that of a table's column or of a cast.
fn declared_type(plan: &LogicalPlan, place: usize) -> Option<DeclaredType> {
    if *plan.schema().fields().get(place)?.data_type() == DataType::Int16 {
        return Some(DeclaredType::SmallInt);
    }
    match plan {
        LogicalPlan::TableScan(scan) => {
            DeclaredType::of(scan.projected_schema.as_arrow().fields().get(place)?)
        }
        LogicalPlan::Projection(of) => of_expression(of.expr.get(place)?, &of.input),
        LogicalPlan::SubqueryAlias(of) => declared_type(&of.input, place),
        LogicalPlan::Filter(of) => declared_type(&of.input, place),
        LogicalPlan::Sort(of) => declared_type(&of.input, place),
        LogicalPlan::Limit(of) => declared_type(&of.input, place),
        LogicalPlan::Distinct(Distinct::All(input)) => declared_type(input, place),
        LogicalPlan::Distinct(Distinct::On(on)) => {
            of_expression(on.select_expr.get(place)?, &on.input)
        }
        LogicalPlan::Window(of) => {
            let of_input = place < of.input.schema().fields().len();
            of_input.then(|| declared_type(&of.input, place)).flatten()
        }
        LogicalPlan::Aggregate(of) => {
            let key = of.group_expr.get(place)?;
            of_expression(key, &of.input)
        }
        LogicalPlan::Join(of) => {
            let left = of.left.schema().fields().len();
            match of.join_type {
                JoinType::RightSemi | JoinType::RightAnti => declared_type(&of.right, place),
                _ if place < left => declared_type(&of.left, place),
                JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                    declared_type(&of.right, place - left)
                }
                _ => None,
            }
        }
        LogicalPlan::Union(of) => {
            let mut types = of.inputs.iter().map(|input| declared_type(input, place));
            let first = types.next()??;
            types.all(|other| other == Some(first)).then_some(first)
        }
        _ => None,
    }
}

fn of_expression(expr: &Expr, input: &LogicalPlan) -> Option<DeclaredType> {
    match expr {
        Expr::Alias(alias) => of_expression(&alias.expr, input),
        Expr::Column(column) => {
            let place = input.schema().maybe_index_of_column(column)?;
            declared_type(input, place)
        }
        other => {
            let length = stoa_semantics::length_cut_to(other)?;
            Some(DeclaredType::Varchar(Some(u32::try_from(length).ok()?)))
        }
    }
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
