//! The binary format of PostgreSQL's COPY: what it means, and what damaged bytes are told.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Cursor, Read, Write};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use common::{load, options, rows, schema, stream};
use proptest::prelude::*;
use stoa_error::Error;
use stoa_load::{Input, infer_schema, open};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Signature, flags and an extension of no bytes.
fn header() -> Vec<u8> {
    [SIGNATURE, &[0; 8]].concat()
}

fn field(value: Option<&[u8]>) -> Vec<u8> {
    match value {
        Some(value) => [&(value.len() as i32).to_be_bytes()[..], value].concat(),
        None => (-1_i32).to_be_bytes().to_vec(),
    }
}

fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut row = (values.len() as i16).to_be_bytes().to_vec();
    values.iter().for_each(|value| row.extend(field(*value)));
    row
}

/// Rows of one column, with header and trailer.
fn column(values: &[Option<&[u8]>]) -> Vec<u8> {
    let rows: Vec<Vec<u8>> = values.iter().map(|value| row(&[*value])).collect();
    [header(), rows.concat(), vec![0xff; 2]].concat()
}

fn numeric(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Vec<u8> {
    let words = [digits.len() as u16, weight as u16, sign, scale];
    words.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect()
}

fn array(dimensions: &[(i32, i32)], oid: u32, items: &[Option<&[u8]>]) -> Vec<u8> {
    let mut array = Vec::new();
    array.extend((dimensions.len() as i32).to_be_bytes());
    array.extend(i32::from(items.contains(&None)).to_be_bytes());
    array.extend(oid.to_be_bytes());
    for (length, lower_bound) in dimensions {
        array.extend(length.to_be_bytes());
        array.extend(lower_bound.to_be_bytes());
    }
    items.iter().for_each(|item| array.extend(field(*item)));
    array
}

fn one(data_type: DataType) -> SchemaRef {
    schema(&[("c", data_type)])
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", item, true)))
}

fn micros(zone: Option<&str>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into))
}

fn read(bytes: Vec<u8>, schema: SchemaRef) -> Result<Vec<Vec<String>>, Error> {
    let options = options(&[("format", "binary")]);
    load(vec![stream("stdin", bytes)], schema, options).map(|batches| rows(&batches))
}

fn check(data_type: DataType, values: &[(&[u8], &str)]) {
    let bytes: Vec<Option<&[u8]>> = values.iter().map(|(bytes, _)| Some(*bytes)).collect();
    let shown = read(column(&bytes), one(data_type)).unwrap();
    let expected: Vec<Vec<&str>> = values.iter().map(|(_, text)| vec![*text]).collect();
    assert_eq!(shown, expected);
}

/// One value alone is an error of this code, whose text has this part.
fn refused(data_type: DataType, bytes: &[u8], sqlstate: &str, part: &str) {
    let error = read(column(&[None, Some(bytes)]), one(data_type.clone())).unwrap_err();
    assert_eq!(error.sqlstate(), sqlstate, "{data_type} {bytes:?}: {error}");
    assert!(error.message().starts_with("stdin row 2, column \"c\": "), "{error}");
    assert!(error.message().contains(part), "{error}");
}

/// The whole is an error of form.
fn damaged(bytes: Vec<u8>, part: &str) {
    let error = read(bytes, one(DataType::Int32)).unwrap_err();
    assert_eq!(error.sqlstate(), "22P04", "{error}");
    assert!(error.message().contains(part), "{error}");
}

#[test]
fn values_of_all_types_are_read() {
    check(DataType::Boolean, &[(&[1], "true"), (&[0], "false")]);
    check(DataType::Int16, &[(&[0xff, 0xfe], "-2")]);
    check(DataType::Int8, &[(&[0xff, 0xfe], "-2")]);
    check(DataType::UInt16, &[(&65_535_i32.to_be_bytes(), "65535")]);
    check(DataType::Int32, &[(&i32::MIN.to_be_bytes(), "-2147483648")]);
    check(DataType::Int64, &[(&i64::MAX.to_be_bytes(), "9223372036854775807")]);
    check(DataType::Float32, &[(&1.5_f32.to_be_bytes(), "1.5")]);
    check(DataType::Float64, &[(&0.1_f64.to_be_bytes(), "0.1"), (&f64::NAN.to_be_bytes(), "NaN")]);
    check(DataType::Utf8, &[(b"", ""), ("ä\t\\N".as_bytes(), "ä\t\\N")]);
    check(DataType::Binary, &[(b"", ""), (&[0, 0xff], "00ff")]);
    check(DataType::FixedSizeBinary(2), &[(&[0, 0xff], "00ff")]);
    let day = 8825_i32.to_be_bytes();
    check(DataType::Date32, &[(&day, "2024-02-29"), (&(-10_957_i32).to_be_bytes(), "1970-01-01")]);
    let noon = 43_200_000_001_i64.to_be_bytes();
    check(DataType::Time64(TimeUnit::Microsecond), &[(&noon, "12:00:00.000001")]);
    check(DataType::Time32(TimeUnit::Second), &[(&noon, "12:00:00")]);
    let moment = (8825 * 86_400_000_000_i64 - 1).to_be_bytes();
    check(micros(None), &[(&moment, "2024-02-28T23:59:59.999999")]);
    check(micros(Some("+00:00")), &[(&moment, "2024-02-28T23:59:59.999999Z")]);
    let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
    check(nanos, &[(&moment, "2024-02-28T23:59:59.999999")]);
    check(DataType::UInt64, &[(&numeric(0, 0, 0, &[7]), "7")]);
}

