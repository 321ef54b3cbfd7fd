//! Transforms against the examples of Iceberg's specification, and arrays against single values.

use std::sync::Arc;

use arrow_array::types::Decimal128Type;
use arrow_array::{
    ArrayRef, BinaryArray, Date32Array, Int32Array, Int64Array, PrimitiveArray, StringArray,
    TimestampMicrosecondArray,
};
use stoa_orc::Literal;

use super::murmur3::murmur3_32;
use super::*;

fn hash(literal: &Literal) -> i32 {
    match literal {
        Literal::Int(value) => murmur3_32(&value.to_le_bytes()) as i32,
        Literal::Date(value) => murmur3_32(&i64::from(*value).to_le_bytes()) as i32,
        Literal::TimestampMicros(value) => murmur3_32(&value.to_le_bytes()) as i32,
        Literal::Decimal(value, _) => murmur3_32(&crate::value::minimal_big_endian(*value)) as i32,
        Literal::String(value) => murmur3_32(value.as_bytes()) as i32,
        Literal::Binary(value) => murmur3_32(value) as i32,
        other => panic!("{other:?} has no hash"),
    }
}

#[test]
fn hashes_are_those_of_the_specification() {
    // Iceberg spec, appendix B.
    assert_eq!(hash(&Literal::Int(34)), 2_017_239_379);
    assert_eq!(hash(&Literal::Decimal(1420, 2)), -500_754_589);
    assert_eq!(hash(&Literal::Date(17_486)), -653_330_422);
    assert_eq!(hash(&Literal::TimestampMicros(1_510_871_468_000_000)), -2_047_944_441);
    assert_eq!(hash(&Literal::TimestampMicros(1_510_871_468_000_001)), -1_207_196_810);
    assert_eq!(hash(&Literal::String("iceberg".to_owned())), 1_210_000_089);
    assert_eq!(hash(&Literal::Binary(vec![0, 1, 2, 3])), -188_683_207);
}

#[test]
fn single_values_transform() {
    let check = |transform: Transform, value: Literal, result: Literal| {
        assert_eq!(transform_literal(transform, &value), Some(result), "{transform} of {value:?}");
    };
    let date = Literal::Date;
    // 2017-11-16
    check(Transform::Year, date(17_486), Literal::Int(47));
    check(Transform::Month, date(17_486), Literal::Int(574));
    check(Transform::Day, date(17_486), date(17_486));
    check(Transform::Month, date(-1), Literal::Int(-1));
    check(Transform::Year, date(-1), Literal::Int(-1));
    check(Transform::Month, date(0), Literal::Int(0));
    check(Transform::Month, date(30), Literal::Int(0));
    check(Transform::Month, date(31), Literal::Int(1));
    check(Transform::Day, Literal::TimestampMicros(-1), date(-1));
    check(Transform::Hour, Literal::TimestampMicros(-1), Literal::Int(-1));
    check(Transform::Hour, Literal::TimestampMicros(1_510_871_468_000_000), Literal::Int(419_686));
    check(Transform::Truncate(10), Literal::Int(1), Literal::Int(0));
    check(Transform::Truncate(10), Literal::Int(-1), Literal::Int(-10));
    check(Transform::Truncate(50), Literal::Decimal(1065, 2), Literal::Decimal(1050, 2));
    check(Transform::Truncate(3), Literal::String("iceberg".into()), Literal::String("ice".into()));
    check(Transform::Truncate(2), Literal::String("äöü".into()), Literal::String("äö".into()));
    check(Transform::Truncate(2), Literal::Binary(vec![1, 2, 3]), Literal::Binary(vec![1, 2]));
    assert_eq!(transform_literal(Transform::Truncate(10), &Literal::Int(i64::MIN)), None);
    assert_eq!(transform_literal(Transform::Bucket(4), &Literal::Float(1.0)), None);
    assert_eq!(transform_literal(Transform::Hour, &date(1)), None);
}

#[test]
fn arrays_agree_with_single_values() {
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(34), None, Some(-7)])),
        Arc::new(Int64Array::from(vec![Some(34), None, Some(1 << 40)])),
        Arc::new(Date32Array::from(vec![Some(17_486), None, Some(-400)])),
        Arc::new(TimestampMicrosecondArray::from(vec![
            Some(1_510_871_468_000_000),
            None,
            Some(-1),
        ])),
        Arc::new(StringArray::from(vec![Some("iceberg"), None, Some("日本語")])),
        Arc::new(BinaryArray::from_opt_vec(vec![Some(&[0u8, 1, 2, 3]), None, Some(&[])])),
        Arc::new(
            PrimitiveArray::<Decimal128Type>::from(vec![Some(1420), None, Some(-5)])
                .with_data_type(arrow_schema::DataType::Decimal128(9, 2)),
        ),
    ];
    let transforms = [
        Transform::Identity,
        Transform::Year,
        Transform::Month,
        Transform::Day,
        Transform::Hour,
        Transform::Bucket(16),
        Transform::Truncate(2),
    ];
    for array in &arrays {
        for transform in transforms {
            let Ok(results) = transform_array(transform, array) else {
                let value = literal_at(array, 0).unwrap().unwrap();
                assert_eq!(transform_literal(transform, &value), None, "{transform} {value:?}");
                continue;
            };
            assert_eq!(results.len(), array.len());
            for row in 0..array.len() {
                let expected = literal_at(array, row)
                    .unwrap()
                    .and_then(|value| transform_literal(transform, &value));
                assert_eq!(literal_at(&results, row).unwrap(), expected, "{transform} {array:?}");
            }
        }
    }
}

#[test]
fn paths_spell_values_out() {
    let check = |transform: Transform, value: Option<Literal>, path: &str| {
        let text = value.map(|value| value_text(transform, &value));
        assert_eq!(partition_path([("p", text)].into_iter()), path);
    };
    check(Transform::Month, Some(Literal::Int(574)), "p=2017-11");
    check(Transform::Month, Some(Literal::Int(-1)), "p=1969-12");
    check(Transform::Year, Some(Literal::Int(47)), "p=2017");
    check(Transform::Day, Some(Literal::Date(17_486)), "p=2017-11-16");
    check(Transform::Hour, Some(Literal::Int(419_686)), "p=2017-11-16-22");
    check(Transform::Identity, Some(Literal::String("a/b c%=ü".into())), "p=a%2Fb+c%25%3D%C3%BC");
    check(Transform::Identity, Some(Literal::Decimal(-5, 2)), "p=-0.05");
    check(Transform::Bucket(4), None, "p=null");
    let long = Some("ü".repeat(5000));
    assert!(partition_path([("p", long)].into_iter()).len() < 140);
}
