//! `INSERT … VALUES` of literals: rows become a batch at once, not an expression per value.
//!
//! In: a parsed statement. Out: a plan that inserts a batch; `None` for everything else, and for values
//! that do not fit as they stand, which the planner casts or refuses. **Invariant:** what this takes is
//! inserted as the planner would have inserted it.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Field, TimeUnit};
use datafusion::catalog::MemTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, Insert, ObjectName, SetExpr, Statement, TableObject, UnaryOperator,
    Value, Values,
};
use stoa_error::{ErrorKind, Result};

use super::{insert_columns, insert_kinds};
use crate::session::Session;
use crate::tables::external::refuse_rows;
use stoa_semantics::errors::from_datafusion;
use stoa_sql::{ValueLiteral, ValueRows, normalise};

/// Digits that a 64-bit float keeps whatever they are.
const FLOAT_DIGITS: usize = 15;

/// The plan of an INSERT of literals.
///
/// # Errors
/// Those of the catalog, other than that there is no such table; 42804 for a literal that is not assigned to its column.
pub(crate) async fn plan(
    session: &Session,
    parsed: &EngineStatement,
) -> Result<Option<LogicalPlan>> {
    let Some((_, _, values)) = literal_insert(parsed) else { return Ok(None) };
    plan_of(session, parsed, &Rows::Parsed(values)).await
}

/// As [`plan`], of the statement that `parsed` is with its first row only, and `text` with all of them.
///
/// # Errors
/// As [`plan`].
pub(crate) async fn plan_rows(
    session: &Session,
    parsed: &EngineStatement,
    rows: &ValueRows,
    text: &str,
) -> Result<Option<LogicalPlan>> {
    plan_of(session, parsed, &Rows::Read { rows, text }).await
}

/// The rows of an INSERT.
enum Rows<'a> {
    Parsed(&'a Values),
    Read { rows: &'a ValueRows, text: &'a str },
}

impl<'a> Rows<'a> {
    fn count(&self) -> usize {
        match self {
            Self::Parsed(values) => values.rows.len(),
            Self::Read { rows, .. } => rows.count(),
        }
    }

    /// Values of each row; `None` where they differ in that.
    fn width(&self) -> Option<usize> {
        match self {
            Self::Parsed(values) => {
                let width = values.rows.first().map_or(0, |row| row.content.len());
                values.rows.iter().all(|row| row.content.len() == width).then_some(width)
            }
            Self::Read { rows, .. } => Some(rows.width()),
        }
    }

    /// The literals at one place of the rows.
    fn literals(&self, place: usize) -> Box<dyn Iterator<Item = ValueLiteral<'a>> + '_> {
        match self {
            Self::Parsed(values) => {
                let values = values.rows.iter().filter_map(move |row| row.content.get(place));
                Box::new(values.filter_map(literal))
            }
            Self::Read { rows, text } => Box::new(rows.column(place, text).flatten()),
        }
    }

    /// The values at one place of the rows; `None` where one is no literal.
    fn column(&self, place: usize) -> Option<Vec<ValueLiteral<'a>>> {
        match self {
            Self::Parsed(values) => {
                let values = values.rows.iter().map(|row| row.content.get(place));
                values.map(|value| literal(value?)).collect()
            }
            Self::Read { rows, text } => rows.column(place, text).collect(),
        }
    }
}

