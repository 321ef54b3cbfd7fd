//! Decimals that are divided as PostgreSQL divides them, for reports and for plans.
//!
//! A quotient has as many digits after the point as PostgreSQL's `select_div_scale` says of the two
//! values, 38 at most, and is held as a decimal of 76 digits, 38 of them after the point.

use arrow_buffer::i256;
use stoa_error::{Error, Result};

/// Digits after the point of decimals without a scale of their own.
pub const NUMERIC_SCALE: i8 = 38;

/// Digits that PostgreSQL computes at least.
const SIGNIFICANT_DIGITS: i32 = 16;
/// Digits of one of its places.
const PLACE_DIGITS: i32 = 4;

/// A decimal: `digits` × 10^-`scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The number without its point.
    pub digits: i256,
    /// Digits after the point.
    pub scale: i32,
}

impl Decimal {
    /// A number of `scale` digits after the point.
    pub fn new(digits: impl Into<i256>, scale: i8) -> Self {
        Self { digits: digits.into(), scale: scale.into() }
    }

    /// The same number without zeros at the end, as far as it has digits after the point.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        if self.digits == i256::ZERO {
            return Self { scale: 0, ..self };
        }
        for step in [16, 8, 4, 2, 1] {
            while self.scale >= step {
                let (rest, zeros) = divided(self.digits, power(step as u32));
                if zeros != i256::ZERO {
                    break;
                }
                self.digits = rest;
                self.scale -= step;
            }
        }
        self
    }

    /// The place of its first digit in base 10000, and that digit.
    fn first_place(self) -> (i32, i256) {
        let digits = self.digits.wrapping_abs();
        let count = ilog10(digits) as i32 + 1;
        let exponent = count - 1 - self.scale;
        let (weight, wanted) =
            (exponent.div_euclid(PLACE_DIGITS), exponent.rem_euclid(PLACE_DIGITS) + 1);
        let first = match count - wanted {
            cut @ 0.. => divided(digits, power(cut as u32)).0,
            more => digits.wrapping_mul(power(more.unsigned_abs())),
        };
        (weight, first)
    }

    /// Its digits with [`NUMERIC_SCALE`] of them after the point; `None` where it is too large.
    pub fn as_numeric(self) -> Option<i256> {
        self.at_scale(NUMERIC_SCALE.into())
    }

    /// The digits at another scale, rounded half away from zero; `None` where there are too many.
    pub fn at_scale(self, scale: i32) -> Option<i256> {
        match scale - self.scale {
            0 => Some(self.digits),
            more @ 1.. => match self.digits == i256::ZERO {
                true => Some(i256::ZERO),
                false => self.digits.checked_mul(checked_power(more as u32)?),
            },
            less => match checked_power(less.unsigned_abs()) {
                Some(divisor) => Some(rounded(self.digits, divisor)),
                None => Some(i256::ZERO),
            },
        }
    }
}

/// `a / b` with as many digits after the point as PostgreSQL's `select_div_scale` says, as digits
/// of a number with [`NUMERIC_SCALE`].
///
/// # Errors
/// Division by zero (22012), a quotient that does not fit (22003).
pub fn quotient(a: Decimal, b: Decimal) -> Result<i256> {
    if b.digits == i256::ZERO {
        return Err(Error::invalid("division by zero").with_sqlstate("22012"));
    }
    if a.digits == i256::ZERO {
        return Ok(i256::ZERO);
    }
    let (a, b) = (as_written(a), as_written(b));
    let scale = quotient_scale(a, b);
    let shift = scale + b.scale - a.scale;
    let scaled = |digits: i256, by: i32| match by {
        ..=0 => Some(digits),
        by => digits.checked_mul(checked_power(by as u32)?),
    };
    let (dividend, divisor) = (scaled(a.digits, shift), scaled(b.digits, -shift));
    let (Some(dividend), Some(divisor)) = (dividend, divisor) else { return Err(misfit()) };
    let digits = rounded(dividend, divisor);
    Decimal { digits, scale }.as_numeric().ok_or_else(misfit)
}

