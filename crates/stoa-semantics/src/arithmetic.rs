//! `+`, `-`, `*`, `/`, `%`: which operation PostgreSQL takes for operands of these types.
//!
//! | operands | result |
//! |---|---|
//! | integers | the wider type; 22003 where it does not fit |
//! | a float and another number | double precision; 22003, 22012 instead of infinity |
//! | decimals, or one and an integer | decimal; quotients have PostgreSQL's digits (`numeric`) |
//! | date and a number of days | date; 22008 where there is none |
//! | two dates | integer: the days between |
//! | two moments, two times of the day | interval: days and a time |
//! | time of the day and interval | time of the day |
//! | date and interval, date and time of the day | timestamp |
//! | all others | the engine's |
//!
//! Whole literals are integers where they fit (`whole_literals`).

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, Operator};

use super::call::call;
use super::casts;
use super::date_and_days::{DateAndDays, DaysBetween};
use super::date_and_time::{DateAndTime, TimeAndInterval, TimesBetween};
use super::numeric::{self, NUMERIC, Quotient, WideProduct};
use super::operand_text;
use super::operators::{Checked, ExclusiveOr, Joined, name};
use super::regexes;
use super::span;
use super::time_zone;
use crate::errors::{missing_operator, to_datafusion};
use crate::scope::Scope;

use Operator::{Divide, Minus, Modulo, Multiply, Plus};

pub(super) fn rewrite(binary: BinaryExpr, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, op, right } = binary;
    if op == Operator::StringConcat {
        let left = operand_text::text_of_operand(*left, scope)?;
        let right = operand_text::text_of_operand(*right, scope)?;
        let are_texts =
            left.get_type(&scope.schema)?.is_string() && right.get_type(&scope.schema)?.is_string();
        return Ok(Transformed::yes(match are_texts {
            true => call(Joined, vec![left, right]),
            false => engine(left, op, right),
        }));
    }
    if let Some(ours) = regexes::operator(&left, op, &right) {
        return Ok(Transformed::yes(ours));
    }
    if op == Operator::BitwiseXor {
        return exclusive_or(*left, *right, scope);
    }
    if !is_arithmetic(op) {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    let types = (left.get_type(&scope.schema)?, right.get_type(&scope.schema)?);
    let (left, right) = (*left, *right);
    let rewritten = match (&types.0, &types.1) {
        (a, b) if a.is_integer() && b.is_integer() => integers(left, a, op, right, b),
        (a, b) if is_number(a) && is_number(b) && (a.is_floating() || b.is_floating()) => {
            floats(left, a, op, right, b)
        }
        (a, b) if is_number(a) && is_number(b) => return decimals(left, a, op, right, b),
        // The engine would give it a type of 76 digits behind the point, to which nothing can be added.
        (a, DataType::Null) | (DataType::Null, a) if a.is_decimal() => {
            Expr::Literal(ScalarValue::try_new_null(&NUMERIC)?, None)
        }
        (DataType::Date32, DataType::Interval(_)) if matches!(op, Plus | Minus) => {
            engine(to_type(left, &types.0, &TIMESTAMP), op, right)
        }
        (DataType::Interval(_), DataType::Date32) if op == Plus => {
            engine(left, op, to_type(right, &types.1, &TIMESTAMP))
        }
        (DataType::Date32, b) if b.is_integer() && matches!(op, Plus | Minus) => {
            call(DateAndDays(op), vec![left, right])
        }
        (a, DataType::Date32) if a.is_integer() && op == Plus => {
            call(DateAndDays(op), vec![right, left])
        }
        (DataType::Date32, DataType::Date32) if op == Minus => call(DaysBetween, vec![left, right]),
        (a, b @ DataType::Date32) | (a @ DataType::Date32, b) if is_number(a) || is_number(b) => {
            let (a, b) = (name(a), name(b));
            let (a, b) = (a.to_owned(), b.to_owned());
            return Err(to_datafusion(missing_operator((a, op.to_string(), b))));
        }
        (DataType::Time64(_), DataType::Interval(_)) if matches!(op, Plus | Minus) => {
            call(TimeAndInterval { subtracts: op == Minus }, vec![left, right])
        }
        (DataType::Interval(_), DataType::Time64(_)) if op == Plus => {
            call(TimeAndInterval { subtracts: false }, vec![right, left])
        }
        (DataType::Time64(_), DataType::Time64(_)) if op == Minus => {
            call(TimesBetween, vec![left, right])
        }
        (DataType::Date32, DataType::Time32(_) | DataType::Time64(_)) if op == Plus => {
            call(DateAndTime, vec![left, right])
        }
        (DataType::Time32(_) | DataType::Time64(_), DataType::Date32) if op == Plus => {
            call(DateAndTime, vec![right, left])
        }
        (a, b) if op == Minus && are_moments(a, b) => {
            let zoned = [a, b].into_iter().find(|of| matches!(of, DataType::Timestamp(_, Some(_))));
            let of = zoned.cloned().unwrap_or(TIMESTAMP);
            let moment = |expr, from: &DataType| match from {
                DataType::Timestamp(_, zone) if zone.is_some() == zoned.is_some() => Ok(expr),
                from => casts::to_type(expr, from, &of, scope.options),
            };
            span::between(moment(left, a)?, moment(right, b)?)
        }
        (DataType::Timestamp(_, Some(_)), DataType::Interval(_))
            if matches!(op, Plus | Minus) && !time_zone::is_utc(scope.options) =>
        {
            let sum = engine(in_session_zone(left, scope), op, right);
            Expr::Cast(Cast::new(Box::new(sum), time_zone::instant()))
        }
        (DataType::Interval(_), DataType::Timestamp(_, Some(_)))
            if op == Plus && !time_zone::is_utc(scope.options) =>
        {
            let sum = engine(in_session_zone(right, scope), op, left);
            Expr::Cast(Cast::new(Box::new(sum), time_zone::instant()))
        }
        _ => return Ok(Transformed::no(engine(left, op, right))),
    };
    Ok(Transformed::yes(rewritten))
}

