//! `string_agg(x, delimiter ORDER BY y)` as `stoa-sql` writes it: the elements of a list, joined.
//!
//! Elements are texts or bytes; those that are NULL are left out, and of none nothing is made.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, columns, failure};
use super::casts;
use super::made_texts::{Texts, VALUE_BYTES_MAX, too_large};
use super::operators::type_name;
use crate::scope::Scope;

/// The call with a delimiter of the elements' type.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Ok([list, delimiter]) = <[Expr; 2]>::try_from(function.args) else {
        return Err(failure("42883", "string_agg takes a value and a delimiter"));
    };
    let to = match list.get_type(&scope.schema)? {
        DataType::List(item) if item.data_type().is_binary() => DataType::Binary,
        _ => DataType::Utf8,
    };
    let of = delimiter.get_type(&scope.schema)?;
    let delimiter = match of == to {
        true => delimiter,
        false => casts::to_type(delimiter, &of, &to, scope.options)?,
    };
    Ok(Transformed::yes(call(JoinedElements, vec![list, delimiter])))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct JoinedElements;

fn does_not_exist(types: &[DataType]) -> DataFusionError {
    let element = match types.first() {
        Some(DataType::List(item)) => type_name(item.data_type()),
        _ => "unknown".to_owned(),
    };
    failure("42883", format!("function string_agg({element}, unknown) does not exist"))
}

impl Operation for JoinedElements {
    fn name(&self) -> &str {
        "joined_elements"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::List(item), _] if item.data_type().is_binary() => Ok(DataType::Binary),
            [DataType::List(item), _]
                if item.data_type().is_string() || item.data_type().is_null() =>
            {
                Ok(DataType::Utf8)
            }
            types => Err(does_not_exist(types)),
        }
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [lists, delimiters] = columns.as_slice() else {
            return Err(failure("42883", "string_agg takes a value and a delimiter"));
        };
        let of = self.result(&[lists.data_type().clone(), delimiters.data_type().clone()])?;
        let Some(lists) = lists.as_list_opt::<i32>() else {
            return Err(failure("42883", "an array wanted"));
        };
        let elements = cast(&cast(lists.values(), &of)?, &DataType::Binary)?;
        let elements = elements.as_binary::<i32>();
        let delimiters = cast(&cast(delimiters, &of)?, &DataType::Binary)?;
        let delimiters = delimiters.as_binary::<i32>();
        let joined = |row: usize| -> Result<Option<Vec<u8>>> {
            if lists.is_null(row) {
                return Ok(None);
            }
            let delimiter = if delimiters.is_null(row) { &[][..] } else { delimiters.value(row) };
            let offsets = lists.value_offsets();
            let mut joined: Option<Vec<u8>> = None;
            for at in offsets[row] as usize..offsets[row + 1] as usize {
                if elements.is_null(at) {
                    continue;
                }
                let out = match &mut joined {
                    Some(out) => {
                        out.extend_from_slice(delimiter);
                        out
                    }
                    None => joined.insert(Vec::new()),
                };
                out.extend_from_slice(elements.value(at));
                if out.len() > VALUE_BYTES_MAX {
                    return Err(too_large("string_agg"));
                }
            }
            Ok(joined)
        };
        if of == DataType::Binary {
            let mut made = BinaryBuilder::new();
            let mut bytes = 0_usize;
            for row in 0..rows {
                let value = joined(row)?;
                bytes = bytes.saturating_add(value.as_ref().map_or(0, Vec::len));
                if bytes > i32::MAX as usize {
                    return Err(too_large("string_agg"));
                }
                made.append_option(value);
            }
            return Ok(Arc::new(made.finish()));
        }
        let mut made = Texts::of("string_agg");
        for row in 0..rows {
            let text = joined(row)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            made.append(text)?;
        }
        Ok(Arc::new(made.finish()))
    }
}
