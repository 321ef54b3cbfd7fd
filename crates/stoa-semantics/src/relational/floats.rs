//! A decimal beside a double is a double: `ratio > 0.5` compares doubles, as in PostgreSQL, and the column
//! stays as it is, so that statistics of files can judge the condition.
//!
//! In: comparisons of floating point with decimals, in which the engine would make the column a decimal.
//! Out: the decimal, nearly always a literal, as a double.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, cast, lit, not,
};
use datafusion::optimizer::AnalyzerRule;

/// Makes decimals doubles where they are compared with floating point.
#[derive(Debug)]
pub(super) struct FloatComparisons;

impl AnalyzerRule for FloatComparisons {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = &node {
                schema.merge(&scan.projected_schema);
            }
            let node = join_keys(node, &schema)?;
            let saver = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = saver.save(&expr);
                let changed = expr.transform_up(|expr| compared(expr, &schema))?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })?
            .map_data(LogicalPlan::recompute_schema)
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "stoa_float_comparisons"
    }
}

fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let sides = [&*left, &*right];
            let is_changed = is_mixed(sides, schema) || is_real_beside_integer(sides, schema);
            if !is_changed {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            let is_real =
                |side: &Expr| Ok::<_, DataFusionError>(side.get_type(schema)? == DataType::Float32);
            let (left, right) = match (as_real(&left), as_real(&right)) {
                (None, Some(real)) if is_real(&left)? => (*left, real),
                (Some(real), None) if is_real(&right)? => (real, *right),
                _ => (double(*left, schema)?, double(*right, schema)?),
            };
            let compared = BinaryExpr::new(Box::new(left), op, Box::new(right));
            Ok(Transformed::yes(Expr::BinaryExpr(compared)))
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_mixed([&*expr, &*low, &*high], schema)
                || is_real_beside_integer([&*expr, &*low, &*high], schema) =>
        {
            let sides = (double(*expr, schema)?, double(*low, schema)?, double(*high, schema)?);
            let (expr, low, high) = (Box::new(sides.0), Box::new(sides.1), Box::new(sides.2));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        Expr::InSubquery(list) => in_subquery(list, schema),
        Expr::InList(InList { expr, list, negated }) => in_list(*expr, list, negated, schema),
        // The engine's simple CASE compares bits: -0.0 would not be 0.
        Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr })
            if !expr.is_volatile() && has_floats(operands(&expr, &when_then_expr), schema) =>
        {
            let whens = when_then_expr.into_iter().map(|(when, then)| {
                let is_equal = compared(expr.as_ref().clone().eq(*when), schema)?.data;
                Ok((Box::new(is_equal), then))
            });
            let when_then_expr = whens.collect::<Result<Vec<_>>>()?;
            Ok(Transformed::yes(Expr::Case(Case { expr: None, when_then_expr, else_expr })))
        }
        Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr })
            if is_mixed(operands(&expr, &when_then_expr), schema) =>
        {
            let whens = when_then_expr
                .into_iter()
                .map(|(when, then)| Ok((Box::new(double(*when, schema)?), then)));
            let whens = whens.collect::<Result<Vec<_>>>()?;
            let expr = Some(Box::new(double(*expr, schema)?));
            Ok(Transformed::yes(Expr::Case(Case { expr, when_then_expr: whens, else_expr })))
        }
        // The function compares bits: -0.0 would not be 0.
        Expr::ScalarFunction(ScalarFunction { func, args })
            if func.name() == "nullif" && has_floats(&args, schema) =>
        {
            let mut sides = args.clone().into_iter().map(|arg| double_if_mixed(arg, &args, schema));
            let (Some(one), Some(other)) = (sides.next(), sides.next()) else {
                return plan_err!("nullif takes two values");
            };
            let value = one?;
            let null = ScalarValue::try_new_null(&value.get_type(schema)?)?;
            let is_equal = Box::new(value.clone().eq(other?));
            Ok(Transformed::yes(Expr::Case(Case {
                expr: None,
                when_then_expr: vec![(is_equal, Box::new(Expr::Literal(null, None)))],
                else_expr: Some(Box::new(value)),
            })))
        }
        Expr::ScalarFunction(call)
            if matches!(call.func.name(), "greatest" | "least") && is_mixed(&call.args, schema) =>
        {
            let args = call.args.into_iter().map(|arg| double(arg, schema));
            let args = args.collect::<Result<Vec<_>>>()?;
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func: call.func, args })))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// What a simple CASE compares.
fn operands<'a>(
    operand: &'a Expr,
    branches: &'a [(Box<Expr>, Box<Expr>)],
) -> impl Iterator<Item = &'a Expr> {
    std::iter::once(operand).chain(branches.iter().map(|(when, _)| when.as_ref()))
}