/// A number with the digits that are known of it.
fn as_written(of: Decimal) -> Decimal {
    if of.scale == i32::from(NUMERIC_SCALE) { of.trimmed() } else { of }
}

/// Digits after the point of `a / b`, as PostgreSQL's `select_div_scale` says; `b` is not zero.
pub fn quotient_scale(a: Decimal, b: Decimal) -> i32 {
    let (a, b) = (as_written(a), as_written(b));
    if a.digits == i256::ZERO || b.digits == i256::ZERO {
        return a.scale.max(b.scale).max(SIGNIFICANT_DIGITS).min(NUMERIC_SCALE.into());
    }
    let ((weight, first), (other_weight, other_first)) = (a.first_place(), b.first_place());
    let weight = weight - other_weight - i32::from(first <= other_first);
    (SIGNIFICANT_DIGITS - weight * PLACE_DIGITS)
        .max(a.scale)
        .max(b.scale)
        .clamp(0, NUMERIC_SCALE.into())
}

/// More digits than a decimal can have.
fn misfit() -> Error {
    let message = "numeric value out of range: it has more digits than are supported";
    Error::invalid(message).with_sqlstate("22003")
}

/// `dividend / divisor`, rounded half away from zero.
fn rounded(dividend: i256, divisor: i256) -> i256 {
    let (whole, rest) = divided(dividend, divisor);
    let (rest, of) = (rest.wrapping_abs(), divisor.wrapping_abs());
    if rest < of.wrapping_sub(rest) {
        return whole;
    }
    match dividend.is_negative() == divisor.is_negative() {
        true => whole.wrapping_add(i256::ONE),
        false => whole.wrapping_sub(i256::ONE),
    }
}

/// Quotient and rest; numbers that fit 128 bits are divided as such.
fn divided(dividend: i256, divisor: i256) -> (i256, i256) {
    match (dividend.to_i128(), divisor.to_i128()) {
        (Some(a), Some(b)) if b != 0 && (a, b) != (i128::MIN, -1) => {
            (i256::from_i128(a / b), i256::from_i128(a % b))
        }
        _ => (dividend.wrapping_div(divisor), dividend.wrapping_rem(divisor)),
    }
}

fn ilog10(digits: i256) -> u32 {
    match digits.to_i128() {
        Some(small) => small.unsigned_abs().checked_ilog10().unwrap_or(0),
        None => digits.checked_ilog10().unwrap_or(0),
    }
}

fn checked_power(exponent: u32) -> Option<i256> {
    (exponent <= 76).then(|| power(exponent))
}

/// 10^`exponent`, up to 10^76.
fn power(exponent: u32) -> i256 {
    match 10_i128.checked_pow(exponent) {
        Some(small) => i256::from_i128(small),
        None => i256::from_i128(10).wrapping_pow(exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(a: i128, a_scale: i8, b: i128, b_scale: i8) -> String {
        let number = |digits, scale| Decimal::new(i256::from_i128(digits), scale);
        let digits = quotient(number(a, a_scale), number(b, b_scale)).unwrap();
        let digits = format!("{:0>39}", digits.to_string());
        let (whole, fraction) = digits.split_at(digits.len() - 38);
        format!("{whole}.{}", fraction.trim_end_matches('0'))
    }

    /// The right sides are PostgreSQL 15's, without zeros at the end.
    #[test]
    fn quotients_are_those_of_postgres() {
        assert_eq!(divide(10, 1, 3, 0), "0.33333333333333333333");
        assert_eq!(divide(10, 1, 300_000, 0), "0.000003333333333333333333");
        assert_eq!(divide(20, 1, 3, 0), "0.66666666666666666667");
        assert_eq!(divide(100_000_000, 2, 7, 0), "142857.142857142857");
        assert_eq!(divide(1, 0, 2, 0), "0.5");
        assert_eq!(divide(12_345_678_901_234_567_890, 0, 7, 1), "17636684144620811271.4");
    }
}
