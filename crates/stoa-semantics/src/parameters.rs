//! Parameters of statements: which types they have, and values put in their places.
//!
//! In: a plan with placeholders, types a client declared, values. Out: a plan with typed
//! placeholders, and one without any.
//!
//! **Invariant:** a value is never changed on its way into the plan. Where it does not fit the type
//! inferred for its place (1.5 compared with an integer column), it keeps its own type, and the
//! comparison is widened.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::expr::{Cast, Placeholder, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, in_list};
use stoa_error::Place;
use stoa_error::{Error, Result};

use crate::errors::{from_datafusion, to_datafusion};
use crate::{arithmetic, unify};

/// Finds the type of every parameter: as inferred from its place, else as declared, else text; of one that is
/// computed with, the number that was declared. Returns the plan with these types filled in.
pub fn resolve(
    plan: LogicalPlan,
    declared: &[Option<DataType>],
) -> Result<(LogicalPlan, Vec<DataType>)> {
    let found = found(&plan).map_err(from_datafusion)?;
    let count = found.keys().next_back().map_or(0, |last| last + 1).max(declared.len());
    let types: Vec<DataType> = (0..count)
        .map(|index| {
            let declared = declared.get(index).cloned().flatten();
            let Some(found) = found.get(&index) else { return declared.unwrap_or(DataType::Utf8) };
            let is_number = |of: &DataType| of.is_numeric();
            match (&found.of, declared) {
                (Some(of), Some(own)) if found.is_computed && is_number(of) && is_number(&own) => {
                    own
                }
                (Some(of), _) => of.clone(),
                (None, declared) => declared.unwrap_or(DataType::Utf8),
            }
        })
        .collect();
    if found.is_empty() {
        return Ok((plan, types));
    }
    let plan = with_types(plan, &types, &found).map_err(from_datafusion)?;
    Ok((plan, types))
}

/// What the places of a parameter tell.
#[derive(Debug, Default)]
struct Found {
    /// The type, where one of them tells it.
    of: Option<DataType>,
    /// Whether it is an operand of arithmetic.
    is_computed: bool,
}

