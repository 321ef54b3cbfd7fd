//! One type for the branches of CASE, the arguments of COALESCE, the elements of an ARRAY and the parts
//! of a UNION, an EXCEPT or an INTERSECT; also, by [`super::values`], for the columns of VALUES.
//!
//! As in PostgreSQL: literals of no type yet take that of the others, all of which are of one category
//! (numbers, times, …); of numbers the widest, of times the one that has most parts. **Invariant:** no
//! branch loses digits; what does not fit together is an error (42804).

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, Join, LogicalPlan, Projection, Union, cast,
};

use super::call::failure;
use super::casts;
use super::compare;
use super::conditions;
use super::numeric::NUMERIC;
use super::operators::name;
use super::span;
use crate::scope::Scope;

/// A branch: its type, and whether it is a literal whose type is not settled.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) of: DataType,
    pub(super) is_unknown: bool,
}

impl Branch {
    pub(super) fn of(expr: &Expr, of: DataType) -> Self {
        Self { is_unknown: is_unknown(expr) || of == DataType::Null, of }
    }
}

fn is_unknown(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_unknown(&alias.expr),
        Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) => true,
        _ => false,
    }
}

pub(super) fn case(mut case: Case, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let mut is_changed = case.expr.is_some();
    if let Some(operand) = &case.expr {
        let of = operand.get_type(&scope.schema)?;
        for (when, _) in &mut case.when_then_expr {
            let own = when.get_type(&scope.schema)?;
            **when = compare::beside(when.as_ref().clone(), &own, &of, scope)?;
        }
        if matches!(of, DataType::Interval(_)) {
            case.expr = case.expr.map(|operand| Box::new(span::of(*operand)));
            for (when, _) in &mut case.when_then_expr {
                **when = span::of(std::mem::take(when.as_mut()));
            }
        }
    } else {
        for (when, _) in &mut case.when_then_expr {
            let condition =
                conditions::condition("CASE/WHEN", std::mem::take(when.as_mut()), scope)?;
            is_changed |= condition.transformed;
            **when = condition.data;
        }
    }
    let branch = |expr: &Expr| Ok(Branch::of(expr, expr.get_type(&scope.schema)?));
    let mut branches =
        case.when_then_expr.iter().map(|(_, then)| branch(then)).collect::<Result<Vec<_>>>()?;
    if let Some(other) = &case.else_expr {
        branches.push(branch(other)?);
    }
    let Some(of) = common_type("CASE", &branches)? else {
        return Ok(Transformed::new_transformed(Expr::Case(case), is_changed));
    };
    let mut froms = branches.into_iter().map(|branch| branch.of);
    let mut to = |expr: Expr| {
        let from = froms.next().unwrap_or(DataType::Null);
        to_common(expr, &from, &of, scope.options).map(Box::new)
    };
    let when_then_expr = case
        .when_then_expr
        .into_iter()
        .map(|(when, then)| Ok((when, to(*then)?)))
        .collect::<Result<_>>()?;
    let else_expr = case.else_expr.map(|other| to(*other)).transpose()?;
    Ok(Transformed::yes(Expr::Case(Case { expr: case.expr, when_then_expr, else_expr })))
}

/// How errors call a function whose arguments have one type; `None` for others.
fn what(function: &str) -> Option<&'static str> {
    Some(match function {
        "coalesce" => "COALESCE",
        "greatest" => "GREATEST",
        "least" => "LEAST",
        "make_array" => "ARRAY",
        _ => return None,
    })
}

/// Whether all arguments of a function have one type.
pub(super) fn has_one_type(function: &str) -> bool {
    what(function).is_some()
}

/// Functions whose arguments have one type.
pub(super) fn call(call: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Some(what) = what(call.func.name()) else {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    };
    let branches = call
        .args
        .iter()
        .map(|arg| Ok(Branch::of(arg, arg.get_type(&scope.schema)?)))
        .collect::<Result<Vec<_>>>()?;
    let Some(of) = common_type(what, &branches)? else {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    };
    let args = call
        .args
        .into_iter()
        .zip(branches)
        .map(|(arg, branch)| to_common(arg, &branch.of, &of, scope.options))
        .collect::<Result<_>>()?;
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { args, ..call })))
}