/// A list that is looked up by bits has both zeros, or none; one of other values than literals is
/// compared one by one. As in PostgreSQL, a list of several literals beside a real is one of reals.
fn in_list(
    expr: Expr,
    list: Vec<Expr>,
    negated: bool,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let is_literal = |item: &Expr| matches!(item, Expr::Literal(..));
    let is_float = expr.get_type(schema).is_ok_and(|kind| kind.is_floating());
    if (is_float || has_floats(&list, schema)) && !list.iter().all(is_literal) {
        let equal = |item: Expr| compared(expr.clone().eq(item), schema).map(|equal| equal.data);
        let equal = list.into_iter().map(equal).collect::<Result<Vec<_>>>()?;
        let any = equal.into_iter().reduce(Expr::or).unwrap_or_else(|| lit(false));
        return Ok(Transformed::yes(if negated { not(any) } else { any }));
    }
    let are_reals = list.len() > 1 && expr.get_type(schema)? == DataType::Float32;
    let is_double = |item: &Expr| matches!(item, Expr::Literal(ScalarValue::Float64(Some(_)), _));
    let mixed = is_mixed(std::iter::once(&expr).chain(&list), schema)
        || are_reals && list.iter().any(is_double);
    let (expr, mut list) = match mixed {
        true if are_reals => {
            (expr, list.into_iter().map(nearest_real).collect::<Result<Vec<_>>>()?)
        }
        true => {
            let list = list.into_iter().map(|item| double(item, schema));
            (double(expr, schema)?, list.collect::<Result<Vec<_>>>()?)
        }
        false => (expr, list),
    };
    let is_float = expr.get_type(schema).is_ok_and(|kind| kind.is_floating());
    let is_changed = add_other_zeros(&mut list, is_float) || mixed;
    let made = Expr::InList(InList { expr: Box::new(expr), list, negated });
    Ok(Transformed::new_transformed(made, is_changed))
}

/// Adds -0.0 to a list with 0.0, and the other way round: whether it did. Lists are looked up by bits.
pub(crate) fn add_other_zeros(list: &mut Vec<Expr>, is_float: bool) -> bool {
    let zeros = list.iter().filter_map(|item| other_zero(item, is_float));
    let mut zeros: Vec<ScalarValue> = zeros.collect();
    zeros.retain(|zero| !list.iter().any(|item| is_same(item, zero)));
    zeros.dedup_by(|one, other| bits(one) == bits(other));
    list.extend(zeros.iter().cloned().map(|zero| Expr::Literal(zero, None)));
    !zeros.is_empty()
}

/// -0.0 for 0.0, and the other way round; also for the whole number, which becomes floating point.
fn other_zero(item: &Expr, is_float: bool) -> Option<ScalarValue> {
    match item {
        Expr::Literal(ScalarValue::Int64(Some(0)) | ScalarValue::Int32(Some(0)), _) if is_float => {
            Some(ScalarValue::Float64(Some(-0.0)))
        }
        Expr::Literal(ScalarValue::Float64(Some(value)), _) if *value == 0.0 => {
            Some(ScalarValue::Float64(Some(-value)))
        }
        Expr::Literal(ScalarValue::Float32(Some(value)), _) if *value == 0.0 => {
            Some(ScalarValue::Float32(Some(-value)))
        }
        _ => None,
    }
}

fn is_same(item: &Expr, value: &ScalarValue) -> bool {
    matches!(item, Expr::Literal(item, _) if bits(item).is_some() && bits(item) == bits(value))
}

fn bits(value: &ScalarValue) -> Option<u64> {
    match value {
        ScalarValue::Float64(Some(value)) => Some(value.to_bits()),
        ScalarValue::Float32(Some(value)) => Some(u64::from(value.to_bits())),
        _ => None,
    }
}

/// Whether an operator compares.
pub(crate) fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Keys of a join are compared, too.
fn join_keys(node: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let LogicalPlan::Join(mut join) = node else { return Ok(node) };
    let keys = join.on.into_iter().map(|(left, right)| match is_mixed([&left, &right], schema) {
        true => Ok((double(left, schema)?, double(right, schema)?)),
        false => Ok((left, right)),
    });
    join.on = keys.collect::<Result<_>>()?;
    Ok(LogicalPlan::Join(join))
}

