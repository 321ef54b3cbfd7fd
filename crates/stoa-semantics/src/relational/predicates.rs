//! `IN (SELECT …)`, `ANY` and `ALL` with PostgreSQL's three values, wherever they stand.
//!
//! The engine joins for `WHERE x IN (SELECT …)`, where unknown is as good as false. Everywhere else the
//! difference is seen: under NOT, in IS NULL, in CASE, in the list of a SELECT. There the predicate is
//! written with EXISTS, which is never unknown:
//!
//! ```text
//! x IN s       CASE WHEN EXISTS (s WHERE v = x) THEN true
//!                   WHEN x IS NULL AND EXISTS (s) OR EXISTS (s WHERE v IS NULL) THEN NULL ELSE false END
//! x op ANY s   CASE WHEN EXISTS (s WHERE (x op v) IS TRUE) THEN true
//!                   WHEN EXISTS (s WHERE (x op v) IS NULL) THEN NULL ELSE false END
//! x op ALL s   NOT (x not-op ANY s)
//! ```
//! **Invariant:** the subquery gets a name that nothing else has, so that `x` never means one of its columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, ExprSchema, ScalarValue, Spans, not_impl_err, plan_err,
};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    Alias, Case, Cast, Exists, InSubquery, SetComparison, SetQuantifier,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    lit,
};

/// Names for what is made here.
#[derive(Default)]
pub(super) struct Names(usize);

impl Names {
    /// A name that no other part of the plan has.
    pub(super) fn next(&mut self, kind: &str) -> String {
        self.0 += 1;
        format!("__{kind}_{}", self.0)
    }
}

/// Writes the predicates of one node with EXISTS, where the engine would not see that they are unknown.
pub(super) fn three_valued(
    node: LogicalPlan,
    names: &mut Names,
) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&node.inputs());
    if matches!(node, LogicalPlan::Dml(_) | LogicalPlan::Extension(_)) {
        return Ok(Transformed::no(node));
    }
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&scan.projected_schema);
    }
    if let LogicalPlan::Filter(Filter { predicate, input, .. }) = node {
        let predicate = condition(predicate, true, &schema, names)?;
        let is_changed = predicate.transformed;
        let filter = Filter::try_new(predicate.data, input)?;
        return Ok(Transformed::new_transformed(LogicalPlan::Filter(filter), is_changed));
    }
    let saver = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = saver.save(&expr);
        let written = value(expr, &schema, names)?;
        Ok(written.update_data(|expr| name.restore(expr)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}

/// A condition, of which only the rows are seen for which it is true; `is_whole` where no OR is around it.
fn condition(
    expr: Expr,
    is_whole: bool,
    schema: &DFSchema,
    names: &mut Names,
) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let is_whole = is_whole && op == Operator::And;
            let left = condition(*left, is_whole, schema, names)?;
            let right = condition(*right, is_whole, schema, names)?;
            let is_changed = left.transformed || right.transformed;
            let both = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(both), is_changed))
        }
        // The engine's own joins know these.
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if !negated
                || is_whole
                    && !is_correlated(&subquery)
                    && !may_be_constant(&expr)
                    && tells_nulls(&expr, schema) =>
        {
            let expr = value(*expr, schema, names)?;
            let list = InSubquery::new(Box::new(expr.data), subquery, negated);
            Ok(Transformed::new_transformed(Expr::InSubquery(list), expr.transformed))
        }
        Expr::SetComparison(SetComparison {
            expr,
            subquery,
            op: Operator::Eq,
            quantifier: SetQuantifier::Any,
        }) => {
            let expr = Box::new(value(*expr, schema, names)?.data);
            Ok(Transformed::yes(Expr::InSubquery(InSubquery::new(expr, subquery, false))))
        }
        other => value(other, schema, names),
    }
}

/// Whether an expression is a constant, or may be found to be one. NOT IN of a constant is not the engine's to
/// join: it would look for the constant in the subquery's rows first, and not see the NULLs among them.
fn may_be_constant(expr: &Expr) -> bool {
    let is_column = |part: &Expr| matches!(part, Expr::Column(_) | Expr::OuterReferenceColumn(..));
    let chooses = |part: &Expr| match part {
        Expr::Case(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::And | Operator::Or),
        Expr::ScalarFunction(call) => call.func.name() == "coalesce",
        _ => false,
    };
    // The walks themselves cannot fail.
    !expr.exists(|part| Ok(is_column(part))).unwrap_or(false)
        || expr.exists(|part| Ok(chooses(part))).unwrap_or(true)
}

