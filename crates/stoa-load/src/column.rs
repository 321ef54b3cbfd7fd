//! One column being filled from text or PostgreSQL's binary form, row by row, with the way back: a row that turns out bad in
//! a later column is taken off again with [`Column::truncate`].

mod binary;
mod hints;
mod nested;
mod values;

pub(crate) use nested::members;

use std::borrow::Cow;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, FieldRef};
use stoa_error::{Error, Result};

use crate::bad_value::BadValue;
use crate::convert::Conversions;
use crate::type_name::sql_name;
use values::{NullMask, Values};

/// Why a value was refused.
pub(crate) type Outcome = std::result::Result<(), Box<BadValue>>;

/// A column under construction.
#[derive(Debug)]
pub(crate) struct Column {
    pub field: FieldRef,
    type_name: String,
    is_text: bool,
    values: Values,
    nulls: NullMask,
}

impl Column {
    /// # Errors
    /// `Unsupported` for types that text is not read into.
    pub fn new(field: &FieldRef, rows: usize) -> Result<Self> {
        let values = Values::new(field.data_type(), rows).ok_or_else(|| {
            Error::unsupported(format!(
                "column \"{}\": type {} cannot be loaded from text",
                field.name(),
                field.data_type()
            ))
        })?;
        Ok(Self {
            type_name: sql_name(field.data_type()),
            is_text: matches!(
                field.data_type(),
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            ),
            field: field.clone(),
            values,
            nulls: NullMask::new(rows),
        })
    }

    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Appends a field of a line. `quoted` fields are never NULL in text columns.
    pub fn append_field(&mut self, text: &[u8], quoted: bool, with: &Conversions) -> Outcome {
        let blank_free = text.trim_ascii();
        let text = if self.is_text && !with.trim { text } else { blank_free };
        let is_null = if self.is_text {
            !quoted && with.is_null_text(text)
        } else {
            (text.is_empty() && with.empty_is_null) || with.is_null_text(text)
        };
        if is_null { self.append_null() } else { self.append_text(text, with) }
    }

    /// Appends a field of PostgreSQL's text format that is not NULL: empty is a text like others.
    pub fn append_pg_text(&mut self, text: &[u8], with: &Conversions) -> Outcome {
        self.append_text(if self.is_text { text } else { text.trim_ascii() }, with)
    }

    /// Appends a value from its text.
    pub fn append_text(&mut self, text: &[u8], with: &Conversions) -> Outcome {
        if self.is_text && with.latin1 && !text.is_ascii() {
            let decoded: String = text.iter().map(|&byte| byte as char).collect();
            self.values.append(decoded.as_bytes(), &self.type_name, with)?;
        } else {
            self.values.append(text, &self.type_name, with)?;
        }
        self.nulls.append(true);
        Ok(())
    }

    /// Appends a value from JSON text: `"text"`, `12`, `true`, `null`, `[…]`, `{…}`.
    pub fn append_json(&mut self, json: &str, with: &Conversions) -> Outcome {
        let bytes = json.as_bytes();
        match bytes.first() {
            Some(b'n') => self.append_null(),
            Some(b'"') => {
                let text = json_text(json)?;
                match &mut self.values {
                    Values::Nested(_) => Err(BadValue::not_a(bytes, &self.type_name)),
                    _ => self.append_text(text.as_bytes(), with),
                }
            }
            _ => {
                match &mut self.values {
                    Values::Nested(nested) => nested.append(json, &self.type_name, with)?,
                    // Numbers and all else are text as they stand; JSON's own marks apply.
                    values => values.append_json_scalar(bytes, &self.type_name, with)?,
                }
                self.nulls.append(true);
                Ok(())
            }
        }
    }

    /// Appends NULL.
    pub fn append_null(&mut self) -> Outcome {
        if !self.field.is_nullable() {
            return Err(BadValue::null());
        }
        self.append_filler();
        Ok(())
    }

    /// Appends NULL where no one will see it (under a NULL parent).
    fn append_filler(&mut self) {
        self.values.append_default();
        self.nulls.append(false);
    }

    /// Drops all rows from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.nulls.truncate(rows);
    }

    /// The array of what was appended; the column is empty again.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        let nulls = self.nulls.finish();
        self.values.finish(self.field.data_type(), nulls).map_err(|e| {
            Error::internal(format!("cannot build column \"{}\"", self.field.name())).with_source(e)
        })
    }
}

/// The text inside a JSON string.
fn json_text(json: &str) -> std::result::Result<Cow<'_, str>, Box<BadValue>> {
    if let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        && !inner.contains('\\')
    {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(json)
        .map(Cow::Owned)
        .map_err(|_| BadValue::not_a(json.as_bytes(), "JSON string"))
}

#[cfg(test)]
mod tests;
