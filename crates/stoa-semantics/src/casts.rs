//! Casts: which of them are ours, and how.
//!
//! | from | to | |
//! |---|---|---|
//! | decimal, integer | one of fewer digits | rounded half away from zero; 22003 outside of its range |
//! | float | integer | rounded half to even; 22003 outside of its range |
//! | double | real | 22003 outside of its range, or where it would become 0 |
//! | float | decimal | by its 15 (6) significant digits |
//! | text | number, boolean, date, time, array | PostgreSQL's input ([`super::cast_text`]) |
//! | float, time, interval, bytes, array | text | PostgreSQL's output ([`super::text_of`]) |
//! | timestamp with zone ↔ without | | in the session's zone |
//! | anything | `varchar(n)`, `timestamp(n)`, `interval(n)` | cut, rounded |

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, ExprSchemable};

use super::call::{Function, Operation, call, column, failure, unsupported};
use super::cast_text::FromText;
use super::json_casts;
use super::json_kind::JsonKind;
use super::numeric::NUMERIC;
use super::operators::name;
use super::refused;
use super::span;
use super::text_of::{self, TextOf};
use super::text_style::TextStyle;
use super::time_zone;
use super::types::{length_of, precision_of};
use crate::scope::Scope;

pub(super) fn rewrite(own: Cast, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let from = own.expr.get_type(&scope.schema)?;
    let to = own.field.data_type().clone();
    if let DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, Some(zone)) = &to {
        return at_time_zone(*own.expr, &from, zone, scope).map(Transformed::yes);
    }
    if let Some(kind) = JsonKind::of_field(&own.field) {
        return json_casts::cast(own, &from, kind, scope);
    }
    if let Some(kind) = JsonKind::of(&own.expr, &scope.schema) {
        let mut cast = json_casts::cast_to_other(own, kind)?;
        let to = cast.field.data_type();
        if to.is_string() {
            return Ok(Transformed::yes(Expr::Cast(cast)));
        }
        if to.is_numeric() {
            *cast.expr = to_type(*cast.expr, &DataType::Utf8, &NUMERIC, scope.options)?;
        }
        return rewrite(cast, scope);
    }
    let (length, precision) = (length_of(&own.field), precision_of(&own.field));
    let has_limit = length.is_some() || precision.is_some();
    if matches!(*own.expr, Expr::Placeholder(_)) && !has_limit {
        return Ok(Transformed::no(Expr::Cast(own)));
    }
    refused::cast(&own.expr, &from, &to)?;
    let cast = match converted(&own.expr, &from, &to, scope.options)? {
        Some(ours) => ours,
        None if !has_limit => return Ok(Transformed::no(Expr::Cast(own))),
        None if from == to => *own.expr,
        None => Expr::Cast(Cast::new(own.expr, to)),
    };
    Ok(Transformed::yes(match (length, precision) {
        (Some(length), _) => call(Cut(length), vec![cast]),
        (_, Some(precision)) if precision < 6 => call(RoundSecond(precision), vec![cast]),
        _ => cast,
    }))
}

/// `expr` as `to`, as PostgreSQL casts; the engine's cast where that is the same.
pub(super) fn to_type(
    expr: Expr,
    from: &DataType,
    to: &DataType,
    options: &ConfigOptions,
) -> Result<Expr> {
    if from == to {
        return Ok(expr);
    }
    Ok(match converted(&expr, from, to, options)? {
        Some(ours) => ours,
        None => Expr::Cast(Cast::new(Box::new(expr), to.clone())),
    })
}

