//! Loading from memory, and batches as text.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, Result};
use stoa_load::{Input, LoadOptions, open};

/// Nullable columns.
pub fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<Field> =
        columns.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect();
    Arc::new(Schema::new(fields))
}

pub fn options(settings: &[(&str, &str)]) -> LoadOptions {
    let mut options = LoadOptions::default();
    for (name, value) in settings {
        options.set(name, value).unwrap();
    }
    options
}

/// A stream called `name`.
pub fn stream(name: &str, bytes: impl Into<Vec<u8>>) -> Input {
    let bytes = bytes.into();
    Input::Stream {
        name: name.to_owned(),
        total_bytes: Some(bytes.len() as u64),
        reader: Box::new(Cursor::new(bytes)),
    }
}

pub fn load(
    inputs: Vec<Input>,
    schema: SchemaRef,
    options: LoadOptions,
) -> Result<Vec<RecordBatch>> {
    open(inputs, schema, options)?.collect()
}

/// All rows, values as text, NULL as `NULL`.
pub fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect());
        }
    }
    rows
}

pub fn error_of(name: &str, text: &str, schema: SchemaRef, options: LoadOptions) -> Error {
    load(vec![stream(name, text)], schema, options).unwrap_err()
}
