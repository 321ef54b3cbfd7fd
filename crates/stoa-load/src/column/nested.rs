//! Lists, structs and maps, filled from JSON; lists also from PostgreSQL's arrays.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeListArray, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};
use serde_json::value::RawValue;

use super::values::Values;
use super::{Column, Outcome};
use crate::bad_value::BadValue;
use crate::convert::Conversions;
use crate::json_object::for_each_member;

/// A column whose values are made of other columns'.
#[derive(Debug)]
pub(super) enum Nested {
    /// Items, and where each row's end.
    List { item: Box<Column>, ends: Vec<i64>, large: bool },
    /// One column per field; all as long as this one.
    Struct { fields: Fields, columns: Vec<Column>, rows: usize },
    /// Entries (key, value), and where each row's end.
    Map { entries: FieldRef, sorted: bool, key: Box<Column>, value: Box<Column>, ends: Vec<i64> },
}

impl Nested {
    pub fn new(data_type: &DataType) -> Option<Self> {
        let column = |field: &FieldRef| Column::new(field, 0).ok();
        Some(match data_type {
            DataType::List(item) | DataType::LargeList(item) => Self::List {
                item: Box::new(column(item)?),
                ends: Vec::new(),
                large: matches!(data_type, DataType::LargeList(_)),
            },
            DataType::Struct(fields) => Self::Struct {
                fields: fields.clone(),
                columns: fields.iter().map(column).collect::<Option<_>>()?,
                rows: 0,
            },
            DataType::Map(entries, sorted) => {
                let DataType::Struct(fields) = entries.data_type() else {
                    return None;
                };
                let [key, value] = fields.as_ref() else {
                    return None;
                };
                Self::Map {
                    entries: entries.clone(),
                    sorted: *sorted,
                    key: Box::new(column(key)?),
                    value: Box::new(column(value)?),
                    ends: Vec::new(),
                }
            }
            _ => return None,
        })
    }

    /// Appends one value from its JSON. What was appended before an error is taken off again.
    pub fn append(&mut self, json: &str, type_name: &str, with: &Conversions) -> Outcome {
        let rows = self.rows();
        let outcome = self.try_append(json, type_name, with);
        if outcome.is_err() {
            self.truncate(rows);
        }
        outcome
    }

    fn rows(&self) -> usize {
        match self {
            Self::List { ends, .. } | Self::Map { ends, .. } => ends.len(),
            Self::Struct { rows, .. } => *rows,
        }
    }

    fn try_append(&mut self, json: &str, type_name: &str, with: &Conversions) -> Outcome {
        let not_this = |_| BadValue::not_a(json.as_bytes(), type_name);
        match self {
            Self::List { item, ends, .. } if json.trim_start().starts_with('{') => {
                let rest = append_array(item, json.trim(), with)
                    .map_err(|wrong| wrong.unwrap_or_else(|| not_an_array(json, type_name)))?;
                if !rest.is_empty() {
                    return Err(not_an_array(json, type_name));
                }
                ends.push(item.len() as i64);
            }
            Self::List { item, ends, .. } => {
                let items: Vec<&RawValue> = serde_json::from_str(json).map_err(not_this)?;
                for raw in items {
                    item.append_json(raw.get(), with)?;
                }
                ends.push(item.len() as i64);
            }
            Self::Struct { columns, rows, .. } => {
                let members = members(json).map_err(not_this)?;
                for (name, _) in &members {
                    if !columns.iter().any(|column| same_name(column.field.name(), name)) {
                        return Err(BadValue::line(format!(
                            "{} has a field \"{name}\", which {type_name} lacks",
                            crate::bad_value::quoted(json.as_bytes())
                        )));
                    }
                }
                for column in columns {
                    let name = column.field.name();
                    match members.iter().find(|(member, _)| same_name(name, member)) {
                        Some((_, raw)) => column.append_json(raw.get(), with)?,
                        None => column.append_null()?,
                    }
                }
                *rows += 1;
            }
            Self::Map { key, value, ends, .. } => {
                for (name, raw) in members(json).map_err(not_this)? {
                    key.append_text(name.as_bytes(), with)?;
                    value.append_json(raw.get(), with)?;
                }
                ends.push(key.len() as i64);
            }
        }
        Ok(())
    }

    pub fn append_default(&mut self) {
        match self {
            Self::List { item, ends, .. } => ends.push(item.len() as i64),
            Self::Map { key, ends, .. } => ends.push(key.len() as i64),
            Self::Struct { columns, rows, .. } => {
                columns.iter_mut().for_each(Column::append_filler);
                *rows += 1;
            }
        }
    }

