//! What is written comes back, however it is quoted and wherever the buffer ends.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Read;

use arrow_schema::DataType;
use common::{rows, schema};
use proptest::prelude::*;
use stoa_load::{Format, Input, LineEnding, LoadOptions, open};

/// Hands out a few bytes at a time.
struct Trickle {
    bytes: Vec<u8>,
    at: usize,
    step: usize,
}

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.step.min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..bytes].copy_from_slice(&self.bytes[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}

fn value() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        3 => "[a-c\",;\t\r\n\\\\ 'é]{0,8}".prop_map(Some),
        1 => "[ -~]{0,40}".prop_map(Some),
    ]
}

fn table() -> impl Strategy<Value = Vec<Vec<Option<String>>>> {
    (2usize..5).prop_flat_map(|columns| {
        prop::collection::vec(prop::collection::vec(value(), columns), 1..20)
    })
}

/// One CSV field; `quote_anyway` quotes what needs no quotes.
fn csv_field(value: &Option<String>, options: &LoadOptions, quote_anyway: bool) -> String {
    let Some(text) = value else { return String::new() };
    let quote = options.quote.unwrap() as char;
    let escape = options.escape.map_or(quote, char::from);
    let delimiter = options.delimiter.unwrap() as char;
    let special = |c: char| c == quote || c == escape || c == delimiter || c == '\r' || c == '\n';
    if !quote_anyway && !text.is_empty() && !text.contains(special) {
        return text.clone();
    }
    let mut field = String::from(quote);
    for c in text.chars() {
        if c == quote || c == escape {
            field.push(escape);
        }
        field.push(c);
    }
    field.push(quote);
    field
}

fn pg_field(value: &Option<String>) -> String {
    let Some(text) = value else { return "\\N".to_owned() };
    let mut field = String::new();
    for c in text.chars() {
        match c {
            '\\' => field.push_str("\\\\"),
            '\t' => field.push_str("\\t"),
            '\n' => field.push_str("\\\n"),
            '\r' => field.push_str("\\r"),
            c => field.push(c),
        }
    }
    field
}

fn check(text: String, step: usize, table: &[Vec<Option<String>>], options: LoadOptions) {
    let names: Vec<String> = (0..table[0].len()).map(|at| format!("c{at}")).collect();
    let columns: Vec<(&str, DataType)> =
        names.iter().map(|name| (name.as_str(), DataType::Utf8)).collect();
    let input = Input::Stream {
        name: "f".to_owned(),
        reader: Box::new(Trickle { bytes: text.clone().into_bytes(), at: 0, step }),
        total_bytes: None,
    };
    let batches: Vec<_> = open(vec![input], schema(&columns), options)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|e| panic!("{e:?} in {text:?}"));
    let expected: Vec<Vec<String>> = table
        .iter()
        .map(|row| row.iter().map(|v| v.clone().unwrap_or_else(|| "NULL".to_owned())).collect())
        .collect();
    assert_eq!(rows(&batches), expected, "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn csv_comes_back(
        table in table(),
        quotes in any::<u64>(),
        delimiter in prop::sample::select(vec![b',', b';', b'\t']),
        quote in prop::sample::select(vec![b'"', b'\'']),
        escape in prop::sample::select(vec![None, Some(b'\\')]),
        ending in 0..4usize,
        declared in any::<bool>(),
        last_end in any::<bool>(),
        step in 1usize..100,
        batch_rows in 1usize..10,
    ) {
        let (end, line_ending) = [
            ("\n", LineEnding::Lf),
            ("\r\n", LineEnding::CrLf),
            ("\r", LineEnding::Cr),
            ("\n", LineEnding::Auto),
        ][ending];
        let options = LoadOptions {
            format: Some(Format::Csv),
            header: Some(false),
            delimiter: Some(delimiter),
            quote: Some(quote),
            escape,
            line_ending: if declared { line_ending } else { LineEnding::Auto },
            batch_rows,
            ..LoadOptions::default()
        };
        let mut count = 0;
        let lines: Vec<String> = table
            .iter()
            .map(|row| {
                let fields: Vec<String> = row
                    .iter()
                    .map(|value| {
                        count += 1;
                        csv_field(value, &options, quotes >> (count % 64) & 1 == 1)
                    })
                    .collect();
                fields.join(&(delimiter as char).to_string())
            })
            .collect();
        let mut text = lines.join(end);
        if last_end {
            text.push_str(end);
        }
        check(text, step, &table, options);
    }

    #[test]
    fn copy_text_comes_back(table in table(), step in 1usize..100) {
        let text: String = table
            .iter()
            .map(|row| row.iter().map(pg_field).collect::<Vec<_>>().join("\t") + "\n")
            .collect();
        let options = LoadOptions { format: Some(Format::PgText), ..LoadOptions::default() };
        check(text, step, &table, options);
    }

    #[test]
    fn ndjson_comes_back(table in table(), step in 1usize..100) {
        let text: String = table
            .iter()
            .map(|row| {
                let object: serde_json::Map<String, serde_json::Value> = row
                    .iter()
                    .enumerate()
                    .map(|(at, value)| (format!("c{at}"), serde_json::json!(value)))
                    .collect();
                serde_json::Value::Object(object).to_string() + "\n"
            })
            .collect();
        let options = LoadOptions { format: Some(Format::Ndjson), ..LoadOptions::default() };
        check(text, step, &table, options);
    }

    /// Whatever the bytes, there is an end, and it is no panic.
    #[test]
    fn any_bytes_are_borne(
        bytes in prop::collection::vec(prop_oneof![
            prop::sample::select(b"\",\n\r\\\t{}[]:.N1a ".to_vec()),
            any::<u8>(),
        ], 0..300),
        format in prop::sample::select(vec![Format::Csv, Format::Tsv, Format::PgText, Format::Ndjson]),
        step in 1usize..50,
        trim in any::<bool>(),
    ) {
        let options = LoadOptions {
            format: Some(format),
            header: Some(false),
            max_errors: 1000,
            trim,
            ..LoadOptions::default()
        };
        let input = Input::Stream {
            name: "f".to_owned(),
            reader: Box::new(Trickle { bytes, at: 0, step }),
            total_bytes: None,
        };
        let target = schema(&[("a", DataType::Utf8), ("b", DataType::Int64)]);
        let batches = open(vec![input], target, options).unwrap().count();
        prop_assert!(batches <= 2);
    }
}