#[test]
fn numerics_take_the_scale_of_their_column() {
    let check = |bytes: Vec<u8>, text: &str| check(DataType::Decimal128(10, 2), &[(&bytes, text)]);
    check(numeric(0, 0, 0, &[]), "0.00");
    check(numeric(0, 0, 2, &[12, 5000]), "12.50");
    check(numeric(0, 0x4000, 2, &[12, 5000]), "-12.50");
    check(numeric(1, 0, 0, &[1234, 5678]), "12345678.00");
    check(numeric(1, 0, 0, &[3]), "30000.00");
    check(numeric(-1, 0, 2, &[500]), "0.05");
    check(numeric(-2, 0, 8, &[9999]), "0.00");
    check(numeric(-1, 0, 3, &[50]), "0.01");
    check(numeric(-1, 0x4000, 3, &[50]), "-0.01");
    check(numeric(-1, 0, 4, &[49]), "0.00");
    check(numeric(-3000, 0, 12_004, &[1]), "0.00");
    check(numeric(12, 0, 0, &[0, 0]), "0.00");
}

#[test]
fn numerics_that_do_not_fit_are_refused() {
    let decimal = DataType::Decimal128(5, 2);
    let out = |bytes: Vec<u8>, part: &str| refused(decimal.clone(), &bytes, "22003", part);
    out(numeric(0, 0, 1, &[1234, 5000]), "\"1234.5000\" is out of range for decimal(5,2)");
    out(numeric(0, 0, 3, &[999, 9950]), "\"999.9950\"");
    out(numeric(9, 0, 0, &[1]), "out of range");
    out(numeric(10, 0, 0, &[1]), "out of range");
    out(numeric(i16::MAX, 0, 0, &[1]), "out of range");
    out(numeric(0, 0xC000, 0, &[]), "\"NaN\"");
    out(numeric(0, 0xD000, 0, &[]), "\"Infinity\"");
    out(numeric(0, 0xF000, 0, &[]), "\"-Infinity\"");
    let wrong = |bytes: &[u8], part: &str| refused(decimal.clone(), bytes, "22P03", part);
    wrong(&[0, 0, 0], "header");
    wrong(&numeric(0, 0, 0, &[1])[..9], "digits that are not there");
    wrong(&[numeric(0, 0, 0, &[1]), vec![0]].concat(), "digits that are not there");
    wrong(&numeric(0, 0x1000, 0, &[1]), "sign");
    wrong(&numeric(0, 0, 0x4000, &[1]), "scale");
    wrong(&numeric(0, 0, 0, &[10_000]), "digits");
    wrong(&numeric(0, 0, 1, &[1, 5500]), "more than its scale says");
    refused(DataType::UInt64, &numeric(0, 0x4000, 0, &[1]), "22003", "\"-1\"");
}

