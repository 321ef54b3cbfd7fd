//! The engine's filters as predicates that statistics can judge.
//!
//! In: an expression over a table's columns. Out: a [`Predicate`] over Iceberg field ids, or
//! `None` where nothing can be said. **Invariant:** the predicate holds for every row for which
//! the expression is true; it may hold for more.

use arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, Like, Placeholder};
use datafusion::logical_expr::{Expr, Operator};
use stoa_orc::{ColumnRef, CompareOp, FIELD_ID_KEY, Literal, Predicate};

use stoa_semantics::parameters::fold_cast;

/// The predicate of one filter.
pub(crate) fn predicate_of(expr: &Expr, schema: &Schema) -> Option<Predicate> {
    match expr {
        Expr::BinaryExpr(binary) => of_binary(binary, schema),
        Expr::Between(between) => of_between(between, schema),
        Expr::InList(list) => of_in_list(list, schema),
        Expr::Like(like) => of_like(like, schema),
        Expr::IsNull(inner) => column_of(inner, schema).map(Predicate::IsNull),
        Expr::IsNotNull(inner) => column_of(inner, schema).map(Predicate::IsNotNull),
        Expr::Column(_) => of_boolean(expr, true, schema),
        Expr::Not(inner) => of_boolean(inner, false, schema),
        Expr::Alias(alias) => predicate_of(&alias.expr, schema),
        _ => None,
    }
}

/// Whether [`predicate_of`] says something about a filter once values are in its places.
pub(crate) fn may_be_predicate(expr: &Expr, schema: &Schema) -> bool {
    let some_value = |expr: Expr| match &expr {
        Expr::Placeholder(Placeholder { field: Some(field), .. }) => {
            match ScalarValue::new_default(field.data_type()) {
                Ok(value) => Ok(Transformed::yes(Expr::Literal(value, None))),
                Err(_) => Ok(Transformed::no(expr)),
            }
        }
        _ => fold_cast(expr),
    };
    match expr.clone().transform_up(some_value) {
        Ok(with_values) => predicate_of(&with_values.data, schema).is_some(),
        Err(_) => false,
    }
}

/// All filters together; those that say nothing are left out.
pub(crate) fn predicate_of_all(filters: &[Expr], schema: &Schema) -> Predicate {
    let parts = filters.iter().filter_map(|filter| predicate_of(filter, schema));
    parts.fold(Predicate::always(), Predicate::and)
}

fn of_binary(binary: &BinaryExpr, schema: &Schema) -> Option<Predicate> {
    let BinaryExpr { left, op, right } = binary;
    match op {
        Operator::And => match (predicate_of(left, schema), predicate_of(right, schema)) {
            (Some(left), Some(right)) => Some(left.and(right)),
            (one, other) => one.or(other),
        },
        Operator::Or => {
            let (left, right) = (predicate_of(left, schema)?, predicate_of(right, schema)?);
            Some(Predicate::Or(vec![left, right]))
        }
        _ => {
            let op = compare_op(*op)?;
            match (column_of(left, schema), column_of(right, schema)) {
                (Some(column), None) => compare(column, op, literal_of(right)?, schema),
                (None, Some(column)) => compare(column, mirror(op), literal_of(left)?, schema),
                _ => None,
            }
        }
    }
}

fn of_between(between: &Between, schema: &Schema) -> Option<Predicate> {
    let column = column_of(&between.expr, schema)?;
    let low = literal_of(&between.low)?;
    let high = literal_of(&between.high)?;
    if between.negated {
        let below = compare(column, CompareOp::Lt, low, schema)?;
        let above = compare(column, CompareOp::Gt, high, schema)?;
        return Some(Predicate::Or(vec![below, above]));
    }
    let from = compare(column, CompareOp::GtEq, low, schema)?;
    let to = compare(column, CompareOp::LtEq, high, schema)?;
    Some(from.and(to))
}

fn of_in_list(list: &InList, schema: &Schema) -> Option<Predicate> {
    if list.negated {
        return None;
    }
    let column = column_of(&list.expr, schema)?;
    let values: Option<Vec<&ScalarValue>> = list.list.iter().map(literal_of).collect();
    in_list(column, values?.into_iter(), schema)
}

/// One of some values.
fn in_list<'a>(
    column: ColumnRef,
    list: impl Iterator<Item = &'a ScalarValue>,
    schema: &Schema,
) -> Option<Predicate> {
    let data_type = type_of(column, schema)?;
    // NULL in the list matches nothing.
    let values = list.filter(|value| !value.is_null()).map(|value| literal(value, data_type));
    Some(Predicate::In { column, values: values.collect::<Option<_>>()? })
}

