//! Operators whose operands the engine would not bring together, planned by their types.
//!
//! | operands | plan |
//! |---|---|
//! | a `uuid`, boolean, array or interval compared with a quoted literal | the literal is of this type |
//! | an interval `+` or `-` a quoted literal | the literal is an interval |
//! | a quoted literal beside one of these, or a date or time, in ARRAY[…] | the literal is of this type |
//! | date `-` date | the days between, an integer |
//! | moment `-` moment | an interval |
//! | date `+` or `-` interval, date `+` time of the day | a timestamp |
//! | time of the day `+` or `-` interval | a time of the day |
//! | time of the day `-` time of the day | an interval |
//! | interval `*` number, number `*` interval, interval `/` number | an interval |
//!
//! The engine asks for a common type, and for the type of the result, when it plans a statement, before it is analysed.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::call::call;
use super::date_and_days::DaysBetween;
use super::date_and_time::{DateAndTime, TimeAndInterval, TimesBetween};
use super::declared::{self, Call};
use super::json_casts::is_unknown;
use super::{span, time_zone, uuids};

/// Plans them.
#[derive(Debug)]
pub(super) struct TypedOperands;

impl ExprPlanner for TypedOperands {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let of = |side: &Expr| side.get_type(schema).unwrap_or(DataType::Null);
        let types = (of(&raw.left), of(&raw.right));
        if let Some(op) = reads_literals(&raw.op, &types.0, &types.1) {
            match (is_unknown(&raw.left), is_unknown(&raw.right)) {
                (false, true) if has_own_literals(&types.0) => {
                    let right = cast(raw.right, types.0);
                    return Ok(PlannerResult::Planned(binary_expr(raw.left, op, right)));
                }
                (true, false) if has_own_literals(&types.1) => {
                    let left = cast(raw.left, types.1);
                    return Ok(PlannerResult::Planned(binary_expr(left, op, raw.right)));
                }
                _ => {}
            }
        }
        Ok(match arithmetic(&raw, &types) {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(raw),
        })
    }
}

/// Gives quoted literals in `ARRAY[…]` their types, before the engine plans it.
#[derive(Debug)]
pub(super) struct TypedItems;

impl ExprPlanner for TypedItems {
    fn plan_array_literal(
        &self,
        mut items: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let known = items.iter().filter(|item| !is_unknown(item));
        let of = known.map(|item| item.get_type(schema)).next().transpose()?;
        if let Some(of) = of.filter(|of| has_own_literals(of) || of.is_temporal()) {
            for item in items.iter_mut().filter(|item| is_unknown(item)) {
                *item = cast(std::mem::take(item), of.clone());
            }
        }
        Ok(PlannerResult::Original(items))
    }
}

fn arithmetic(raw: &RawBinaryExpr, (left, right): &(DataType, DataType)) -> Option<Expr> {
    let sides = || vec![raw.left.clone(), raw.right.clone()];
    let swapped = || vec![raw.right.clone(), raw.left.clone()];
    let named = |name: &str, sides: Vec<Expr>| Some(call(Call(declared::named(name)?), sides));
    match (&raw.op, left, right) {
        (BinaryOperator::Minus, DataType::Date32, DataType::Date32) => {
            Some(call(DaysBetween, sides()))
        }
        (BinaryOperator::Minus, a, b) if is_moment(a) && is_moment(b) => {
            // Casts between moments of different kinds are the session's: they are analysed.
            let is_zoned = |of: &DataType| matches!(of, DataType::Timestamp(_, Some(_)));
            let any_zoned = is_zoned(a) || is_zoned(b);
            let of = if any_zoned { time_zone::instant() } else { time_zone::LOCAL };
            let moment = |side: &Expr, own: &DataType| match own {
                DataType::Timestamp(..) if is_zoned(own) == any_zoned => side.clone(),
                _ => cast(side.clone(), of.clone()),
            };
            Some(span::between(moment(&raw.left, a), moment(&raw.right, b)))
        }
        (
            op @ (BinaryOperator::Plus | BinaryOperator::Minus),
            DataType::Date32,
            DataType::Interval(_),
        ) => {
            let op = if *op == BinaryOperator::Plus { Operator::Plus } else { Operator::Minus };
            Some(binary_expr(cast(raw.left.clone(), time_zone::LOCAL), op, raw.right.clone()))
        }
        (BinaryOperator::Plus, DataType::Interval(_), DataType::Date32) => {
            let sum = cast(raw.right.clone(), time_zone::LOCAL);
            Some(binary_expr(sum, Operator::Plus, raw.left.clone()))
        }
        (BinaryOperator::Plus, DataType::Time64(_), DataType::Interval(_)) => {
            Some(call(TimeAndInterval { subtracts: false }, sides()))
        }
        (BinaryOperator::Minus, DataType::Time64(_), DataType::Interval(_)) => {
            Some(call(TimeAndInterval { subtracts: true }, sides()))
        }
        (BinaryOperator::Plus, DataType::Interval(_), DataType::Time64(_)) => {
            Some(call(TimeAndInterval { subtracts: false }, swapped()))
        }
        (BinaryOperator::Minus, DataType::Time64(_), DataType::Time64(_)) => {
            Some(call(TimesBetween, sides()))
        }
        (BinaryOperator::Plus, DataType::Date32, DataType::Time64(_)) => {
            Some(call(DateAndTime, sides()))
        }
        (BinaryOperator::Plus, DataType::Time64(_), DataType::Date32) => {
            Some(call(DateAndTime, swapped()))
        }
        (BinaryOperator::Multiply, DataType::Interval(_), by) if by.is_numeric() => {
            named("interval_times", sides())
        }
        (BinaryOperator::Multiply, by, DataType::Interval(_)) if by.is_numeric() => {
            named("interval_times", swapped())
        }
        (BinaryOperator::Divide, DataType::Interval(_), by) if by.is_numeric() => {
            named("interval_over", sides())
        }
        _ => None,
    }
}

fn is_moment(of: &DataType) -> bool {
    matches!(of, DataType::Timestamp(..) | DataType::Date32)
}

/// Whether the engine does not read quoted literals beside values of a type.
fn has_own_literals(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Boolean
            | DataType::FixedSizeBinary(uuids::BYTES)
            | DataType::List(_)
            | DataType::Interval(_)
    )
}

/// The engine's operator that has operands of one type.
fn reads_literals(op: &BinaryOperator, left: &DataType, right: &DataType) -> Option<Operator> {
    let any_interval = span::is_interval(left) || span::is_interval(right);
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::Plus if any_interval => Operator::Plus,
        BinaryOperator::Minus if span::is_interval(left) => Operator::Minus,
        _ => return None,
    })
}
