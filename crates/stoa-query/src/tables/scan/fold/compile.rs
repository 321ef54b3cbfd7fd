//! A partial aggregation in the terms of `stoa-report`: keys, operands, measures, conditions.
//!
//! In: `AggregateExec` over projections and filters over a scan. Out: the same over the scan's columns; `None` where a
//! part of it has no such terms. **Invariant:** a [`Number`] is what the expression beside it computes, wherever its
//! bounds hold.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, IsNotNullExpr, IsNullExpr, Literal,
};
use datafusion::physical_expr::utils::{collect_columns, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use stoa_error::Result;
use stoa_orc::{ColumnRef, Predicate};
use stoa_report::{
    Condition, Fold, Measure, Number, NumberOp, Operand, RowExpression, ScanFilter, ValueKind,
    kind_of,
};
use stoa_semantics::errors::from_datafusion;

use super::super::OrcScanExec;
use super::super::selected::{id_of, test_of};
use crate::tables::filter::{compare, compare_op, mirror};

/// An aggregation as a grouping of a scan's rows.
pub(super) struct Folded {
    pub(super) fold: Arc<Fold>,
    /// Conditions that the scan judges exactly. Their columns are indexes into its own.
    pub(super) exact: Vec<ScanFilter>,
}

type Expr = Arc<dyn PhysicalExpr>;

/// The terms of a partial aggregation; `None` where it has none.
///
/// # Errors
/// Expressions over columns that their input does not have.
pub(super) fn folded(aggregate: &AggregateExec) -> EngineResult<Option<Folded>> {
    let group_by = aggregate.group_expr();
    let functions = aggregate.aggr_expr();
    let is_plain = |function: &Arc<AggregateFunctionExpr>| {
        !function.is_distinct() && function.order_bys().is_empty() && !function.ignore_nulls()
    };
    if group_by.has_grouping_set()
        || aggregate.filter_expr().iter().any(Option::is_some)
        || !functions.iter().all(is_plain)
    {
        return Ok(None);
    }
    let keys = group_by.expr().iter().map(|(key, _)| Arc::clone(key));
    let keys: Vec<Expr> = keys.collect();
    let arguments: Vec<Vec<Expr>> =
        functions.iter().map(|function| function.expressions()).collect();
    let mut all: Vec<Expr> = keys.iter().chain(arguments.iter().flatten()).cloned().collect();
    let Some((scan, conditions)) = down_to_scan(aggregate.input(), &mut all)? else {
        return Ok(None);
    };
    if all.iter().chain(&conditions).any(is_volatile) {
        return Ok(None);
    }
    let schema = &scan.schema;
    let (keys, arguments_below) = all.split_at(keys.len());
    let mut compiler = Compiler { schema, operands: Vec::new(), known: Vec::new() };
    let keys =
        keys.iter().map(|key| compiler.key(key)).collect::<EngineResult<Option<Vec<_>>>>()?;
    let Some(keys) = keys else { return Ok(None) };
    let mut measures = Vec::new();
    let mut below = arguments_below.iter();
    for (function, arguments) in functions.iter().zip(&arguments) {
        let arguments: Vec<&Expr> = below.by_ref().take(arguments.len()).collect();
        let Some(of_function) = compiler.measures(function, &arguments)? else { return Ok(None) };
        measures.extend(of_function);
    }
    let mut exact = Vec::new();
    let mut left: Vec<Arc<dyn RowExpression>> = Vec::new();
    for condition in &conditions {
        match exact_filter(condition, schema) {
            Some(filter) => exact.push(filter),
            None => left.push(compiler.expression(condition)?),
        }
    }
    let operands = compiler.operands;
    let fold = Fold { conditions: left, keys, operands, measures, schema: aggregate.schema() };
    // One of each column that the engine expects.
    if fold.schema.fields().len() != fold.keys.len() + fold.measures.len() {
        return Ok(None);
    }
    Ok(Some(Folded { fold: Arc::new(fold), exact }))
}

/// The scan below, with `expressions` over its columns, and the conditions on the way; `None` where other operators
/// are between.
fn down_to_scan<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    expressions: &mut [Expr],
) -> EngineResult<Option<(&'a OrcScanExec, Vec<Expr>)>> {
    let mut conditions: Vec<Expr> = Vec::new();
    let mut plan = plan;
    loop {
        if let Some(scan) = plan.downcast_ref::<OrcScanExec>() {
            return Ok(Some((scan, conditions)));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let of: Vec<Expr> = projection.expr().iter().map(|one| Arc::clone(&one.expr)).collect();
            for expression in expressions.iter_mut().chain(&mut conditions) {
                *expression = in_terms_of(expression, &of)?;
            }
            plan = projection.input();
        } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            if filter.fetch().is_some() {
                return Ok(None);
            }
            let schema = filter.input().schema();
            if let Some(kept) = filter.projection().as_ref() {
                let of = kept
                    .iter()
                    .map(|at| Arc::new(Column::new(schema.field(*at).name(), *at)) as Expr);
                let of: Vec<Expr> = of.collect();
                for expression in expressions.iter_mut().chain(&mut conditions) {
                    *expression = in_terms_of(expression, &of)?;
                }
            }
            conditions.extend(split_conjunction(filter.predicate()).into_iter().cloned());
            plan = filter.input();
        } else {
            return Ok(None);
        }
    }
}

