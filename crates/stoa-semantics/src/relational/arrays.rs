//! Arrays in the order of `array_order`, which the engine compares otherwise where elements are NULL.

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit, not,
};
use datafusion::optimizer::AnalyzerRule;

use super::with_typed_expressions;
use crate::array_order::{extreme, is_array, order};

/// Orders arrays. It comes when expressions have their types.
#[derive(Debug)]
pub(super) struct ArraysInOrder;

impl AnalyzerRule for ArraysInOrder {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let node = with_typed_expressions(node, in_order)?;
            node.map_data(|node| node.recompute_schema())
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "stoa_arrays_in_order"
    }
}

fn in_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let has_order = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| is_array(&of));
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_inequality(op) && (has_order(&left) || has_order(&right)) =>
        {
            Transformed::yes(compared(*left, op, *right))
        }
        Expr::Between(Between { expr, negated, low, high }) if has_order(&expr) => {
            let low = compared((*expr).clone(), Operator::GtEq, *low);
            let within = low.and(compared(*expr, Operator::LtEq, *high));
            Transformed::yes(if negated { not(within) } else { within })
        }
        Expr::ScalarFunction(of)
            if matches!(of.func.name(), "greatest" | "least") && of.args.iter().any(has_order) =>
        {
            Transformed::yes(extreme(of.args, of.func.name() == "greatest"))
        }
        other => Transformed::no(other),
    })
}

fn is_inequality(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn compared(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(order(left, right)), op, Box::new(lit(0_i32))))
}
