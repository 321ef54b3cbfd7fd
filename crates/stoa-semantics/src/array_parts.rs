//! `trim_array(array, n)` and `array_fill(value, lengths)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder, ListArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, columns, failure, unsupported};
use super::casts;
use super::made_texts::{VALUE_BYTES_MAX, too_large};
use super::operators::type_name;
use super::refused::told;
use crate::scope::Scope;

fn does_not_exist(name: &str, types: &[DataType]) -> DataFusionError {
    let types: Vec<String> = types.iter().map(type_name).collect();
    failure("42883", format!("function {name}({}) does not exist", types.join(", ")))
}

/// `trim_array` with a number, and `array_fill` of one dimension.
///
/// # Errors
/// Several dimensions, or another first subscript (0A000).
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let name = function.func.name().to_owned();
    let is_fill = name == Parts::Fill.name();
    let mut args = function.args;
    if is_fill && let [value, Expr::ScalarFunction(lengths), ..] = args.as_slice() {
        let is_plain = args.len() == 2
            && lengths.func.name() == "make_array"
            && lengths.args.len() == 1
            && (is_filled(value) || !value.get_type(&scope.schema)?.is_nested());
        if !is_plain {
            let hint = "fill an array of one dimension: array_fill(value, ARRAY[length])";
            return Err(unsupported("array_fill of several dimensions is not supported", hint));
        }
    } else if is_fill && args.len() == 2 {
        let hint = "write the length as ARRAY[length]";
        return Err(unsupported("array_fill of a computed array is not supported", hint));
    }
    if let (false, [_, count]) = (is_fill, args.as_mut_slice()) {
        let of = count.get_type(&scope.schema)?;
        *count = casts::to_type(std::mem::take(count), &of, &DataType::Int64, scope.options)?;
    }
    // An element is an `integer` where PostgreSQL has one.
    if let (true, [value, _]) = (is_fill, args.as_mut_slice()) {
        let of = value.get_type(&scope.schema)?;
        if of == DataType::Int64 && told(value, &of) == DataType::Int32 {
            let narrow =
                casts::to_type(std::mem::take(value), &of, &DataType::Int32, scope.options);
            *value = narrow?;
        }
    }
    Ok(Transformed::yes(call(if is_fill { Parts::Fill } else { Parts::Trim }, args)))
}

/// Whether a value is the inner dimension of an array that is filled.
fn is_filled(value: &Expr) -> bool {
    matches!(value, Expr::ScalarFunction(inner) if inner.func.name() == Parts::Fill.name())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Parts {
    Fill,
    Trim,
}

impl Operation for Parts {
    fn name(&self) -> &str {
        match self {
            Self::Fill => "array_fill",
            Self::Trim => "trim_array",
        }
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match (self, types) {
            (Self::Trim, [list @ DataType::List(_), count]) if count.is_integer() => {
                Ok(list.clone())
            }
            (Self::Fill, [value, DataType::List(lengths)])
                if lengths.data_type().is_integer() || lengths.data_type().is_null() =>
            {
                Ok(DataType::List(Arc::new(Field::new_list_field(value.clone(), true))))
            }
            (Self::Fill, [_, _, _]) => Err(unsupported(
                "array_fill with lower bounds is not supported",
                "arrays begin at 1",
            )),
            (_, types) => Err(does_not_exist(self.name(), types)),
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [first, second] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        match self {
            Self::Fill => filled(first, second, rows),
            Self::Trim => trimmed(first, second, rows),
        }
    }
}

fn list_of(
    values: &ArrayRef,
    places: Vec<u32>,
    lengths: Vec<usize>,
    valid: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let values = take(values, &UInt32Array::from(places), None)?;
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item, offsets, values, valid)?))
}

fn filled(values: &ArrayRef, lengths: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let null = || failure("22004", "dimension array or low bound array cannot be null");
    let lists = lengths.as_list_opt::<i32>().ok_or_else(null)?;
    let dimensions = cast(lists.values(), &DataType::Int64)?;
    let dimensions = dimensions.as_primitive::<Int64Type>();
    let size = match values.len() {
        0 => 1,
        count => values.get_array_memory_size() / count + 1,
    };
    let (mut places, mut counts, mut total) = (Vec::new(), Vec::with_capacity(rows), 0_usize);
    for row in 0..rows {
        if lists.is_null(row) {
            return Err(null());
        }
        let at = lists.value_offsets()[row] as usize;
        if lists.value_length(row) != 1 || dimensions.is_null(at) {
            return Err(failure("22004", "dimension values cannot be null"));
        }
        let count = dimensions.value(at);
        let too_many = || failure("54000", "array size exceeds the maximum allowed (134217727)");
        let count = usize::try_from(count).ok().filter(|count| *count <= 134_217_727);
        let count = count.ok_or_else(too_many)?;
        total = total.saturating_add(count.saturating_mul(size.max(8)));
        if total > VALUE_BYTES_MAX {
            return Err(too_large("array_fill"));
        }
        places.extend(std::iter::repeat_n(row as u32, count));
        counts.push(count);
    }
    list_of(values, places, counts, None)
}

fn trimmed(lists: &ArrayRef, counts: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let Some(lists) = lists.as_list_opt::<i32>() else {
        return Err(failure("42883", "an array wanted"));
    };
    let counts = cast(counts, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let (mut places, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
    let mut valid = BooleanBuilder::with_capacity(rows);
    for (row, start) in lists.value_offsets().iter().enumerate().take(rows) {
        let is_valid = lists.is_valid(row) && counts.is_valid(row);
        valid.append_value(is_valid);
        if !is_valid {
            lengths.push(0);
            continue;
        }
        let length = i64::from(lists.value_length(row));
        let count = counts.value(row);
        if !(0..=length).contains(&count) {
            let message = format!("number of elements to trim must be between 0 and {length}");
            return Err(failure("2202E", message));
        }
        let kept = usize::try_from(length - count).unwrap_or(0);
        places.extend((start.unsigned_abs()..).take(kept));
        lengths.push(kept);
    }
    let valid = NullBuffer::new(valid.finish().values().clone());
    list_of(lists.values(), places, lengths, Some(valid))
}