/// An expression with others in the place of its columns.
fn in_terms_of(expression: &Expr, of: &[Expr]) -> EngineResult<Expr> {
    Arc::clone(expression)
        .transform_down(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            match of.get(column.index()) {
                Some(expression) => Ok(Transformed::new(
                    Arc::clone(expression),
                    true,
                    datafusion::common::tree_node::TreeNodeRecursion::Jump,
                )),
                None => {
                    datafusion::common::internal_err!("column {column} of an operator is missing")
                }
            }
        })
        .data()
}

/// Puts expressions over a scan's columns into the terms of a fold.
struct Compiler<'a> {
    schema: &'a SchemaRef,
    operands: Vec<Operand>,
    /// The expressions of `operands`.
    known: Vec<Expr>,
}

impl Compiler<'_> {
    fn key(&mut self, key: &Expr) -> EngineResult<Option<Operand>> {
        self.operand(key, |kind| kind != ValueKind::Float)
    }

    /// An operand whose values are of some kinds.
    fn operand(
        &mut self,
        expression: &Expr,
        fits: impl Fn(ValueKind) -> bool,
    ) -> EngineResult<Option<Operand>> {
        let data_type = expression.data_type(self.schema)?;
        if !kind_of(&data_type).is_some_and(fits) {
            return Ok(None);
        }
        if let Some(column) = expression.downcast_ref::<Column>() {
            return Ok(Some(Operand::Column(column.index())));
        }
        let row = self.expression(expression)?;
        // A constant is computed as such.
        if row.columns().is_empty() {
            return Ok(None);
        }
        let is_whole = data_type.is_integer() || matches!(data_type, DataType::Decimal128(..));
        let number = is_whole.then(|| number(expression, self.schema)).flatten();
        Ok(Some(match number {
            Some(number) => Operand::Number(number, row),
            None => Operand::Expression(row),
        }))
    }

    /// Where an operand is among those of the fold.
    fn index(
        &mut self,
        expression: &Expr,
        fits: impl Fn(ValueKind) -> bool,
    ) -> EngineResult<Option<usize>> {
        if let Some(known) = self.known.iter().position(|known| known == expression) {
            let data_type = expression.data_type(self.schema)?;
            return Ok(kind_of(&data_type).is_some_and(fits).then_some(known));
        }
        let Some(operand) = self.operand(expression, fits)? else { return Ok(None) };
        self.operands.push(operand);
        self.known.push(Arc::clone(expression));
        Ok(Some(self.operands.len() - 1))
    }

    /// What a function keeps of each group, in the order of its states.
    fn measures(
        &mut self,
        function: &AggregateFunctionExpr,
        arguments: &[&Expr],
    ) -> EngineResult<Option<Vec<Measure>>> {
        let states = function.state_fields()?;
        let types: Vec<&DataType> = states.iter().map(|field| field.data_type()).collect();
        let is_number = |kind| matches!(kind, ValueKind::Int | ValueKind::Decimal);
        Ok(match (function.fun().name(), arguments, types.as_slice()) {
            ("count", [only], [DataType::Int64]) => match only.downcast_ref::<Literal>() {
                Some(value) if value.value().is_null() => None,
                Some(_) => Some(vec![Measure::Rows]),
                None => self.index(only, |_| true)?.map(|index| vec![Measure::Values(index)]),
            },
            ("sum" | "avg", [only], [DataType::Decimal128(..), DataType::Int64]) => {
                let data_type = only.data_type(self.schema)?;
                let is_whole =
                    data_type.is_integer() || matches!(data_type, DataType::Decimal128(..));
                match is_whole {
                    true => self
                        .index(only, is_number)?
                        .map(|index| vec![Measure::Sum(index), Measure::Values(index)]),
                    false => None,
                }
            }
            ("min", [only], [of]) if only.data_type(self.schema)? == **of => {
                let index = self.index(only, |kind| kind != ValueKind::Float)?;
                index.map(|index| vec![Measure::Least(index)])
            }
            ("max", [only], [of]) if only.data_type(self.schema)? == **of => {
                let index = self.index(only, |kind| kind != ValueKind::Float)?;
                index.map(|index| vec![Measure::Greatest(index)])
            }
            _ => None,
        })
    }

    fn expression(&self, expression: &Expr) -> EngineResult<Arc<dyn RowExpression>> {
        let mut columns: Vec<usize> =
            collect_columns(expression).iter().map(Column::index).collect();
        columns.sort_unstable();
        columns.dedup();
        // By place: names may be those of operators above.
        let over_columns = Arc::clone(expression).transform_down(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            match columns.binary_search(&column.index()) {
                Ok(place) => {
                    Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Expr))
                }
                Err(_) => datafusion::common::internal_err!("column {column} of a scan is missing"),
            }
        });
        let expression = over_columns.data()?;
        Ok(Arc::new(EngineExpression { expression, columns }))
    }
}

