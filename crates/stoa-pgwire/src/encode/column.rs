//! One column of a batch: NULLs, format, and the values behind a type chosen once.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::Field;
use stoa_error::Result;

use super::values::Values;
use super::{Format, Style};
use crate::types::{PgType, field_type};

/// A column that can write any of its rows.
#[derive(Debug)]
pub(crate) struct Column {
    values: Values,
    nulls: Option<NullBuffer>,
    format: Format,
    is_jsonb: bool,
}

/// What `jsonb` begins with in binary; its text follows.
const JSONB_VERSION: u8 = 1;

impl Column {
    /// Prepares an array of the field's type.
    pub(crate) fn new(
        field: &Field,
        array: &ArrayRef,
        format: Format,
        style: Style,
    ) -> Result<Self> {
        let (values, nulls) = Values::new(field, array, style)?;
        let is_jsonb = field_type(field) == PgType::Jsonb;
        Ok(Self { values, nulls, format, is_jsonb })
    }

    /// Whether the row holds NULL.
    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) || self.values.is_null(row)
    }

    /// The values.
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// Appends length and value; length -1 for NULL.
    #[inline]
    pub(crate) fn put_field(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            return;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.format {
            Format::Text => self.values.put_text(row, out),
            Format::Binary => {
                if self.is_jsonb {
                    out.push(JSONB_VERSION);
                }
                self.values.put_binary(row, out);
            }
        }
        // A length beyond i32 makes the whole row too large; the caller refuses it.
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}
