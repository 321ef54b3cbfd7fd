//! Iceberg values, their binary form, and Stoa's literals.
//!
//! Iceberg writes bounds as single values in binary (spec, appendix D); predicates and statistics
//! use [`Literal`]. Values of types that no predicate can name (UUID, time, nanosecond timestamps)
//! have no literal: their bounds are not used.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use iceberg::spec::{Datum, Literal as IcebergLiteral, PrimitiveLiteral, PrimitiveType};
use stoa_orc::Literal;

/// The literal of an Iceberg value of type `primitive`.
pub(crate) fn from_primitive(
    value: &PrimitiveLiteral,
    primitive: &PrimitiveType,
) -> Option<Literal> {
    Some(match (value, primitive) {
        (PrimitiveLiteral::Boolean(value), _) => Literal::Boolean(*value),
        (PrimitiveLiteral::Int(days), PrimitiveType::Date) => Literal::Date(*days),
        (PrimitiveLiteral::Int(value), _) => Literal::Int(i64::from(*value)),
        (PrimitiveLiteral::Long(micros), PrimitiveType::Timestamp | PrimitiveType::Timestamptz) => {
            Literal::TimestampMicros(*micros)
        }
        // A time of the day is a long in ORC: microseconds since midnight.
        (PrimitiveLiteral::Long(value), PrimitiveType::Long | PrimitiveType::Time) => {
            Literal::Int(*value)
        }
        (PrimitiveLiteral::Float(value), _) => Literal::Float(f64::from(value.0)),
        (PrimitiveLiteral::Double(value), _) => Literal::Float(value.0),
        (PrimitiveLiteral::String(value), _) => Literal::String(value.clone()),
        (PrimitiveLiteral::Binary(value), _) => Literal::Binary(value.clone()),
        (PrimitiveLiteral::UInt128(uuid), PrimitiveType::Uuid) => {
            Literal::Binary(uuid.to_be_bytes().to_vec())
        }
        (PrimitiveLiteral::Int128(value), PrimitiveType::Decimal { scale, .. }) => {
            Literal::Decimal(*value, i8::try_from(*scale).ok()?)
        }
        _ => return None,
    })
}

