//! Whole literals have the type that PostgreSQL gives them: `integer` where they fit, else `bigint`.
//!
//! The engine reads all of them as `bigint`. In: a plan as it was made of the statement, before values are put in
//! the places of its parameters. Out: the same, with integers where the type of a literal is that of a column of
//! some result, or decides how it is computed: in select lists, branches of CASE, arrays, VALUES, arithmetic.
//! **Invariant:** rows that are written keep the types that they had, those of the table.
//!
//! Literals that are compared stay as they are: their type decides nothing.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Operator, Projection, Values, cast,
};
use stoa_sql::chains::SUM;
use stoa_sql::recursive_terms::ROW_OF_RECURSION;
use stoa_sql::slices::ARRAY_SLICE;

use crate::recursion;

/// Functions whose result has the type of their operands.
const OF_THEIR_OPERANDS: &[&str] = &[
    "abs",
    "array_append",
    "array_concat",
    "array_prepend",
    "array_remove_all",
    "array_replace_all",
    "coalesce",
    "gcd",
    "generate_series",
    "greatest",
    "lcm",
    "least",
    "make_array",
    "mod",
    "nullif",
    "pg_typeof",
    ROW_OF_RECURSION,
    SUM,
];

/// What the names of Hive's functions begin with.
const HIVE_PREFIX: &str = "hive_";

/// Functions whose result depends on the type of their first operand only.
const OF_THEIR_FIRST: &[&str] =
    &["array_element", ARRAY_SLICE, "array_fill", "to_char", "trim_array"];

/// Aggregates and window functions whose result depends on the type of their first operand.
const OF_THEIR_ROWS: &[&str] = &[
    "any_value",
    "array_agg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "mode",
    "nth_value",
    "percentile_disc",
    "sum",
];

/// The plan with whole literals of PostgreSQL's types.
///
/// # Errors
/// Those of the engine, where a node does not take its new columns.
pub(super) fn retyped(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Values(rows) => cells(rows),
        LogicalPlan::RecursiveQuery(mut query) => {
            let first = retyped(Arc::unwrap_or_clone(query.static_term))?;
            query.static_term = Arc::new(first.data);
            let rewritten = |second| retyped(second).map(|second| second.data);
            recursion::with_same_columns(query, rewritten).map(Transformed::yes)
        }
        LogicalPlan::Dml(mut dml) => {
            let rows = with_own_types(Arc::unwrap_or_clone(dml.input))?;
            dml.input = Arc::new(rows.data);
            Ok(Transformed::new_transformed(LogicalPlan::Dml(dml), rows.transformed))
        }
        plan => {
            let plan = plan.map_children(retyped)?;
            let plan = plan.transform_data(|plan| plan.map_subqueries(retyped))?;
            let plan = plan.transform_data(of_node)?;
            match plan.transformed {
                true => plan.map_data(|plan| plan.recompute_schema()),
                false => Ok(plan),
            }
        }
    }
}

/// A node whose inputs were rewritten.
fn of_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let shows_types = matches!(
        node,
        LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Distinct(_)
    );
    let names = NamePreserver::new(&node);
    node.map_expressions(|mut expr| {
        // Names are texts of whole expressions.
        if !has_whole_literal(&expr)? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let is_shown = shows_types && to_integers(&mut expr);
        let expr = in_arithmetic(expr)?;
        let is_changed = is_shown || expr.transformed;
        let expr = Transformed::new_transformed(expr.data, is_changed);
        Ok(expr.update_data(|expr| name.restore(expr)))
    })
}

fn has_whole_literal(expr: &Expr) -> Result<bool> {
    expr.exists(|part| Ok(matches!(part, Expr::Literal(ScalarValue::Int64(Some(_)), _))))
}

/// Rows whose columns have the types of those of the table that they are written to.
fn with_own_types(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(mut rows) = plan else { return Ok(Transformed::no(plan)) };
    let input = retyped(Arc::unwrap_or_clone(rows.input))?;
    rows.input = Arc::new(input.data);
    let mut is_changed = input.transformed;
    let read = Arc::clone(rows.input.schema());
    let columns =
        rows.expr.into_iter().zip(rows.schema.iter()).map(|(expr, (qualifier, field))| {
            let expr = in_arithmetic(expr)?;
            is_changed |= expr.transformed;
            let named = |expr: Expr| expr.alias_qualified(qualifier.cloned(), field.name());
            let is_as_it_was = expr.data.get_type(&read)? == *field.data_type();
            Ok(match (is_as_it_was, expr.transformed) {
                (true, false) => expr.data,
                (true, true) => named(expr.data.unalias()),
                (false, _) => named(cast(expr.data.unalias(), field.data_type().clone())),
            })
        });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let rows = Projection::try_new_with_schema(columns, rows.input, rows.schema)?;
    Ok(Transformed::new_transformed(LogicalPlan::Projection(rows), is_changed))
}

