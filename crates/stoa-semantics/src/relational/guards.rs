//! Conditions as guards: `x <> 0 AND 1 / x > 0` and `CASE WHEN x = 0 THEN false ELSE 1 / x > 0 END` divide for no `x`
//! that is 0.
//!
//! The engine computes both sides of AND and OR. Where the one on the right may fail, it becomes a CASE: it is computed
//! where the left one does not decide. The conditions of a filter or a join, all of which must hold, guard each other
//! in any order: PostgreSQL, too, computes those first that cost less. A condition guards others on the same tables
//! only, so that each can still be moved to its table.
//!
//! The engine's simplifier writes a boolean CASE with AND and OR. It leaves the form with an operand alone, so a CASE of
//! which a branch may fail becomes `CASE true WHEN …`: the same value, branch by branch.

use std::collections::HashSet;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{
    conjunction, merge_schema, split_conjunction, split_conjunction_owned,
};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use arrow::datatypes::DataType;

use super::compares;

/// Parts of an operand on the right, which is copied: nested ones would double at each level.
const RIGHT_PARTS_MAX: usize = 256;

/// Parts of an operand on the left, which is looked through.
const LEFT_PARTS_MAX: usize = 4096;

/// Keeps conditions from failing for rows that others leave out. It comes when expressions have their types.
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
            let must_all_hold = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
            node.map_expressions(|expr| {
                let name = saver.save(&expr);
                let kept = |expr: Expr| expr.transform_up(|part| Ok(kept(part, &schema)));
                let kept = match must_all_hold {
                    true => {
                        let each = split_conjunction_owned(expr).into_iter().map(kept);
                        joined(each.collect::<Result<_>>()?)
                    }
                    false => kept(expr)?,
                };
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

/// [`Guards`] of conditions that all must hold, when each is where it is computed: it comes after the optimiser's rules,
/// which bring the conditions of a query and of its subquery together.
#[derive(Debug)]
pub(crate) struct GuardedFilters;

impl OptimizerRule for GuardedFilters {
    fn name(&self) -> &str {
        "stoa_guarded_filters"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        mut plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let all = match &mut plan {
            LogicalPlan::Filter(filter) => Some(&mut filter.predicate),
            LogicalPlan::Join(join) => join.filter.as_mut(),
            _ => None,
        };
        let Some(all) = all.filter(|all| fails(all)) else { return Ok(Transformed::no(plan)) };
        let guarded = all_guarded(std::mem::take(all));
        *all = guarded.data;
        Ok(Transformed::new_transformed(plan, guarded.transformed))
    }
}

/// Conditions that all must hold: those that may fail are computed where all others hold that cannot. These are then in
/// one place only, or the optimiser would compute them once for both.
fn all_guarded(expr: Expr) -> Transformed<Expr> {
    let of = split_conjunction(&expr).into_iter().filter(|of| is_to_guard(of)).flat_map(tables);
    let of: HashSet<Option<TableReference>> = of.map(|table| table.cloned()).collect();
    let can_guard = |condition: &Expr| {
        is_guard(condition)
            && tables(condition).into_iter().all(|table| of.contains(&table.cloned()))
    };
    if of.is_empty() || !split_conjunction(&expr).into_iter().any(can_guard) {
        return Transformed::no(expr);
    }
    let (guards, others): (Vec<_>, Vec<_>) =
        split_conjunction_owned(expr).into_iter().partition(can_guard);
    let (failing, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_to_guard);
    let both = conjunction(guards).zip(conjunction(failing));
    let guarded = both.map(|(guards, failing)| {
        Expr::Case(Case {
            expr: Some(Box::new(lit(true))),
            when_then_expr: vec![(Box::new(guards), Box::new(failing))],
            else_expr: Some(Box::new(lit(false))),
        })
    });
    let all = conjunction(others.into_iter().chain(guarded));
    Transformed::yes(all.unwrap_or_else(|| lit(true)))
}

/// All conditions as one; changed if one of them is.
fn joined(conditions: Vec<Transformed<Expr>>) -> Transformed<Expr> {
    let is_any = conditions.iter().any(|condition| condition.transformed);
    let all = conjunction(conditions.into_iter().map(|condition| condition.data));
    Transformed::new_transformed(all.unwrap_or_else(|| lit(true)), is_any)
}

/// Whether a condition may fail and nothing keeps it from that yet.
fn is_to_guard(condition: &Expr) -> bool {
    fails(condition) && !is_guarded(condition) && !has_query(condition)
}

/// `left AND right`, `left OR right`, of which the right one is computed where the left one does not decide.
fn after(left: Box<Expr>, op: Operator, right: Box<Expr>) -> Expr {
    let decided = lit(op == Operator::Or);
    let unknown = Box::new(Expr::Literal(ScalarValue::Boolean(None), None));
    let other = Expr::BinaryExpr(BinaryExpr { left: unknown, op, right: right.clone() });
    Expr::Case(Case {
        expr: Some(left),
        when_then_expr: vec![
            (Box::new(decided.clone()), Box::new(decided)),
            (Box::new(lit(op == Operator::And)), right),
        ],
        else_expr: Some(Box::new(other)),
    })
}

/// Whether an expression has at most so many parts; no more of them are looked at.
fn has_at_most(parts: usize, expr: &Expr) -> bool {
    let mut count = 0;
    let looked = expr.exists(|_| {
        count += 1;
        Ok(count > parts)
    });
    // The walk itself cannot fail.
    looked.is_ok_and(|has_more| !has_more)
}

/// Whether a condition can be computed before others.
fn is_guard(condition: &Expr) -> bool {
    is_guarded(condition) || !fails(condition) && !has_query(condition) && !condition.is_volatile()
}

/// The tables that an expression has columns of.
fn tables(expr: &Expr) -> HashSet<Option<&TableReference>> {
    expr.column_refs().into_iter().map(|column| column.relation.as_ref()).collect()
}

/// An expression of which parts that may fail are computed in order. The NULL that [`after`] puts on the left is known by
/// being a literal, so that nothing changes the second time.
fn kept(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right })
            if has_at_most(RIGHT_PARTS_MAX, &right)
                && has_at_most(LEFT_PARTS_MAX, &left)
                && fails(&right)
                && !has_query(&left)
                && !has_query(&right)
                && !is_literal(&left) =>
        {
            Transformed::yes(after(left, op, right))
        }
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

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(..))
}

