//! Functions on numbers that the engine has not, or computes otherwise.

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, Int32Array};
use arrow::datatypes::{Decimal256Type, i256};
use datafusion::error::{DataFusionError, Result};

use super::call::failure;
use super::declared::{Declared, Row, Type};
use super::numeric::NUMERIC;
use Type::{Bigint, Double, Integer, Numeric};

const fn declared(
    name: &'static str,
    takes: &'static [Type],
    makes: Type,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called: name, takes, needed: takes.len(), makes, json: None, compute }
}

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("factorial", &[Bigint], Numeric, factorial),
    declared("width_bucket", &[Numeric, Numeric, Numeric, Integer], Integer, bucket_of_numeric),
    declared("width_bucket", &[Double, Double, Double, Integer], Integer, bucket),
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
