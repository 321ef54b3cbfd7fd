use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int64Array, StringArray, StringViewArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow_ipc::reader::StreamReader;
use serde_json::{Value, json};

use super::*;

fn batch() -> RecordBatch {
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1), None]);
    lists.append_null();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("big", Arc::new(Int64Array::from(vec![Some(9_007_199_254_740_993), None]))),
        ("small", Arc::new(Int64Array::from(vec![-9_007_199_254_740_991, 2]))),
        ("unsigned", Arc::new(UInt64Array::from(vec![u64::MAX, 3]))),
        ("price", Arc::new(decimal(vec![Some(1_200), None]))),
        ("ratio", Arc::new(Float64Array::from(vec![f64::NAN, 0.1]))),
        ("name", Arc::new(StringViewArray::from(vec![Some("a,\"b\"\n"), Some("")]))),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&b"\x00\xff"[..]), None]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_500_000), None]))),
        ("list", Arc::new(lists.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

fn decimal(values: Vec<Option<i128>>) -> Decimal128Array {
    Decimal128Array::from(values).with_precision_and_scale(20, 3).unwrap()
}

fn encode(format: Format, batches: &[RecordBatch]) -> Vec<u8> {
    let mut encoder = encoder(format);
    let mut out = Vec::new();
    encoder.begin(&batches[0].schema(), &mut out).unwrap();
    let mut row_count = 0;
    for batch in batches {
        encoder.batch(batch, &mut out).unwrap();
        row_count += batch.num_rows() as u64;
    }
    let summary = Summary { query_id: Some(7), row_count, ..Summary::default() };
    encoder.finish(&summary, &mut out).unwrap();
    out
}

fn expected_rows() -> [Value; 2] {
    [
        json!([
            "9007199254740993",
            -9_007_199_254_740_991_i64,
            "18446744073709551615",
            "1.200",
            "NaN",
            "a,\"b\"\n",
            "00ff",
            "1970-01-01T00:00:01.500",
            [1, null]
        ]),
        json!([null, 2, 3, null, 0.1, "", null, null, null]),
    ]
}

#[test]
fn json_keeps_every_digit_and_tells_null_from_nan() {
    let document: Value =
        serde_json::from_slice(&encode(Format::Json, &[batch(), batch()])).unwrap();
    let [first, second] = expected_rows();
    assert_eq!(document["rows"], json!([first, second, first, second]));
    assert_eq!(document["row_count"], 4);
    assert_eq!(document["query_id"], 7);
    assert_eq!(document["columns"][0], json!({"name": "big", "type": "bigint", "nullable": true}));
}

#[test]
fn ndjson_is_one_object_per_row() {
    let text = String::from_utf8(encode(Format::Ndjson, &[batch()])).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["big"], "9007199254740993");
    assert_eq!(rows[1]["price"], Value::Null);
    assert!(rows[1].as_object().unwrap().contains_key("price"));
}

#[test]
fn csv_tells_null_from_the_empty_string_and_quotes() {
    let text = String::from_utf8(encode(Format::Csv, &[batch()])).unwrap();
    assert_eq!(
        text,
        "big,small,unsigned,price,ratio,name,bytes,at,list\n\
         9007199254740993,-9007199254740991,18446744073709551615,1.200,NaN,\"a,\"\"b\"\"\n\",\
         00ff,1970-01-01T00:00:01.500,\"[1,null]\"\n\
         ,2,3,,0.1,\"\",,,\n"
    );
}

#[test]
fn arrow_reads_back_with_views_as_plain_strings() {
    let bytes = encode(Format::Arrow, &[batch(), batch()]);
    let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 2);
    assert_eq!(batches[0].column(0), batch().column(0));
    let names = batches[0].column(5).as_any().downcast_ref::<StringArray>().unwrap();
    assert_eq!(names.value(0), "a,\"b\"\n");
}

#[test]
fn a_failure_after_rows_can_be_told_in_every_format() {
    let check = |format, ending, complete: fn(&str) -> bool| {
        let mut encoder = encoder(format);
        let mut out = Vec::new();
        encoder.begin(&batch().schema(), &mut out).unwrap();
        encoder.batch(&batch(), &mut out).unwrap();
        assert_eq!(encoder.fail(&Error::invalid("boom"), &mut out), ending, "{format:?}");
        assert!(complete(&String::from_utf8_lossy(&out)), "{format:?}");
    };
    check(Format::Json, Ending::Complete, |text| {
        let document: Value = serde_json::from_str(text).unwrap();
        document["error"]["message"] == "boom" && document.get("row_count").is_none()
    });
    check(Format::Ndjson, Ending::BreakOff, |text| {
        let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        line["error"]["code"] == "22023"
    });
    check(Format::Csv, Ending::BreakOff, |_| true);
    check(Format::Arrow, Ending::BreakOff, |_| true);
}
