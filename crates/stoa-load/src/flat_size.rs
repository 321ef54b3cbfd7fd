//! How large values become that are kept once and used many times.
//!
//! Arrow has columns whose rows only point at values: views, dictionaries, runs, overlapping lists. A
//! batch of a megabyte may so stand for a terabyte, which a cast to a plain column would write out.
//!
//! In: an array. Out: bytes of its values when each row has its own; 0 for columns that already are
//! so.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, make_array};
use arrow_schema::DataType;

/// Bytes of a value without a length of its own, at most.
const FIXED_BYTES: u64 = 32;

/// Bytes of all values, each written out.
pub(crate) fn flat_bytes(array: &dyn Array) -> u64 {
    match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => sum(lengths(array)),
        DataType::Dictionary(..) => dictionary_bytes(array),
        DataType::RunEndEncoded(..) => {
            let values = array.to_data().child_data().get(1).cloned().map(make_array);
            let longest = values.map_or(0, |values| longest(&values));
            longest.saturating_mul(array.len() as u64)
        }
        DataType::ListView(_) => list_view_bytes::<i32>(array),
        DataType::LargeListView(_) => list_view_bytes::<i64>(array),
        nested if nested.is_nested() => {
            let children = array.to_data().child_data().to_vec().into_iter().map(make_array);
            sum(children.map(|child| flat_bytes(&child)))
        }
        _ => 0,
    }
}

fn dictionary_bytes(array: &dyn Array) -> u64 {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return 0;
    }
    let lengths: Vec<u64> = lengths(values).collect();
    if lengths.is_empty() {
        return longest(values).saturating_mul(array.len() as u64);
    }
    let keys = dictionary.normalized_keys().into_iter();
    sum(keys.map(|key| lengths.get(key).copied().unwrap_or_default()))
}

fn list_view_bytes<O: OffsetSizeTrait>(array: &dyn Array) -> u64 {
    let lists = array.as_list_view::<O>();
    let rows = sum(lists.sizes().iter().map(|size| size.as_usize() as u64));
    rows.saturating_mul(longest(lists.values()))
}

/// Bytes of the longest value.
fn longest(values: &ArrayRef) -> u64 {
    match lengths(values).max() {
        Some(longest) => longest,
        None if values.data_type().is_nested() => {
            flat_bytes(values).saturating_add(values.get_array_memory_size() as u64)
        }
        None => FIXED_BYTES,
    }
}

/// Bytes of each value, where they differ; else nothing.
fn lengths(array: &dyn Array) -> Box<dyn Iterator<Item = u64> + '_> {
    fn between<O: OffsetSizeTrait>(offsets: &[O]) -> Box<dyn Iterator<Item = u64> + '_> {
        let length = |pair: &[O]| match pair {
            [start, end] => (*end - *start).as_usize() as u64,
            _ => 0,
        };
        Box::new(offsets.windows(2).map(length))
    }
    match array.data_type() {
        DataType::Utf8View => Box::new(array.as_string_view().lengths().map(u64::from)),
        DataType::BinaryView => Box::new(array.as_binary_view().lengths().map(u64::from)),
        DataType::Utf8 => between(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => between(array.as_string::<i64>().value_offsets()),
        DataType::Binary => between(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => between(array.as_binary::<i64>().value_offsets()),
        _ => Box::new(std::iter::empty()),
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::StringViewBuilder;
    use arrow_array::types::Int32Type;
    use arrow_array::{
        DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    };
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::{Adapter, LoadOptions};

    fn views(rows: usize, length: usize) -> ArrayRef {
        let mut builder = StringViewBuilder::new().with_deduplicate_strings();
        let text = "x".repeat(length);
        (0..rows).for_each(|_| builder.append_value(&text));
        Arc::new(builder.finish())
    }

    fn dictionary(rows: usize, length: usize) -> ArrayRef {
        let keys = Int32Array::from(vec![0; rows]);
        let values = Arc::new(StringArray::from(vec!["x".repeat(length)]));
        Arc::new(DictionaryArray::<Int32Type>::new(keys, values))
    }

    #[test]
    fn values_that_are_used_many_times_count_as_often() {
        assert_eq!(flat_bytes(&views(1000, 500)), 500_000);
        assert_eq!(flat_bytes(&dictionary(1000, 500)), 500_000);
        assert_eq!(flat_bytes(&Int64Array::from(vec![1; 1000])), 0);
        let field = Arc::new(Field::new_list_field(DataType::Utf8View, true));
        let lists =
            ListArray::new(field, OffsetBuffer::from_lengths([400, 600]), views(1000, 500), None);
        assert_eq!(flat_bytes(&lists), 500_000);
    }

    #[test]
    fn a_batch_that_would_become_too_large_is_refused() {
        let target = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
        let adapt = |array: ArrayRef| {
            let batch = RecordBatch::try_from_iter([("a", array)]).unwrap();
            let options = LoadOptions::default();
            let adapter = Adapter::new("rows", &batch.schema(), target.clone(), &options);
            adapter.unwrap().adapt(&batch)
        };
        for array in [views(1000, 1 << 20), dictionary(1000, 1 << 20)] {
            let error = adapt(array).unwrap_err();
            assert_eq!(error.sqlstate(), "54000", "{error}");
        }
        for array in [views(1000, 100), dictionary(1000, 100)] {
            assert_eq!(adapt(array).unwrap().num_rows(), 1000);
        }
    }
}
