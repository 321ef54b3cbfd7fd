//! Rows as text: every type in both formats, limits, columns, damage.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, UnionFields};
use stoa_error::ErrorKind;
use stoa_orc::WriterOptions;
use stoa_orc_tools::{DataOptions, DataReport, RowFormat, data};
use support::{File, counting, plain, texts};

fn rows(file: &File, options: &DataOptions) -> String {
    let mut out = Vec::new();
    let report = data(&file.path(), options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(report.rows as usize, text.lines().count());
    text
}

/// Checks the rows of a column `c` in both formats.
fn check(column: impl Array + 'static, contents: &[&str], java: &[&str]) {
    let file = File::of(vec![("c", Arc::new(column))], plain());
    let options = DataOptions::default();
    let wanted: String = contents.iter().map(|value| format!("{{\"c\": {value}}}\n")).collect();
    assert_eq!(rows(&file, &options), wanted);
    let options = DataOptions { format: RowFormat::Java, ..options };
    let wanted: String = java.iter().map(|value| format!("{{\"c\":{value}}}\n")).collect();
    assert_eq!(rows(&file, &options), wanted);
}

/// The same text in both formats.
fn check_both(column: impl Array + 'static, values: &[&str]) {
    check(column, values, values);
}

#[test]
fn numbers() {
    check_both(BooleanArray::from(vec![Some(true), None, Some(false)]), &["true", "null", "false"]);
    check_both(Int8Array::from(vec![-128, 127]), &["-128", "127"]);
    check_both(Int16Array::from(vec![Some(-32768), None]), &["-32768", "null"]);
    check_both(Int32Array::from(vec![i32::MIN, 0]), &["-2147483648", "0"]);
    let wide = [Some(i64::MIN), Some(i64::MAX), None];
    check_both(
        Int64Array::from(wide.to_vec()),
        &["-9223372036854775808", "9223372036854775807", "null"],
    );
}

#[test]
fn floats() {
    check(
        Float32Array::from(vec![Some(74.72), Some(1.0), None, Some(1e20)]),
        &["74.72", "1", "null", "1e20"],
        &["74.72000122070312", "1.0", "null", "1.0000000200408773E20"],
    );
    check(
        Float64Array::from(vec![-15.0, 0.1, 1e-7, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        &["-15", "0.1", "1e-7", "\"NaN\"", "\"Infinity\"", "\"-Infinity\""],
        &["-15.0", "0.1", "1.0E-7", "NaN", "Infinity", "-Infinity"],
    );
}

#[test]
fn decimals() {
    let values = Decimal128Array::from(vec![Some(-100_050_000), Some(0), None, Some(5)]);
    check(
        values.with_precision_and_scale(20, 5).unwrap(),
        &["-1000.50000", "0.00000", "null", "0.00005"],
        &["\"-1000.5\"", "\"0\"", "null", "\"0.00005\""],
    );
    let widest = Decimal128Array::from(vec![99_999_999_999_999_999_999_999_999_999_999_999_999]);
    let digits = "99999999999999999999999999999999999999";
    check(widest.with_precision_and_scale(38, 0).unwrap(), &[digits], &[&format!("\"{digits}\"")]);
}

#[test]
fn text_and_bytes() {
    check(
        StringArray::from(vec![Some("a\"b\\c\n\u{1}é\u{2028}"), None, Some("")]),
        &["\"a\\\"b\\\\c\\n\\u0001é\u{2028}\"", "null", "\"\""],
        &["\"a\\\"b\\\\c\\n\\u0001é\\u2028\"", "null", "\"\""],
    );
    check(
        BinaryArray::from(vec![Some(b"\x00\x7f\xff".as_slice()), None, Some(b"")]),
        &["[0, 127, 255]", "null", "[]"],
        &["[0,127,255]", "null", "[]"],
    );
}

#[test]
fn days_and_times() {
    check_both(
        Date32Array::from(vec![Some(0), None, Some(-25_509), Some(2_932_897)]),
        &["\"1970-01-01\"", "null", "\"1900-02-28\"", "\"10000-01-01\""],
    );
    check_both(
        TimestampNanosecondArray::from(vec![Some(1), None, Some(-2_000_000_000)]),
        &["\"1970-01-01 00:00:00.000000001\"", "null", "\"1969-12-31 23:59:58.0\""],
    );
    check_both(
        TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("+00:00"),
        &["\"1970-01-01 00:00:01.5\""],
    );
}

#[test]
fn nested_values() {
    let list = [Some(vec![Some(1), None]), None, Some(vec![])];
    check(
        ListArray::from_iter_primitive::<Int32Type, _, _>(list),
        &["[1, null]", "null", "[]"],
        &["[1,null]", "null", "[]"],
    );

    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("a");
    map.values().append_value(1);
    map.keys().append_value("b");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    check(
        map.finish(),
        &["[{\"key\": \"a\", \"value\": 1}, {\"key\": \"b\", \"value\": null}]", "null"],
        &["[{\"_key\":\"a\",\"_value\":1},{\"_key\":\"b\",\"_value\":null}]", "null"],
    );

    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("x"), None]);
    lists.append_null();
    let fields = vec![
        (Arc::new(Field::new("n", DataType::Int32, true)), counted(2)),
        (
            Arc::new(Field::new_list("l", Field::new("item", DataType::Utf8, true), true)),
            Arc::new(lists.finish()) as ArrayRef,
        ),
    ];
    check(
        StructArray::from(fields),
        &["{\"n\": 0, \"l\": [\"x\", null]}", "{\"n\": 1, \"l\": null}"],
        &["{\"n\":0,\"l\":[\"x\",null]}", "{\"n\":1,\"l\":null}"],
    );
}

fn counted(rows: i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(0..rows))
}

