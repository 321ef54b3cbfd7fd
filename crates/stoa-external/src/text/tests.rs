use std::sync::Arc;

use arrow_array::Array;
use arrow_cast::pretty::pretty_format_batches;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::*;

fn nested() -> SchemaRef {
    let item = Arc::new(Field::new("element", DataType::Int32, true));
    let entries = DataType::Struct(
        vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int64, true)]
            .into(),
    );
    let pair = vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)];
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("list", DataType::List(item), true),
        Field::new(
            "map",
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false),
            true,
        ),
        Field::new("pair", DataType::Struct(pair.into()), true),
    ]))
}

fn read(format: &TextFormat, lines: &[&str], schema: &SchemaRef) -> RecordBatch {
    let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
    let places: Vec<usize> = (0..schema.fields().len()).collect();
    format.batch(&lines, schema, &places).unwrap()
}

fn shown(batch: &RecordBatch) -> String {
    let options = arrow_cast::display::FormatOptions::default().with_null("NULL");
    let table = arrow_cast::pretty::pretty_format_batches_with_options(
        std::slice::from_ref(batch),
        &options,
    );
    table.unwrap().to_string()
}

#[test]
fn nested_values_have_separators_of_their_level() {
    let format = TextFormat::Delimited(Delimited::default());
    let batch = read(
        &format,
        &[
            "1\u{1}Ann\u{1}1\u{2}2\u{2}\\N\u{1}a\u{3}1\u{2}b\u{3}2\u{2}a\u{3}9\u{1}7\u{2}seven",
            "x\u{1}\\N\u{1}\u{1}\u{1}",
            "3",
        ],
        &nested(),
    );
    assert_eq!(
        shown(&batch),
        "\
+------+------+--------------+--------------+--------------------+
| id   | name | list         | map          | pair               |
+------+------+--------------+--------------+--------------------+
| 1    | Ann  | [1, 2, NULL] | {a: 1, b: 2} | {x: 7, y: seven}   |
| NULL | NULL | []           | {}           | {x: NULL, y: NULL} |
| 3    | NULL | NULL         | NULL         | NULL               |
+------+------+--------------+--------------+--------------------+"
    );
}

#[test]
fn rows_come_back_from_their_lines() {
    let escaped = Delimited { escape: Some(b'\\'), ..Delimited::default() };
    let format = TextFormat::Delimited(escaped);
    let batch = read(
        &format,
        &["1\u{1}a\\\u{1}b\\n\\\\N\u{1}1\u{2}2\u{1}a\u{3}1\u{1}7\u{2}x\\\u{2}y"],
        &nested(),
    );
    assert_eq!(batch.column(1).len(), 1);
    assert_eq!(value_text(batch.column(1), 0).unwrap().unwrap(), "a\u{1}b\n\\N");
    let mut lines = Vec::new();
    write_rows(&batch, &format, |line| {
        lines.push(String::from_utf8(line.to_vec()).unwrap());
        Ok(())
    })
    .unwrap();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(read(&format, &lines, &nested()), batch);
}

#[test]
fn what_would_be_read_otherwise_is_not_written() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
    let plain = TextFormat::Delimited(Delimited::default());
    for text in ["a\nb", "a\u{1}b", "\\N"] {
        let column = arrow_array::StringArray::from(vec![text]);
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(column)]).unwrap();
        let error = write_rows(&batch, &plain, |_| Ok(())).unwrap_err();
        assert_eq!(error.sqlstate(), "22P04", "{text:?}");
    }
}

#[test]
fn all_types_come_back() {
    let fields = vec![
        Field::new("b", DataType::Boolean, true),
        Field::new("d", DataType::Date32, true),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("n", DataType::Decimal128(9, 2), true),
        Field::new("f", DataType::Float64, true),
        Field::new("x", DataType::Binary, true),
        Field::new("l", DataType::Int64, true),
    ];
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let format = TextFormat::Delimited(Delimited::default());
    let line = "true\u{1}2024-02-29\u{1}2024-02-29 12:30:00.25\u{1}1.50\u{1}1.0E10\u{1}AAE\u{1}-5";
    let batch =
        read(&format, &[line, "\\N\u{1}\\N\u{1}\\N\u{1}\\N\u{1}\\N\u{1}\\N\u{1}\\N"], &schema);
    let mut lines = Vec::new();
    write_rows(&batch, &format, |line| {
        lines.push(String::from_utf8(line.to_vec()).unwrap());
        Ok(())
    })
    .unwrap();
    assert_eq!(lines[0], line);
    assert!(pretty_format_batches(&[batch]).unwrap().to_string().contains("0001"));
}

#[test]
fn delimiters_are_read_as_hive_reads_them() {
    let of = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        delimited_of(&pairs.collect())
    };
    assert_eq!(of(&[("field.delim", "9")]).unwrap().separators[0], b'\t');
    assert_eq!(of(&[("field.delim", ",")]).unwrap().separators[0], b',');
    assert_eq!(of(&[("field.delim", "||")]).unwrap_err().sqlstate(), "22023");
    assert_eq!(of(&[("line.delim", "x")]).unwrap_err().sqlstate(), "0A000");
    assert_eq!(of(&[("input.regex", "x")]).unwrap_err().sqlstate(), "0A000");
}
