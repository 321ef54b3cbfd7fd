//! JSON rows as `orc-contents` prints them, compared with Arrow values.
//!
//! Numbers keep their text: 64-bit integers and decimals do not fit a float.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDateTime};

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

pub fn parse(text: &str) -> Json {
    let mut parser = Parser { bytes: text.as_bytes(), at: 0 };
    parser.value()
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> u8 {
        while self.bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        self.bytes[self.at]
    }

    fn take(&mut self, byte: u8) {
        assert_eq!(self.peek(), byte, "at {}", self.at);
        self.at += 1;
    }

    fn value(&mut self) -> Json {
        match self.peek() {
            b'{' => {
                let mut fields = Vec::new();
                self.list(b'{', b'}', |p| {
                    let name = p.text();
                    p.take(b':');
                    let value = p.value();
                    fields.push((name, value));
                });
                Json::Object(fields)
            }
            b'[' => {
                let mut items = Vec::new();
                self.list(b'[', b']', |p| items.push(p.value()));
                Json::Array(items)
            }
            b'"' => Json::Text(self.text()),
            _ => {
                let start = self.at;
                let end = |b: &u8| b",]}".contains(b) || b.is_ascii_whitespace();
                while self.at < self.bytes.len() && !end(&self.bytes[self.at]) {
                    self.at += 1;
                }
                match std::str::from_utf8(&self.bytes[start..self.at]).unwrap() {
                    "null" => Json::Null,
                    "true" => Json::Bool(true),
                    "false" => Json::Bool(false),
                    number => Json::Number(number.to_owned()),
                }
            }
        }
    }

    fn list(&mut self, open: u8, close: u8, mut item: impl FnMut(&mut Self)) {
        self.take(open);
        while self.peek() != close {
            item(self);
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        self.take(close);
    }

    fn text(&mut self) -> String {
        self.take(b'"');
        let start = self.at;
        while self.bytes[self.at] != b'"' {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let quoted = std::str::from_utf8(&self.bytes[start - 1..self.at]).unwrap();
        serde_json::from_str(quoted).unwrap()
    }
}

/// Whether a value is what the JSON says.
pub fn matches(array: &ArrayRef, row: usize, json: &Json) -> bool {
    if let DataType::Union(..) = array.data_type() {
        let union = array.as_union();
        let tag = union.type_id(row);
        let (child, at) = (union.child(tag), union.value_offset(row));
        return match json {
            Json::Null => child.is_null(at),
            Json::Object(fields) => {
                fields[0].1 == Json::Number(tag.to_string()) && matches(child, at, &fields[1].1)
            }
            _ => false,
        };
    }
    if array.is_null(row) || *json == Json::Null {
        return array.is_null(row) && *json == Json::Null;
    }
    match (array.data_type(), json) {
        (DataType::Boolean, Json::Bool(v)) => array.as_boolean().value(row) == *v,
        (DataType::Int8, Json::Number(v)) => {
            array.as_primitive::<Int8Type>().value(row).to_string() == *v
        }
        (DataType::Int16, Json::Number(v)) => {
            array.as_primitive::<Int16Type>().value(row).to_string() == *v
        }
        (DataType::Int32, Json::Number(v)) => {
            array.as_primitive::<Int32Type>().value(row).to_string() == *v
        }
        (DataType::Int64, Json::Number(v)) => {
            array.as_primitive::<Int64Type>().value(row).to_string() == *v
        }
        (DataType::Float32, Json::Number(v)) => {
            close(f64::from(array.as_primitive::<Float32Type>().value(row)), v, 1e-6)
        }
        (DataType::Float64, Json::Number(v)) => {
            close(array.as_primitive::<Float64Type>().value(row), v, 1e-12)
        }
        (DataType::Utf8, Json::Text(v)) => array.as_string::<i32>().value(row) == v,
        (DataType::Utf8View, Json::Text(v)) => array.as_string_view().value(row) == v,
        (DataType::Dictionary(..), _) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            matches(dictionary.values(), dictionary.keys().value(row) as usize, json)
        }
        (DataType::Binary, Json::Array(items)) => {
            let bytes = array.as_binary::<i32>().value(row);
            let items = items.iter().map(|item| match item {
                Json::Number(n) => n.parse::<u8>().unwrap(),
                other => panic!("{other:?} in a binary"),
            });
            bytes.iter().copied().eq(items)
        }
        (DataType::Date32, Json::Text(v)) => {
            let days = i64::from(array.as_primitive::<Date32Type>().value(row));
            DateTime::from_timestamp(days * 86_400, 0).unwrap().format("%Y-%m-%d").to_string() == *v
        }
        (DataType::Timestamp(unit, _), Json::Text(v)) => {
            let expected =
                NaiveDateTime::parse_from_str(v, "%Y-%m-%d %H:%M:%S%.f").unwrap().and_utc();
            match unit {
                TimeUnit::Microsecond => {
                    let at = array.as_primitive::<TimestampMicrosecondType>().value(row);
                    expected.timestamp_micros() == at
                }
                _ => {
                    let at = array.as_primitive::<TimestampNanosecondType>().value(row);
                    expected.timestamp_nanos_opt() == Some(at)
                }
            }
        }
        (DataType::Decimal128(_, scale), Json::Number(v)) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            let (whole, fraction) = v.split_once('.').unwrap_or((v, ""));
            let fraction = fraction.trim_end_matches('0');
            assert!(fraction.len() <= *scale as usize, "{v} has more digits than {scale}");
            let digits = format!("{whole}{fraction:0<width$}", width = *scale as usize);
            digits.parse::<i128>().unwrap() == value
        }
        (DataType::List(_), Json::Array(items)) => {
            let list = array.as_list::<i32>().value(row);
            list.len() == items.len()
                && items.iter().enumerate().all(|(i, item)| matches(&list, i, item))
        }
        (DataType::Map(..), Json::Array(items)) => {
            let entries: ArrayRef = std::sync::Arc::new(array.as_map().value(row));
            entries.len() == items.len()
                && items.iter().enumerate().all(|(i, item)| matches(&entries, i, item))
        }
        (DataType::Struct(fields), Json::Object(items)) => {
            fields.len() == items.len()
                && items.iter().enumerate().all(|(i, (name, item))| {
                    fields[i].name() == name && matches(array.as_struct().column(i), row, item)
                })
        }
        (ty, json) => panic!("{ty} cannot be {json:?}"),
    }
}

fn close(value: f64, text: &str, tolerance: f64) -> bool {
    let expected: f64 = text.parse().unwrap();
    (value - expected).abs() <= tolerance * expected.abs().max(1e-300)
}