async fn plan_of(
    session: &Session,
    parsed: &EngineStatement,
    rows: &Rows<'_>,
) -> Result<Option<LogicalPlan>> {
    let Some((insert, name, _)) = literal_insert(parsed) else { return Ok(None) };
    let Some(width) = rows.width() else { return Ok(None) };
    let ident = session.table_ident(name)?;
    let table = match session.data.table(&ident).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    session.caller.must_know(&table.table)?;
    if refuse_rows(&table.table).is_err() {
        return Ok(None);
    }
    let schema = datafusion::catalog::TableProvider::schema(&table);
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let Some(places) = places(insert, width, names) else { return Ok(None) };
    if places.iter().flatten().count() != width {
        return Ok(None);
    }
    if !session.speaks_hive() {
        for (field, place) in schema.fields().iter().zip(&places) {
            if let Some(place) = place {
                insert_kinds::check(field, rows.literals(*place))?;
            }
        }
    }
    let columns = schema.fields().iter().zip(&places).map(|(field, place)| match place {
        None if field.is_nullable() => Some(new_null_array(field.data_type(), rows.count())),
        None => None,
        Some(place) => column(field, &rows.column(*place)?),
    });
    let Some(columns) = columns.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let Ok(batch) = RecordBatch::try_new(Arc::clone(&schema), columns) else { return Ok(None) };
    let values = MemTable::try_new(schema, vec![vec![batch]]).map_err(from_datafusion)?;
    let name = datafusion::common::TableReference::partial(ident.namespace, ident.name);
    let plan = LogicalPlanBuilder::scan("values", provider_as_source(Arc::new(values)), None)
        .and_then(LogicalPlanBuilder::build)
        .and_then(|rows| {
            let target = provider_as_source(Arc::new(table));
            LogicalPlanBuilder::insert_into(rows, name, target, InsertOp::Append)
        })
        .and_then(LogicalPlanBuilder::build);
    plan.map(Some).map_err(from_datafusion)
}

/// The parts of an INSERT that is nothing but a table, columns and rows.
fn literal_insert(parsed: &EngineStatement) -> Option<(&Insert, &ObjectName, &Values)> {
    let EngineStatement::Statement(statement) = parsed else { return None };
    let Statement::Insert(insert) = statement.as_ref() else { return None };
    let TableObject::TableName(name) = &insert.table else { return None };
    let source = insert.source.as_deref()?;
    let SetExpr::Values(values) = source.body.as_ref() else { return None };
    let plain_query = source.with.is_none()
        && source.order_by.is_none()
        && source.limit_clause.is_none()
        && source.fetch.is_none();
    let plain = plain_query
        && insert.on.is_none()
        && insert.returning.is_none()
        && insert.partitioned.is_none()
        && insert.table_alias.is_none()
        && insert.assignments.is_empty()
        && !insert.overwrite
        && !insert.ignore
        && !insert.replace_into;
    plain.then_some((insert, name, values))
}

/// An INSERT whose rows have fewer values than the table has columns, with the names of the columns
/// that have one; the others are NULL.
///
/// # Errors
/// As [`plan`].
pub(crate) async fn with_columns(
    session: &Session,
    parsed: &EngineStatement,
) -> Result<Option<EngineStatement>> {
    let Some((insert, name, rows)) = literal_insert(parsed) else { return Ok(None) };
    let width = rows.rows.first().map_or(0, |row| row.content.len());
    if !insert.columns.is_empty() || rows.rows.iter().any(|row| row.content.len() != width) {
        return Ok(None);
    }
    insert_columns::named(session, insert, name, width).await
}

/// For each column of the table its place in rows of `width` values; `None` if a column is named twice or unknown.
fn places<'a>(
    insert: &Insert,
    width: usize,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Option<Vec<Option<usize>>> {
    if insert.columns.is_empty() {
        return Some(
            names.enumerate().map(|(place, _)| (place < width).then_some(place)).collect(),
        );
    }
    let listed: Vec<String> = insert.columns.iter().map(column_name).collect::<Option<_>>()?;
    let place = |name: &str| listed.iter().position(|listed| listed == name);
    let places: Vec<Option<usize>> = names.map(place).collect();
    (places.iter().flatten().count() == listed.len()).then_some(places)
}

fn column_name(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(normalise),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<ValueLiteral<'_>> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, false) => Some(ValueLiteral::Number { text, negative: false }),
            Value::SingleQuotedString(text) => Some(ValueLiteral::Text(text.into())),
            Value::Boolean(value) => Some(ValueLiteral::Boolean(*value)),
            Value::Null => Some(ValueLiteral::Null),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match literal(expr)? {
            ValueLiteral::Number { text, negative: false } => {
                Some(ValueLiteral::Number { text, negative: true })
            }
            _ => None,
        },
        Expr::TypedString(typed) => {
            let Value::SingleQuotedString(text) = &typed.value.value else { return None };
            match typed.data_type {
                SqlType::Date => Some(ValueLiteral::Date(text.into())),
                SqlType::Timestamp(None, _) => Some(ValueLiteral::Timestamp(text.into())),
                _ => None,
            }
        }
        _ => None,
    }
}