/// Whether an expression is likely to fail for some values: it divides, or reads a text.
fn fails(expr: &Expr) -> bool {
    let is_zero =
        |of: &ScalarValue| ScalarValue::new_zero(&of.data_type()).is_ok_and(|zero| *of == zero);
    let may_be_zero = |divisor: Option<&Expr>| match divisor {
        Some(Expr::Literal(value, _)) => is_zero(value),
        _ => true,
    };
    let fails = |part: &Expr| match part {
        Expr::ScalarFunction(call) => match call.func.name() {
            "checked_divide" | "checked_modulo" | "numeric_divide" | "mod" => {
                may_be_zero(call.args.get(1))
            }
            "from_text" => call.args.first().is_some_and(|of| !is_literal(of)),
            "sqrt" | "ln" | "log" | "log10" | "power" => true,
            _ => false,
        },
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
            may_be_zero(Some(right))
        }
        _ => false,
    };
    // The walk itself cannot fail.
    expr.exists(|part| Ok(fails(part))).unwrap_or(true)
}

/// Whether a condition is computed where another one holds only.
fn is_guarded(expr: &Expr) -> bool {
    matches!(expr, Expr::Case(Case { expr: Some(of), .. }) if **of == lit(true))
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
    fn what_divides_comes_after_what_does_not() {
        let fields = ["x", "y"].map(|name| Field::new(name, DataType::Int64, true));
        let schema = DFSchema::try_from(Schema::new(fields.to_vec())).unwrap();
        let divided = || (lit(1_i64) / col("x")).gt(lit(0_i64));
        let other = || col("x").not_eq(lit(0_i64));
        let shown = |expr: Expr| kept(expr, &schema).data.to_string();
        let all = |expr: Expr| all_guarded(expr).data.to_string();
        let guarded = "CASE Boolean(true) WHEN x != Int64(0) THEN Int64(1) / x > Int64(0) ELSE Boolean(false) END";
        assert_eq!(all(other().and(divided())), guarded);
        assert_eq!(all(divided().and(other())), guarded);
        assert!(!all_guarded(all_guarded(other().and(divided())).data).transformed);
        let of_other_table = Expr::Column(datafusion::common::Column::new(Some("t"), "z"));
        let of_other_table = of_other_table.gt(lit(0_i64));
        assert_eq!(
            all(of_other_table.clone().and(divided())),
            of_other_table.clone().and(divided()).to_string()
        );
        let expr = divided().and(of_other_table.clone()).and(other());
        assert_eq!(all(expr), format!("{of_other_table} AND {guarded}"));
        let in_value = "CASE x != Int64(0) WHEN Boolean(false) THEN Boolean(false) WHEN Boolean(true) THEN \
                        Int64(1) / x > Int64(0) ELSE Boolean(NULL) AND Int64(1) / x > Int64(0) END";
        assert_eq!(shown(other().and(divided())), in_value);
        let zero = || col("x").eq(lit(0_i64));
        let in_value = "CASE x = Int64(0) WHEN Boolean(true) THEN Boolean(true) WHEN Boolean(false) THEN \
                        Int64(1) / x > Int64(0) ELSE Boolean(NULL) OR Int64(1) / x > Int64(0) END";
        assert_eq!(shown(zero().or(divided())), in_value);
        assert_eq!(shown(divided().or(zero())), divided().or(zero()).to_string());
        let again =
            kept(zero().or(divided()), &schema).data.transform_up(|part| Ok(kept(part, &schema)));
        assert!(!again.unwrap().transformed);
        let by_two = (col("y") / lit(2_i64)).gt(lit(0_i64));
        assert_eq!(all(other().and(by_two.clone())), other().and(by_two).to_string());
    }

    #[test]
    fn nested_conditions_do_not_double_at_each_level() {
        let schema = DFSchema::try_from(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let schema = schema.unwrap();
        let nested = (0..40_i64).fold((lit(1_i64) / col("x")).gt(lit(0_i64)), |inner, level| {
            let outer = col("x").eq(lit(level));
            if level % 2 == 0 { outer.or(inner) } else { outer.and(inner) }
        });
        let kept = nested.transform_up(|part| Ok(kept(part, &schema))).unwrap();
        assert!(kept.transformed);
        assert!(has_at_most(2_000, &kept.data));
    }

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