#[test]
fn values_that_are_none_of_their_type_are_refused() {
    for (data_type, length) in [
        (DataType::Boolean, 1),
        (DataType::Int16, 2),
        (DataType::Int32, 4),
        (DataType::Int64, 8),
        (DataType::Float32, 4),
        (DataType::Float64, 8),
        (DataType::Date32, 4),
        (DataType::Time64(TimeUnit::Microsecond), 8),
        (micros(None), 8),
        (micros(Some("UTC")), 8),
        (DataType::FixedSizeBinary(16), 16),
    ] {
        for wrong in [0, length - 1, length + 1] {
            let part = format!(": {wrong} bytes instead of {length}");
            refused(data_type.clone(), &vec![0; wrong], "22P03", &part);
        }
    }
    refused(DataType::Utf8, &[0xff], "22021", "UTF-8");
    refused(DataType::Int8, &300_i16.to_be_bytes(), "22003", "\"300\"");
    refused(DataType::UInt32, &(-1_i64).to_be_bytes(), "22003", "\"-1\"");
    let out = |data_type: DataType, bytes: &[u8], part| refused(data_type, bytes, "22008", part);
    out(DataType::Date32, &i32::MAX.to_be_bytes(), "\"infinity\"");
    out(DataType::Date32, &i32::MIN.to_be_bytes(), "\"-infinity\"");
    out(DataType::Date32, &(i32::MAX - 1).to_be_bytes(), "days after 2000-01-01");
    out(DataType::Date32, &200_000_000_i32.to_be_bytes(), "days after 2000-01-01");
    out(micros(None), &i64::MAX.to_be_bytes(), "\"infinity\"");
    out(micros(Some("UTC")), &i64::MIN.to_be_bytes(), "\"-infinity\"");
    out(micros(None), &(i64::MAX - 1).to_be_bytes(), "microseconds after 2000-01-01");
    let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
    out(nanos, &(i64::MAX / 900).to_be_bytes(), "microseconds after 2000-01-01");
    out(DataType::Time64(TimeUnit::Microsecond), &(-1_i64).to_be_bytes(), "\"-1\"");
    out(DataType::Time64(TimeUnit::Microsecond), &86_400_000_001_i64.to_be_bytes(), "864");
}

#[test]
fn arrays_are_lists() {
    let (one, two) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes());
    let ints = |dimensions: &[(i32, i32)], items: &[Option<&[u8]>]| array(dimensions, 23, items);
    check(
        list(DataType::Int32),
        &[
            (&ints(&[], &[]), "[]"),
            (&ints(&[(0, 1)], &[]), "[]"),
            (&ints(&[(3, 1)], &[Some(&one), None, Some(&two)]), "[1, NULL, 2]"),
            (&ints(&[(1, -5)], &[Some(&one)]), "[1]"),
        ],
    );
    let texts = array(&[(2, 1)], 1043, &[Some(b"a"), Some(b"")]);
    check(list(DataType::Utf8), &[(&texts, "[a, ]")]);
    // Lists of lists and structs are JSON, as they are in results.
    check(list(list(DataType::Int32)), &[(b"[[1], [2, null]]", "[[1], [2, NULL]]")]);
    let pair = DataType::Struct(vec![Field::new("a", DataType::Int64, true)].into());
    check(pair.clone(), &[(b"{\"a\": 7}", "{a: 7}")]);
    refused(pair, b"{\"a\": ", "22P02", "is not a struct");

    let wrong = |bytes: &[u8], part: &str| refused(list(DataType::Int32), bytes, "22P03", part);
    wrong(&[0; 11], "cut off");
    wrong(&array(&[(1, 1)], 20, &[Some(&[0; 8])]), "OID 20");
    wrong(&ints(&[(1, 1), (1, 1)], &[Some(&one)]), "2 dimensions");
    wrong(&ints(&[(i32::MAX, 1)], &[Some(&one)]), "cut off");
    wrong(&ints(&[(-1, 1)], &[]), "cut off");
    wrong(&ints(&[(1, 1)], &[Some(&[0; 3])]), "3 bytes instead of 4");
    wrong(&ints(&[(1, 1)], &[Some(&one), Some(&two)]), "8 bytes after the array");
    let mut long = ints(&[(1, 1)], &[Some(&one)]);
    long[20..24].copy_from_slice(&i32::MAX.to_be_bytes());
    wrong(&long, "cut off");
}