/// Whether there are two moments, one of which may be a date.
fn are_moments(a: &DataType, b: &DataType) -> bool {
    let is_time = |of: &DataType| matches!(of, DataType::Timestamp(..));
    let is_moment = |of: &DataType| is_time(of) || *of == DataType::Date32;
    is_moment(a) && is_moment(b) && (is_time(a) || is_time(b))
}

pub(super) fn is_arithmetic(op: Operator) -> bool {
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

/// `a # b` of integers. Ours: the engine takes `a # a` for 0 also where it is NULL.
fn exclusive_or(left: Expr, right: Expr, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let (a, b) = (left.get_type(&scope.schema)?, right.get_type(&scope.schema)?);
    if !a.is_integer() || !b.is_integer() {
        return Ok(Transformed::no(engine(left, Operator::BitwiseXor, right)));
    }
    let of = match BinaryTypeCoercer::new(&a, &Operator::BitwiseXor, &b).get_result_type()? {
        of @ (DataType::Int16 | DataType::Int32) => of,
        _ => DataType::Int64,
    };
    Ok(Transformed::yes(call(ExclusiveOr, vec![to_type(left, &a, &of), to_type(right, &b, &of)])))
}

/// An instant whose days are those of the session's zone.
fn in_session_zone(expr: Expr, scope: &Scope<'_>) -> Expr {
    let zone = time_zone::name_of_session(scope.options).into();
    let of = DataType::Timestamp(TimeUnit::Microsecond, Some(zone));
    Expr::Cast(Cast::new(Box::new(expr), of))
}

/// `-x`: fails for the least integer, which has no opposite.
pub(super) fn negate(inner: Expr, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let of = inner.get_type(&scope.schema)?;
    let zero = match of {
        // One whose sign counts is written with it.
        _ if matches!(&inner, Expr::Literal(value, _) if !is_nan(value)) => None,
        // Of 0, that is -0; and NaN stays what it is.
        DataType::Float32 => Some(ScalarValue::Float32(Some(-0.0))),
        DataType::Float64 => Some(ScalarValue::Float64(Some(-0.0))),
        _ if of.is_signed_integer() => Some(ScalarValue::new_zero(&of)?),
        _ => None,
    };
    let Some(zero) = zero else {
        return Ok(Transformed::no(Expr::Negative(Box::new(inner))));
    };
    let zero = Expr::Literal(zero, None);
    Ok(Transformed::yes(call(Checked(Minus), vec![zero, inner])))
}

fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        _ => false,
    }
}

