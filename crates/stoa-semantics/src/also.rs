//! Functions that PostgreSQL has for more types than the engine.
//!
//! An [`AlsoFunction`] stands for the engine's function while a statement is planned, when types are not settled. Once
//! they are, the rule puts in its place the engine's function ([`engine`]) or ours of the other types. **Invariant:** none
//! of them is ever computed.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};

use stoa_error::{Error, Subject};

use super::operators::type_name;
use crate::errors::to_datafusion;

/// A function of the engine's.
#[derive(Debug)]
pub(super) struct Also {
    pub(super) name: &'static str,
    /// All names of the engine's own, which is not to come back by one of them.
    pub(super) other_names: &'static [&'static str],
    pub(super) engine: fn() -> Arc<ScalarUDF>,
    /// The type of the result for types that the engine's does not take; `None` for others.
    pub(super) makes: fn(&[DataType]) -> Option<DataType>,
}

#[derive(Debug)]
struct AlsoFunction {
    also: &'static Also,
    aliases: Vec<String>,
    signature: Signature,
}

impl PartialEq for AlsoFunction {
    fn eq(&self, other: &Self) -> bool {
        self.also.name == other.also.name
    }
}

impl Eq for AlsoFunction {}

impl Hash for AlsoFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.also.name.hash(state);
    }
}

/// Functions for the registry.
pub(super) fn functions(all: &'static [Also]) -> impl Iterator<Item = ScalarUDF> {
    all.iter().map(|also| {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        let aliases = also.other_names.iter().map(|name| (*name).to_owned()).collect();
        let signature = Signature::one_of(any, Volatility::Immutable);
        ScalarUDF::new_from_impl(AlsoFunction { also, aliases, signature })
    })
}

/// The call with the engine's function, where another stands for it.
pub(super) fn engine(call: ScalarFunction) -> Transformed<ScalarFunction> {
    match call.func.inner().downcast_ref::<AlsoFunction>() {
        Some(function) => {
            let func = (function.also.engine)();
            Transformed::yes(ScalarFunction { func, args: call.args })
        }
        None => Transformed::no(call),
    }
}

impl ScalarUDFImpl for AlsoFunction {
    fn name(&self) -> &str {
        self.also.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fields = types.iter().map(|of| Arc::new(Field::new("operand", of.clone(), true)));
        let (arg_fields, scalar_arguments) = (fields.collect::<Vec<_>>(), vec![None; types.len()]);
        let args = ReturnFieldArgs { arg_fields: &arg_fields, scalar_arguments: &scalar_arguments };
        Ok(self.return_field_from_args(args)?.data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types = args.arg_fields.iter().map(|field| field.data_type().clone());
        if let Some(of) = (self.also.makes)(&types.collect::<Vec<_>>()) {
            return Ok(Arc::new(Field::new(self.name(), of, true)));
        }
        let engine = (self.also.engine)();
        let does_not_exist = |_| {
            let types = args.arg_fields.iter().map(|field| type_name(field.data_type()));
            let types = types.collect::<Vec<_>>().join(", ");
            let message = format!("function {}({types}) does not exist", self.also.name);
            let subject = Subject::Function(self.also.name.to_owned());
            to_datafusion(Error::invalid(message).with_sqlstate("42883").about(subject))
        };
        let arg_fields = fields_with_udf(args.arg_fields, engine.as_ref());
        let arg_fields = &*arg_fields.map_err(does_not_exist)?;
        engine.return_field_from_args(ReturnFieldArgs { arg_fields, ..args })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} was not told its types", self.also.name)))
    }
}
