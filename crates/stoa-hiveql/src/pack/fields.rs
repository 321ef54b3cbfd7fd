//! Fields of lines as values, as Hive's `LazySimpleSerDe` reads them: stricter than casts.

use super::value::{Type, Value};
use super::{
    Function, converted, makes_bigint, makes_boolean, makes_int, makes_timestamp, strict, text,
};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_field_boolean", (1, 1), makes_boolean, |v| {
        let text = text(v, 0)?;
        Ok(match () {
            () if text.eq_ignore_ascii_case("true") => Value::Boolean(true),
            () if text.eq_ignore_ascii_case("false") => Value::Boolean(false),
            () => Value::Null,
        })
    }),
    strict("hive_field_tinyint", (1, 1), makes_int, |v| Ok(small::<i8>(&text(v, 0)?))),
    strict("hive_field_smallint", (1, 1), makes_int, |v| Ok(small::<i16>(&text(v, 0)?))),
    strict("hive_field_int", (1, 1), makes_int, |v| Ok(small::<i32>(&text(v, 0)?))),
    strict("hive_field_bigint", (1, 1), makes_bigint, |v| {
        Ok(whole(&text(v, 0)?).map_or(Value::Null, Value::Bigint))
    }),
    strict("hive_field_timestamp", (1, 1), makes_timestamp, |v| {
        // A date alone is none.
        match text(v, 0)?.contains(':') {
            true => converted(&v[0], &Type::Timestamp),
            false => Ok(Value::Null),
        }
    }),
];

/// A sign, digits, and perhaps a fraction, which is dropped; nothing else, no blanks.
fn whole(text: &str) -> Option<i64> {
    let (number, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match !digits.is_empty() && is_digits(digits) && is_digits(fraction) {
        true => number.parse().ok(),
        false => None,
    }
}

fn small<T: TryFrom<i64> + Into<i32>>(text: &str) -> Value {
    let found = whole(text).and_then(|found| T::try_from(found).ok());
    found.map_or(Value::Null, |found| Value::Int(found.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::function;

    #[test]
    fn fields_are_read_as_hive_reads_them() {
        let check = |name: &str, text: &str, expected: Value| {
            let found = function(name).unwrap().call(&[Value::Text(text.to_owned())]).unwrap();
            assert_eq!(found, expected, "{name} {text}");
        };
        for (text, expected) in [("1", 1), ("1.5", 1), ("+7", 7), ("-2.", -2), ("007", 7)] {
            check("hive_field_int", text, Value::Int(expected));
        }
        for text in ["", " 12 ", "0x10", "abc", "1e3", "99999999999", "1.x", "-", "+-1", "1.2.3"] {
            check("hive_field_int", text, Value::Null);
        }
        check("hive_field_tinyint", "127", Value::Int(127));
        check("hive_field_tinyint", "300", Value::Null);
        check("hive_field_smallint", "40000", Value::Null);
        check("hive_field_bigint", "9223372036854775807", Value::Bigint(i64::MAX));
        check("hive_field_bigint", "9223372036854775808", Value::Null);
        check("hive_field_boolean", "TRUE", Value::Boolean(true));
        for text in ["yes", "1", "", "t"] {
            check("hive_field_boolean", text, Value::Null);
        }
        check("hive_field_timestamp", "2020-01-01", Value::Null);
        check("hive_field_timestamp", "1970-01-01 00:00:01", Value::Timestamp(1_000_000));
    }
}
