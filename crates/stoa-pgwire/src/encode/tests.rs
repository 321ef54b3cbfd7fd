use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields, Schema};

use super::*;

/// Splits `DataRow` messages into fields.
fn fields(mut bytes: &[u8]) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut rows = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[0], b'D');
        let length = i32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        let (message, rest) = bytes.split_at(length + 1);
        bytes = rest;
        let count = u16::from_be_bytes([message[5], message[6]]);
        let mut at = 7;
        let row = (0..count)
            .map(|_| {
                let length = i32::from_be_bytes(message[at..at + 4].try_into().unwrap());
                at += 4;
                (length >= 0).then(|| {
                    let value = message[at..at + length as usize].to_vec();
                    at += length as usize;
                    value
                })
            })
            .collect();
        assert_eq!(at, message.len());
        rows.push(row);
    }
    rows
}

/// What `CopyData` messages carry, each.
fn copy_data(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[0], b'd');
        let length = i32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        let (message, rest) = bytes.split_at(length + 1);
        messages.push(message[5..].to_vec());
        bytes = rest;
    }
    messages
}

fn encode(array: ArrayRef, format: Format, style: Style) -> Vec<Option<Vec<u8>>> {
    let field = Field::new("c", array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array]).unwrap();
    let columns = uniform(schema, format, style).columns(&batch).unwrap();
    let mut out = Vec::new();
    let next = columns.put_rows(0..batch.num_rows(), usize::MAX, &mut out).unwrap();
    assert_eq!(next, batch.num_rows());
    fields(&out).into_iter().map(|mut row| row.remove(0)).collect()
}

fn text(array: impl Array + 'static) -> Vec<Option<String>> {
    encode(Arc::new(array), Format::Text, Style::default())
        .into_iter()
        .map(|value| value.map(|bytes| String::from_utf8(bytes).unwrap()))
        .collect()
}

fn binary(array: impl Array + 'static) -> Vec<Option<Vec<u8>>> {
    encode(Arc::new(array), Format::Binary, Style::default())
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

#[test]
fn scalars_are_written_as_text() {
    assert_eq!(text(BooleanArray::from(vec![true, false])), some(&["t", "f"]));
    assert_eq!(text(Int8Array::from(vec![-128])), some(&["-128"]));
    assert_eq!(text(Int64Array::from(vec![i64::MIN])), some(&["-9223372036854775808"]));
    assert_eq!(text(UInt64Array::from(vec![u64::MAX])), some(&["18446744073709551615"]));
    assert_eq!(text(Float64Array::from(vec![1.5, f64::NAN])), some(&["1.5", "NaN"]));
    assert_eq!(text(BinaryArray::from(vec![&b"\x00\xff"[..]])), some(&["\\x00ff"]));
    assert_eq!(text(Date32Array::from(vec![19_782])), some(&["2024-02-29"]));
    assert_eq!(text(Time64NanosecondArray::from(vec![1_500_000_000])), some(&["00:00:01.5"]));
    assert_eq!(text(Int32Array::from(vec![Some(1), None])), [Some("1".to_owned()), None]);
    assert_eq!(text(NullArray::new(1)), [None]);
    let decimals = Decimal128Array::from(vec![-5, 123_456]).with_precision_and_scale(9, 3);
    assert_eq!(text(decimals.unwrap()), some(&["-0.005", "123.456"]));
}

#[test]
fn instants_are_written_in_the_sessions_zone() {
    let instant = TimestampNanosecondArray::from(vec![-1]).with_timezone("UTC");
    assert_eq!(text(instant.clone()), some(&["1969-12-31 23:59:59.999999+00"]));
    let style = Style { zone: Zone::parse("Asia/Tokyo").unwrap(), ..Style::default() };
    let values = encode(Arc::new(instant), Format::Text, style);
    assert_eq!(values[0].as_deref(), Some(&b"1970-01-01 08:59:59.999999+09"[..]));
    assert_eq!(text(TimestampSecondArray::from(vec![0])), some(&["1970-01-01 00:00:00"]));
}

#[test]
fn intervals_are_written_in_postgresqls_style() {
    let value = |months, days, nanos| {
        IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNanoType::make_value(
            months, days, nanos,
        )])
    };
    assert_eq!(
        text(value(14, -3, 14_706_700_000_000)),
        some(&["1 year 2 mons -3 days +04:05:06.7"])
    );
    assert_eq!(text(value(0, 0, 0)), some(&["00:00:00"]));
    assert_eq!(text(value(0, 1, 0)), some(&["1 day"]));
    assert_eq!(text(DurationSecondArray::from(vec![-90_061])), some(&["-1 days -01:01:01"]));
    let bytes = binary(value(1, 2, 3000)).remove(0).unwrap();
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1]);
}

#[test]
fn scalars_are_written_as_binary() {
    let one = |array: ArrayRef| encode(array, Format::Binary, Style::default()).remove(0).unwrap();
    assert_eq!(one(Arc::new(Int8Array::from(vec![-2]))), [0xff, 0xfe]);
    assert_eq!(one(Arc::new(Int32Array::from(vec![258]))), [0, 0, 1, 2]);
    assert_eq!(one(Arc::new(BooleanArray::from(vec![true]))), [1]);
    assert_eq!(one(Arc::new(Date32Array::from(vec![10_958]))), [0, 0, 0, 1]);
    let epoch = TimestampMicrosecondArray::from(vec![946_684_800_000_001]);
    assert_eq!(one(Arc::new(epoch)), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(one(Arc::new(StringViewArray::from(vec!["ä"]))), "ä".as_bytes());
}

#[test]
fn lists_are_arrays() {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a"), None, Some("x,y"), Some(""), Some("null"), Some("q\"\\")]);
    list.append_null();
    list.append_value(Vec::<Option<&str>>::new());
    let expected = "{a,NULL,\"x,y\",\"\",\"null\",\"q\\\"\\\\\"}".to_owned();
    assert_eq!(text(list.finish()), [Some(expected), None, Some("{}".to_owned())]);

    let mut list = ListBuilder::new(Int32Builder::new());
    list.append_value([Some(7), None]);
    let bytes = binary(list.finish()).remove(0).unwrap();
    let words: Vec<i32> =
        bytes.chunks(4).map(|word| i32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [1, 1, 23, 2, 1, 4, 7, -1]);
}

