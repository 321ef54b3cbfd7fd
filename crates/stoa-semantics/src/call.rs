//! Functions of ours as the engine's: an operation on columns, wrapped.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, Scalar};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use stoa_error::Error;

use crate::errors::to_datafusion;
use crate::json_kind::JsonKind;

/// What a function computes. It is a value: equal ones compute the same.
pub(super) trait Operation:
    Debug + Clone + PartialEq + Eq + Hash + Send + Sync + 'static
{
    /// Its name in plans.
    fn name(&self) -> &str;
    /// The type of its result.
    fn result(&self, types: &[DataType]) -> Result<DataType>;
    /// Its values; operands are columns of `rows` rows, or constants.
    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef>;
    /// Whether its values are JSON.
    fn json(&self) -> Option<JsonKind> {
        None
    }
    /// Whether a value can be NULL where no operand is.
    fn makes_nulls(&self) -> bool {
        false
    }
    /// Whether it is NULL where an operand is. Operands that have no type are then not computed with.
    fn is_strict(&self) -> bool {
        false
    }
    /// How it is written with these operands.
    fn shown(&self, operands: &[String]) -> String {
        format!("{}({})", self.name(), operands.join(","))
    }
}

/// An expression that computes an operation.
pub(super) fn call(operation: impl Operation, operands: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function(operation)), operands))
}

/// An operation as a function that can be called by its name.
pub(super) fn function(operation: impl Operation) -> ScalarUDF {
    ScalarUDF::new_from_impl(Function::new(operation))
}

/// The operands as columns.
pub(super) fn columns(operands: &[ColumnarValue], rows: usize) -> Result<Vec<ArrayRef>> {
    operands.iter().map(|operand| operand.to_array(rows)).collect()
}

/// The only operand as a column.
///
/// # Errors
/// There is none (42883).
pub(super) fn column(operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
    let Some(operand) = operands.first() else { return Err(failure("42883", "no operand")) };
    operand.to_array(rows)
}

/// An error that the user sees as it is.
pub(super) fn failure(sqlstate: &'static str, message: impl Into<String>) -> DataFusionError {
    to_datafusion(Error::invalid(message.into()).with_sqlstate(sqlstate))
}

/// What PostgreSQL has and Stoa has not.
pub(super) fn unsupported(message: impl Into<String>, hint: &'static str) -> DataFusionError {
    to_datafusion(Error::unsupported(message.into()).with_hint(hint))
}

/// A column or a constant, as kernels of two operands take them.
pub(super) enum Operand {
    Column(ArrayRef),
    Constant(Scalar<ArrayRef>),
}

impl Operand {
    pub(super) fn of(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(array) => Self::Column(Arc::clone(array)),
            ColumnarValue::Scalar(scalar) => Self::Constant(scalar.to_scalar()?),
        })
    }

    pub(super) fn datum(&self) -> &dyn arrow::array::Datum {
        match self {
            Self::Column(array) => array,
            Self::Constant(scalar) => scalar,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Function<O> {
    operation: O,
    signature: Signature,
}

impl<O: Operation> Function<O> {
    fn new(operation: O) -> Self {
        let operands = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        Self { operation, signature: Signature::one_of(operands, Volatility::Immutable) }
    }

    /// What it computes.
    pub(super) fn operation(&self) -> &O {
        &self.operation
    }
}

impl<O: PartialEq> PartialEq for Function<O> {
    fn eq(&self, other: &Self) -> bool {
        self.operation == other.operation
    }
}

impl<O: Eq> Eq for Function<O> {}

impl<O: Hash> Hash for Function<O> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation.hash(state);
    }
}

impl<O: Operation> ScalarUDFImpl for Function<O> {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let operands: Vec<String> = args.iter().map(ToString::to_string).collect();
        Ok(self.operation.shown(&operands))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let operands: Vec<String> =
            args.iter().map(|operand| operand.schema_name().to_string()).collect();
        Ok(self.operation.shown(&operands))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.operation.result(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let nullable = is_nullable || self.operation.makes_nulls();
        let field = Field::new(self.name(), self.operation.result(&types)?, nullable);
        Ok(Arc::new(match self.operation.json() {
            Some(kind) => field.with_metadata(kind.metadata()),
            None => field,
        }))
    }

    /// With a NULL for an operand, the other ones are not computed, as in PostgreSQL: they may fail.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let is_null = |arg: &Expr| matches!(arg, Expr::Literal(value, _) if value.is_null());
        if !self.operation.is_strict() || !args.iter().any(is_null) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let types = args.iter().map(|arg| info.get_data_type(arg)).collect::<Result<Vec<_>>>()?;
        let null = ScalarValue::try_new_null(&self.operation.result(&types)?)?;
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(null, None)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant =
            args.args.iter().all(|operand| matches!(operand, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        // The engine asks what a condition is where columns are NULL: these have no type then.
        if self.operation.is_strict() && args.args.iter().any(|arg| arg.data_type().is_null()) {
            let null = ScalarValue::try_new_null(args.return_field.data_type())?;
            return Ok(ColumnarValue::Scalar(null));
        }
        let values = self.operation.compute(&args.args, rows)?;
        match is_constant && values.len() == 1 {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)),
            false => Ok(ColumnarValue::Array(values)),
        }
    }
}
