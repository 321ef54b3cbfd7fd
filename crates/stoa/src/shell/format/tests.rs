use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array, StringArray, TimestampMicrosecondArray};

use super::*;

fn batch() -> RecordBatch {
    let cost = Decimal128Array::from(vec![Some(150), None, Some(-5)])
        .with_precision_and_scale(10, 2)
        .unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![Some(1), Some(20), None]))),
        ("name", Arc::new(StringArray::from(vec![Some("a, \"b\""), Some(""), None]))),
        ("place", Arc::new(StringArray::from(vec![Some("東京"), Some("x\ty\\"), Some("l1\nl2")]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![Some(0), Some(1_500_000), None]))),
        ("cost", Arc::new(cost)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn check(format: Format, expanded: bool, expected: &str) {
    let style = Style { format, header: true, expanded };
    let batch = batch();
    let mut writer = row_writer(style, &batch.schema());
    let mut out = Vec::new();
    writer.begin(&mut out).unwrap();
    writer.batch(&batch, &mut out).unwrap();
    writer.end(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn tables_are_aligned_by_what_the_terminal_shows() {
    check(
        Format::Table,
        false,
        concat!(
            " id |  name  | place |           at            | cost\n",
            "----+--------+-------+-------------------------+-------\n",
            "  1 | a, \"b\" | 東京  | 1970-01-01 00:00:00     |  1.50\n",
            " 20 |        | x\\ty\\ | 1970-01-01 00:00:01.500 |\n",
            "    |        | l1   +|                         | -0.05\n",
            "    |        | l2    |                         |\n",
            "(3 rows)\n"
        ),
    );
}

#[test]
fn csv_tells_null_from_empty() {
    check(
        Format::Csv,
        false,
        "id,name,place,at,cost\n\
         1,\"a, \"\"b\"\"\",東京,1970-01-01 00:00:00,1.50\n\
         20,\"\",x\ty\\,1970-01-01 00:00:01.500,\n\
         ,,\"l1\nl2\",,-0.05\n",
    );
}

#[test]
fn tsv_has_one_line_per_row() {
    check(
        Format::Tsv,
        false,
        "id\tname\tplace\tat\tcost\n\
         1\ta, \"b\"\t東京\t1970-01-01 00:00:00\t1.50\n\
         20\t\tx\\ty\\\\\t1970-01-01 00:00:01.500\t\\N\n\
         \\N\t\\N\tl1\\nl2\t\\N\t-0.05\n",
    );
}

#[test]
fn records_have_one_line_per_value() {
    let style = Style { format: Format::Table, header: true, expanded: true };
    let batch = batch().slice(0, 1);
    let mut writer = row_writer(style, &batch.schema());
    let mut out = Vec::new();
    writer.batch(&batch, &mut out).unwrap();
    writer.end(&mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "-[ RECORD 1 ]-\nid    | 1\nname  | a, \"b\"\nplace | 東京\n\
         at    | 1970-01-01 00:00:00\ncost  | 1.50\n"
    );
}

#[test]
fn rows_after_the_sample_stream() {
    let schema = Arc::new(arrow_schema::Schema::new(vec![arrow_schema::Field::new(
        "n",
        arrow_schema::DataType::Int64,
        false,
    )]));
    let numbers = Arc::new(Int64Array::from_iter_values(0..2500)) as ArrayRef;
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![numbers]).unwrap();
    let style = Style { format: Format::Table, header: true, expanded: false };
    let mut writer = row_writer(style, &schema);
    let mut out = Vec::new();
    writer.batch(&batch, &mut out).unwrap();
    assert!(String::from_utf8_lossy(&out).lines().count() >= 2500);
    writer.end(&mut out).unwrap();
    assert!(String::from_utf8_lossy(&out).ends_with(" 2499\n(2500 rows)\n"));
}