const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

pub(super) fn is_number(of: &DataType) -> bool {
    of.is_integer() || of.is_floating() || of.is_decimal()
}

fn engine(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

fn to_type(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to {
        return expr;
    }
    if let Expr::Literal(value, _) = &expr
        && let Ok(value) = value.cast_to(to)
    {
        return Expr::Literal(value, None);
    }
    Expr::Cast(Cast::new(Box::new(expr), to.clone()))
}

fn integers(left: Expr, a: &DataType, op: Operator, right: Expr, b: &DataType) -> Expr {
    let (own, other) = (width(a), width(b));
    let of = match own.max(other) {
        2 => DataType::Int16,
        4 => DataType::Int32,
        _ => DataType::Int64,
    };
    call(Checked(op), vec![to_type(left, a, &of), to_type(right, b, &of)])
}

/// Bytes of the integer that PostgreSQL has for an operand.
pub(super) fn width(of: &DataType) -> u8 {
    match of {
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => 2,
        DataType::Int32 | DataType::UInt16 => 4,
        _ => 8,
    }
}

fn floats(left: Expr, a: &DataType, op: Operator, right: Expr, b: &DataType) -> Expr {
    let of = match (a, b) {
        (DataType::Float32, DataType::Float32) => DataType::Float32,
        _ => DataType::Float64,
    };
    call(Checked(op), vec![to_type(left, a, &of), to_type(right, b, &of)])
}

fn decimals(
    left: Expr,
    a: &DataType,
    op: Operator,
    right: Expr,
    b: &DataType,
) -> Result<Transformed<Expr>> {
    let (left, a) = as_decimal(left, a);
    let (right, b) = as_decimal(right, b);
    let rewritten = match op {
        Divide => call(Quotient, vec![left, right]),
        Multiply if numeric::is_wide_product(&a, &b) => call(WideProduct, vec![left, right]),
        // Operands of different width are brought to the wider type.
        _ if a != b && (a == NUMERIC || b == NUMERIC) => {
            engine(to_type(left, &a, &NUMERIC), op, to_type(right, &b, &NUMERIC))
        }
        _ => return Ok(Transformed::yes(engine(left, op, right))),
    };
    Ok(Transformed::yes(rewritten))
}

/// An integer as a decimal, a literal with as many digits as it has.
fn as_decimal(expr: Expr, of: &DataType) -> (Expr, DataType) {
    let decimal = decimal_of(Some(&expr), of);
    (to_type(expr, of, &decimal), decimal)
}

/// The decimal that an operand is beside a decimal; without an expression it is no literal.
pub(super) fn decimal_of(expr: Option<&Expr>, of: &DataType) -> DataType {
    if of.is_decimal() {
        return of.clone();
    }
    let digits_of = |value: u64| value.checked_ilog10().unwrap_or(0) as u8 + 1;
    let digits = match (expr, of) {
        (Some(Expr::Literal(ScalarValue::Int64(Some(value)), _)), _) => {
            digits_of(value.unsigned_abs())
        }
        (Some(Expr::Literal(ScalarValue::Int32(Some(value)), _)), _) => {
            digits_of(value.unsigned_abs().into())
        }
        (_, DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16) => 5,
        (_, DataType::Int32 | DataType::UInt32) => 10,
        (_, DataType::UInt64) => 20,
        _ => 19,
    };
    DataType::Decimal128(digits, 0)
}
