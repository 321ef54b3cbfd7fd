//! Sums of many terms, and products of many factors, computed one after another in one function.
//!
//! A chain of `+` and `-`, or of `*`, `/` and `%`, that is too long to be a tree comes as one call
//! (`stoa_sql::chains`). What is said of sums here holds for products: of integers and floats. Here it
//! gets, for each of its steps, the operation that [`arithmetic`](super::arithmetic) has for two
//! operands of these types. **Invariant:** the result, its type and the step that fails are those of the
//! chain written out.

use std::fmt::Display;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, Operator};

use super::arithmetic::{self, decimal_of, is_number, width};
use super::call::{Operation, call, failure};
use super::numeric::NUMERIC;
use super::operators::Checked;
use crate::scope::Scope;
use stoa_sql::chains::SUM;

/// How the operators of a chain are written.
const SIGNS: [char; 5] = ['+', '-', '*', '/', '%'];

/// Steps that are no plain arithmetic of numbers: each is an expression within the next.
const OTHER_STEPS_MAX: usize = 200;

/// The call as it is parsed: a text of signs, and the terms. It is gone before anything is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SumOfTerms;

impl Operation for SumOfTerms {
    fn name(&self) -> &str {
        SUM
    }

    /// As the engine has it of the chain: of sums, or else of differences, products, quotients.
    fn result(&self, types: &[DataType]) -> Result<DataType> {
        let mut terms = types.iter().skip(1);
        let first = terms.next().cloned().unwrap_or(DataType::Null);
        terms.try_fold(first, |sum, term| {
            let of = |op| BinaryTypeCoercer::new(&sum, &op, term).get_result_type();
            of(Operator::Plus)
                .or_else(|_| of(Operator::Minus))
                .or_else(|_| of(Operator::Multiply))
                .or_else(|_| of(Operator::Divide))
        })
    }

    fn shown(&self, operands: &[String]) -> String {
        let Some((signs, terms)) = operands.split_first() else { return SUM.to_owned() };
        shown(signs.chars().filter(|sign| SIGNS.contains(sign)), terms)
    }

    fn compute(&self, _: &[ColumnarValue], _: usize) -> Result<ArrayRef> {
        Err(failure("42883", format!("function {SUM} does not exist")))
    }
}

/// A chain as it is written out.
fn shown(signs: impl Iterator<Item = impl Display>, terms: &[String]) -> String {
    let mut terms = terms.iter();
    let mut shown = terms.next().cloned().unwrap_or_default();
    for (sign, term) in signs.zip(terms) {
        shown.push_str(&format!(" {sign} {term}"));
    }
    shown
}

/// One step: the sum so far and the next term, as what they are added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Step {
    operation: Checked,
    sum: DataType,
    term: DataType,
}

/// The steps of a sum of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Steps {
    steps: Arc<[Step]>,
    of: DataType,
}

impl Operation for Steps {
    fn name(&self) -> &str {
        "sum_of_terms"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.of.clone())
    }

    fn shown(&self, operands: &[String]) -> String {
        shown(self.steps.iter().map(|step| step.operation.0), operands)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let mut terms = operands.iter();
        let Some(first) = terms.next() else { return Err(failure("42883", "no operand")) };
        let mut sum = first.clone();
        for (step, term) in self.steps.iter().zip(terms) {
            let (left, right) = (sum.cast_to(&step.sum, None)?, term.cast_to(&step.term, None)?);
            let is_constant =
                matches!((&left, &right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
            let values = step.operation.compute(&[left, right], rows)?;
            sum = match is_constant {
                true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
                false => ColumnarValue::Array(values),
            };
        }
        sum.cast_to(&self.of, None)?.to_array(rows)
    }
}

/// The call with the operation of each of its steps.
///
/// # Errors
/// 54001 for long sums of what is neither integer, decimal nor float.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let mut args = function.args.into_iter();
    let signs = match args.next() {
        Some(Expr::Literal(signs, _)) => signs.try_as_str().flatten().map(str::to_owned),
        _ => None,
    };
    let (Some(signs), Some(first)) = (signs, args.next()) else {
        return Err(failure("42883", format!("function {SUM} does not exist")));
    };
    if signs.len() != args.len() {
        return Err(failure("42883", format!("function {SUM} does not exist")));
    }
    let mut sum = Sum::of(first, scope)?;
    let mut others = 0;
    for (sign, term) in signs.bytes().zip(args) {
        let op = operator(sign)?;
        let of = term.get_type(&scope.schema)?;
        let Some(step) = sum.step(op, &term, &of)? else {
            others += 1;
            if others > OTHER_STEPS_MAX {
                return Err(failure(
                    "54001",
                    format!(
                        "more than {OTHER_STEPS_MAX} terms that are neither integers nor floats"
                    ),
                ));
            }
            let (left, right) = (Box::new(sum.into_expr()), Box::new(term));
            let added = arithmetic::rewrite(BinaryExpr { left, op, right }, scope)?.data;
            sum = Sum::of(added, scope)?;
            continue;
        };
        sum.add(step, term)?;
    }
    Ok(Transformed::yes(sum.into_expr()))
}

