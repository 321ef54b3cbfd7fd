//! A boolean CASE as a guard: `CASE WHEN x = 0 THEN false ELSE 1 / x > 0 END` divides for no `x` that is 0.
//!
//! The engine's simplifier writes a boolean CASE with AND and OR, which compute both sides. It leaves the
//! form with an operand alone, so a CASE of which a branch may fail becomes `CASE true WHEN …`: the same
//! value, branch by branch.

use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

use arrow::datatypes::DataType;

use super::compares;

/// Keeps the order of the branches of a boolean CASE. It comes when expressions have their types.
#[derive(Debug)]
pub(super) struct Guards;

impl AnalyzerRule for Guards {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = &node {
                schema.merge(&scan.projected_schema);
            }
            let saver = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = saver.save(&expr);
                let kept = expr.transform_up(|expr| Ok(kept(expr, &schema)))?;
                Ok(kept.update_data(|expr| name.restore(expr)))
            })?
            .map_data(LogicalPlan::recompute_schema)
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "stoa_guards"
    }
}

fn kept(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::Case(Case { expr: None, when_then_expr, else_expr })
            if guards(&when_then_expr, else_expr.as_deref(), schema) =>
        {
            let expr = Some(Box::new(lit(true)));
            Transformed::yes(Expr::Case(Case { expr, when_then_expr, else_expr }))
        }
        other => Transformed::no(other),
    }
}

/// Whether a CASE is boolean, or would be one beside `= 'a'` since it chooses among literals, and something
/// after its first condition may fail.
fn guards(
    when_then: &[(Box<Expr>, Box<Expr>)],
    otherwise: Option<&Expr>,
    schema: &DFSchema,
) -> bool {
    let Some((first, then)) = when_then.first() else { return false };
    let later = when_then.iter().skip(1).flat_map(|(when, then)| [when.as_ref(), then.as_ref()]);
    let later = later.chain([then.as_ref()]).chain(otherwise);
    let is_boolean = |of: &Expr| of.get_type(schema).is_ok_and(|of| of == DataType::Boolean);
    let mut all = later.clone().chain([first.as_ref()]);
    let mut thens = when_then.iter().map(|(_, then)| then.as_ref()).chain(otherwise);
    let is_literal = |of: &Expr| matches!(of, Expr::Literal(..));
    let is_rewritten = thens.clone().all(is_literal) || thens.any(is_boolean);
    is_rewritten && later.clone().any(may_fail) && !all.any(has_query)
}

/// Whether an expression computes something that may fail for some rows.
fn may_fail(expr: &Expr) -> bool {
    let computes = |part: &Expr| match part {
        Expr::Cast(cast) => !matches!(*cast.expr, Expr::Literal(..)),
        Expr::Negative(inner) => !matches!(**inner, Expr::Literal(..)),
        Expr::ScalarFunction(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) => {
            let is_pattern = matches!(**right, Expr::Literal(ScalarValue::Utf8(_), _));
            !compares(*op) && !matches!(op, Operator::And | Operator::Or) && !is_pattern
        }
        _ => false,
    };
    // The walk itself cannot fail.
    expr.exists(|part| Ok(computes(part))).unwrap_or(true)
}

/// Subqueries are joined, and so computed in any case.
fn has_query(expr: &Expr) -> bool {
    let is_query = |part: &Expr| {
        matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        )
    };
    expr.exists(|part| Ok(is_query(part))).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::simplify::SimplifyContext;
    use datafusion::logical_expr::{cast, col, when};
    use datafusion::optimizer::simplify_expressions::ExprSimplifier;

    use super::*;

    #[test]
    fn what_may_fail_stays_behind_its_guard() {
        let fields =
            vec![Field::new("x", DataType::Int64, true), Field::new("t", DataType::Utf8, true)];
        let schema = DFSchema::try_from(Schema::new(fields)).unwrap();
        let divided = || (lit(1_i64) / col("x")).gt(lit(0_i64));
        let read = || cast(col("t"), DataType::Int64).gt(lit(0_i64));
        let is_zero = || col("x").eq(lit(0_i64));
        for (case, is_kept) in [
            (when(is_zero(), lit(false)).otherwise(divided()), true),
            (when(is_zero(), lit(false)).when(divided(), lit(true)).end(), true),
            (when(col("t").not_eq(lit("")), read()).end(), true),
            (when(is_zero(), lit("a")).when(divided(), lit("b")).end(), true),
            (when(divided(), lit(true)).otherwise(lit(false)), false),
            (when(is_zero(), lit(0_i64)).otherwise(lit(1_i64) / col("x")), false),
            (when(is_zero(), lit(1_i64)).otherwise(col("x")), false),
        ] {
            let rewritten = kept(case.unwrap(), &schema);
            assert_eq!(rewritten.transformed, is_kept, "{}", rewritten.data);
            let simplifier = ExprSimplifier::new(
                SimplifyContext::builder().with_schema(schema.clone().into()).build(),
            );
            let simplified = simplifier.simplify(rewritten.data.clone()).unwrap();
            let is_case = matches!(simplified, Expr::Case(_));
            assert!(!is_kept || is_case, "{simplified}");
            assert!(!kept(rewritten.data, &schema).transformed || !is_kept);
        }
    }
}