/// The parts of a UNION with columns of the same types.
pub(super) fn union(union: Union, options: &ConfigOptions) -> Result<LogicalPlan> {
    let width = union.schema.fields().len();
    if union.inputs.iter().any(|input| input.schema().fields().len() != width) {
        // The engine says so.
        return Ok(LogicalPlan::Union(union));
    }
    let mut fields = Vec::with_capacity(width);
    for column in 0..width {
        let branches: Vec<Branch> =
            union.inputs.iter().map(|input| branch_of(input, column)).collect();
        let of = common_type("UNION", &branches)?;
        let of = of.unwrap_or_else(|| branches[0].of.clone());
        let parts = || union.inputs.iter().map(|input| input.schema().field(column));
        let is_nullable = parts().any(|field| field.is_nullable());
        let own = union.schema.field(column);
        let field = Field::new(own.name(), of, is_nullable).with_metadata(own.metadata().clone());
        fields.push((None, Arc::new(field)));
    }
    let schema = DFSchema::new_with_metadata(fields, union.schema.metadata().clone())?;
    let inputs = union
        .inputs
        .into_iter()
        .map(|input| part(Arc::unwrap_or_clone(input), &schema, options).map(Arc::new))
        .collect::<Result<_>>()?;
    Ok(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) }))
}

fn branch_of(input: &LogicalPlan, column: usize) -> Branch {
    let of = input.schema().field(column).data_type().clone();
    match input {
        LogicalPlan::Projection(projection) => Branch::of(&projection.expr[column], of),
        _ => Branch { is_unknown: of == DataType::Null, of },
    }
}

/// A part of a UNION with the types and names of the whole: the engine may leave parts out that have no rows,
/// the first of which gives the names.
fn part(input: LogicalPlan, whole: &DFSchema, options: &ConfigOptions) -> Result<LogicalPlan> {
    let own = Arc::clone(input.schema());
    let same = own.fields().iter().zip(whole.fields());
    let is_of_whole = |(own, of): (&FieldRef, &FieldRef)| own.data_type() == of.data_type();
    if same.clone().all(is_of_whole) {
        return named_as(input, whole);
    }
    let named = |expr: Expr, from: &DataType, to: &DataType, name: &str| {
        Ok(to_common(expr, from, to, options)?.alias(name))
    };
    if let LogicalPlan::Projection(projection) = &input
        && projection.expr.iter().any(is_unknown)
    {
        let exprs = projection.expr.iter().zip(same).map(|(expr, (own, of))| {
            named(expr.clone().unalias(), own.data_type(), of.data_type(), own.name())
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        let part = Projection::try_new(exprs, Arc::clone(&projection.input))?;
        return named_as(LogicalPlan::Projection(part), whole);
    }
    let columns = own.iter().zip(whole.fields()).map(|((qualifier, own), of)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), own.name()));
        match own.data_type() == of.data_type() {
            true => Ok(column),
            false => named(column, own.data_type(), of.data_type(), own.name()),
        }
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let part = Projection::try_new(columns, Arc::new(input))?;
    named_as(LogicalPlan::Projection(part), whole)
}

/// A part of a UNION under the names of the whole, if it has others.
fn named_as(part: LogicalPlan, whole: &DFSchema) -> Result<LogicalPlan> {
    let own = Arc::clone(part.schema());
    let mut pairs = own.fields().iter().zip(whole.fields());
    let names: HashSet<_> = whole.fields().iter().map(|field| field.name()).collect();
    if pairs.all(|(own, of)| own.name() == of.name()) || names.len() < whole.fields().len() {
        return Ok(part);
    }
    let columns = own.iter().zip(whole.fields()).map(|((qualifier, own), of)| {
        Expr::Column(Column::new(qualifier.cloned(), own.name())).alias(of.name())
    });
    Projection::try_new(columns.collect(), Arc::new(part)).map(LogicalPlan::Projection)
}