#[test]
fn what_is_no_copy_is_told_so() {
    let signature = "COPY file signature not recognized";
    damaged(Vec::new(), signature);
    damaged(SIGNATURE[..10].to_vec(), signature);
    damaged(b"1\ttext\n2\tmore\n".to_vec(), signature);
    damaged([&b"PGCOPY\n\xff\n\n\0"[..], &[0; 8]].concat(), signature);
    damaged(SIGNATURE.to_vec(), "it is cut off");
    damaged(header()[..18].to_vec(), "it is cut off");
    damaged([SIGNATURE, &[0, 1, 0, 0], &[0; 4]].concat(), "WITH OIDS");
    damaged([SIGNATURE, &[0x80, 0, 0, 0], &[0; 4]].concat(), "critical flags");
    damaged([SIGNATURE, &[0; 4], &[0xff; 4]].concat(), "wrong length");
    damaged([SIGNATURE, &[0; 4], &[0x7f, 0xff, 0xff, 0xff, 1]].concat(), "it is cut off");
    let seven = 7_i32.to_be_bytes();
    let whole = [header(), row(&[Some(&seven)])].concat();
    damaged([whole.clone(), row(&[])].concat(), "stdin row 2: row field count is 0, expected 1");
    damaged([whole.clone(), row(&[None, None])].concat(), "row field count is 2, expected 1");
    damaged([whole.clone(), vec![0xff, 0xfe]].concat(), "row field count is -2");
    damaged([whole.clone(), vec![0xff, 0xff, 0]].concat(), "received copy data after EOF marker");
    let length = |bytes: [u8; 4]| [&whole[..], &[0, 1], &bytes].concat();
    damaged(length([0xff, 0xff, 0xff, 0xfe]), "stdin row 2, column \"c\": invalid field size");
    damaged(length([0, 0, 0, 4]), "stdin row 2, column \"c\": unexpected EOF in COPY data");
    for cut in 1..whole.len() - header().len() {
        damaged(whole[..whole.len() - cut].to_vec(), "unexpected EOF in COPY data");
    }
}

#[test]
fn what_is_read_over_changes_nothing() {
    let seven = 7_i32.to_be_bytes();
    let rows = row(&[Some(&seven)]);
    // Flags that are not critical, and an extension.
    let start = [SIGNATURE, &[0, 0, 0xff, 0xff], &[0, 0, 0, 3], b"abc"].concat();
    let expected = [["7"]];
    let int = || one(DataType::Int32);
    assert_eq!(read([&start[..], &rows, &[0xff, 0xff]].concat(), int()).unwrap(), expected);
    // Rows that end without a trailer, as some drivers send them.
    assert_eq!(read([&header()[..], &rows].concat(), int()).unwrap(), expected);
    assert!(read(header(), int()).unwrap().is_empty());
    assert!(read(column(&[]), int()).unwrap().is_empty());
}

#[test]
fn a_column_without_nulls_takes_none() {
    let schema = Arc::new(Schema::new(vec![Field::new("c", DataType::Int32, false)]));
    let error = read(column(&[None]), schema).unwrap_err();
    assert_eq!(error.sqlstate(), "23502");
    assert!(error.message().starts_with("stdin row 1, column \"c\": "), "{error}");
}

/// Bytes without an end, which must not all be read.
struct Endless(Cursor<Vec<u8>>, usize);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 += buffer.len();
        assert!(self.1 < 1 << 20, "memory is taken for a length that is only announced");
        match self.0.read(buffer)? {
            0 => Ok(buffer.len()),
            bytes => Ok(bytes),
        }
    }
}

#[test]
fn lengths_are_not_believed() {
    let start = |length: i32| [header(), vec![0, 1], length.to_be_bytes().to_vec()].concat();
    for settings in
        [&[("format", "binary")][..], &[("format", "binary"), ("max_line_bytes", "1073741824")]]
    {
        let reader = Box::new(Endless(Cursor::new(start(i32::MAX)), 0));
        let input = Input::Stream { name: "stdin".to_owned(), reader, total_bytes: None };
        let error = load(vec![input], one(DataType::Utf8), options(settings)).unwrap_err();
        assert_eq!(error.sqlstate(), "54000", "{error}");
        assert!(error.message().starts_with("stdin row 1: "), "{error}");
    }
    // All fields of a row count together.
    let settings = options(&[("format", "binary"), ("max_line_bytes", "1024")]);
    let two = schema(&[("a", DataType::Binary), ("b", DataType::Binary)]);
    let rows = |bytes: usize| {
        let value = vec![7; bytes];
        let row = row(&[Some(&value), Some(&value)]);
        [header(), row.clone(), row].concat()
    };
    let load = |bytes| load(vec![stream("stdin", rows(bytes))], two.clone(), settings.clone());
    assert_eq!(load(500).unwrap()[0].num_rows(), 2);
    assert_eq!(load(520).unwrap_err().sqlstate(), "54000");
}

#[test]
fn files_are_known_by_their_signature() {
    let mut file = tempfile::Builder::new().suffix(".data").tempfile().unwrap();
    file.write_all(&column(&[Some(&7_i32.to_be_bytes())])).unwrap();
    let path = file.path().to_path_buf();
    let inputs = vec![Input::Path(path.clone())];
    let batches = load(inputs, one(DataType::Int32), options(&[])).unwrap();
    assert_eq!(rows(&batches), [["7"]]);
    let error = infer_schema(&[path], &options(&[])).unwrap_err();
    assert!(error.message().contains("has no columns"), "{error}");
}

