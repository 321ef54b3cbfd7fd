//! Which aggregate functions reports have, and the types of what they give.

use arrow::datatypes::DataType;
use stoa_report::{Aggregate, Column, Function, Item, ValueKind, kind_of};
use stoa_semantics::NUMERIC;

/// The function that is called so, over a column of a type, or over rows; `None` where reports do not have it.
pub(crate) fn function_of(name: &str, of: Option<&DataType>) -> Option<Function> {
    let kind = match of {
        Some(of) => Some(kind_of(of)?),
        None => None,
    };
    let is_integer = of.is_some_and(DataType::is_integer);
    Some(match (name, kind) {
        ("count", _) => Function::Count,
        ("sum", Some(ValueKind::Decimal | ValueKind::Float)) => Function::Sum,
        ("sum" | "avg", Some(ValueKind::Int)) if !is_integer => return None,
        ("sum", Some(ValueKind::Int)) => Function::Sum,
        ("avg", Some(ValueKind::Int | ValueKind::Float)) => Function::Mean,
        ("min", Some(kind)) if kind != ValueKind::Float => Function::Min,
        ("max", Some(kind)) if kind != ValueKind::Float => Function::Max,
        _ => return None,
    })
}

/// Whether the planner gave an item the type that it has on the short path.
pub(crate) fn fits(
    item: Item,
    columns: &[Column],
    aggregates: &[Aggregate],
    planned: &DataType,
) -> bool {
    let of = |column: usize| columns.get(column).map(|column| &column.data_type);
    let aggregate = match item {
        Item::Column(column) => return of(column) == Some(planned),
        Item::Aggregate(index) => aggregates.get(index),
    };
    let Some(aggregate) = aggregate else { return false };
    match (aggregate.function, aggregate.column.and_then(of)) {
        (Function::Count, _) => *planned == DataType::Int64,
        (Function::Min | Function::Max, Some(of)) => of == planned,
        (Function::Mean, Some(of)) if of.is_integer() => *planned == NUMERIC,
        (Function::Mean, Some(_)) => *planned == DataType::Float64,
        (Function::Sum, Some(DataType::Decimal128(_, scale))) => {
            matches!(planned, DataType::Decimal128(_, planned) if planned == scale)
        }
        (Function::Sum, Some(of)) if of.is_integer() => *planned == DataType::Int64,
        (Function::Sum, Some(of)) if of.is_floating() => *planned == DataType::Float64,
        _ => false,
    }
}