/// Whether a join is what the engine makes of EXCEPT and INTERSECT.
pub(super) fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
}

/// Both sides of an EXCEPT or an INTERSECT with columns of the same types.
pub(super) fn set_operation(
    mut join: Join,
    options: &ConfigOptions,
) -> Result<Transformed<LogicalPlan>> {
    let what = if join.join_type == JoinType::LeftAnti { "EXCEPT" } else { "INTERSECT" };
    let types = |side: &LogicalPlan| -> Vec<DataType> {
        side.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    };
    let (mut left, mut right) = (types(&join.left), types(&join.right));
    let mut is_changed = false;
    for pair in &join.on {
        let (Expr::Column(one), Expr::Column(other)) = pair else { continue };
        let i = join.left.schema().index_of_column(one)?;
        let j = join.right.schema().index_of_column(other)?;
        let inner = match &*join.left {
            LogicalPlan::Distinct(Distinct::All(inner)) => inner,
            _ => &join.left,
        };
        let branches = [branch_of(inner, i), branch_of(&join.right, j)];
        if let Some(of) = common_type(what, &branches)? {
            (left[i], right[j]) = (of.clone(), of);
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    join.left = Arc::new(retyped(Arc::unwrap_or_clone(join.left), &left, options)?);
    join.right = Arc::new(retyped(Arc::unwrap_or_clone(join.right), &right, options)?);
    LogicalPlan::Join(join).recompute_schema().map(Transformed::yes)
}

/// A side of a set operation, its columns as `types`. Rows are made distinct afterwards.
fn retyped(input: LogicalPlan, types: &[DataType], options: &ConfigOptions) -> Result<LogicalPlan> {
    if let LogicalPlan::Distinct(Distinct::All(inner)) = input {
        let inner = retyped(Arc::unwrap_or_clone(inner), types, options)?;
        return Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(inner))));
    }
    let schema = Arc::clone(input.schema());
    let columns = schema.iter().zip(types).map(|((qualifier, own), of)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), own.name()));
        match own.data_type() == of {
            true => Ok(column),
            false => Ok(to_common(column, own.data_type(), of, options)?
                .alias_qualified(qualifier.cloned(), own.name())),
        }
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Projection::try_new(columns, Arc::new(input)).map(LogicalPlan::Projection)
}

