use std::sync::Arc;

use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{Field, TimeUnit};

use super::*;
use crate::{Format, LoadOptions};

fn conversions() -> Conversions {
    Conversions::new(&LoadOptions::default(), Format::Csv).unwrap()
}

fn column(data_type: DataType) -> Column {
    Column::new(&Arc::new(Field::new("c", data_type, true)), 4).unwrap()
}

fn shown(array: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).unwrap();
    (0..array.len()).map(|row| formatter.value(row).to_string()).collect()
}

/// Loads `good` in order, each followed by every one of `bad`, which must leave no trace.
fn check(data_type: DataType, good: &[(&str, &str)], bad: &[&str]) {
    let with = conversions();
    let mut column = column(data_type.clone());
    for (text, _) in good {
        column.append_field(text.as_bytes(), false, &with).unwrap();
        for text in bad {
            let rows = column.len();
            column.append_field(text.as_bytes(), false, &with).expect_err(text);
            column.truncate(rows);
        }
    }
    column.append_field(b"", false, &with).unwrap();
    let array = column.finish().unwrap();
    assert_eq!(array.data_type(), &data_type);
    let mut expected: Vec<&str> = good.iter().map(|(_, shown)| *shown).collect();
    expected.push("NULL");
    assert_eq!(shown(&array), expected, "{data_type}");
}

#[test]
fn every_type_reads_its_values_and_refuses_others() {
    check(DataType::Boolean, &[("TRUE", "true"), ("f", "false"), ("1", "true")], &["2", "maybe"]);
    check(DataType::Int8, &[("-128", "-128"), (" 127 ", "127")], &["128", "1.0", "x"]);
    check(DataType::Int16, &[("+5", "5")], &["32768"]);
    check(DataType::Int32, &[("-2147483648", "-2147483648")], &["2147483648"]);
    check(DataType::Int64, &[("9223372036854775807", "9223372036854775807")], &["1e3", "1,137"]);
    check(DataType::UInt8, &[("255", "255")], &["256", "-1"]);
    check(DataType::UInt64, &[("18446744073709551615", "18446744073709551615")], &["-1"]);
    check(DataType::Float32, &[("1.5", "1.5"), ("NaN", "NaN")], &["1e39", "one"]);
    check(DataType::Float64, &[("-1.5e3", "-1500.0"), ("inf", "inf")], &["1e999", "1,5"]);
    check(DataType::Decimal128(6, 2), &[("1.5", "1.50"), ("-7", "-7.00")], &["12345", "x"]);
    check(DataType::Date32, &[("2015-01-31", "2015-01-31")], &["2015-02-30", "01/31/2015"]);
    check(DataType::Time64(TimeUnit::Microsecond), &[("12:34:56.5", "12:34:56.500")], &["25:00"]);
    check(
        DataType::Timestamp(TimeUnit::Microsecond, None),
        &[
            ("2015-01-31 10:00", "2015-01-31T10:00:00"),
            ("2015-01-31T10:00:00Z", "2015-01-31T10:00:00"),
        ],
        &["2015-01-31 10:00+01", "now"],
    );
    check(
        DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        &[
            ("2015-01-31 10:00+01", "2015-01-31T09:00:00Z"),
            ("2015-01-31 10:00", "2015-01-31T10:00:00Z"),
        ],
        &["x"],
    );
    check(DataType::LargeBinary, &[("\\x00ff", "00ff")], &["00ff", "\\x0"]);
    check(DataType::FixedSizeBinary(2), &[("\\x00ff", "00ff")], &["\\x00"]);
    check(
        DataType::FixedSizeBinary(16),
        &[("A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11")],
        &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1x", "\\x00"],
    );
    for text in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
        check(text, &[("a", "a"), (" b ", " b ")], &[]);
    }
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    let good = [
        ("[1,null,2]", "[1, NULL, 2]"),
        ("[]", "[]"),
        ("{}", "[]"),
        ("{1, null ,2}", "[1, NULL, 2]"),
        ("{\"1\",-2}", "[1, -2]"),
    ];
    let bad = ["[1,\"x\"]", "[1", "{1", "{1,,2}", "{x}", "{1}2", "{{1}}", "{\"null\"}", "{\"1}"];
    check(list.clone(), &good, &bad);
    let lists = DataType::List(Arc::new(Field::new("item", list, true)));
    check(
        lists,
        &[("{{1,NULL},NULL,{}}", "[[1, NULL], NULL, []]"), ("[[1],[]]", "[[1], []]")],
        &["{1}", "{{1},{x}}", "{{1}", "{{1}2}"],
    );
    let fields =
        vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)];
    check(
        DataType::Struct(fields.into()),
        &[("{\"b\":\"x\"}", "{a: NULL, b: x}"), ("{\"A\":1}", "{a: 1, b: NULL}")],
        &["[]", "{\"c\":1}", "{\"b\":\"x\",\"a\":\"y\"}"],
    );
}

#[test]
fn text_is_null_only_where_it_is_not_quoted() {
    let mut column = column(DataType::Utf8);
    let with = conversions();
    column.append_field(b"", false, &with).unwrap();
    column.append_field(b"", true, &with).unwrap();
    assert_eq!(shown(&column.finish().unwrap()), ["NULL", ""]);
}

#[test]
fn a_column_that_must_not_be_null_says_so() {
    let field = Arc::new(Field::new("c", DataType::Int64, false));
    let mut column = Column::new(&field, 1).unwrap();
    let bad = column.append_field(b"", false, &conversions()).unwrap_err();
    assert_eq!(bad.sqlstate, "23502");
    assert_eq!(column.len(), 0);
}

#[test]
fn hints_say_what_to_do() {
    let hint = |data_type, text: &[u8]| {
        let bad = column(data_type).append_field(text, false, &conversions()).unwrap_err();
        bad.hint.unwrap_or_default()
    };
    assert!(hint(DataType::Int64, b"1,137").contains("thousands_separator to ','"));
    assert!(hint(DataType::Float64, b"1,5").contains("decimal_point"));
    assert!(hint(DataType::Int64, b" - ").contains("null_text to '-'"));
    assert!(hint(DataType::Date32, b"31.12.2015").contains("date_format"));
    assert!(hint(DataType::Utf8, b"\xff").contains("latin1"));
    assert_eq!(hint(DataType::Int64, b"abc"), "");
}
