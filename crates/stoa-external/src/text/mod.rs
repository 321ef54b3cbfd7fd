//! Lines of text as rows: fields, values, and both written again.

mod csv;
mod fields;
mod numbers;
mod output;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, SchemaRef};
use stoa_error::{Error, Result};

use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::{Definition, Serde};

pub use output::value_text;
pub(crate) use output::write_rows;

/// Binary values as Hive writes them, without padding, and reads them, with or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// How fields and values are written in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// `LazySimpleSerDe`.
    Delimited(Delimited),
    /// `OpenCSVSerde`.
    Csv(Csv),
}

/// `ROW FORMAT DELIMITED`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimited {
    /// Between fields, between items of the first level, between keys and values of the first level, and so on.
    pub separators: [u8; 8],
    /// Takes the meaning of a separator from the byte behind it.
    pub escape: Option<u8>,
    /// What stands for NULL.
    pub null: Vec<u8>,
}

/// `OpenCSVSerde`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csv {
    /// Between fields.
    pub separator: u8,
    /// Around fields.
    pub quote: u8,
    /// In quotes: takes the meaning of a quote that is read.
    pub read_escape: u8,
    /// In quotes: before a quote that is written.
    pub write_escape: u8,
}

impl Default for Delimited {
    fn default() -> Self {
        Self { separators: [1, 2, 3, 4, 5, 6, 7, 8], escape: None, null: b"\\N".to_vec() }
    }
}

impl TextFormat {
    /// The format that a definition asks for.
    ///
    /// # Errors
    /// 22023 for delimiters of more than one byte or of the same byte, 0A000 for others that Hive refuses, too.
    pub fn of(definition: &Definition) -> Result<Self> {
        let properties = &definition.serde_properties;
        match definition.serde {
            Serde::OpenCsv => csv_of(properties).map(Self::Csv),
            Serde::Delimited => delimited_of(properties).map(Self::Delimited),
        }
    }

    /// Batches' columns out of lines: column `n` of `schema` is field `places[n]` of each line.
    pub(crate) fn batch(
        &self,
        lines: &[&[u8]],
        schema: &SchemaRef,
        places: &[usize],
    ) -> Result<RecordBatch> {
        let arrays = match self {
            Self::Delimited(format) => {
                let columns = fields::columns(lines, format, places);
                let arrays = columns.iter().zip(schema.fields());
                arrays
                    .map(|(texts, field)| format.array(texts, field))
                    .collect::<Result<Vec<_>>>()?
            }
            Self::Csv(format) => {
                let columns = csv::columns(lines, *format, places);
                columns
                    .iter()
                    .zip(schema.fields())
                    .map(|(texts, field)| {
                        let texts: Vec<Option<&[u8]>> =
                            texts.iter().map(Option::as_deref).collect();
                        values::array(&texts, field, &no_nulls(), 0)
                    })
                    .collect::<Result<Vec<_>>>()?
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(lines.len()));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
            .map_err(|e| Error::internal("lines do not become rows").with_source(e))
    }
}

/// Texts of which none stands for NULL.
fn no_nulls() -> Delimited {
    // A line ends before any line break, so no field is this text.
    Delimited { null: b"\n".to_vec(), ..Delimited::default() }
}

impl Delimited {
    fn array(&self, texts: &[Option<&[u8]>], field: &Field) -> Result<ArrayRef> {
        values::array(texts, field, self, 1)
    }
}

/// An array of one value per partition; a text that is no value of the column's type is NULL.
///
/// # Errors
/// `Unsupported` for a type that no partition column can have.
pub fn partition_array(texts: &[Option<&str>], field: &Field) -> Result<ArrayRef> {
    let texts: Vec<Option<&[u8]>> = texts.iter().map(|text| text.map(str::as_bytes)).collect();
    let of = field.data_type();
    if of.is_nested() || matches!(of, arrow_schema::DataType::Binary) {
        return Err(Error::unsupported(format!(
            "column \"{}\" cannot be a partition column: its type is {of}",
            field.name()
        )));
    }
    let nullable = field.clone().with_nullable(true);
    values::array(&texts, &nullable, &no_nulls(), 1)
}

fn delimited_of(properties: &BTreeMap<String, String>) -> Result<Delimited> {
    let mut format = Delimited::default();
    let fields = properties.get("field.delim").or_else(|| properties.get("serialization.format"));
    let keys = [
        ("field.delim", fields),
        (
            "collection.delim",
            properties.get("collection.delim").or_else(|| properties.get("colelction.delim")),
        ),
        ("mapkey.delim", properties.get("mapkey.delim")),
    ];
    for (at, (key, value)) in keys.into_iter().enumerate() {
        if let Some(text) = value {
            format.separators[at] = byte(key, text)?;
        }
    }
    if let Some(text) = properties.get("escape.delim") {
        format.escape = Some(byte("escape.delim", text)?);
    }
    if let Some(text) = properties.get("serialization.null.format") {
        format.null = text.as_bytes().to_vec();
    }
    if let Some(text) = properties.get("line.delim")
        && !["\n", "10"].contains(&text.as_str())
    {
        return Err(Error::unsupported("LINES TERMINATED BY supports line breaks only")
            .with_hint("write LINES TERMINATED BY '\\n', or leave it out, as in Hive"));
    }
    let known = [
        "field.delim",
        "serialization.format",
        "collection.delim",
        "colelction.delim",
        "mapkey.delim",
        "escape.delim",
        "serialization.null.format",
        "line.delim",
    ];
    unknown(properties, &known)?;
    let breaks = format
        .separators
        .iter()
        .take(3)
        .chain(&format.escape)
        .any(|byte| [b'\n', b'\r'].contains(byte));
    if breaks {
        return Err(Error::invalid("a delimiter is a line break").with_sqlstate("22023"));
    }
    Ok(format)
}

fn csv_of(properties: &BTreeMap<String, String>) -> Result<Csv> {
    let of = |key: &str, default: u8| match properties.get(key) {
        Some(text) => byte(key, text),
        None => Ok(default),
    };
    unknown(properties, &["separatorChar", "quoteChar", "escapeChar", "serialization.format"])?;
    let escape = of("escapeChar", b'"')?;
    let csv = Csv {
        separator: of("separatorChar", b',')?,
        quote: of("quoteChar", b'"')?,
        // As OpenCSVSerde: the writer's default is not the reader's.
        read_escape: if escape == b'"' { b'\\' } else { escape },
        write_escape: escape,
    };
    if csv.separator == csv.quote
        || csv.separator == csv.read_escape
        || csv.quote == csv.read_escape
    {
        return Err(Error::invalid("separatorChar, quoteChar and escapeChar must differ")
            .with_sqlstate("22023"));
    }
    Ok(csv)
}

fn unknown(properties: &BTreeMap<String, String>, known: &[&str]) -> Result<()> {
    match properties.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            Err(Error::unsupported(format!("the property {key} of a serde is not supported"))
                .with_hint(format!("properties are {}", known.join(", "))))
        }
    }
}

/// One byte, as Hive reads it: a number, or the first character.
fn byte(key: &str, text: &str) -> Result<u8> {
    if let Ok(number) = text.parse::<i8>() {
        return Ok(number.to_ne_bytes()[0]);
    }
    match text.as_bytes() {
        [one] => Ok(*one),
        _ => Err(Error::invalid(format!("{key} is \"{text}\", which is no single byte"))
            .with_sqlstate("22023")
            .with_hint("write one ASCII character, or its number, such as '\\t' or '9'")),
    }
}

#[cfg(test)]
mod tests;