/// A cast that is ours; `None` where it is the engine's.
fn converted(
    expr: &Expr,
    from: &DataType,
    to: &DataType,
    options: &ConfigOptions,
) -> Result<Option<Expr>> {
    let own = || expr.clone();
    Ok(Some(match (from, to) {
        (from, to) if from == to => return Ok(None),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, to) if FromText::reads(to) => {
            return from_text(expr, to, options).map(Some);
        }
        (from, to) if may_change(from, to) => call(Narrow(to.clone()), vec![own()]),
        (from, to) if from.is_floating() && (to.is_integer() || to.is_decimal()) => {
            call(FloatTo(to.clone()), vec![own()])
        }
        (DataType::Float64, DataType::Float32) => call(ToReal, vec![own()]),
        (DataType::Duration(_), DataType::Interval(_)) => span::of_duration(own()),
        (from, to) if *to == NUMERIC => match from {
            // Without a scale of its own, a decimal keeps the one that it has.
            from if from.is_decimal() => own(),
            DataType::Int8 | DataType::Int16 | DataType::Int32 => {
                engine(own(), &DataType::Decimal128(10, 0))
            }
            from if from.is_integer() => engine(own(), &DataType::Decimal128(20, 0)),
            DataType::Null => return Ok(None),
            _ => return Ok(None),
        },
        (DataType::Timestamp(_, Some(_)), to) if !time_zone::is_utc(options) => {
            let zone = time_zone::name_of_session(options);
            match to {
                DataType::Timestamp(_, Some(_)) => return Ok(None),
                DataType::Timestamp(_, None) | DataType::Date32 | DataType::Time64(_) => {
                    engine(time_zone::local(own(), zone), to)
                }
                DataType::Utf8 => {
                    let shown = DataType::Timestamp(
                        arrow::datatypes::TimeUnit::Microsecond,
                        Some(zone.into()),
                    );
                    call(TextOf::default(), vec![engine(own(), &shown)])
                }
                _ => return Ok(None),
            }
        }
        (DataType::Timestamp(_, None) | DataType::Date32, DataType::Timestamp(_, Some(_)))
            if !time_zone::is_utc(options) =>
        {
            time_zone::instant_of(own(), time_zone::name_of_session(options))
        }
        (from, DataType::Utf8) if text_of::is_ours(from) => {
            call(TextOf(TextStyle::of(options).intervals), vec![own()])
        }
        _ => return Ok(None),
    }))
}

/// Whether a cast between exact numbers may round, or fail. The engine takes its own casts for ones that do neither,
/// and compares what is behind them: of `p::int = 1` for 1.40 it would say no.
fn may_change(from: &DataType, to: &DataType) -> bool {
    let (Some((digits, scale)), Some((to_digits, to_scale))) = (digits_of(from), digits_of(to))
    else {
        return false;
    };
    let is_wider = match (from.is_integer(), to.is_integer()) {
        (true, true) => {
            to.primitive_width() > from.primitive_width()
                || (to.is_signed_integer() == from.is_signed_integer()
                    && to.primitive_width() == from.primitive_width())
        }
        (false, true) => false,
        _ => to_digits >= digits && to_scale >= scale,
    };
    *to != NUMERIC && !is_wider
}

/// How many digits an exact number may have before and after the point.
fn digits_of(of: &DataType) -> Option<(i32, i32)> {
    Some(match of {
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            (i32::from(*precision) - i32::from(*scale), i32::from(*scale))
        }
        _ => return None,
    })
}

fn engine(expr: Expr, to: &DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to.clone()))
}

/// A text as another type: a literal's value at once.
fn from_text(expr: &Expr, to: &DataType, options: &ConfigOptions) -> Result<Expr> {
    let zone = time_zone::name_of_session(options);
    let Expr::Literal(value, _) = expr else {
        return Ok(call(FromText::new(to, zone), vec![expr.clone()]));
    };
    // A decimal literal has the digits that it is written with.
    let to = match (value.try_as_str().flatten(), *to == NUMERIC) {
        (Some(text), true) => super::cast_text::decimal_type(text).unwrap_or(NUMERIC),
        _ => to.clone(),
    };
    let operands = [ColumnarValue::Scalar(value.clone())];
    let value = FromText::new(&to, zone).compute(&operands, 1)?;
    Ok(Expr::Literal(ScalarValue::try_from_array(&value, 0)?, None))
}