/// By index, from 0.
fn found(plan: &LogicalPlan) -> EngineResult<BTreeMap<usize, Found>> {
    let mut found = BTreeMap::new();
    plan.apply_with_subqueries(|node| {
        let is_limit = matches!(node, LogicalPlan::Limit(_));
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                note_list(expr, &schema, &mut found);
                note_branches(expr, &schema, &mut found);
                note_arithmetic(expr, &mut found);
                note_type(expr, is_limit, &mut found);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

fn note_type(expr: &Expr, is_limit: bool, found: &mut BTreeMap<usize, Found>) {
    let (placeholder, place) = match expr {
        Expr::Placeholder(placeholder) => (placeholder, is_limit.then_some(DataType::Int64)),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            match expr.as_ref() {
                Expr::Placeholder(inner) => (inner, Some(field.data_type().clone())),
                _ => return,
            }
        }
        _ => return,
    };
    let Some(index) = index_of(&placeholder.id) else { return };
    let own = placeholder.field.as_ref().map(|field| field.data_type().clone());
    let known = found.entry(index).or_default();
    if known.of.is_none() {
        known.of = own.or(place);
    }
}

/// `column = ANY($1)` wants a list of the column's type.
fn note_list(expr: &Expr, schema: &DFSchema, found: &mut BTreeMap<usize, Found>) {
    let Expr::ScalarFunction(function) = expr else { return };
    let [Expr::Placeholder(placeholder), element] = function.args.as_slice() else { return };
    let Some(index) = index_of(&placeholder.id) else { return };
    if function.name() == "array_has"
        && let Ok(data_type) = element.get_type(schema)
    {
        let list = DataType::List(Arc::new(Field::new_list_field(data_type, true)));
        found.entry(index).or_default().of = Some(list);
    }
}

/// The type that branches of CASE, or operands of COALESCE and its like, have beside a parameter is its type.
fn note_branches(expr: &Expr, schema: &DFSchema, found: &mut BTreeMap<usize, Found>) {
    let branches: Vec<&Expr> = match expr {
        Expr::Case(case) => {
            let then = case.when_then_expr.iter().map(|(_, then)| then);
            then.chain(&case.else_expr).map(|branch| branch.as_ref()).collect()
        }
        Expr::ScalarFunction(call) if unify::has_one_type(call.name()) => {
            call.args.iter().collect()
        }
        _ => return,
    };
    let untyped = |branch: &&Expr| match branch {
        Expr::Placeholder(Placeholder { id, field: None }) => index_of(id),
        _ => None,
    };
    let indices: Vec<usize> = branches.iter().filter_map(untyped).collect();
    if indices.is_empty() {
        return;
    }
    let others = branches.iter().filter(|branch| untyped(branch).is_none());
    let others = others.map(|other| Ok(unify::Branch::of(other, other.get_type(schema)?)));
    // What has no type yet, or none in common, is told of when the statement is analysed.
    let Ok(others) = others.collect::<EngineResult<Vec<_>>>() else { return };
    let Ok(Some(of)) = unify::type_of_all("CASE", &others) else { return };
    for index in indices {
        found.entry(index).or_default().of.get_or_insert_with(|| of.clone());
    }
}

fn note_arithmetic(expr: &Expr, found: &mut BTreeMap<usize, Found>) {
    let Expr::BinaryExpr(binary) = expr else { return };
    if !arithmetic::is_arithmetic(binary.op) {
        return;
    }
    for operand in [&binary.left, &binary.right] {
        if let Expr::Placeholder(placeholder) = operand.as_ref()
            && let Some(index) = index_of(&placeholder.id)
        {
            found.entry(index).or_default().is_computed = true;
        }
    }
}

/// `$1` has index 0.
pub fn index_of(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

fn with_types(
    plan: LogicalPlan,
    types: &[DataType],
    found: &BTreeMap<usize, Found>,
) -> EngineResult<LogicalPlan> {
    let typed = |expr: Expr| match expr {
        Expr::Placeholder(Placeholder { id, field }) => {
            let index = index_of(&id);
            let is_computed =
                index.and_then(|index| found.get(&index)).is_some_and(|it| it.is_computed);
            if field.is_some() && !is_computed {
                return Ok(Transformed::no(Expr::Placeholder(Placeholder { id, field })));
            }
            let data_type = index.and_then(|index| types.get(index));
            let field = data_type.map(|of| Arc::new(Field::new(&id, of.clone(), true)));
            Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
        }
        other => Ok(Transformed::no(other)),
    };
    let plan = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| expr.transform_up(typed))?
            .map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(plan.data)
}

/// Puts values in the parameters' places.
///
/// # Errors
/// A wrong number of values (08P01), or one that is not of the kind wanted (22P02).
pub fn bind(
    plan: &LogicalPlan,
    types: &[DataType],
    values: Vec<ScalarValue>,
) -> Result<LogicalPlan> {
    if values.len() != types.len() {
        let message = format!(
            "the statement takes {} parameters, but {} were given",
            types.len(),
            values.len()
        );
        return Err(Error::invalid(message).with_sqlstate("08P01"));
    }
    if types.is_empty() {
        return Ok(plan.clone());
    }
    let values = values.into_iter().zip(types).enumerate().map(|(index, (value, wanted))| {
        fit(value, wanted).map_err(|error| error.at(Place::Parameter(index + 1)))
    });
    let values = values.collect::<Result<Vec<_>>>()?;
    with_values(plan.clone(), &values).map_err(from_datafusion)
}

/// The engine's own way settles the types of VALUES anew, by rules that are not PostgreSQL's.
fn with_values(plan: LogicalPlan, values: &[ScalarValue]) -> EngineResult<LogicalPlan> {
    let put_list = |expr: Expr| match as_list(&expr, values) {
        Some(list) => Ok(Transformed::yes(list)),
        None => Ok(Transformed::no(expr)),
    };
    let put = |expr: Expr| match &expr {
        Expr::Placeholder(Placeholder { id, .. }) => {
            match index_of(id).and_then(|index| values.get(index)) {
                Some(value) => Ok(Transformed::yes(Expr::Literal(value.clone(), None))),
                None => {
                    let message = format!("there is no parameter {id}");
                    Err(to_datafusion(Error::invalid(message).with_sqlstate("42P02")))
                }
            }
        }
        _ => Ok(Transformed::no(expr)),
    };
    let plan = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let put = expr.transform_up(put_list)?.transform_data(|expr| expr.transform_up(put));
            Ok(put?.update_data(|expr| name.restore(expr)))
        })?;
        node.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(plan.data)
}