/// An expression of the engine's.
#[derive(Debug)]
struct EngineExpression {
    /// Over `columns` alone.
    expression: Expr,
    columns: Vec<usize>,
}

impl RowExpression for EngineExpression {
    fn columns(&self) -> &[usize] {
        &self.columns
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let values = self.expression.evaluate(rows);
        let values = values.and_then(|values| values.into_array(rows.num_rows()));
        values.map_err(from_datafusion)
    }
}

/// An expression as whole numbers of 64 bits; `None` where it is more than sums, differences and products of columns
/// and constants.
fn number(expression: &Expr, schema: &Schema) -> Option<Number> {
    let data_type = expression.data_type(schema).ok()?;
    if let Some(column) = expression.downcast_ref::<Column>() {
        let is_whole = data_type.is_integer() || matches!(data_type, DataType::Decimal128(..));
        return is_whole.then(|| Number::Column(column.index()));
    }
    if let Some(literal) = expression.downcast_ref::<Literal>() {
        return constant(literal.value()).map(Number::Constant);
    }
    if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(schema).ok()?;
        return converted(number(cast.expr(), schema)?, &from, &data_type);
    }
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        let op = match binary.op() {
            Operator::Plus => NumberOp::Add,
            Operator::Minus => NumberOp::Subtract,
            Operator::Multiply => NumberOp::Multiply,
            _ => return None,
        };
        return of_two(op, (binary.left(), binary.right()), &data_type, schema);
    }
    let function = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let op = match function.fun().name() {
        "checked_add" => NumberOp::Add,
        "checked_subtract" => NumberOp::Subtract,
        "checked_multiply" => NumberOp::Multiply,
        _ => return None,
    };
    let [left, right] = function.args() else { return None };
    of_two(op, (left, right), &data_type, schema)
}

fn constant(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int8(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        ScalarValue::Decimal128(value, ..) => i64::try_from((*value)?).ok(),
        _ => None,
    }
}