/// `x IN (SELECT …)`, of which one side is floating point and the other a decimal.
fn in_subquery(list: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let rows = &list.subquery.subquery;
    let column = Expr::Column(Column::from(rows.schema().qualified_field(0)));
    let (left, right) = (list.expr.get_type(schema)?, column.get_type(rows.schema().as_ref())?);
    let is_mixed = left.is_floating() && right.is_decimal();
    if !(is_mixed || left.is_decimal() && right.is_floating()) {
        return Ok(Transformed::no(Expr::InSubquery(list)));
    }
    let item = double(column, rows.schema().as_ref())?;
    let plan = LogicalPlanBuilder::from(rows.as_ref().clone()).project(vec![item])?.build()?;
    let subquery = list.subquery.with_plan(Arc::new(plan));
    let expr = Box::new(double(*list.expr, schema)?);
    Ok(Transformed::yes(Expr::InSubquery(InSubquery::new(expr, subquery, list.negated))))
}

/// Whether there is floating point beside decimals.
fn is_mixed<'a>(sides: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    let (mut floats, mut decimals) = (false, false);
    for side in sides {
        let kind = side.get_type(schema);
        floats |= kind.as_ref().is_ok_and(DataType::is_floating);
        decimals |= kind.is_ok_and(|kind| kind.is_decimal());
    }
    floats && decimals
}

/// Whether reals are compared with integers that may have more digits: both are doubles then.
fn is_real_beside_integer<'a>(
    sides: impl IntoIterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> bool {
    let (mut reals, mut integers) = (false, false);
    for side in sides {
        let Ok(kind) = side.get_type(schema) else { continue };
        reals |= kind == DataType::Float32;
        integers |= kind.is_integer() && !is_exact_real(side);
    }
    reals && integers
}

/// Whether an expression is an integer that reals have exactly, as all up to 2^24.
fn is_exact_real(side: &Expr) -> bool {
    let Expr::Literal(value, _) = side else { return false };
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(number))) => number.unsigned_abs() <= 1 << 24,
        Ok(_) => true,
        Err(_) => false,
    }
}

fn has_floats<'a>(sides: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    sides.into_iter().any(|side| side.get_type(schema).is_ok_and(|kind| kind.is_floating()))
}

fn double_if_mixed(side: Expr, all: &[Expr], schema: &DFSchema) -> Result<Expr> {
    match is_mixed(all, schema) {
        true => double(side, schema),
        false => Ok(side),
    }
}

/// A literal beside reals as a real, if that is the same number: then the column stays as it is.
fn as_real(side: &Expr) -> Option<Expr> {
    let Expr::Literal(value, _) = side else { return None };
    if !value.data_type().is_decimal() {
        return None;
    }
    let Ok(ScalarValue::Float64(Some(double))) = nearest_double(value) else { return None };
    let real = double as f32;
    (f64::from(real) == double && real.is_finite())
        .then(|| Expr::Literal(ScalarValue::Float32(Some(real)), None))
}

/// A decimal literal as the real next to it.
fn nearest_real(item: Expr) -> Result<Expr> {
    match &item {
        Expr::Literal(value, _) if value.data_type().is_decimal() => {
            let text = value.cast_to(&DataType::Utf8)?;
            Ok(Expr::Literal(text.cast_to(&DataType::Float32)?, None))
        }
        // A number with an exponent.
        Expr::Literal(value @ ScalarValue::Float64(Some(_)), _) => {
            Ok(Expr::Literal(value.cast_to(&DataType::Float32)?, None))
        }
        _ => Ok(item),
    }
}

/// Decimals, and reals beside them, as doubles.
fn double(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if let Expr::Literal(value, _) = &expr
        && value.data_type().is_decimal()
    {
        return Ok(Expr::Literal(nearest_double(value)?, None));
    }
    match expr.get_type(schema)? {
        DataType::Float32 => Ok(cast(expr, DataType::Float64)),
        of if of.is_decimal() => Ok(cast(expr, DataType::Float64)),
        _ => Ok(expr),
    }
}

/// The double that the digits of a decimal name: a division by a power of ten would round twice.
fn nearest_double(value: &ScalarValue) -> Result<ScalarValue> {
    let text = value.cast_to(&DataType::Utf8)?;
    text.cast_to(&DataType::Float64)
}