#[test]
fn options_of_text_are_refused() {
    for (name, value) in [
        ("delimiter", ";"),
        ("escape", "\\"),
        ("null", "-"),
        ("columns", "c"),
        ("skip_lines", "1"),
        ("comment", "#"),
        ("encoding", "latin1"),
    ] {
        let options = options(&[("format", "binary"), (name, value)]);
        let input = stream("stdin", column(&[]));
        let error = load(vec![input], one(DataType::Int32), options).unwrap_err();
        assert_eq!(error.sqlstate(), "42601", "{name}: {error}");
        assert!(error.message().contains("binary"), "{name}: {error}");
    }
}

/// Hands out a few bytes at a time.
struct Trickle(Cursor<Vec<u8>>, usize);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.1.min(buffer.len());
        self.0.read(&mut buffer[..bytes])
    }
}

fn wide() -> SchemaRef {
    schema(&[
        ("i", DataType::Int32),
        ("n", DataType::Decimal128(38, 10)),
        ("s", DataType::Utf8),
        ("l", list(DataType::Int64)),
        ("t", micros(None)),
        ("d", DataType::Date32),
        ("m", list(list(DataType::Int32))),
    ])
}

proptest! {
    #[test]
    fn rows_come_back_wherever_they_are_cut(
        values in prop::collection::vec((any::<Option<i64>>(), any::<Option<String>>()), 0..30),
        step in 1_usize..40,
        batch_rows in 1_usize..9,
    ) {
        let mut bytes = header();
        for (number, text) in &values {
            let number = number.map(i64::to_be_bytes);
            let number = number.as_ref().map(|number| &number[..]);
            bytes.extend(row(&[number, text.as_deref().map(str::as_bytes)]));
        }
        bytes.extend([0xff; 2]);
        let reader = Box::new(Trickle(Cursor::new(bytes), step));
        let input = Input::Stream { name: "stdin".to_owned(), reader, total_bytes: None };
        let schema = schema(&[("n", DataType::Int64), ("s", DataType::Utf8)]);
        let options = options(&[("format", "binary"), ("batch_rows", &batch_rows.to_string())]);
        let read = load(vec![input], schema, options).unwrap();
        prop_assert!(read.iter().all(|batch| batch.num_rows() <= batch_rows));
        let shown = |text: &Option<String>| text.clone().unwrap_or("NULL".to_owned());
        let expected: Vec<Vec<String>> = values
            .iter()
            .map(|(number, text)| vec![shown(&number.map(|n| n.to_string())), shown(text)])
            .collect();
        prop_assert_eq!(rows(&read), expected);
    }

    #[test]
    fn numerics_come_back(value in -(10_i128.pow(38) - 1)..10_i128.pow(38), scale in 0..=38_i8) {
        // Digits to the base 10,000 with the point between two of them.
        let padded = value.unsigned_abs().to_string();
        let fraction = (scale as usize).div_ceil(4) * 4;
        let padded = padded + &"0".repeat(fraction - scale as usize);
        let padded = format!("{:0>width$}", padded, width = padded.len().div_ceil(4).max(fraction / 4 + 1) * 4);
        let digits: Vec<u16> = padded.as_bytes().chunks(4)
            .map(|digit| std::str::from_utf8(digit).unwrap().parse().unwrap())
            .collect();
        let weight = (digits.len() - fraction / 4) as i16 - 1;
        let bytes = numeric(weight, if value < 0 { 0x4000 } else { 0 }, scale as u16, &digits);
        let shown = read(column(&[Some(&bytes)]), one(DataType::Decimal128(38, scale))).unwrap();
        let text: String = shown[0][0].chars().filter(|c| *c != '.').collect();
        prop_assert_eq!(text.parse::<i128>().unwrap(), value);
    }

    #[test]
    fn no_bytes_break_the_reader(rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(rest.clone(), wide());
        let _ = read([header(), rest.clone()].concat(), wide());
        let _ = read([header(), vec![0, 7], rest].concat(), wide());
    }

    #[test]
    fn no_value_breaks_the_reader(
        at in 0_usize..7,
        value in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..60),
    ) {
        let mut values = [None; 7];
        values[at] = Some(&value[..]);
        let _ = read([header(), row(&values)].concat(), wide());
    }
}

#[test]
fn a_load_ends_with_its_first_error() {
    let bytes = [column(&[Some(&[0; 4])]), vec![0]].concat();
    let options = options(&[("format", "binary"), ("max_errors", "9")]);
    let mut reader = open(vec![stream("stdin", bytes)], one(DataType::Int32), options).unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}
