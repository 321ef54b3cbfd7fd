//! Small results that are made here: of metadata, and of Hive's own statements.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int8Array, Int16Array, Int32Array, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, Result};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Text,
    Int,
    SmallInt,
    TinyInt,
    Bool,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Text(String),
    /// Of [`Of::Int`], [`Of::SmallInt`] and [`Of::TinyInt`].
    Number(i32),
    Bool(bool),
    Null,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i32> for Cell {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Cell {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<i32> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

/// A table with these columns and rows; cells that are missing are NULL.
///
/// # Errors
/// None but Internal.
pub(crate) fn small_table(columns: &[(&str, Of)], rows: &[Vec<Cell>]) -> Result<RecordBatch> {
    let arrays = columns.iter().enumerate().map(|(place, (_, of))| {
        let cells = rows.iter().map(move |row| row.get(place).unwrap_or(&Cell::Null));
        array(*of, cells)
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema(columns), arrays.collect(), &options)
        .map_err(|e| Error::internal("a small result cannot be built").with_source(e))
}

fn schema(columns: &[(&str, Of)]) -> SchemaRef {
    let field = |(name, of): &(&str, Of)| {
        let data_type = match of {
            Of::Text => DataType::Utf8,
            Of::Int => DataType::Int32,
            Of::SmallInt => DataType::Int16,
            Of::TinyInt => DataType::Int8,
            Of::Bool => DataType::Boolean,
        };
        Field::new(*name, data_type, true)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn array<'a>(of: Of, cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
    let small = |number: i32| i16::try_from(number).ok();
    let tiny = |number: i32| i8::try_from(number).ok();
    match of {
        Of::Text => Arc::new(cells.map(Cell::text).collect::<StringArray>()),
        Of::Int => Arc::new(cells.map(Cell::number).collect::<Int32Array>()),
        Of::SmallInt => {
            Arc::new(cells.map(|cell| cell.number().and_then(small)).collect::<Int16Array>())
        }
        Of::TinyInt => {
            Arc::new(cells.map(|cell| cell.number().and_then(tiny)).collect::<Int8Array>())
        }
        Of::Bool => Arc::new(cells.map(Cell::bool).collect::<BooleanArray>()),
    }
}