#[test]
fn structs_maps_and_nested_lists_are_json() {
    let fields = Fields::from(vec![
        Field::new("n", DataType::Int32, true),
        Field::new("t\"", DataType::Utf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), None])),
        Arc::new(StringArray::from(vec!["a\n", "b"])),
    ];
    let value = StructArray::new(fields, columns, None);
    assert_eq!(text(value), some(&[r#"{"n":1,"t\"":"a\n"}"#, r#"{"n":null,"t\"":"b"}"#]));

    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("k");
    map.values().append_value(5);
    map.append(true).unwrap();
    assert_eq!(text(map.finish()), some(&[r#"{"k":5}"#]));

    let mut nested = ListBuilder::new(ListBuilder::new(Float64Builder::new()));
    nested.append_value([Some([Some(1.0), Some(f64::NAN)])]);
    assert_eq!(text(nested.finish()), some(&[r#"[[1,"NaN"]]"#]));
}

#[test]
fn dictionaries_are_their_values() {
    let array: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    assert_eq!(text(array), [Some("a".to_owned()), None, Some("a".to_owned())]);
    let none: DictionaryArray<Int32Type> = vec![None::<&str>].into_iter().collect();
    assert_eq!(text(none), [None]);
}

#[test]
fn rows_stop_where_the_buffer_is_full() {
    let schema = Arc::new(Schema::new(vec![Field::new("c", DataType::Int32, false)]));
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array]).unwrap();
    let columns = uniform(schema, Format::Binary, Style::default()).columns(&batch).unwrap();
    let mut out = Vec::new();
    let next = columns.put_rows(0..100, 30, &mut out).unwrap();
    assert_eq!(next, 2);
    assert_eq!(columns.put_rows(next..100, usize::MAX, &mut out).unwrap(), 100);
    assert_eq!(fields(&out).len(), 100);
}

#[test]
fn copy_lines_quote_what_needs_it() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Utf8, true),
        Field::new("b", DataType::Int32, true),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![Some("x,\"y\""), None, Some(""), Some("t\tab\\")])),
        Arc::new(Int32Array::from(vec![Some(1), None, Some(2), Some(3)])),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let lines = |format: CopyOutFormat| {
        let rows = uniform(Arc::clone(&schema), Format::Text, Style::default());
        let mut encoder = CopyTextEncoder::new(rows, format);
        let columns = encoder.columns(&batch).unwrap();
        let mut out = Vec::new();
        encoder.put_header(&mut out).unwrap();
        (0..columns.rows()).for_each(|row| encoder.put_row(&columns, row, &mut out).unwrap());
        String::from_utf8(copy_data(&out).concat()).unwrap()
    };
    let csv = CopyOutFormat { header: true, ..CopyOutFormat::csv() };
    assert_eq!(lines(csv), "a,b\n\"x,\"\"y\"\"\",1\n,\n\"\",2\nt\tab\\,3\n");
    assert_eq!(lines(CopyOutFormat::text()), "x,\"y\"\t1\n\\N\t\\N\n\t2\nt\\tab\\\\\t3\n");
}

#[test]
fn binary_copies_have_a_header_and_a_trailer() {
    let field = Field::new("a", DataType::Int32, true);
    let schema = Arc::new(Schema::new(vec![field]));
    let column = Arc::new(Int32Array::from(vec![Some(7), None]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
    let messages = |rows: usize| {
        let encoder = uniform(Arc::clone(&schema), Format::Binary, Style::default());
        let mut encoder = CopyBinaryEncoder::new(encoder);
        let columns = encoder.columns(&batch).unwrap();
        let mut out = Vec::new();
        (0..rows).for_each(|row| encoder.put_row(&columns, row, &mut out).unwrap());
        encoder.put_trailer(&mut out).unwrap();
        copy_data(&out)
    };
    let header = [&b"PGCOPY\n\xff\r\n\0"[..], &[0; 8]].concat();
    let first = [&header[..], &[0, 1, 0, 0, 0, 4, 0, 0, 0, 7]].concat();
    assert_eq!(messages(2), [&first[..], &[0, 1, 0xff, 0xff, 0xff, 0xff], &[0xff, 0xff]]);
    assert_eq!(messages(0), [[&header[..], &[0xff, 0xff]].concat()]);
}

#[test]
fn format_codes_spread_over_columns() {
    assert_eq!(Format::spread(&[], 2).unwrap(), [Format::Text; 2]);
    assert_eq!(Format::spread(&[1], 2).unwrap(), [Format::Binary; 2]);
    assert_eq!(Format::spread(&[0, 1], 2).unwrap(), [Format::Text, Format::Binary]);
    assert!(Format::spread(&[0, 1, 0], 2).is_err());
    assert!(Format::spread(&[2], 1).is_err());
}