fn of_two(
    op: NumberOp,
    (left, right): (&Expr, &Expr),
    data_type: &DataType,
    schema: &Schema,
) -> Option<Number> {
    let (a, b) = (left.data_type(schema).ok()?, right.data_type(schema).ok()?);
    let (left, right) = (number(left, schema)?, number(right, schema)?);
    match (&a, &b, data_type) {
        (a, b, _) if a == b && a == data_type && a.is_integer() => {
            Some(within(of(op, left, right), data_type)?)
        }
        (
            DataType::Decimal128(_, s),
            DataType::Decimal128(_, t),
            DataType::Decimal128(_, scale),
        ) => match op {
            NumberOp::Multiply => (s + t == *scale).then(|| of(op, left, right)),
            _ => {
                let (left, right) = (scaled(left, *s, *scale)?, scaled(right, *t, *scale)?);
                Some(of(op, left, right))
            }
        },
        _ => None,
    }
}

fn of(op: NumberOp, left: Number, right: Number) -> Number {
    Number::Of(op, Box::new(left), Box::new(right))
}

/// A decimal with more digits behind the point.
fn scaled(number: Number, from: i8, to: i8) -> Option<Number> {
    let digits = u32::try_from(to.checked_sub(from)?).ok()?;
    match digits {
        0 => Some(number),
        digits => {
            let by = Number::Constant(10_i64.checked_pow(digits)?);
            Some(of(NumberOp::Multiply, number, by))
        }
    }
}

fn converted(number: Number, from: &DataType, to: &DataType) -> Option<Number> {
    match (from, to) {
        (from, to) if from == to => Some(number),
        (from, to) if from.is_integer() && to.is_integer() => within(number, to),
        (from, DataType::Decimal128(digits, scale)) => {
            let scale_before = match from {
                DataType::Decimal128(_, scale) => *scale,
                from if from.is_integer() => 0,
                _ => return None,
            };
            let number = scaled(number, scale_before, *scale)?;
            let most = 10_i64.checked_pow((*digits).into()).map_or(i64::MAX, |end| end - 1);
            Some(Number::Within(Box::new(number), -most, most))
        }
        _ => None,
    }
}

/// A number that its type holds.
fn within(number: Number, data_type: &DataType) -> Option<Number> {
    let (least, greatest) = match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN, i64::MAX),
        _ => return None,
    };
    Some(Number::Within(Box::new(number), least, greatest))
}

/// A condition that a scan judges on its own, just as it is written: a comparison of a column with a constant of its
/// type, or whether it is NULL.
fn exact_filter(condition: &Expr, schema: &SchemaRef) -> Option<ScanFilter> {
    let test = |column: &Expr, predicate: &dyn Fn(ColumnRef) -> Option<Predicate>| {
        let index = column.downcast_ref::<Column>()?.index();
        let field = schema.field(index);
        // Nothing is judged of floating point numbers.
        if matches!(kind_of(field.data_type())?, ValueKind::Float) {
            return None;
        }
        let reference = ColumnRef::Field(id_of(field.metadata())?);
        let (_, test) = test_of(&predicate(reference)?)?;
        Some(ScanFilter::Test(Condition { column: index, test }))
    };
    if let Some(is_null) = condition.downcast_ref::<IsNullExpr>() {
        return test(is_null.arg(), &|column| Some(Predicate::IsNull(column)));
    }
    if let Some(is_not_null) = condition.downcast_ref::<IsNotNullExpr>() {
        return test(is_not_null.arg(), &|column| Some(Predicate::IsNotNull(column)));
    }
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    let op = compare_op(*binary.op())?;
    let (column, op, value) = match (binary.left(), binary.right()) {
        (column, value) if value.is::<Literal>() => (column, op, value),
        (value, column) => (column, mirror(op), value),
    };
    let value = value.downcast_ref::<Literal>()?.value();
    // The scan has nothing that never holds of a column.
    if value.is_null() {
        return None;
    }
    test(column, &|reference| compare(reference, op, value, schema))
}
