//! Lists as PostgreSQL arrays, and dictionary-encoded columns.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use datafusion::arrow::compute::cast;
use stoa_error::{Error, Result};

use super::column::Column;
use super::{Format, Style};
use crate::types::{PgType, field_type};

/// A column of lists.
#[derive(Debug)]
pub(crate) struct ListValues {
    items: Column,
    offsets: Offsets,
    /// The array's element type; `None` where the list travels as JSON.
    element: Option<PgType>,
    /// Whether it is an `int2vector` or `oidvector`.
    is_vector: bool,
}

#[derive(Debug)]
enum Offsets {
    Small(arrow_buffer::OffsetBuffer<i32>),
    Large(arrow_buffer::OffsetBuffer<i64>),
    Fixed(usize),
}

impl Offsets {
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::Small(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Self::Large(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Self::Fixed(length) => row * length..(row + 1) * length,
        }
    }
}

impl ListValues {
    pub(super) fn new(field: &Field, array: &ArrayRef, style: Style) -> Result<Self> {
        let (item, items, offsets) = match array.data_type() {
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                (item, list.values(), Offsets::Small(list.offsets().clone()))
            }
            DataType::LargeList(item) => {
                let list = array.as_list::<i64>();
                (item, list.values(), Offsets::Large(list.offsets().clone()))
            }
            DataType::FixedSizeList(item, length) => {
                let list = array.as_fixed_size_list();
                let length = usize::try_from(*length).unwrap_or(0);
                (item, list.values(), Offsets::Fixed(length))
            }
            other => return Err(Error::internal(format!("{other} is not a list"))),
        };
        let of = field_type(field);
        let items = Column::new(item, items, Format::Binary, style)?;
        Ok(Self { items, offsets, element: of.element(), is_vector: of.is_vector() })
    }

    /// The items of a row.
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets.range(row)
    }

    /// The column of all items.
    pub(super) fn items(&self) -> &Column {
        &self.items
    }

    pub(super) fn put_text(&self, row: usize, out: &mut Vec<u8>) {
        if self.element.is_none() {
            return super::json::put_list(self, row, out);
        }
        if self.is_vector {
            for (index, item) in self.range(row).enumerate() {
                out.extend_from_slice(if index > 0 { b" " } else { b"" });
                self.items.values().put_text(item, out);
            }
            return;
        }
        out.push(b'{');
        for (index, item) in self.range(row).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            if self.items.is_null(item) {
                out.extend_from_slice(b"NULL");
                continue;
            }
            let start = out.len();
            self.items.values().put_text(item, out);
            quote_if_needed(out, start);
        }
        out.push(b'}');
    }

    /// Dimensions, whether NULLs occur, element OID, length and lower bound, elements.
    pub(super) fn put_binary(&self, row: usize, out: &mut Vec<u8>) {
        let Some(element) = self.element else {
            return super::json::put_list(self, row, out);
        };
        let range = self.range(row);
        let has_nulls = range.clone().any(|item| self.items.is_null(item));
        out.extend_from_slice(&i32::from(!range.is_empty()).to_be_bytes());
        out.extend_from_slice(&i32::from(has_nulls).to_be_bytes());
        out.extend_from_slice(&element.oid().to_be_bytes());
        if !range.is_empty() {
            out.extend_from_slice(&(range.len() as i32).to_be_bytes());
            out.extend_from_slice(&i32::from(!self.is_vector).to_be_bytes());
        }
        for item in range {
            self.items.put_field(item, out);
        }
    }
}

/// Quotes the element that starts at `start` where its text would read back as something else.
fn quote_if_needed(out: &mut Vec<u8>, start: usize) {
    let text = &out[start..];
    let plain = !text.is_empty()
        && !text.eq_ignore_ascii_case(b"null")
        && !text.iter().any(|byte| {
            matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace()
        });
    if plain {
        return;
    }
    let text = out.split_off(start);
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// A dictionary-encoded column: keys into a column of values.
#[derive(Debug)]
pub(crate) struct DictionaryValues {
    keys: Vec<usize>,
    values: Column,
}

impl DictionaryValues {
    pub(super) fn new(field: &Field, array: &ArrayRef, style: Style) -> Result<Self> {
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            return Err(Error::internal("a dictionary column has no dictionary"));
        };
        if dictionary.values().is_empty() {
            // All rows are NULL; the cast gives a plain column of them.
            let plain = cast(array, dictionary.values().data_type())
                .map_err(|source| Error::internal("a dictionary is damaged").with_source(source))?;
            let values = Column::new(field, &plain, Format::Text, style)?;
            return Ok(Self { keys: (0..array.len()).collect(), values });
        }
        let values = Column::new(field, dictionary.values(), Format::Text, style)?;
        Ok(Self { keys: dictionary.normalized_keys(), values })
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.values.is_null(self.keys[row])
    }

    pub(super) fn put_text(&self, row: usize, out: &mut Vec<u8>) {
        self.values.values().put_text(self.keys[row], out);
    }

    pub(super) fn put_binary(&self, row: usize, out: &mut Vec<u8>) {
        self.values.values().put_binary(self.keys[row], out);
    }

    pub(super) fn put_json(&self, row: usize, out: &mut Vec<u8>) {
        self.values.values().put_json(self.keys[row], out);
    }
}