/// One column of the rows; `None` where a value is not of a kind that fits as it is.
fn column(field: &Field, literals: &[ValueLiteral<'_>]) -> Option<ArrayRef> {
    if !field.is_nullable() && literals.iter().any(|value| matches!(value, ValueLiteral::Null)) {
        return None;
    }
    let array: ArrayRef = match field.data_type() {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            Arc::new(collect(literals, integer)?.into_iter().collect::<Int64Array>())
        }
        DataType::Float32 | DataType::Float64 => {
            Arc::new(collect(literals, float)?.into_iter().collect::<Float64Array>())
        }
        DataType::Decimal128(precision, scale) => {
            let values = collect(literals, |value| decimal(value, *precision, *scale))?;
            let array: Decimal128Array = values.into_iter().collect();
            Arc::new(array.with_precision_and_scale(*precision, *scale).ok()?)
        }
        DataType::Boolean => {
            let boolean = |value: &ValueLiteral<'_>| match value {
                ValueLiteral::Boolean(value) => Some(*value),
                _ => None,
            };
            Arc::new(collect(literals, boolean)?.into_iter().collect::<BooleanArray>())
        }
        DataType::Utf8 => Arc::new(texts(literals, |value| match value {
            ValueLiteral::Text(text) => Some(&**text),
            _ => None,
        })?),
        of @ DataType::Date32 => {
            let dates = texts(literals, |value| match value {
                ValueLiteral::Text(text) | ValueLiteral::Date(text) => Some(&**text),
                _ => None,
            })?;
            stoa_semantics::read_local(&dates, of).ok()?
        }
        of @ DataType::Timestamp(TimeUnit::Microsecond, None) => {
            let times = texts(literals, |value| match value {
                ValueLiteral::Text(text) | ValueLiteral::Timestamp(text) => Some(&**text),
                _ => None,
            })?;
            stoa_semantics::read_local(&times, of).ok()?
        }
        _ => return None,
    };
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&array, field.data_type(), &strict).ok()
}

/// Nulls as they are, others by `of`; `None` if that fails for one of them.
fn collect<'a, T>(
    literals: &'a [ValueLiteral<'a>],
    of: impl Fn(&'a ValueLiteral<'a>) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    let values = literals.iter().map(|value| match value {
        ValueLiteral::Null => Some(None),
        value => of(value).map(Some),
    });
    values.collect()
}

fn texts<'a>(
    literals: &'a [ValueLiteral<'a>],
    of: impl Fn(&'a ValueLiteral<'a>) -> Option<&'a str>,
) -> Option<StringArray> {
    Some(collect(literals, of)?.into_iter().collect())
}

fn integer(value: &ValueLiteral<'_>) -> Option<i64> {
    let ValueLiteral::Number { text, negative } = value else { return None };
    let value: i64 = text.parse().ok()?;
    if *negative { value.checked_neg() } else { Some(value) }
}

fn float(value: &ValueLiteral<'_>) -> Option<f64> {
    let ValueLiteral::Number { text, negative } = value else { return None };
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = (plain && text.len() <= FLOAT_DIGITS).then(|| text.parse().ok())??;
    Some(if *negative { -value } else { value })
}

fn decimal(value: &ValueLiteral<'_>, precision: u8, scale: i8) -> Option<i128> {
    let ValueLiteral::Number { text, negative } = value else { return None };
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if !plain || fraction > usize::try_from(scale).ok()? {
        return None;
    }
    let value = arrow::compute::kernels::cast_utils::parse_decimal::<Decimal128Type>(
        text, precision, scale,
    );
    let value = value.ok()?;
    Some(if *negative { -value } else { value })
}