/// The value of a row as a literal; `None` for NULL and for types that have no literals.
pub(crate) fn from_array(array: &ArrayRef, row: usize) -> Option<Literal> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => Literal::Boolean(array.as_boolean().value(row)),
        DataType::Int32 => Literal::Int(i64::from(array.as_primitive::<Int32Type>().value(row))),
        DataType::Int64 => Literal::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => {
            Literal::Float(f64::from(array.as_primitive::<Float32Type>().value(row)))
        }
        DataType::Float64 => Literal::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            Literal::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
        }
        DataType::Date32 => Literal::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Time64(TimeUnit::Microsecond) => {
            Literal::Int(array.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Literal::TimestampMicros(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Utf8 => Literal::String(array.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Literal::Binary(array.as_binary::<i32>().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => {
            Literal::Binary(array.as_fixed_size_binary().value(row).to_vec())
        }
        _ => return None,
    })
}

/// The literal of a bound.
pub(crate) fn from_datum(datum: &Datum) -> Option<Literal> {
    from_primitive(datum.literal(), datum.data_type())
}

/// `literal` as a partition value of type `primitive`; `None` where it does not fit.
pub(crate) fn to_iceberg(literal: &Literal, primitive: &PrimitiveType) -> Option<IcebergLiteral> {
    Some(match (literal, primitive) {
        (Literal::Boolean(value), PrimitiveType::Boolean) => IcebergLiteral::bool(*value),
        (Literal::Int(value), PrimitiveType::Int) => {
            IcebergLiteral::int(i32::try_from(*value).ok()?)
        }
        (Literal::Int(value), PrimitiveType::Long) => IcebergLiteral::long(*value),
        (Literal::Int(micros), PrimitiveType::Time) => IcebergLiteral::time(*micros),
        (Literal::Float(value), PrimitiveType::Float) => IcebergLiteral::float(*value as f32),
        (Literal::Float(value), PrimitiveType::Double) => IcebergLiteral::double(*value),
        (Literal::Decimal(value, _), PrimitiveType::Decimal { .. }) => {
            IcebergLiteral::decimal(*value)
        }
        (Literal::Date(days), PrimitiveType::Date) => IcebergLiteral::date(*days),
        (Literal::TimestampMicros(micros), PrimitiveType::Timestamp) => {
            IcebergLiteral::timestamp(*micros)
        }
        (Literal::TimestampMicros(micros), PrimitiveType::Timestamptz) => {
            IcebergLiteral::timestamptz(*micros)
        }
        (Literal::String(value), PrimitiveType::String) => IcebergLiteral::string(value),
        (Literal::Binary(value), PrimitiveType::Binary | PrimitiveType::Fixed(_)) => {
            IcebergLiteral::binary(value.iter().copied())
        }
        (Literal::Binary(value), PrimitiveType::Uuid) => {
            let bytes: [u8; 16] = value.as_slice().try_into().ok()?;
            let uuid = PrimitiveLiteral::UInt128(u128::from_be_bytes(bytes));
            IcebergLiteral::Primitive(uuid)
        }
        _ => return None,
    })
}

/// `literal` as a bound of type `primitive`; `None` where it does not fit.
pub(crate) fn to_datum(literal: &Literal, primitive: &PrimitiveType) -> Option<Datum> {
    Datum::try_from_bytes(&to_bytes(literal, primitive)?, primitive.clone()).ok()
}

/// The single-value binary form of `literal` in type `primitive` (Iceberg spec, appendix D).
pub(crate) fn to_bytes(literal: &Literal, primitive: &PrimitiveType) -> Option<Vec<u8>> {
    Some(match (literal, primitive) {
        (Literal::Boolean(value), PrimitiveType::Boolean) => vec![u8::from(*value)],
        (Literal::Int(value), PrimitiveType::Int) => {
            i32::try_from(*value).ok()?.to_le_bytes().to_vec()
        }
        (Literal::Int(value), PrimitiveType::Long | PrimitiveType::Time) => {
            value.to_le_bytes().to_vec()
        }
        (Literal::Float(value), PrimitiveType::Float) => (*value as f32).to_le_bytes().to_vec(),
        (Literal::Float(value), PrimitiveType::Double) => value.to_le_bytes().to_vec(),
        (Literal::Date(days), PrimitiveType::Date) => days.to_le_bytes().to_vec(),
        (
            Literal::TimestampMicros(micros),
            PrimitiveType::Timestamp | PrimitiveType::Timestamptz,
        ) => micros.to_le_bytes().to_vec(),
        (Literal::String(value), PrimitiveType::String) => value.clone().into_bytes(),
        (Literal::Binary(value), PrimitiveType::Binary | PrimitiveType::Fixed(_)) => value.clone(),
        (Literal::Binary(value), PrimitiveType::Uuid) if value.len() == 16 => value.clone(),
        (Literal::Decimal(value, scale), PrimitiveType::Decimal { scale: wanted, .. }) => {
            minimal_big_endian(rescale(*value, *scale, i8::try_from(*wanted).ok()?)?)
        }
        _ => return None,
    })
}

/// Two's complement, big endian, in as few bytes as hold the sign.
pub(crate) fn minimal_big_endian(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let filler = if value < 0 { 0xff } else { 0 };
    let mut start = 0;
    while start < 15 && bytes[start] == filler && (bytes[start + 1] & 0x80 == 0x80) == (value < 0) {
        start += 1;
    }
    bytes[start..].to_vec()
}

/// `value` of `scale` digits after the point as one of `wanted` digits, if that is exact.
pub(crate) fn rescale(value: i128, scale: i8, wanted: i8) -> Option<i128> {
    let steps = i32::from(wanted) - i32::from(scale);
    let factor = 10i128.checked_pow(steps.unsigned_abs())?;
    if steps >= 0 {
        value.checked_mul(factor)
    } else {
        (value % factor == 0).then(|| value / factor)
    }
}

/// Compares two literals of comparable types; `None` where the order is not known (NaN, types that
/// do not meet).
pub(crate) fn compare(left: &Literal, right: &Literal) -> Option<Ordering> {
    match (left, right) {
        (Literal::Boolean(a), Literal::Boolean(b)) => Some(a.cmp(b)),
        (Literal::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
        (Literal::Float(a), Literal::Float(b)) if !a.is_nan() && !b.is_nan() => {
            Some(a.total_cmp(b))
        }
        (Literal::Decimal(a, s), Literal::Decimal(b, t)) => compare_decimals(*a, *s, *b, *t),
        (Literal::Int(a), Literal::Decimal(b, t)) => compare_decimals(i128::from(*a), 0, *b, *t),
        (Literal::Decimal(a, s), Literal::Int(b)) => compare_decimals(*a, *s, i128::from(*b), 0),
        (Literal::String(a), Literal::String(b)) => Some(a.cmp(b)),
        (Literal::Binary(a), Literal::Binary(b)) => Some(a.cmp(b)),
        (Literal::Date(a), Literal::Date(b)) => Some(a.cmp(b)),
        (Literal::TimestampMicros(a), Literal::TimestampMicros(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn compare_decimals(a: i128, a_scale: i8, b: i128, b_scale: i8) -> Option<Ordering> {
    let scale = a_scale.max(b_scale);
    Some(rescale(a, a_scale, scale)?.cmp(&rescale(b, b_scale, scale)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_take_the_fewest_bytes() {
        let check = |value: i128, bytes: &[u8]| assert_eq!(minimal_big_endian(value), bytes);
        check(0, &[0]);
        check(127, &[127]);
        check(128, &[0, 128]);
        check(-1, &[255]);
        check(-128, &[128]);
        check(-129, &[255, 127]);
        check(14206, &[0x37, 0x7e]);
        assert_eq!(minimal_big_endian(i128::MIN).len(), 16);
        assert_eq!(minimal_big_endian(i128::MAX).len(), 16);
    }

    #[test]
    fn bounds_survive_the_round_trip() {
        let check = |literal: Literal, primitive: PrimitiveType| {
            let datum = to_datum(&literal, &primitive).unwrap();
            assert_eq!(from_datum(&datum), Some(literal));
        };
        check(Literal::Int(-5), PrimitiveType::Int);
        check(Literal::Int(i64::MAX), PrimitiveType::Long);
        check(Literal::Float(1.5), PrimitiveType::Float);
        check(Literal::Float(-0.0), PrimitiveType::Double);
        check(Literal::Date(-1), PrimitiveType::Date);
        check(Literal::TimestampMicros(7), PrimitiveType::Timestamptz);
        check(Literal::String("ü".to_owned()), PrimitiveType::String);
        check(Literal::Binary(vec![0, 255]), PrimitiveType::Binary);
        for value in [0, 1, -1, 999_999_999_999_999_999i128, -127, 128, -32768] {
            check(Literal::Decimal(value, 2), PrimitiveType::Decimal { precision: 20, scale: 2 });
        }
        assert_eq!(to_datum(&Literal::Int(1 << 40), &PrimitiveType::Int), None);
    }

    #[test]
    fn decimals_of_different_scale_compare() {
        let less = compare(&Literal::Decimal(150, 2), &Literal::Decimal(16, 1));
        assert_eq!(less, Some(Ordering::Less));
        assert_eq!(compare(&Literal::Int(2), &Literal::Decimal(200, 2)), Some(Ordering::Equal));
        assert_eq!(compare(&Literal::Float(f64::NAN), &Literal::Float(1.0)), None);
    }
}