/// A branch as the type of all. `casts` leaves decimals their own scale where they become `numeric`;
/// here all are to be of one type.
pub(super) fn to_common(
    expr: Expr,
    from: &DataType,
    to: &DataType,
    options: &ConfigOptions,
) -> Result<Expr> {
    let number = casts::to_type(expr, from, to, options)?;
    let is_changed = from != to && *from != DataType::Null && !from.is_floating();
    Ok(match is_changed && *to == NUMERIC {
        true => cast(number, NUMERIC),
        false => number,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Category {
    Number,
    Text,
    Boolean,
    Time,
    TimeOfDay,
    Interval,
    Bytes,
}

fn category(of: &DataType) -> Option<Category> {
    Some(match of {
        of if of.is_numeric() => Category::Number,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Category::Text,
        DataType::Boolean => Category::Boolean,
        DataType::Date32 | DataType::Timestamp(..) => Category::Time,
        DataType::Time32(_) | DataType::Time64(_) => Category::TimeOfDay,
        DataType::Interval(_) => Category::Interval,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Category::Bytes,
        _ => return None,
    })
}

/// The type of all branches, also where they have it already; `None` where they have none in common.
pub(super) fn type_of_all(what: &str, branches: &[Branch]) -> Result<Option<DataType>> {
    if let Some(of) = common_type(what, branches)? {
        return Ok(Some(of));
    }
    let first = branches.first().map(|branch| branch.of.clone());
    Ok(first.filter(|first| branches.iter().all(|branch| branch.of == *first)))
}

/// The type that all branches get; `None` where they have it already, or where it is the engine's to
/// say.
pub(super) fn common_type(what: &str, branches: &[Branch]) -> Result<Option<DataType>> {
    let mut known = branches.iter().filter(|branch| !branch.is_unknown);
    let Some(first) = known.next() else {
        let is_text = branches.iter().all(|branch| branch.of == DataType::Utf8);
        return Ok((!is_text && !branches.is_empty()).then_some(DataType::Utf8));
    };
    let mut of = first.of.clone();
    for branch in known {
        let (Some(a), Some(b)) = (category(&of), category(&branch.of)) else {
            return Ok(None);
        };
        if a != b {
            let (a, b) = (name(&of), name(&branch.of));
            let message = format!("{what} types {a} and {b} cannot be matched");
            return Err(failure("42804", message));
        }
        of = wider(&of, &branch.of);
    }
    if category(&of).is_none() {
        return Ok(None);
    }
    Ok(branches.iter().any(|branch| branch.of != of).then_some(of))
}

/// The wider of two types of one category.
fn wider(a: &DataType, b: &DataType) -> DataType {
    use DataType::{Float32, Float64};
    match (a, b) {
        (a, b) if a == b => a.clone(),
        (Float64, _) | (_, Float64) => Float64,
        (Float32, _) | (_, Float32) => Float32,
        (a, b) if a.is_decimal() || b.is_decimal() => wider_decimal(a, b),
        (a, b) if a.is_integer() && b.is_integer() => {
            let bytes = |of: &DataType| match of {
                DataType::UInt16 => 4,
                DataType::UInt32 => 8,
                of => of.primitive_width().unwrap_or(8),
            };
            match bytes(a).max(bytes(b)) {
                1 | 2 => DataType::Int16,
                4 => DataType::Int32,
                _ => DataType::Int64,
            }
        }
        (DataType::Timestamp(_, a), DataType::Timestamp(_, b)) => {
            DataType::Timestamp(TimeUnit::Microsecond, a.clone().or_else(|| b.clone()))
        }
        (DataType::Date32, DataType::Timestamp(_, zone))
        | (DataType::Timestamp(_, zone), DataType::Date32) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        (DataType::LargeUtf8 | DataType::Utf8View | DataType::Utf8, _) => DataType::Utf8,
        (a, _) => a.clone(),
    }
}

fn wider_decimal(a: &DataType, b: &DataType) -> DataType {
    let (Some((p, s)), Some((q, t))) = (digits(a), digits(b)) else { return NUMERIC };
    let scale = s.max(t);
    match (p - s).max(q - t) + scale {
        precision @ ..=38 => DataType::Decimal128(precision as u8, scale as i8),
        _ => NUMERIC,
    }
}

/// Precision and scale of a number.
fn digits(of: &DataType) -> Option<(i16, i16)> {
    Some(match of {
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) => {
            (i16::from(*p), i16::from(*s))
        }
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(types: &[DataType]) -> Result<Option<DataType>> {
        let branch = |of: &DataType| Branch { of: of.clone(), is_unknown: *of == DataType::Null };
        common_type("CASE", &types.iter().map(branch).collect::<Vec<_>>())
    }

    #[test]
    fn the_widest_number_is_taken() {
        let decimal = DataType::Decimal128(10, 2);
        let wide = common(&[DataType::Int64, decimal.clone()]).unwrap();
        assert_eq!(wide, Some(DataType::Decimal128(21, 2)));
        assert_eq!(common(&[decimal, DataType::Float64]).unwrap(), Some(DataType::Float64));
        assert_eq!(common(&[DataType::Null, DataType::Int32]).unwrap(), Some(DataType::Int32));
        assert_eq!(common(&[DataType::Null]).unwrap(), Some(DataType::Utf8));
        assert_eq!(common(&[DataType::Int32, DataType::Int32]).unwrap(), None);
    }

    #[test]
    fn categories_are_not_mixed() {
        assert!(common(&[DataType::Int32, DataType::Utf8]).is_err());
        assert!(common(&[DataType::Date32, DataType::Boolean]).is_err());
    }
}
