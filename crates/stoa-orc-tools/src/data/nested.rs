//! Values made of values: structs, lists, maps, unions.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Fields as ArrowFields};
use stoa_error::{Error, Result};
use stoa_orc::null_union_slot;

use super::RowFormat;
use super::values::{Put, bind_value, nullable};
use crate::text::number::put_int;
use crate::text::string::{Escapes, put_string};

/// What stands between two members.
pub(super) fn comma(format: RowFormat) -> &'static [u8] {
    match format {
        RowFormat::Contents => b", ",
        RowFormat::Java => b",",
    }
}

/// Members of a struct, each behind the text that comes before it: `{"a": `, `, "b": `.
pub(super) struct Fields<'a>(Vec<(Vec<u8>, Put<'a>)>);

impl<'a> Fields<'a> {
    pub(super) fn bind(
        fields: &ArrowFields,
        columns: &'a [ArrayRef],
        format: RowFormat,
    ) -> Result<Self> {
        let (colon, escapes): (&[u8], _) = match format {
            RowFormat::Contents => (b": ", Escapes::Json),
            RowFormat::Java => (b":", Escapes::Gson),
        };
        let members = fields.iter().zip(columns).enumerate().map(|(index, (field, column))| {
            let mut before = if index == 0 { b"{".to_vec() } else { comma(format).to_vec() };
            put_string(field.name(), escapes, &mut before);
            before.extend_from_slice(colon);
            Ok((before, bind_value(column.as_ref(), format)?))
        });
        members.collect::<Result<_>>().map(Self)
    }

    #[inline]
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.0.is_empty() {
            out.push(b'{');
        }
        for (before, put) in &self.0 {
            out.extend_from_slice(before);
            put(row, out);
        }
        out.push(b'}');
    }
}

pub(super) fn structure(array: &dyn Array, format: RowFormat) -> Result<Put<'_>> {
    let values = array.as_struct();
    let fields = Fields::bind(values.fields(), values.columns(), format)?;
    Ok(nullable(array, move |row, out| fields.write(row, out)))
}

pub(super) fn list(array: &dyn Array, format: RowFormat) -> Result<Put<'_>> {
    let list = array.as_list::<i32>();
    let put = bind_value(list.values().as_ref(), format)?;
    let offsets = list.value_offsets();
    Ok(nullable(array, move |row, out| put_list(span(offsets, row), format, out, &put)))
}

pub(super) fn map(array: &dyn Array, format: RowFormat) -> Result<Put<'_>> {
    let map = array.as_map();
    let key = bind_value(map.keys().as_ref(), format)?;
    let value = bind_value(map.values().as_ref(), format)?;
    let (first, second): (&[u8], &[u8]) = match format {
        RowFormat::Contents => (b"{\"key\": ", b", \"value\": "),
        RowFormat::Java => (b"{\"_key\":", b",\"_value\":"),
    };
    let entry = move |at: usize, out: &mut Vec<u8>| {
        out.extend_from_slice(first);
        key(at, out);
        out.extend_from_slice(second);
        value(at, out);
        out.push(b'}');
    };
    let offsets = map.value_offsets();
    Ok(nullable(array, move |row, out| put_list(span(offsets, row), format, out, &entry)))
}

/// A union's tag and value.
pub(super) fn union(array: &dyn Array, format: RowFormat) -> Result<Put<'_>> {
    let union = array.as_union();
    let DataType::Union(variants, _) = array.data_type() else {
        return Err(Error::internal(format!("{} is no union", array.data_type())));
    };
    let variants = variants.iter().map(|(tag, _)| bind_value(union.child(tag).as_ref(), format));
    let variants = variants.collect::<Result<Vec<_>>>()?;
    let null = null_union_slot(union);
    Ok(Box::new(move |row, out| {
        let (tag, at) = (union.type_id(row), union.value_offset(row));
        let variant = usize::try_from(tag).ok().and_then(|tag| variants.get(tag));
        match variant {
            None => out.extend_from_slice(b"null"),
            Some(_) if tag == 0 && null == Some(at) => out.extend_from_slice(b"null"),
            Some(put) if format == RowFormat::Java => put(at, out),
            Some(put) => {
                out.extend_from_slice(b"{\"tag\": ");
                put_int(tag, out);
                out.extend_from_slice(b", \"value\": ");
                put(at, out);
                out.push(b'}');
            }
        }
    }))
}

fn span(offsets: &[i32], row: usize) -> Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

fn put_list(
    members: Range<usize>,
    format: RowFormat,
    out: &mut Vec<u8>,
    put: &impl Fn(usize, &mut Vec<u8>),
) {
    let first = members.start;
    out.push(b'[');
    for at in members {
        if at > first {
            out.extend_from_slice(comma(format));
        }
        put(at, out);
    }
    out.push(b']');
}