/// Rows of VALUES whose columns have their types already.
fn cells(mut rows: Values) -> Result<Transformed<LogicalPlan>> {
    let is_literal = |value: &Expr| matches!(value, Expr::Literal(..));
    if rows.values.iter().flatten().all(is_literal) {
        return Ok(Transformed::no(LogicalPlan::Values(rows)));
    }
    let nothing = DFSchema::empty();
    let mut is_changed = false;
    for row in &mut rows.values {
        for (value, field) in row.iter_mut().zip(rows.schema.fields()) {
            let written = in_arithmetic(std::mem::take(value))?;
            is_changed |= written.transformed;
            *value = match written.transformed {
                true if written.data.get_type(&nothing)? != *field.data_type() => {
                    cast(written.data, field.data_type().clone())
                }
                _ => written.data,
            };
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Values(rows), is_changed))
}

/// Makes integers of the literals under arithmetic, which is that of integers or of bigints, and of those that are asked
/// for their type.
fn in_arithmetic(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_down(|mut expr| {
        let is_changed = match &expr {
            Expr::BinaryExpr(binary) if is_of_its_operands(binary.op) => to_integers(&mut expr),
            Expr::ScalarFunction(call)
                if matches!(call.name(), SUM | ROW_OF_RECURSION | "pg_typeof") =>
            {
                to_integers(&mut expr)
            }
            _ => false,
        };
        Ok(Transformed::new_transformed(expr, is_changed))
    })
}

/// Makes integers of the literals whose type is that of the expression; says whether there are any.
pub(super) fn to_integers(expr: &mut Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => match *value {
            ScalarValue::Int64(Some(whole)) => {
                let Ok(integer) = i32::try_from(whole) else { return false };
                *value = ScalarValue::Int32(Some(integer));
                true
            }
            _ => false,
        },
        Expr::Alias(alias) => to_integers(&mut alias.expr),
        Expr::Negative(inner) => to_integers(inner),
        Expr::Unnest(unnest) => to_integers(&mut unnest.expr),
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter_mut().map(|(_, then)| then);
            any_of(branches.chain(&mut case.else_expr).map(|branch| branch.as_mut()))
        }
        Expr::BinaryExpr(binary) if is_of_its_operands(binary.op) => {
            any_of([binary.left.as_mut(), binary.right.as_mut()])
        }
        Expr::ScalarFunction(call) if OF_THEIR_FIRST.contains(&call.name()) => {
            any_of(call.args.first_mut())
        }
        Expr::ScalarFunction(call) if OF_THEIR_OPERANDS.contains(&call.name()) => {
            any_of(&mut call.args)
        }
        // Hive's, whose whole literals are `int`, too.
        Expr::ScalarFunction(call) if call.name().starts_with(HIVE_PREFIX) => {
            any_of(&mut call.args)
        }
        Expr::AggregateFunction(call) if OF_THEIR_ROWS.contains(&call.func.name()) => {
            any_of(call.params.args.first_mut())
        }
        Expr::WindowFunction(call) if OF_THEIR_ROWS.contains(&call.fun.name()) => {
            // What `lag` and `lead` give where there is no row is the third.
            let args = call.params.args.iter_mut().enumerate();
            any_of(args.filter(|(place, _)| *place != 1).map(|(_, arg)| arg))
        }
        _ => false,
    }
}

fn any_of<'a>(parts: impl IntoIterator<Item = &'a mut Expr>) -> bool {
    parts.into_iter().fold(false, |any, part| to_integers(part) | any)
}

fn is_of_its_operands(op: Operator) -> bool {
    use Operator::*;
    matches!(
        op,
        Plus | Minus
            | Multiply
            | Divide
            | Modulo
            | BitwiseAnd
            | BitwiseOr
            | BitwiseXor
            | BitwiseShiftLeft
            | BitwiseShiftRight
    )
}