/// `column LIKE 'prefix%…'` keeps the values from `prefix` up to its successor.
fn of_like(like: &Like, schema: &Schema) -> Option<Predicate> {
    if like.negated || like.case_insensitive || like.escape_char.is_some_and(|c| c != '\\') {
        return None;
    }
    let column = column_of(&like.expr, schema)?;
    let pattern = match literal_of(&like.pattern)? {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => text.clone(),
        _ => return None,
    };
    let prefix: String = pattern.chars().take_while(|c| !matches!(c, '%' | '_' | '\\')).collect();
    if prefix.is_empty() {
        return None;
    }
    let from = |value: String, op| Predicate::Compare { column, op, value: Literal::String(value) };
    let at_least = from(prefix.clone(), CompareOp::GtEq);
    match successor(&prefix) {
        Some(next) => Some(at_least.and(from(next, CompareOp::Lt))),
        None => Some(at_least),
    }
}

/// The least text above all texts that start with `prefix`, by code points.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match u32::from(last) {
            0xD7FF => 0xE000,
            code => code + 1,
        };
        if let Some(next) = char::from_u32(next) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

fn of_boolean(expr: &Expr, value: bool, schema: &Schema) -> Option<Predicate> {
    let column = column_of(expr, schema)?;
    let op = CompareOp::Eq;
    match type_of(column, schema)? {
        DataType::Boolean => {
            Some(Predicate::Compare { column, op, value: Literal::Boolean(value) })
        }
        _ => None,
    }
}

/// A comparison of a column with a value.
pub(crate) fn compare(
    column: ColumnRef,
    op: CompareOp,
    value: &ScalarValue,
    schema: &Schema,
) -> Option<Predicate> {
    if value.is_null() {
        // A comparison with NULL is never true.
        return Some(Predicate::Or(Vec::new()));
    }
    let value = literal(value, type_of(column, schema)?)?;
    // NaN is above every number here, but no statistics tell of it.
    let may_match_nan = matches!(op, CompareOp::Gt | CompareOp::GtEq | CompareOp::NotEq);
    if matches!(value, Literal::Float(_)) && may_match_nan {
        return None;
    }
    Some(Predicate::Compare { column, op, value })
}

/// The column an expression names, if it is a column with a field id.
fn column_of(expr: &Expr, schema: &Schema) -> Option<ColumnRef> {
    let Expr::Column(column) = expr else { return None };
    let field = schema.field_with_name(&column.name).ok()?;
    field.metadata().get(FIELD_ID_KEY)?.parse().ok().map(ColumnRef::Field)
}

fn type_of(column: ColumnRef, schema: &Schema) -> Option<&DataType> {
    let ColumnRef::Field(id) = column else { return None };
    let id = id.to_string();
    let has_id = |metadata: &std::collections::HashMap<String, String>| {
        metadata.get(FIELD_ID_KEY) == Some(&id)
    };
    schema.fields().iter().find(|field| has_id(field.metadata())).map(|field| field.data_type())
}

fn literal_of(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// A value in the unit of the column; `None` where the comparison is in another type.
fn literal(value: &ScalarValue, column: &DataType) -> Option<Literal> {
    let same_family = value.data_type() == *column
        || matches!(
            (value, column),
            (ScalarValue::Utf8View(_) | ScalarValue::LargeUtf8(_), DataType::Utf8)
        );
    if !same_family {
        return None;
    }
    Some(match value {
        ScalarValue::Boolean(Some(v)) => Literal::Boolean(*v),
        ScalarValue::Int8(Some(v)) => Literal::Int(i64::from(*v)),
        ScalarValue::Int16(Some(v)) => Literal::Int(i64::from(*v)),
        ScalarValue::Int32(Some(v)) => Literal::Int(i64::from(*v)),
        ScalarValue::Int64(Some(v)) => Literal::Int(*v),
        ScalarValue::Float32(Some(v)) if !v.is_nan() => Literal::Float(f64::from(*v)),
        ScalarValue::Float64(Some(v)) if !v.is_nan() => Literal::Float(*v),
        ScalarValue::Decimal128(Some(v), _, scale) => Literal::Decimal(*v, *scale),
        ScalarValue::Utf8(Some(v))
        | ScalarValue::LargeUtf8(Some(v))
        | ScalarValue::Utf8View(Some(v)) => Literal::String(v.clone()),
        ScalarValue::Binary(Some(v)) | ScalarValue::FixedSizeBinary(_, Some(v)) => {
            Literal::Binary(v.clone())
        }
        ScalarValue::Date32(Some(v)) => Literal::Date(*v),
        ScalarValue::TimestampMicrosecond(Some(v), _)
            if matches!(column, DataType::Timestamp(TimeUnit::Microsecond, _)) =>
        {
            Literal::TimestampMicros(*v)
        }
        _ => return None,
    })
}

pub(crate) fn compare_op(op: Operator) -> Option<CompareOp> {
    Some(match op {
        Operator::Eq => CompareOp::Eq,
        Operator::NotEq => CompareOp::NotEq,
        Operator::Lt => CompareOp::Lt,
        Operator::LtEq => CompareOp::LtEq,
        Operator::Gt => CompareOp::Gt,
        Operator::GtEq => CompareOp::GtEq,
        _ => return None,
    })
}

/// The operator that says the same with its sides exchanged.
pub(crate) fn mirror(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::LtEq => CompareOp::GtEq,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::GtEq => CompareOp::LtEq,
        same => same,
    }
}

#[cfg(test)]
mod tests;