#[test]
fn unions_have_a_tag() {
    let field = |tag: i8, ty| (tag, Arc::new(Field::new(tag.to_string(), ty, true)));
    let fields: UnionFields =
        [field(0, DataType::Int32), field(1, DataType::Utf8)].into_iter().collect();
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(42), None]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let union = UnionArray::try_new(
        fields,
        ScalarBuffer::from(vec![0, 1, 0, 1]),
        Some(ScalarBuffer::from(vec![0, 0, 1, 1])),
        vec![ints, texts],
    );
    check(
        union.unwrap(),
        &[
            "{\"tag\": 0, \"value\": 42}",
            "{\"tag\": 1, \"value\": \"x\"}",
            "{\"tag\": 0, \"value\": null}",
            "{\"tag\": 1, \"value\": null}",
        ],
        &["42", "\"x\"", "null", "null"],
    );
}

#[test]
fn limits_and_columns() {
    let options = WriterOptions::default().with_stripe_rows(1000);
    let file = File::of(vec![("a", counting(10_000)), ("b \"", texts(10_000))], options);
    let limited = |limit| DataOptions { limit: Some(limit), ..DataOptions::default() };
    for limit in [0, 1, 999, 1000, 1001, 10_000, 20_000] {
        assert_eq!(rows(&file, &limited(limit)).lines().count() as u64, limit.min(10_000));
    }
    let columns = |names: &[&str]| DataOptions {
        columns: Some(names.iter().map(ToString::to_string).collect()),
        ..limited(1)
    };
    assert_eq!(rows(&file, &columns(&["a"])), "{\"a\": 0}\n");
    assert_eq!(rows(&file, &columns(&["b \"", "a"])), "{\"b \\\"\": \"text 0\", \"a\": 0}\n");
    let error = data(&file.path(), &columns(&["c"]), &mut Vec::new()).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Invalid, "42703"));
    assert!(error.hint().unwrap().contains("a, b \""), "{error:?}");
}

#[test]
fn years_beyond_nanoseconds_are_printed_in_microseconds() {
    let values = vec![0, 253_402_300_799_000_001, -62_135_596_800_000_000];
    let file = File::of(vec![("c", Arc::new(TimestampMicrosecondArray::from(values)))], plain());
    let mut out = Vec::new();
    let report = data(&file.path(), &DataOptions::default(), &mut out).unwrap();
    assert_eq!(report, DataReport { rows: 3, stripes_in_micros: 1 });
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\"c\": \"1970-01-01 00:00:00.0\"}\n{\"c\": \"9999-12-31 23:59:59.000001\"}\n\
         {\"c\": \"0001-01-01 00:00:00.0\"}\n"
    );
}

#[test]
fn rows_before_damage_are_printed() {
    let options = WriterOptions::default().with_stripe_rows(1000).with_checksums(false);
    let file = File::of(vec![("a", counting(3000)), ("b", texts(3000))], options);
    let stripe = &file.meta()["stripes"][1];
    let stream = stripe["streams"].as_array().unwrap().iter();
    let stream = stream.clone().find(|s| s["columnId"] == 2 && s["section"] == "DATA");
    let at = stream.unwrap()["startOffset"].as_u64().unwrap();
    let damaged = file.damaged(at, 3);
    let mut out = Vec::new();
    let error = data(&damaged.path(), &DataOptions::default(), &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let name = damaged.path().display().to_string();
    for part in [name.as_str(), "stripe 1: column 2 (b): DATA stream", "file offset "] {
        assert!(error.message().contains(part), "{error:?}");
    }
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 1000);
}

#[test]
fn a_file_that_is_none() {
    let read = |file: &File| data(&file.path(), &DataOptions::default(), &mut Vec::new());
    let error = read(&File::of_bytes(b"a,b\n1,2\n")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("t.orc: file tail"), "{error:?}");
    assert!(error.hint().is_some());
    assert_eq!(read(&File::of_bytes(b"")).unwrap(), DataReport::default());
    let absent = data("no/such.orc".as_ref(), &DataOptions::default(), &mut Vec::new());
    assert_eq!(absent.unwrap_err().kind(), ErrorKind::NotFound);
}

/// A reader that went away.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_sink_is_told_by_its_source() {
    let file = File::of(vec![("a", counting(100_000))], plain());
    let error = data(&file.path(), &DataOptions::default(), &mut Closed).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    let source = source.downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(source.kind(), std::io::ErrorKind::BrokenPipe);
}
