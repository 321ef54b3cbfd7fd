//! Rows that a scan picks by conditions on columns, out of the memory of reports.
//!
//! In: a snapshot, the columns wanted, a predicate. Out: a report without groups that gives these
//! columns of the rows that meet what of the predicate a report can test; or `None` where it can
//! test nothing. **Invariant:** the rows are those for which the predicate may hold, so the filter
//! above the scan comes to the same as over a scan that reads the files.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use stoa_orc::{ColumnRef, CompareOp, FIELD_ID_KEY, Literal, Predicate};
use stoa_report::{Column, Condition, Item, Report, Test, kind_of};

/// The report that gives `wanted` of the rows of a table whose columns are `table`.
pub(super) fn report_of(
    table: &Schema,
    wanted: &SchemaRef,
    predicate: &Predicate,
) -> Option<Report> {
    let columns = wanted.fields().iter().map(|field| column(table, id_of(field.metadata())?));
    let mut report = Report {
        columns: columns.collect::<Option<_>>()?,
        conditions: Vec::new(),
        grouped: false,
        group_by: Vec::new(),
        aggregates: Vec::new(),
        items: (0..wanted.fields().len()).map(Item::Column).collect(),
        schema: Arc::clone(wanted),
        order: Vec::new(),
        offset: 0,
        limit: None,
    };
    let parts = match predicate {
        Predicate::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    for part in parts {
        if let Some((id, test)) = test_of(part)
            && let Some(column) = column_index(&mut report.columns, table, id)
        {
            add(&mut report.conditions, Condition { column, test });
        }
    }
    (!report.conditions.is_empty() && !report.items.is_empty()).then_some(report)
}

/// Adds a condition; two ranges of one column become one.
fn add(conditions: &mut Vec<Condition>, new: Condition) {
    if let Test::Between(low, high) = &new.test {
        for known in conditions.iter_mut().filter(|known| known.column == new.column) {
            if let Test::Between(known_low, known_high) = &mut known.test {
                *known_low = (*known_low).max(*low);
                *known_high = (*known_high).min(*high);
                return;
            }
        }
    }
    conditions.push(new);
}

/// Where the column is among those of a report; it is added if it is not.
pub(super) fn column_index(columns: &mut Vec<Column>, table: &Schema, id: i32) -> Option<usize> {
    if let Some(index) = columns.iter().position(|column| column.field_id == id) {
        return Some(index);
    }
    columns.push(column(table, id)?);
    Some(columns.len() - 1)
}

pub(super) fn column(table: &Schema, field_id: i32) -> Option<Column> {
    let has_id = |field: &Arc<arrow::datatypes::Field>| id_of(field.metadata()) == Some(field_id);
    let position = table.fields().iter().position(has_id)?;
    let data_type = table.field(position).data_type().clone();
    kind_of(&data_type)?;
    Some(Column { position, field_id, data_type })
}

pub(super) fn id_of(metadata: &std::collections::HashMap<String, String>) -> Option<i32> {
    metadata.get(FIELD_ID_KEY)?.parse().ok()
}

/// The column that a part of a predicate is about, and what it asks of its values.
pub(super) fn test_of(part: &Predicate) -> Option<(i32, Test)> {
    let (column, test) = match part {
        Predicate::Compare { column, op, value } => (column, comparison(*op, value)?),
        Predicate::In { column, values } => (column, one_of(values)?),
        Predicate::IsNull(column) => (column, Test::IsNull),
        Predicate::IsNotNull(column) => (column, Test::IsNotNull),
        Predicate::And(_) | Predicate::Or(_) => return None,
    };
    match column {
        ColumnRef::Field(id) => Some((*id, test)),
        ColumnRef::Id(_) => None,
    }
}

fn comparison(op: CompareOp, value: &Literal) -> Option<Test> {
    if let Literal::String(text) = value {
        let text: Box<str> = text.as_str().into();
        let (low, high) = match op {
            CompareOp::Eq => return Some(Test::TextOneOf(vec![text])),
            CompareOp::NotEq => return Some(Test::TextNotEqual(text)),
            CompareOp::Lt => (None, Some((text, false))),
            CompareOp::LtEq => (None, Some((text, true))),
            CompareOp::Gt => (Some((text, false)), None),
            CompareOp::GtEq => (Some((text, true)), None),
        };
        return Some(Test::TextBetween { low, high });
    }
    let number = number(value)?;
    Some(match op {
        CompareOp::Eq => Test::Between(number, number),
        CompareOp::NotEq => Test::NotEqual(number),
        CompareOp::Lt => Test::Between(i128::MIN, number.checked_sub(1)?),
        CompareOp::LtEq => Test::Between(i128::MIN, number),
        CompareOp::Gt => Test::Between(number.checked_add(1)?, i128::MAX),
        CompareOp::GtEq => Test::Between(number, i128::MAX),
    })
}

fn one_of(values: &[Literal]) -> Option<Test> {
    let text = |value: &Literal| match value {
        Literal::String(text) => Some(Box::<str>::from(text.as_str())),
        _ => None,
    };
    if let Some(mut texts) = values.iter().map(text).collect::<Option<Vec<_>>>() {
        texts.sort_unstable();
        texts.dedup();
        return Some(Test::TextOneOf(texts)).filter(|_| !values.is_empty());
    }
    let mut numbers = values.iter().map(number).collect::<Option<Vec<_>>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Some(Test::OneOf(numbers))
}

/// A number as reports compare it; decimals are at the scale of their column.
fn number(value: &Literal) -> Option<i128> {
    Some(match value {
        Literal::Boolean(value) => i128::from(*value),
        Literal::Int(value) => i128::from(*value),
        Literal::Decimal(value, _) => *value,
        Literal::Date(days) => i128::from(*days),
        Literal::TimestampMicros(micros) => i128::from(*micros),
        Literal::Float(_) | Literal::String(_) | Literal::Binary(_) => return None,
    })
}