/// `x = ANY ($1)` with numbers of another type than `x`, which are compared one by one.
fn as_list(expr: &Expr, values: &[ScalarValue]) -> Option<Expr> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let [Expr::Placeholder(Placeholder { id, field }), of] = call.args.as_slice() else {
        return None;
    };
    let ScalarValue::List(list) = values.get(index_of(id)?)? else { return None };
    let is_other = field.as_ref().is_some_and(|field| field.data_type() != list.data_type());
    (call.name() == "array_has" && is_other && list.is_valid(0)).then_some(())?;
    let elements = list.value(0);
    let element = |index| ScalarValue::try_from_array(&elements, index).ok();
    let element = |index| element(index).map(|value| Expr::Literal(value, None));
    let list = (0..elements.len()).map(element).collect::<Option<Vec<_>>>()?;
    (!list.is_empty()).then(|| in_list(of.clone(), list, false))
}

/// A cast of a value as a value; other expressions as they are.
///
/// # Errors
/// A value that cannot be cast.
pub fn fold_cast(expr: Expr) -> EngineResult<Transformed<Expr>> {
    if let Expr::Cast(Cast { expr: value, field }) = &expr
        && let Expr::Literal(value, _) = value.as_ref()
    {
        let cast = value.cast_to(field.data_type())?;
        return Ok(Transformed::yes(Expr::Literal(cast, None)));
    }
    Ok(Transformed::no(expr))
}

/// A value as its place wants it; one that does not fit a numeric type exactly stays as it is.
///
/// # Errors
/// A value that is not of the kind wanted (22P02).
pub fn fit(value: ScalarValue, wanted: &DataType) -> Result<ScalarValue> {
    let own = value.data_type();
    if own == *wanted {
        return Ok(value);
    }
    let cast = value.cast_to(wanted);
    if own.is_numeric() && wanted.is_numeric() {
        let exact = cast.ok().filter(|cast| cast.cast_to(&own).is_ok_and(|back| back == value));
        return Ok(exact.unwrap_or(value));
    }
    if let (DataType::List(of), DataType::List(wanted)) = (&own, wanted)
        && of.data_type().is_numeric()
        && wanted.data_type().is_numeric()
    {
        let exact = cast.ok().filter(|cast| cast.cast_to(&own).is_ok_and(|back| back == value));
        return Ok(exact.unwrap_or(value));
    }
    cast.map_err(from_datafusion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_fit_keep_their_type() {
        let five = ScalarValue::Int64(Some(5));
        assert_eq!(fit(five, &DataType::Int32).unwrap(), ScalarValue::Int32(Some(5)));
        let large = ScalarValue::Int64(Some(1 << 40));
        assert_eq!(fit(large.clone(), &DataType::Int32).unwrap(), large);
        let half = ScalarValue::Decimal128(Some(15), 2, 1);
        assert_eq!(fit(half.clone(), &DataType::Int32).unwrap(), half);
        let list = |of: &DataType, values: &[ScalarValue]| {
            ScalarValue::List(ScalarValue::new_list_nullable(values, of))
        };
        let halves = list(&half.data_type(), std::slice::from_ref(&half));
        let wanted = list(&DataType::Int32, &[ScalarValue::Int32(Some(5))]);
        assert_eq!(fit(halves.clone(), &wanted.data_type()).unwrap(), halves);
        let fives = list(&DataType::Int64, &[ScalarValue::Int64(Some(5))]);
        assert_eq!(fit(fives, &wanted.data_type()).unwrap(), wanted);
        let text = ScalarValue::Utf8(Some("7".to_owned()));
        assert_eq!(fit(text, &DataType::Int32).unwrap(), ScalarValue::Int32(Some(7)));
        let text = ScalarValue::Utf8(Some("x".to_owned()));
        assert_eq!(fit(text, &DataType::Int32).unwrap_err().sqlstate(), "22P02");
        assert_eq!(fit(ScalarValue::Null, &DataType::Int32).unwrap(), ScalarValue::Int32(None));
    }

    #[test]
    fn placeholders_are_counted_from_one() {
        assert_eq!(index_of("$1"), Some(0));
        assert_eq!(index_of("$0"), None);
        assert_eq!(index_of("$name"), None);
    }
}
