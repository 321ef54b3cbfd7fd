//! Comma-separated values: RFC 4180 with a header line, lines end with LF.
//!
//! As PostgreSQL writes them: NULL is nothing at all, an empty string is `""`. Lists, maps and
//! structs are written as JSON text, binary as hexadecimal digits, timestamps as ISO 8601.

use std::fmt::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::Time64MicrosecondType;
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, FieldRef, SchemaRef, TimeUnit};
use stoa_error::{Error, Result};
use stoa_query::{NUMERIC, numeric_text, time_text};

use super::value::{NullableEncoder, make_encoder, options};
use super::{Ending, ResultEncoder, Summary, cannot_encode};

pub(super) struct CsvEncoder;

impl ResultEncoder for CsvEncoder {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<()> {
        if schema.fields().is_empty() {
            return Ok(());
        }
        for (column, field) in schema.fields().iter().enumerate() {
            if column > 0 {
                out.push(b',');
            }
            append_field(field.name(), out);
        }
        out.push(b'\n');
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let encoder_options = options();
        let schema = batch.schema();
        let mut columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| Column::new(field, column.as_ref(), &encoder_options))
            .collect::<Result<Vec<_>, _>>()
            .map_err(cannot_encode)?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for (number, column) in columns.iter_mut().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                column.append(row, &mut text, out)?;
            }
            out.push(b'\n');
        }
        Ok(())
    }

    fn finish(&mut self, _summary: &Summary, _out: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, _error: &Error, _out: &mut Vec<u8>) -> Ending {
        Ending::BreakOff
    }
}

const TIME: DataType = DataType::Time64(TimeUnit::Microsecond);

enum Column<'a> {
    Text { array: &'a dyn Array, formatter: ArrayFormatter<'a> },
    Json(NullableEncoder<'a>),
}

impl<'a> Column<'a> {
    fn new(
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a arrow_json::EncoderOptions,
    ) -> Result<Self, arrow_schema::ArrowError> {
        static FORMAT: FormatOptions<'static> = FormatOptions::new();
        match array.data_type() {
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..)
            | DataType::Map(..)
            | DataType::Struct(_) => Ok(Self::Json(make_encoder(field, array, options)?)),
            _ => Ok(Self::Text { array, formatter: ArrayFormatter::try_new(array, &FORMAT)? }),
        }
    }

    fn append(&mut self, row: usize, text: &mut String, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Text { array, .. } if array.is_null(row) => {}
            Self::Text { array, .. } if *array.data_type() == TIME => {
                let micros = array.as_primitive::<Time64MicrosecondType>().value(row);
                append_field(&time_text(micros), out);
            }
            Self::Text { formatter, array } => {
                text.clear();
                write!(text, "{}", formatter.value(row)).map_err(|error| {
                    Error::internal("cannot encode the result").with_source(error)
                })?;
                match *array.data_type() == NUMERIC {
                    true => append_field(numeric_text(text), out),
                    false => append_field(text, out),
                }
            }
            Self::Json(encoder) if encoder.is_null(row) => {}
            Self::Json(encoder) => {
                let mut json = Vec::new();
                encoder.encode(row, &mut json);
                append_field(&String::from_utf8_lossy(&json), out);
            }
        }
        Ok(())
    }
}

fn append_field(text: &str, out: &mut Vec<u8>) {
    let plain = !text.is_empty()
        && !text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'))
        && !text.starts_with(' ')
        && !text.ends_with(' ');
    if plain {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
