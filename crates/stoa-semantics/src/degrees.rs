//! Trigonometry in degrees: `sind(30)` is 0.5 and no digit less.
//!
//! Angles are brought into the first quadrant, where what is exact is exact: results are measured by those of 30, 45
//! and 60 degrees.

use arrow::array::{ArrayRef, Float64Array};
use datafusion::error::{DataFusionError, Result};

use super::call::failure;
use super::declared::{Declared, Row, Type};
use Type::Double;

const fn of_one(name: &'static str, compute: fn(&Row<'_>) -> Result<ArrayRef>) -> Declared {
    let takes: &[Type] = &[Double];
    Declared { name, called: name, takes, needed: 1, makes: Double, json: None, compute }
}

pub(super) const FUNCTIONS: &[Declared] = &[
    of_one("acosd", |row| each(row, acosd)),
    of_one("asind", |row| each(row, asind)),
    of_one("atand", |row| each(row, |x| Ok(x.atan() / 1_f64.atan() * 45.0))),
    of_one("cosd", |row| each(row, |x| within_turn(x).map(cosd))),
    of_one("sind", |row| each(row, |x| within_turn(x).map(sind))),
    of_one("tand", |row| each(row, |x| within_turn(x).map(tand))),
    of_one("cotd", |row| each(row, |x| within_turn(x).map(cotd))),
    Declared { takes: &[Double, Double], needed: 2, ..of_one("atan2d", atan2d) },
];

fn each(row: &Row<'_>, of: impl Fn(f64) -> Result<f64>) -> Result<ArrayRef> {
    row.each::<f64, Float64Array>(|at| match row.double(0, at) {
        Some(x) if x.is_nan() => Ok(Some(x)),
        Some(x) => of(x).map(Some),
        None => Ok(None),
    })
}

fn atan2d(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<f64, Float64Array>(|at| match (row.double(0, at), row.double(1, at)) {
        (Some(y), Some(x)) => Ok(Some(y.atan2(x) / 1_f64.atan() * 45.0)),
        _ => Ok(None),
    })
}

fn out_of_range() -> DataFusionError {
    failure("22003", "input is out of range")
}

fn within_turn(x: f64) -> Result<f64> {
    if x.is_infinite() {
        return Err(out_of_range());
    }
    Ok(x % 360.0)
}

fn asind(x: f64) -> Result<f64> {
    match x {
        -1.0..0.0 => Ok(-asin_up(-x)),
        0.0..=1.0 => Ok(asin_up(x)),
        _ => Err(out_of_range()),
    }
}

fn acosd(x: f64) -> Result<f64> {
    match x {
        -1.0..0.0 => Ok(90.0 + asin_up(-x)),
        0.0..=1.0 => Ok(acos_up(x)),
        _ => Err(out_of_range()),
    }
}

/// Of 0 to 1.
fn asin_up(x: f64) -> f64 {
    match x <= 0.5 {
        true => x.asin() / 0.5_f64.asin() * 30.0,
        false => 90.0 - x.acos() / 0.5_f64.acos() * 60.0,
    }
}

fn acos_up(x: f64) -> f64 {
    match x <= 0.5 {
        true => 90.0 - x.asin() / 0.5_f64.asin() * 30.0,
        false => x.acos() / 0.5_f64.acos() * 60.0,
    }
}

const RADIANS: f64 = std::f64::consts::PI / 180.0;

/// The sine of 0 to 30 degrees.
fn small_sine(x: f64) -> f64 {
    (x * RADIANS).sin() / (30.0 * RADIANS).sin() / 2.0
}

/// The cosine of 0 to 60 degrees.
fn large_cosine(x: f64) -> f64 {
    1.0 - (1.0 - (x * RADIANS).cos()) / (1.0 - (60.0 * RADIANS).cos()) / 2.0
}

/// Of 0 to 90 degrees.
fn sine(x: f64) -> f64 {
    if x <= 30.0 { small_sine(x) } else { large_cosine(90.0 - x) }
}

fn cosine(x: f64) -> f64 {
    if x <= 60.0 { large_cosine(x) } else { small_sine(90.0 - x) }
}

fn cosd(x: f64) -> f64 {
    let x = x.abs();
    let x = if x > 180.0 { 360.0 - x } else { x };
    if x > 90.0 { -cosine(180.0 - x) } else { cosine(x) }
}

fn sind(x: f64) -> f64 {
    let (mut x, mut sign) = (x.abs(), if x < 0.0 { -1.0 } else { 1.0 });
    if x > 180.0 {
        (x, sign) = (360.0 - x, -sign);
    }
    sign * sine(if x > 90.0 { 180.0 - x } else { x })
}

/// An angle in the first quadrant, and the sign of its tangent.
fn in_quadrant(x: f64) -> (f64, f64) {
    let (mut x, mut sign) = (x.abs(), if x < 0.0 { -1.0 } else { 1.0 });
    if x > 180.0 {
        (x, sign) = (360.0 - x, -sign);
    }
    if x > 90.0 {
        (x, sign) = (180.0 - x, -sign);
    }
    (x, sign)
}

fn tand(x: f64) -> f64 {
    let (x, sign) = in_quadrant(x);
    // There is no negative zero.
    sign * (sine(x) / cosine(x) / (sine(45.0) / cosine(45.0))) + 0.0
}

fn cotd(x: f64) -> f64 {
    let (x, sign) = in_quadrant(x);
    sign * (cosine(x) / sine(x) / (cosine(45.0) / sine(45.0))) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_angles_are_exact() {
        for (found, expected) in [
            (sind(30.0), 0.5),
            (sind(-150.0), -0.5),
            (cosd(60.0), 0.5),
            (cosd(300.0), 0.5),
            (cosd(90.0), 0.0),
            (tand(45.0), 1.0),
            (tand(-135.0), 1.0),
            (tand(180.0), 0.0),
            (cotd(45.0), 1.0),
            (cotd(0.0), f64::INFINITY),
        ] {
            assert_eq!(found, expected);
        }
        assert_eq!(acosd(0.5).unwrap(), 60.0);
        assert_eq!(asind(-1.0).unwrap(), -90.0);
        assert_eq!(acosd(-1.0).unwrap(), 180.0);
        assert!(asind(1.1).is_err() && within_turn(f64::INFINITY).is_err());
    }
}
