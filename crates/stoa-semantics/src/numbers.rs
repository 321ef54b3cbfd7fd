//! Functions on numbers that the engine has not, or computes otherwise.

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, Int32Array, Int64Array};
use arrow::datatypes::{Decimal256Type, i256};
use datafusion::error::{DataFusionError, Result};

use super::call::{failure, unsupported};
use super::declared::{Declared, Row, Type, declared};
use super::numeric::{Decimal, NUMERIC, out_of_range};
use super::to_char::read_number;
use Type::{Bigint, Double, Int4, Integer, Numeric, Shown, Text, Texts};

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("factorial", &[Bigint], Numeric, factorial),
    declared("gcd", &[Int4, Int4], Int4, |row| {
        row.each::<i32, Int32Array>(|at| of_integers(row, at, greatest_divisor))
    }),
    declared("gcd", &[Bigint, Bigint], Bigint, |row| {
        row.each::<i64, Int64Array>(|at| of_integers(row, at, greatest_divisor))
    }),
    declared("lcm", &[Int4, Int4], Int4, |row| {
        row.each::<i32, Int32Array>(|at| of_integers(row, at, least_multiple))
    }),
    declared("lcm", &[Bigint, Bigint], Bigint, |row| {
        row.each::<i64, Int64Array>(|at| of_integers(row, at, least_multiple))
    }),
    declared("gcd", &[Numeric, Numeric], Numeric, |row| {
        row.each_numeric(|at| {
            Ok(row.numeric(0, at).zip(row.numeric(1, at)).map(|(a, b)| greatest_common(a, b)))
        })
    }),
    declared("lcm", &[Numeric, Numeric], Numeric, |row| {
        row.each_numeric(|at| {
            let operands = row.numeric(0, at).zip(row.numeric(1, at));
            operands.map(|(a, b)| least_common(a, b).ok_or_else(out_of_range)).transpose()
        })
    }),
    declared("div", &[Numeric, Numeric], Numeric, quotient),
    declared("min_scale", &[Numeric], Integer, |row| {
        row.each::<i32, Int32Array>(|at| Ok(row.numeric(0, at).map(decimals)))
    }),
    // Numbers of this type are shown without zeros at the end.
    declared("trim_scale", &[Numeric], Numeric, |row| {
        row.each_numeric(|at| Ok(row.numeric(0, at)))
    }),
    declared("scale", &[Numeric], Integer, |_| {
        let hint = "min_scale counts the decimals that are not zeros at the end";
        Err(unsupported("scale of a computed number is not supported", hint))
    }),
    declared("to_number", &[Text, Text], Numeric, number_of_text),
    declared("width_bucket", &[Numeric, Numeric, Numeric, Integer], Integer, bucket_of_numeric),
    declared("width_bucket", &[Double, Double, Double, Integer], Integer, bucket),
    // Known by its operands, and computed in `buckets`.
    declared("width_bucket", &[Shown, Texts], Integer, |_| {
        let hint = "cast value and thresholds to one type";
        Err(unsupported("width_bucket of these types is not supported", hint))
    }),
];

/// Digits behind the point of a `numeric`.
const SCALE: u32 = 38;

fn factorial(row: &Row<'_>) -> Result<ArrayRef> {
    let one = i256::from_i128(10_i128.pow(SCALE));
    let of = |number: i64| {
        if number < 0 {
            return Err(failure("22003", "factorial of a negative number is undefined"));
        }
        // 33! has 37 digits.
        let product = (1..=i128::from(number.min(34))).try_fold(1_i128, i128::checked_mul);
        let product = product.filter(|_| number <= 33);
        let product = product.and_then(|product| i256::from_i128(product).checked_mul(one));
        product.ok_or_else(|| failure("22003", "value overflows numeric format"))
    };
    let values = (0..row.rows).map(|at| row.integer(0, at).map(of).transpose());
    let values = values.collect::<Result<Decimal256Array>>()?;
    Ok(std::sync::Arc::new(values.with_data_type(NUMERIC)))
}

/// A function of two integers, which is an integer of their type.
fn of_integers<T: TryFrom<i128>>(
    row: &Row<'_>,
    at: usize,
    of: fn(i128, i128) -> i128,
) -> Result<Option<T>> {
    let (Some(a), Some(b)) = (row.integer(0, at), row.integer(1, at)) else { return Ok(None) };
    let of_type = if size_of::<T>() == 4 { "integer" } else { "bigint" };
    let out_of_range = |_| failure("22003", format!("{of_type} out of range"));
    T::try_from(of(a.into(), b.into())).map(Some).map_err(out_of_range)
}

