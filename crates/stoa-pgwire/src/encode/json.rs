//! Structs, maps, unions and nested lists as JSON text.
//!
//! Numbers and booleans are JSON's own; NaN and infinities, and all else, are strings in
//! PostgreSQL's text form.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use stoa_error::{Error, Result};

use super::column::Column;
use super::list::ListValues;
use super::values::Values;
use super::{Format, Style};
use crate::types::{PgType, field_type, is_record};

/// A column of structs.
#[derive(Debug)]
pub(crate) struct StructValues {
    /// Names, types and values of the members.
    fields: Vec<(String, PgType, Column)>,
    /// Whether they are values of `ROW(…)`, written as PostgreSQL writes records.
    is_record: bool,
}

impl StructValues {
    pub(super) fn new(array: &ArrayRef, style: Style) -> Result<Self> {
        let values = array.as_struct();
        let fields = values
            .fields()
            .iter()
            .zip(values.columns())
            .map(|(field, column)| {
                let column = Column::new(field, column, Format::Text, style)?;
                Ok((field.name().clone(), field_type(field), column))
            })
            .collect::<Result<_>>()?;
        Ok(Self { fields, is_record: is_record(values.fields()) })
    }
}

impl StructValues {
    /// Appends a row as text: a record as `(1,"a b",)`, any other struct as JSON.
    pub(super) fn put_text(&self, row: usize, out: &mut Vec<u8>) {
        if !self.is_record {
            return self.put_json(row, out);
        }
        out.push(b'(');
        let mut text = Vec::new();
        for (index, (_, _, column)) in self.fields.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            if column.is_null(row) {
                continue;
            }
            text.clear();
            column.values().put_text(row, &mut text);
            put_member(&text, out);
        }
        out.push(b')');
    }

    /// Appends a row in PostgreSQL's binary form; a struct that is no record is JSON, which is text.
    pub(super) fn put_binary(&self, row: usize, out: &mut Vec<u8>) {
        if !self.is_record {
            return self.put_json(row, out);
        }
        out.extend_from_slice(&(self.fields.len() as u32).to_be_bytes());
        let mut value = Vec::new();
        for (_, of, column) in &self.fields {
            out.extend_from_slice(&of.oid().to_be_bytes());
            if column.is_null(row) {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            value.clear();
            column.values().put_binary(row, &mut value);
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(&value);
        }
    }

    fn put_json(&self, row: usize, out: &mut Vec<u8>) {
        let members = self.fields.iter().map(|(name, _, column)| (name.as_bytes(), column, row));
        put_object(members, out);
    }
}

/// Appends a member of a record, in quotes where it needs them.
fn put_member(text: &[u8], out: &mut Vec<u8>) {
    let is_special =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\\' | b'(' | b')' | b',');
    if !text.is_empty() && !text.iter().any(is_special) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// A column of maps.
#[derive(Debug)]
pub(crate) struct MapValues {
    keys: Column,
    values: Column,
    offsets: OffsetBuffer<i32>,
}

impl MapValues {
    pub(super) fn new(array: &ArrayRef, style: Style) -> Result<Self> {
        let map = array.as_map();
        let DataType::Struct(fields) = map.entries().data_type() else {
            return Err(Error::internal("a map's entries are not structs"));
        };
        let [key, value] = fields.as_ref() else {
            return Err(Error::internal("a map's entries are not pairs"));
        };
        Ok(Self {
            keys: Column::new(key, map.keys(), Format::Text, style)?,
            values: Column::new(value, map.values(), Format::Text, style)?,
            offsets: map.offsets().clone(),
        })
    }
}

/// A column of unions: each row is a row of one of the members.
#[derive(Debug)]
pub(crate) struct UnionValues {
    members: Vec<(i8, Column)>,
    type_ids: ScalarBuffer<i8>,
    offsets: Option<ScalarBuffer<i32>>,
}

impl UnionValues {
    pub(super) fn new(array: &ArrayRef, style: Style) -> Result<Self> {
        let union = array.as_union();
        let DataType::Union(fields, _) = array.data_type() else {
            return Err(Error::internal("a union column is no union"));
        };
        let members = fields
            .iter()
            .map(|(id, field)| Ok((id, Column::new(field, union.child(id), Format::Text, style)?)))
            .collect::<Result<_>>()?;
        Ok(Self { members, type_ids: union.type_ids().clone(), offsets: union.offsets().cloned() })
    }

    fn member(&self, row: usize) -> Option<(&Column, usize)> {
        let id = self.type_ids[row];
        let column = self.members.iter().find(|(member, _)| *member == id).map(|(_, c)| c)?;
        let row = self.offsets.as_ref().map_or(row, |offsets| offsets[row] as usize);
        Some((column, row))
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.member(row).is_none_or(|(column, row)| column.is_null(row))
    }
}

impl Column {
    fn put_json(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
        } else {
            self.values().put_json(row, out);
        }
    }
}

impl Values {
    /// Appends a row that is not NULL as JSON.
    pub(super) fn put_json(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(a) => {
                out.extend_from_slice(if a.value(row) { b"true" } else { b"false" });
            }
            Self::Int8(_)
            | Self::Int16(_)
            | Self::Int32(_)
            | Self::Int64(_)
            | Self::UInt8(_)
            | Self::UInt16(_)
            | Self::UInt32(_)
            | Self::UInt64(_)
            | Self::Oid(_)
            | Self::Decimal128(..)
            | Self::Decimal256(..) => self.put_text(row, out),
            Self::Float32(a) if a[row].is_finite() => self.put_text(row, out),
            Self::Float64(a) if a[row].is_finite() => self.put_text(row, out),
            Self::Dictionary(dictionary) => dictionary.put_json(row, out),
            Self::List(list) => put_list(list, row, out),
            Self::Struct(value) => value.put_json(row, out),
            Self::Map(map) => put_map(map, row, out),
            Self::Union(union) => match union.member(row) {
                Some((column, row)) => column.put_json(row, out),
                None => out.extend_from_slice(b"null"),
            },
            _ => {
                let mut text = Vec::new();
                self.put_text(row, &mut text);
                put_string(&text, out);
            }
        }
    }
}

/// Appends a list as a JSON array.
pub(super) fn put_list(list: &ListValues, row: usize, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, item) in list.range(row).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        list.items().put_json(item, out);
    }
    out.push(b']');
}

fn put_object<'a>(members: impl Iterator<Item = (&'a [u8], &'a Column, usize)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, column, row)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_string(name, out);
        out.push(b':');
        column.put_json(row, out);
    }
    out.push(b'}');
}

fn put_map(map: &MapValues, row: usize, out: &mut Vec<u8>) {
    out.push(b'{');
    let range = map.offsets[row] as usize..map.offsets[row + 1] as usize;
    for (index, entry) in range.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut key = Vec::new();
        if !map.keys.is_null(entry) {
            map.keys.values().put_text(entry, &mut key);
        }
        put_string(&key, out);
        out.push(b':');
        map.values.put_json(entry, out);
    }
    out.push(b'}');
}

fn put_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                let _ = write!(out, "\\u{byte:04x}");
            }
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}