    pub fn truncate(&mut self, to: usize) {
        let last = |ends: &[i64]| ends.last().map_or(0, |&end| end as usize);
        match self {
            Self::List { item, ends, .. } => {
                ends.truncate(to);
                item.truncate(last(ends));
            }
            Self::Map { key, value, ends, .. } => {
                ends.truncate(to);
                key.truncate(last(ends));
                value.truncate(last(ends));
            }
            Self::Struct { columns, rows, .. } => {
                columns.iter_mut().for_each(|column| column.truncate(to));
                *rows = to.min(*rows);
            }
        }
    }

    pub fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let finish = |column: &mut Column| {
            column.finish().map_err(|e| ArrowError::ExternalError(Box::new(e)))
        };
        Ok(match self {
            Self::List { item, ends, large } => {
                let (field, values) = (item.field.clone(), finish(item)?);
                if *large {
                    Arc::new(LargeListArray::try_new(field, offsets(ends)?, values, nulls)?)
                } else {
                    Arc::new(ListArray::try_new(field, offsets(ends)?, values, nulls)?)
                }
            }
            Self::Struct { fields, columns, rows } => {
                let arrays = columns.iter_mut().map(finish).collect::<Result<Vec<_>, _>>()?;
                let rows = std::mem::take(rows);
                Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, rows)?)
            }
            Self::Map { entries, sorted, key, value, ends } => {
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(ArrowError::SchemaError("a map's entries are a struct".to_owned()));
                };
                let pairs =
                    StructArray::try_new(fields.clone(), vec![finish(key)?, finish(value)?], None)?;
                Arc::new(MapArray::try_new(entries.clone(), offsets(ends)?, pairs, nulls, *sorted)?)
            }
        })
    }
}

fn offsets<O: arrow_array::OffsetSizeTrait>(
    ends: &mut Vec<i64>,
) -> Result<OffsetBuffer<O>, ArrowError> {
    let offsets = std::iter::once(0)
        .chain(ends.drain(..))
        .map(|end| O::from_usize(end as usize))
        .collect::<Option<Vec<O>>>()
        .ok_or(ArrowError::OffsetOverflowError(i32::MAX as usize))?;
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn same_name(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// The members of a JSON object, in order.
pub(crate) fn members(
    json: &str,
) -> serde_json::Result<Vec<(std::borrow::Cow<'_, str>, &RawValue)>> {
    let mut members = Vec::new();
    for_each_member(json, |name, raw| members.push((name, raw)))?;
    Ok(members)
}

fn not_an_array(text: &str, type_name: &str) -> Box<BadValue> {
    BadValue::not_a(text.as_bytes(), type_name)
}

/// Appends the items of an array as PostgreSQL writes it, `{1,"two words",NULL,{3}}`, and gives what stands behind
/// it. An error without a value is one of the braces, quotes and commas.
///
/// Source: PostgreSQL's manual, 8.15.6.
fn append_array<'a>(
    item: &mut Column,
    text: &'a str,
    with: &Conversions,
) -> Result<&'a str, Option<Box<BadValue>>> {
    let mut rest = text.strip_prefix('{').ok_or(None)?.trim_start();
    if let Some(rest) = rest.strip_prefix('}') {
        return Ok(rest);
    }
    loop {
        if rest.starts_with('{') {
            let Values::Nested(nested) = &mut item.values else { return Err(None) };
            let Nested::List { item: inner, ends, .. } = nested else { return Err(None) };
            rest = append_array(inner, rest, with)?;
            ends.push(inner.len() as i64);
            item.nulls.append(true);
        } else {
            let (value, is_quoted, behind) = array_item(rest).ok_or(None)?;
            let is_null = !is_quoted && value.eq_ignore_ascii_case("null");
            match is_null {
                true => item.append_null()?,
                false => item.append_text(value.as_bytes(), with)?,
            }
            rest = behind;
        }
        rest = rest.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None => return rest.strip_prefix('}').ok_or(None),
        };
    }
}

/// The value of an item, whether it was in quotes, and what stands behind it.
fn array_item(text: &str) -> Option<(String, bool, &str)> {
    let is_quoted = text.starts_with('"');
    let mut letters = text.char_indices().skip(usize::from(is_quoted));
    let mut value = String::new();
    // Blanks at the end count where a backslash stands before them.
    let mut kept = 0;
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                value.push(letters.next()?.1);
                kept = value.len();
            }
            '"' if is_quoted => return Some((value, true, &text[at + 1..])),
            ',' | '}' if !is_quoted => {
                let end = value.trim_end().len().max(kept);
                value.truncate(end);
                return (!value.is_empty()).then(|| (value, false, &text[at..]));
            }
            '"' | '{' if !is_quoted => return None,
            letter => value.push(letter),
        }
    }
    None
}
