//! The children of a nested Arrow array as ORC stores them: only of values that are not NULL,
//! one after the other.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, GenericListArray, GenericListViewArray, OffsetSizeTrait,
    UInt32Array, UInt64Array, UnionArray,
};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::{FilterBuilder, filter};
use arrow_select::take::take;
use stoa_error::Error;

use crate::error::Result;

/// One array per child of the column, in order.
pub(crate) fn child_arrays(array: &dyn Array, nulls: Option<&NullBuffer>) -> Result<Vec<ArrayRef>> {
    match array.data_type() {
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            let Some(nulls) = nulls else { return Ok(columns.to_vec()) };
            let mask = BooleanArray::new(nulls.inner().clone(), None);
            let keep = FilterBuilder::new(&mask).optimize().build();
            columns.iter().map(|column| keep.filter(column).map_err(failed)).collect()
        }
        DataType::List(_) => Ok(vec![list_items(array.as_list::<i32>(), nulls)?]),
        DataType::LargeList(_) => Ok(vec![list_items(array.as_list::<i64>(), nulls)?]),
        DataType::ListView(_) => Ok(vec![view_items(array.as_list_view::<i32>(), nulls)?]),
        DataType::LargeListView(_) => Ok(vec![view_items(array.as_list_view::<i64>(), nulls)?]),
        DataType::FixedSizeList(_, length) => {
            let list = array.as_fixed_size_list();
            let length = usize::try_from(*length).unwrap_or(0);
            let from = usize::try_from(list.value_offset(0)).unwrap_or(0);
            let items = list.values().slice(from, list.len() * length);
            Ok(vec![keep_items(items, nulls, (0..list.len()).map(|_| length))?])
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let offsets = map.value_offsets();
            let (from, to) = (offsets[0] as usize, offsets[map.len()] as usize);
            let entries = map.entries().slice(from, to - from);
            let lengths = || offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
            let columns = entries.columns().iter();
            columns.map(|column| keep_items(column.clone(), nulls, lengths())).collect()
        }
        DataType::Union(..) => union_children(array.as_union()),
        other => Err(Error::internal(format!("{other} has no children"))),
    }
}

fn list_items<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let offsets = list.value_offsets();
    let (from, to) = (offsets[0].as_usize(), offsets[list.len()].as_usize());
    let lengths = offsets.windows(2).map(|pair| (pair[1] - pair[0]).as_usize());
    keep_items(list.values().slice(from, to - from), nulls, lengths)
}

/// Drops the items of NULL lists; `lengths` are those of all lists.
fn keep_items(
    items: ArrayRef,
    nulls: Option<&NullBuffer>,
    lengths: impl Iterator<Item = usize>,
) -> Result<ArrayRef> {
    let Some(nulls) = nulls else { return Ok(items) };
    let mut mask = BooleanBufferBuilder::new(items.len());
    for (length, valid) in lengths.zip(nulls) {
        mask.append_n(length, valid);
    }
    let mask = mask.finish();
    if mask.count_set_bits() == items.len() {
        return Ok(items);
    }
    filter(&items, &BooleanArray::new(mask, None)).map_err(failed)
}

fn view_items<O: OffsetSizeTrait>(
    list: &GenericListViewArray<O>,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let mut indexes = Vec::new();
    for (at, (offset, size)) in list.offsets().iter().zip(list.sizes()).enumerate() {
        if nulls.is_none_or(|nulls| nulls.is_valid(at)) {
            let from = offset.as_usize();
            indexes.extend(from as u64..(from + size.as_usize()) as u64);
        }
    }
    take(list.values(), &UInt64Array::from(indexes), None).map_err(failed)
}

fn union_children(union: &UnionArray) -> Result<Vec<ArrayRef>> {
    let DataType::Union(fields, _) = union.data_type() else { return Ok(Vec::new()) };
    let tags = union.type_ids();
    let child = |tag: i8| {
        let rows = tags.iter().enumerate().filter(|(_, t)| **t == tag).map(|(row, _)| row);
        let indexes = match union.offsets() {
            Some(offsets) => rows.map(|row| offsets[row] as u32).collect::<UInt32Array>(),
            None => rows.map(|row| row as u32).collect(),
        };
        take(union.child(tag), &indexes, None).map_err(failed)
    };
    fields.iter().map(|(tag, _)| child(tag)).collect()
}

fn failed(source: ArrowError) -> Error {
    Error::internal("selecting the values of a nested column failed").with_source(source)
}
