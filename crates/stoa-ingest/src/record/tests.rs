//! Rows come back as they were, and broken records are errors.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array,
    Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;

use super::*;

/// One column of each kind that tables have, with NULLs and without.
fn rows(count: usize) -> RecordBatch {
    let numbers = || (0..count).map(|row| row as i64);
    let some = |row: usize| row % 3 != 1;
    let lists = (0..count).map(|row| some(row).then(|| vec![Some(row as i32), None]));
    let inner: ArrayRef = Arc::new(Int32Array::from_iter((0..count).map(|r| some(r).then_some(7))));
    let fields = vec![Arc::new(Field::new("inner", DataType::Int32, true))];
    let validity = (0..count).map(some).collect::<Vec<_>>().into();
    let decimals = Decimal128Array::from_iter_values(numbers().map(i128::from));
    let times = TimestampMicrosecondArray::from_iter_values(numbers());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(numbers())),
        Arc::new(BooleanArray::from_iter((0..count).map(|row| some(row).then_some(row % 2 == 0)))),
        Arc::new(Float64Array::from_iter(numbers().map(|n| Some(n as f64)))),
        Arc::new(Date32Array::from_iter_values(numbers().map(|n| n as i32))),
        Arc::new(times.with_timezone("+00:00")),
        Arc::new(decimals.with_precision_and_scale(20, 2).unwrap()),
        Arc::new(StringArray::from_iter(
            (0..count).map(|row| some(row).then(|| format!("text {row}"))),
        )),
        Arc::new(BinaryArray::from_iter_values(numbers().map(|n| n.to_be_bytes()))),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        Arc::new(StructArray::new(fields.into(), vec![inner], Some(validity))),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(nth, column)| Field::new(format!("c{nth}"), column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn head(tag: Option<&str>) -> RecordHead<'_> {
    RecordHead { table: Uuid::from_u128(0x1234), schema_id: -3, tag }
}

#[test]
fn rows_come_back_as_they_were() {
    for (count, tag) in [(0, None), (1, Some("INSERT")), (1000, Some("12345678"))] {
        let batch = rows(count);
        let bytes = encode(&head(tag), &batch).unwrap();
        // Records lie anywhere in a segment, so decoding must not depend on alignment.
        let shifted = [b"x", bytes.as_ref()].concat();
        let record = Record::parse(&shifted[1..]).unwrap();
        assert_eq!((record.table(), record.schema_id()), (Uuid::from_u128(0x1234), -3));
        assert_eq!((record.rows() as usize, record.tag()), (count, tag));
        assert_eq!(record.batch(&batch.schema()).unwrap(), batch);
    }
}

#[test]
fn a_slice_is_logged_without_the_rest() {
    let all = rows(1000);
    let few = all.slice(500, 3);
    let bytes = encode(&head(None), &few).unwrap();
    assert!(bytes.len() < 3000, "{}", bytes.len());
    assert_eq!(Record::parse(&bytes).unwrap().batch(&all.schema()).unwrap(), few);
}

#[test]
fn another_version_is_named() {
    let mut bytes = encode(&head(None), &rows(1)).unwrap().to_vec();
    bytes[0] = 9;
    let error = Record::parse(&bytes).unwrap_err();
    assert!(error.message().contains("version 9"), "{error:?}");
    assert!(error.hint().is_some());
}

#[test]
fn a_schema_of_other_columns_is_an_error() {
    let bytes = encode(&head(None), &rows(5)).unwrap();
    let record = Record::parse(&bytes).unwrap();
    let other = Schema::new(vec![Field::new("a", DataType::Utf8, false)]);
    assert_eq!(record.batch(&Arc::new(other)).unwrap_err().sqlstate(), "XX001");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn broken_records_are_errors_or_rows(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        truncate in any::<bool>(),
    ) {
        let batch = rows(4);
        let mut bytes = encode(&head(Some("a tag")), &batch).unwrap().to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if truncate {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(record) = Record::parse(&bytes)
            && let Ok(decoded) = record.batch(&batch.schema())
        {
            prop_assert_eq!(decoded.num_rows(), record.rows() as usize);
        }
    }
}

#[test]
fn records_of_several_appends_come_back_in_order() {
    let batches = [rows(3), rows(0), rows(100)];
    let records: Vec<_> = batches.iter().map(|b| encode(&head(Some("x")), b).unwrap()).collect();
    let group = encode_group(&records).unwrap();
    let parsed = Record::parse_all(&group).unwrap();
    for (record, batch) in parsed.iter().zip(&batches) {
        assert_eq!(record.batch(&batch.schema()).unwrap(), *batch);
    }
    assert_eq!(parsed.len(), 3);
    assert_eq!(Record::parse_all(&records[0]).unwrap().len(), 1);
    for end in 0..group.len() {
        assert!(Record::parse_all(&group[..end]).is_err(), "{end}");
    }
}
