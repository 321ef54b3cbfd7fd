//! Comparisons of days with moments: `day < DATE '2026-01-01' + INTERVAL '1 month'` is one of days.
//!
//! A date and an interval make a timestamp, so the column would be cast for each row, and such a condition would leave out
//! neither files nor row groups. PostgreSQL compares a date with a timestamp without a cast, too, so that none is out of
//! range.
//!
//! ```text
//! day < 2026-02-01 00:00  ─► day < 2026-02-01      day < 2026-02-01 12:00  ─► day <= 2026-02-01
//! ```

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Takes casts off days that are compared with constants. It comes after the rule that computes these.
#[derive(Debug)]
pub(super) struct WholeDays;

impl OptimizerRule for WholeDays {
    fn name(&self) -> &str {
        "stoa_whole_days"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let compared = expr.transform_up(|part| {
                Ok(match of_days(&part, &schema) {
                    Some(of_days) => Transformed::yes(of_days),
                    None => Transformed::no(part),
                })
            })?;
            Ok(compared.update_data(|expr| name.restore(expr)))
        })
    }
}

/// The same comparison without the cast, if a day is compared with a constant moment.
fn of_days(comparison: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = comparison else { return None };
    if let Some((day, moment)) = day_of(left, schema).zip(moment_of(right)) {
        return compared(day, *op, moment);
    }
    let (day, moment) = day_of(right, schema).zip(moment_of(left))?;
    compared(day, op.swap()?, moment)
}

/// The days that are cast to moments.
fn day_of<'a>(expr: &'a Expr, schema: &DFSchema) -> Option<&'a Expr> {
    let Expr::Cast(cast) = expr else { return None };
    let is_moment = matches!(cast.field.data_type(), DataType::Timestamp(_, None));
    let is_day = || cast.expr.get_type(schema).is_ok_and(|of| of == DataType::Date32);
    (is_moment && is_day()).then_some(cast.expr.as_ref())
}

/// The day of a constant moment, and whether it is the day's first.
fn moment_of(expr: &Expr) -> Option<(i32, bool)> {
    let Expr::Literal(value, _) = expr else { return None };
    let (moment, unit) = match value {
        ScalarValue::TimestampSecond(Some(moment), None) => (*moment, TimeUnit::Second),
        ScalarValue::TimestampMillisecond(Some(moment), None) => (*moment, TimeUnit::Millisecond),
        ScalarValue::TimestampMicrosecond(Some(moment), None) => (*moment, TimeUnit::Microsecond),
        ScalarValue::TimestampNanosecond(Some(moment), None) => (*moment, TimeUnit::Nanosecond),
        _ => return None,
    };
    // Infinite ones are no moments of a day.
    if moment == i64::MAX || moment == i64::MIN {
        return None;
    }
    let in_a_day = 86_400
        * match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
    let day = i32::try_from(moment.div_euclid(in_a_day)).ok()?;
    Some((day, moment.rem_euclid(in_a_day) == 0))
}

fn compared(day: &Expr, op: Operator, (other, is_first): (i32, bool)) -> Option<Expr> {
    let op = match (op, is_first) {
        (Operator::Lt, false) => Operator::LtEq,
        (Operator::GtEq, false) => Operator::Gt,
        (Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq, _)
        | (Operator::Eq | Operator::NotEq, true) => op,
        _ => return None,
    };
    let other = Box::new(lit(ScalarValue::Date32(Some(other))));
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(day.clone()), op, right: other }))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::{binary_expr, cast, col};

    use super::*;

    /// Days beside the moment, at it and after it are chosen as by the moments themselves.
    #[test]
    fn days_are_chosen_as_by_their_moments() {
        let schema = Schema::new(vec![Field::new("day", DataType::Date32, true)]);
        let schema = DFSchema::try_from(schema).unwrap();
        let ops = [
            Operator::Lt,
            Operator::LtEq,
            Operator::Gt,
            Operator::GtEq,
            Operator::Eq,
            Operator::NotEq,
        ];
        let holds = |op: Operator, a: i64, b: i64| match op {
            Operator::Lt => a < b,
            Operator::LtEq => a <= b,
            Operator::Gt => a > b,
            Operator::GtEq => a >= b,
            Operator::Eq => a == b,
            _ => a != b,
        };
        const DAY: i64 = 86_400_000_000;
        let mut rewritten = 0;
        for moment in [0, 1, -1, DAY, DAY - 1, 5 * DAY, -5 * DAY, -5 * DAY + 7, 20_000 * DAY + 3] {
            for (op, is_left) in ops.iter().flat_map(|op| [(*op, true), (*op, false)]) {
                let day = cast(col("day"), DataType::Timestamp(TimeUnit::Microsecond, None));
                let other = lit(ScalarValue::TimestampMicrosecond(Some(moment), None));
                let comparison = match is_left {
                    true => binary_expr(day, op, other),
                    false => binary_expr(other, op, day),
                };
                let Some(of_days) = of_days(&comparison, &schema) else {
                    assert!(matches!(op, Operator::Eq | Operator::NotEq) && moment % DAY != 0);
                    continue;
                };
                rewritten += 1;
                let Expr::BinaryExpr(BinaryExpr { op: by_days, right, .. }) = of_days else {
                    panic!("no comparison")
                };
                let Expr::Literal(ScalarValue::Date32(Some(other)), _) = *right else {
                    panic!("no day")
                };
                for day in [-6, -5, -4, -1, 0, 1, 4, 5, 6, 19_999, 20_000, 20_001] {
                    let wanted = match is_left {
                        true => holds(op, day * DAY, moment),
                        false => holds(op, moment, day * DAY),
                    };
                    let found = holds(by_days, day, other.into());
                    assert_eq!(found, wanted, "{day} {op} {moment}, {is_left}");
                }
            }
        }
        assert!(rewritten > 80);
        let infinite = lit(ScalarValue::TimestampMicrosecond(Some(i64::MAX), None));
        assert!(moment_of(&infinite).is_none());
    }
}
