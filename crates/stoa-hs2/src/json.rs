//! Arrays, maps and structs as JSON text, as Hive's clients get them.
//!
//! Numbers and booleans are JSON's own; NaN and infinities, and all else, are strings as columns have them.

use std::fmt::Write as _;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use crate::text;

/// Whether values of the type are written by this module.
pub(crate) fn is_nested(data_type: &DataType) -> bool {
    data_type.is_nested() && !matches!(data_type, DataType::Union(..) | DataType::RunEndEncoded(..))
}

/// Appends the value of a row.
pub(crate) fn put(array: &dyn Array, row: usize, out: &mut String) {
    if array.is_null(row) {
        return out.push_str("null");
    }
    match array.data_type() {
        DataType::List(_) => put_items(array.as_list::<i32>().value(row).as_ref(), out),
        DataType::LargeList(_) => put_items(array.as_list::<i64>().value(row).as_ref(), out),
        DataType::FixedSizeList(..) => {
            put_items(array.as_fixed_size_list().value(row).as_ref(), out);
        }
        DataType::ListView(_) => put_items(array.as_list_view::<i32>().value(row).as_ref(), out),
        DataType::LargeListView(_) => {
            put_items(array.as_list_view::<i64>().value(row).as_ref(), out);
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            out.push('{');
            for (place, (field, column)) in fields.iter().zip(columns).enumerate() {
                separate(place, out);
                put_string(field.name(), out);
                out.push(':');
                put(column.as_ref(), row, out);
            }
            out.push('}');
        }
        DataType::Map(..) => put_map(array.as_map().value(row).columns(), out),
        of if of.is_numeric() => put_number(array, row, out),
        DataType::Boolean => {
            out.push_str(if array.as_boolean().value(row) { "true" } else { "false" });
        }
        _ => put_string(&text_of(array, row), out),
    }
}

fn text_of(array: &dyn Array, row: usize) -> String {
    let mut value = String::new();
    text::put(array, row, &mut value);
    value
}

fn put_number(array: &dyn Array, row: usize, out: &mut String) {
    let value = text_of(array, row);
    match value.contains(['a', 'N', 'i', 'I']) {
        // NaN or infinite.
        true => put_string(&value, out),
        false => out.push_str(&value),
    }
}

fn put_items(items: &dyn Array, out: &mut String) {
    out.push('[');
    for row in 0..items.len() {
        separate(row, out);
        put(items, row, out);
    }
    out.push(']');
}

fn put_map(columns: &[arrow_array::ArrayRef], out: &mut String) {
    out.push('{');
    if let [keys, values] = columns {
        for row in 0..keys.len() {
            separate(row, out);
            put_string(&text_of(keys.as_ref(), row), out);
            out.push(':');
            put(values.as_ref(), row, out);
        }
    }
    out.push('}');
}

fn separate(place: usize, out: &mut String) {
    if place > 0 {
        out.push(',');
    }
}

fn put_string(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if (control as u32) < 0x20 => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, Float64Array, ListArray, StringArray, StructArray};
    use arrow_schema::Field;

    use super::*;

    fn check(array: &dyn Array, row: usize, expected: &str) {
        let mut out = String::new();
        put(array, row, &mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn nested_values_are_json() {
        let lists = [Some(vec![Some(1), None]), Some(vec![])];
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        check(&lists, 0, "[1,null]");
        check(&lists, 1, "[]");
        let names: ArrayRef = Arc::new(StringArray::from(vec!["it\"s\n"]));
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        let field = |name: &str, array: &ArrayRef| {
            Arc::new(Field::new(name, array.data_type().clone(), true))
        };
        let parts =
            vec![(field("a", &names), names.clone()), (field("b", &numbers), numbers.clone())];
        check(&StructArray::from(parts), 0, "{\"a\":\"it\\\"s\\n\",\"b\":\"NaN\"}");
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        maps.keys().append_value("k");
        maps.values().append_value(7);
        maps.append(true).unwrap();
        check(&maps.finish(), 0, "{\"k\":7}");
    }
}