fn operator(sign: u8) -> Result<Operator> {
    Ok(match sign {
        b'+' => Operator::Plus,
        b'-' => Operator::Minus,
        b'*' => Operator::Multiply,
        b'/' => Operator::Divide,
        b'%' => Operator::Modulo,
        _ => return Err(failure("42883", format!("function {SUM} does not exist"))),
    })
}

/// A sum as far as it has come.
struct Sum {
    terms: Vec<Expr>,
    steps: Vec<Step>,
    of: DataType,
}

impl Sum {
    fn of(first: Expr, scope: &Scope<'_>) -> Result<Self> {
        let of = first.get_type(&scope.schema)?;
        Ok(Self { terms: vec![first], steps: Vec::new(), of })
    }

    /// The operation for a further term; `None` where it is not one of two numbers.
    fn step(&self, op: Operator, term: &Expr, of: &DataType) -> Result<Option<Step>> {
        if !is_number(&self.of) || !is_number(of) {
            return Ok(None);
        }
        // What was added up is not a literal any more.
        let first = match (self.steps.is_empty(), self.terms.first()) {
            (true, first) => first,
            (false, _) => None,
        };
        let both = |of: DataType| Step { operation: Checked(op), sum: of.clone(), term: of };
        let step = if self.of.is_integer() && of.is_integer() {
            both(match width(&self.of).max(width(of)) {
                2 => DataType::Int16,
                4 => DataType::Int32,
                _ => DataType::Int64,
            })
        } else if self.of == DataType::Float32 && *of == DataType::Float32 {
            both(DataType::Float32)
        } else if self.of.is_floating() || of.is_floating() {
            both(DataType::Float64)
        } else if !matches!(op, Operator::Plus | Operator::Minus) {
            // Products and quotients of decimals have types of their own.
            return Ok(None);
        } else {
            let (sum, term) = (decimal_of(first, &self.of), decimal_of(Some(term), of));
            match sum != term && (sum == NUMERIC || term == NUMERIC) {
                true => both(NUMERIC),
                false => {
                    let (sum, term) = BinaryTypeCoercer::new(&sum, &op, &term).get_input_types()?;
                    Step { operation: Checked(op), sum, term }
                }
            }
        };
        Ok(Some(step))
    }

    fn add(&mut self, step: Step, term: Expr) -> Result<()> {
        self.of = match step.sum.is_decimal() {
            true => {
                let op = step.operation.0;
                BinaryTypeCoercer::new(&step.sum, &op, &step.term).get_result_type()?
            }
            false => step.sum.clone(),
        };
        self.steps.push(step);
        self.terms.push(term);
        Ok(())
    }

    fn into_expr(mut self) -> Expr {
        match self.steps.is_empty() {
            true => self.terms.swap_remove(0),
            false => call(Steps { steps: self.steps.into(), of: self.of }, self.terms),
        }
    }
}