/// `x AT TIME ZONE 'z'`, which the engine plans as a cast to nanoseconds in that zone.
fn at_time_zone(expr: Expr, from: &DataType, zone: &str, scope: &Scope<'_>) -> Result<Expr> {
    // As in PostgreSQL, an abbreviation comes before a zone of that name: CET is no summer time.
    let zone = &*match stoa_sql::dates::abbreviation(zone) {
        Some(east) => time_zone::engine_offset(east),
        None => time_zone::for_engine(zone),
    };
    time_zone::Zone::named(zone)?;
    Ok(match from {
        DataType::Timestamp(_, Some(_)) => time_zone::local(expr, zone),
        DataType::Timestamp(_, None) => time_zone::instant_of(expr, zone),
        // A date, or a text of unknown type, is an instant first.
        _ => {
            let instant = to_type(expr, from, &time_zone::instant(), scope.options)?;
            time_zone::local(instant, zone)
        }
    })
}

/// An exact number as one of fewer digits: rounded half away from zero, or 22003.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Narrow(DataType);

impl Operation for Narrow {
    fn name(&self) -> &str {
        "narrow"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.0.clone())
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("{}({} AS {})", self.name(), operands.join(","), self.0)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let mut column = column(operands, rows)?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let has_fraction = digits_of(column.data_type()).is_some_and(|(_, scale)| scale > 0);
        if self.0.is_integer() && has_fraction {
            // A cast to an integer would cut.
            let whole = match column.data_type() {
                DataType::Decimal256(..) => DataType::Decimal256(76, 0),
                _ => DataType::Decimal128(38, 0),
            };
            column = cast_with_options(&column, &whole, &strict)?;
        }
        cast_with_options(&column, &self.0, &strict).map_err(|_| match self.0.is_integer() {
            true => failure("22003", format!("{} out of range", name(&self.0))),
            false => failure("22003", "numeric field overflow".to_owned()),
        })
    }
}

/// A float as an integer or a decimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FloatTo(DataType);

impl Operation for FloatTo {
    fn name(&self) -> &str {
        "float_to"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.0.clone())
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("{}({} AS {})", self.name(), operands.join(","), self.0)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let digits = if *column.data_type() == DataType::Float64 { 15 } else { 6 };
        let floats = cast(column, &DataType::Float64)?;
        let floats = floats.as_primitive::<Float64Type>();
        if self.0.is_decimal() {
            if floats.iter().flatten().any(|of| !of.is_finite()) {
                return Err(unsupported(
                    "infinity and NaN are not supported as numeric",
                    "leave them out, or keep double precision",
                ));
            }
            let texts: StringArray =
                floats.iter().map(|of| of.map(|of| format!("{of:.*e}", digits - 1))).collect();
            let operands = [ColumnarValue::Array(Arc::new(texts))];
            return FromText::new(&self.0, "UTC").compute(&operands, rows);
        }
        let misfit = || failure("22003", format!("{} out of range", name(&self.0)));
        let whole = floats.iter().map(|of| match of.map(f64::round_ties_even) {
            // The bounds of 64 bits are powers of two, which floats hold exactly.
            Some(of) if !(-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&of) => {
                Err(misfit())
            }
            Some(of) => Ok(Some(of as i64)),
            None => Ok(None),
        });
        let whole: PrimitiveArray<Int64Type> = whole.collect::<Result<_>>()?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&whole, &self.0, &strict).map_err(|_| misfit())
    }
}

/// A double as a real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ToReal;

impl Operation for ToReal {
    fn name(&self) -> &str {
        "to_real"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float32)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let doubles = cast(column, &DataType::Float64)?;
        let real = |double: f64| {
            let real = double as f32;
            let misfit = match double {
                double if real.is_infinite() && double.is_finite() => "overflow",
                double if real == 0.0 && double != 0.0 => "underflow",
                _ => return Ok(real),
            };
            Err(failure("22003", format!("value out of range: {misfit}")))
        };
        let reals = doubles.as_primitive::<Float64Type>().iter().map(|of| of.map(real).transpose());
        let reals: PrimitiveArray<Float32Type> = reals.collect::<Result<_>>()?;
        Ok(Arc::new(reals))
    }
}