/// Whether the engine sees if an expression can be NULL: for NOT IN it asks the columns only, not what is made of them, as in
/// `nullif(a, 1) NOT IN (SELECT …)` of columns that are NOT NULL.
fn tells_nulls(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(Alias { expr, .. }) | Expr::Cast(Cast { expr, .. }) => {
            tells_nulls(expr, schema)
        }
        other => !other.nullable(schema).unwrap_or(true),
    }
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.subquery.all_out_ref_exprs().is_empty()
}

/// An expression of which the value is seen.
fn value(expr: Expr, schema: &DFSchema, names: &mut Names) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let is_in = is_in(*expr, &subquery, schema, names)?;
            Ok(Transformed::yes(if negated { !is_in } else { is_in }))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let compared = match quantifier {
                SetQuantifier::Any => is_any(*expr, op, &subquery, schema, names)?,
                SetQuantifier::All => !is_any(*expr, opposite(op)?, &subquery, schema, names)?,
            };
            Ok(Transformed::yes(compared))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// The comparison that is true where `op` is false.
fn opposite(op: Operator) -> Result<Operator> {
    match op.negate() {
        Some(opposite) => Ok(opposite),
        None => plan_err!("{op} ALL (SELECT …) is not supported"),
    }
}

fn is_in(expr: Expr, subquery: &Subquery, schema: &DFSchema, names: &mut Names) -> Result<Expr> {
    let (rows, column) = named(subquery, schema, names)?;
    let outer = seen_from_within(expr.clone(), schema)?;
    let found = exists(&rows, Some(column.clone().eq(outer)))?;
    let any = exists(&rows, None)?;
    let null = exists(&rows, Some(column.is_null()))?;
    Ok(three_values(found, expr.is_null().and(any).or(null)))
}

fn is_any(
    expr: Expr,
    op: Operator,
    subquery: &Subquery,
    schema: &DFSchema,
    names: &mut Names,
) -> Result<Expr> {
    if op == Operator::Eq {
        return is_in(expr, subquery, schema, names);
    }
    let (rows, column) = named(subquery, schema, names)?;
    let outer = seen_from_within(expr, schema)?;
    let compared = Expr::BinaryExpr(BinaryExpr::new(Box::new(outer), op, Box::new(column)));
    let found = exists(&rows, Some(compared.clone().is_true()))?;
    Ok(three_values(found, exists(&rows, Some(compared.is_null()))?))
}

fn three_values(found: Expr, unknown: Expr) -> Expr {
    let null = Expr::Literal(ScalarValue::Boolean(None), None);
    let when = |condition: Expr, value: Expr| (Box::new(condition), Box::new(value));
    Expr::Case(Case {
        expr: None,
        when_then_expr: vec![when(found, lit(true)), when(unknown, null)],
        else_expr: Some(Box::new(lit(false))),
    })
}

/// The rows of a subquery, and their only column, which is none of the outer query's.
fn named(
    subquery: &Subquery,
    outer: &DFSchema,
    names: &mut Names,
) -> Result<(Arc<LogicalPlan>, Expr)> {
    let mut plan = subquery.subquery.as_ref().clone();
    if !is_correlated(subquery) {
        plan = LogicalPlanBuilder::from(plan).alias(names.next("in"))?.build()?;
    } else if plan.schema().columns().iter().any(|column| outer.has_column(column)) {
        // The engine cannot lift the conditions of a subquery out of one that has another name.
        return not_impl_err!(
            "a correlated subquery on a table of the query around it, by the same name: give it an alias"
        );
    }
    let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    Ok((Arc::new(plan), column))
}

fn exists(rows: &Arc<LogicalPlan>, filter: Option<Expr>) -> Result<Expr> {
    let mut plan = LogicalPlanBuilder::from(rows.as_ref().clone());
    if let Some(filter) = filter {
        plan = plan.filter(filter)?;
    }
    let mut plan = plan.build()?;
    if plan.all_out_ref_exprs().is_empty() {
        // One row says as much as many, and is joined sooner.
        plan = LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()?;
    }
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() };
    Ok(Expr::Exists(Exists { subquery, negated: false }))
}

/// An expression of the outer query as its subquery sees it.
fn seen_from_within(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let seen = expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(seen.data)
}