fn greatest_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn least_multiple(a: i128, b: i128) -> i128 {
    match (a, b) {
        (0, _) | (_, 0) => 0,
        _ => (a / greatest_divisor(a, b) * b).abs(),
    }
}

/// Of numbers of one scale; the result has the same.
fn greatest_common(a: i256, b: i256) -> i256 {
    let (mut a, mut b) = (a.wrapping_abs(), b.wrapping_abs());
    while b != i256::ZERO {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a
}

fn least_common(a: i256, b: i256) -> Option<i256> {
    if a == i256::ZERO || b == i256::ZERO {
        return Some(i256::ZERO);
    }
    let multiple = a.checked_div(greatest_common(a, b))?.checked_mul(b)?.wrapping_abs();
    // As wide as numbers are.
    Decimal { digits: multiple, scale: SCALE as i32 }.as_numeric()
}

/// The whole part of a quotient.
fn quotient(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_numeric(|at| {
        let (Some(a), Some(b)) = (row.numeric(0, at), row.numeric(1, at)) else { return Ok(None) };
        if b == i256::ZERO {
            return Err(failure("22012", "division by zero"));
        }
        let whole = a.checked_div(b).map(|digits| Decimal { digits, scale: 0 });
        whole.and_then(Decimal::as_numeric).map(Some).ok_or_else(out_of_range)
    })
}

/// How many decimals a number has, without zeros at the end.
fn decimals(digits: i256) -> i32 {
    Decimal { digits, scale: SCALE as i32 }.trimmed().scale
}

fn number_of_text(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_numeric(|at| {
        let (Some(text), Some(format)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let number = read_number::read(text, format)?;
        let digits = number.map(|number| number.as_numeric().ok_or_else(out_of_range));
        digits.transpose()
    })
}

fn invalid(message: &str) -> DataFusionError {
    failure("2201G", message)
}

fn count_of(row: &Row<'_>, at: usize) -> Result<i64> {
    match row.integer(3, at) {
        Some(count) if count > 0 => Ok(count),
        _ => Err(invalid("count must be greater than zero")),
    }
}

/// One more than the last bucket is behind all of them.
fn behind(count: i64) -> Result<Option<i32>> {
    let number = i32::try_from(count + 1).map_err(|_| failure("22003", "integer out of range"))?;
    Ok(Some(number))
}

fn bucket(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i32, Int32Array>(|at| {
        let (Some(value), Some(low), Some(high)) =
            (row.double(0, at), row.double(1, at), row.double(2, at))
        else {
            return Ok(None);
        };
        let count = count_of(row, at)?;
        if value.is_nan() || low.is_nan() || high.is_nan() {
            return Err(invalid("operand, lower bound, and upper bound cannot be NaN"));
        }
        if low.is_infinite() || high.is_infinite() {
            return Err(invalid("lower and upper bounds must be finite"));
        }
        if low == high {
            return Err(invalid("lower bound cannot equal upper bound"));
        }
        let (value, low, high) =
            if low < high { (value, low, high) } else { (-value, -low, -high) };
        if value < low {
            return Ok(Some(0));
        }
        if value >= high {
            return behind(count);
        }
        // Halved, the difference of any two floats is finite.
        let share = match (high - low).is_finite() {
            true => (value - low) / (high - low),
            false => (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0),
        };
        let bucket = (count as f64 * share) as i64;
        behind(bucket.min(count - 1))
    })
}

fn bucket_of_numeric(row: &Row<'_>) -> Result<ArrayRef> {
    let number = |operand: usize, at: usize| {
        let column = row.columns.get(operand)?.as_primitive_opt::<Decimal256Type>()?;
        column.is_valid(at).then(|| column.value(at))
    };
    row.each::<i32, Int32Array>(|at| {
        let (Some(value), Some(low), Some(high)) = (number(0, at), number(1, at), number(2, at))
        else {
            return Ok(None);
        };
        let count = count_of(row, at)?;
        if low == high {
            return Err(invalid("lower bound cannot equal upper bound"));
        }
        let (is_before, is_behind) = match low < high {
            true => (value < low, value >= high),
            false => (value > low, value <= high),
        };
        if is_before {
            return Ok(Some(0));
        }
        if is_behind {
            return behind(count);
        }
        let bucket = value
            .checked_sub(low)
            .and_then(|of| of.checked_mul(i256::from(count)))
            .zip(high.checked_sub(low))
            .and_then(|(share, width)| share.checked_div(width))
            .and_then(i256::to_i128)
            .and_then(|bucket| i64::try_from(bucket).ok());
        behind(bucket.ok_or_else(|| failure("22003", "value overflows numeric format"))?)
    })
}