/// `varchar(n)`: no more than so many characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cut(usize);

/// Characters that a cast to `varchar(n)` leaves; `None` for other expressions.
pub fn length_cut_to(expr: &Expr) -> Option<usize> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let cut: &Function<Cut> = call.func.inner().downcast_ref()?;
    Some(cut.operation().0)
}

impl Operation for Cut {
    fn name(&self) -> &str {
        "cut"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("cut({}, {})", operands.join(","), self.0)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let texts = cast(column, &DataType::Utf8)?;
        let cut = texts.as_string::<i32>().iter().map(|text| {
            text.map(|text| match text.char_indices().nth(self.0) {
                Some((end, _)) => &text[..end],
                None => text,
            })
        });
        Ok(Arc::new(cut.collect::<StringArray>()))
    }
}

/// `timestamp(n)`, `time(n)`: rounded to so many digits of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RoundSecond(u32);

impl Operation for RoundSecond {
    fn name(&self) -> &str {
        "round_second"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("round_second({}, {})", operands.join(","), self.0)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let of = column.data_type().clone();
        let unit = 10_i64.pow(6_u32.saturating_sub(self.0));
        if let Some(intervals) = column.as_primitive_opt::<IntervalMonthDayNanoType>() {
            let rounded = intervals.unary::<_, IntervalMonthDayNanoType>(|of| {
                let nanos = rounded_to(of.nanoseconds, unit * 1000);
                IntervalMonthDayNano::new(of.months, of.days, nanos)
            });
            return Ok(Arc::new(rounded));
        }
        let micros = cast(column, &DataType::Int64)?;
        let rounded = micros.as_primitive::<Int64Type>().unary::<_, Int64Type>(|micros| {
            let rest = micros.rem_euclid(unit);
            let up = rest * 2 >= unit && unit > 1;
            (micros - rest).saturating_add(if up { unit } else { 0 })
        });
        Ok(cast(&rounded, &of)?)
    }
}

/// A number as the nearest multiple of `unit`, half away from zero.
fn rounded_to(number: i64, unit: i64) -> i64 {
    let rest = number % unit;
    let up = if rest.abs() * 2 >= unit { unit * rest.signum() } else { 0 };
    (number - rest).saturating_add(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_between_exact_numbers_are_the_engines_only_where_nothing_can_change() {
        let decimal = |precision, scale| DataType::Decimal128(precision, scale);
        for (from, to, changes) in [
            (DataType::Int32, DataType::Int64, false),
            (DataType::Int64, DataType::Int32, true),
            (DataType::UInt64, DataType::Int64, true),
            (DataType::Int32, decimal(10, 0), false),
            (DataType::Int64, decimal(18, 0), true),
            (decimal(10, 2), decimal(12, 4), false),
            (decimal(10, 2), decimal(12, 1), true),
            (decimal(10, 2), decimal(10, 3), true),
            (decimal(5, 0), DataType::Int64, true),
            (decimal(10, 2), NUMERIC, false),
            (DataType::Float64, DataType::Int32, false),
            (DataType::Utf8, DataType::Int32, false),
        ] {
            assert_eq!(may_change(&from, &to), changes, "{from} as {to}");
        }
    }

    #[test]
    fn decimals_are_rounded_half_away_from_zero() {
        let numbers = ScalarValue::iter_to_array(
            [125_i128, 150, -250, 249].map(|number| ScalarValue::Decimal128(Some(number), 10, 2)),
        )
        .unwrap();
        let operands = [ColumnarValue::Array(numbers)];
        let whole = Narrow(DataType::Int32).compute(&operands, 4).unwrap();
        let whole = whole.as_primitive::<arrow::datatypes::Int32Type>();
        assert_eq!(whole.values().as_ref(), [1, 2, -3, 2]);
        assert!(Narrow(DataType::Decimal128(2, 2)).compute(&operands, 4).is_err());
    }
}
