//! Operators whose operands the engine would not bring together, planned by their types.
//!
//! | operands | plan |
//! |---|---|
//! | a `uuid`, boolean, array or interval compared with a quoted literal | the literal is of this type |
//! | an interval `+` or `-` a quoted literal | the literal is an interval |
//! | date `-` date | the days between, an integer |
//! | moment `-` moment, both with a time zone or both without | an interval |
//! | interval `*` number, number `*` interval, interval `/` number | an interval |
//!
//! The engine asks for a common type when it plans a statement, before it is analysed. Moments of different kinds
//! depend on the time zone of the session and stay for [`super::arithmetic`].

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::call::call;
use super::date_and_days::DaysBetween;
use super::declared::{self, Call};
use super::json_casts::is_unknown;
use super::{span, uuids};

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
            let sides = match (is_unknown(&raw.left), is_unknown(&raw.right)) {
                (false, true) if has_own_literals(&types.0) => (raw.left, cast(raw.right, types.0)),
                (true, false) if has_own_literals(&types.1) => (cast(raw.left, types.1), raw.right),
                _ => return Ok(PlannerResult::Original(raw)),
            };
            return Ok(PlannerResult::Planned(binary_expr(sides.0, op, sides.1)));
        }
        Ok(match arithmetic(&raw, &types) {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(raw),
        })
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
        (BinaryOperator::Minus, DataType::Timestamp(_, a), DataType::Timestamp(_, b))
            if a.is_some() == b.is_some() =>
        {
            Some(span::between(raw.left.clone(), raw.right.clone()))
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
    let is_interval = |of: &DataType| matches!(of, DataType::Interval(_));
    let any_interval = is_interval(left) || is_interval(right);
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::Plus if any_interval => Operator::Plus,
        BinaryOperator::Minus if is_interval(left) => Operator::Minus,
        _ => return None,
    })
}
