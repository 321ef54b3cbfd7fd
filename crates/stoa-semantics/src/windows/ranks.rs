//! Functions that number rows: `bigint`, and `integer` for `ntile`, as in PostgreSQL.
//!
//! The engine's own give numbers without a sign, which SQL has no type for. The functions here are the engine's;
//! what they give is another type, the values are the same.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, SortOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_window::all_default_window_functions;
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF,
    WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

/// The functions, to be registered in place of the engine's own.
pub(crate) fn functions() -> impl Iterator<Item = Arc<WindowUDF>> {
    all_default_window_functions().into_iter().filter_map(|inner| {
        let of = match inner.name() {
            "row_number" | "rank" | "dense_rank" => DataType::Int64,
            "ntile" => DataType::Int32,
            _ => return None,
        };
        Some(Arc::new(WindowUDF::new_from_impl(Numbering { inner, of })))
    })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Numbering {
    inner: Arc<WindowUDF>,
    of: DataType,
}

impl WindowUDFImpl for Numbering {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let inner = self.inner.partition_evaluator_factory(args)?;
        Ok(Box::new(Numbers { inner, of: self.of.clone() }))
    }

    fn simplify(&self) -> Option<WindowFunctionSimplification> {
        self.inner.simplify()
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let own = self.inner.field(args)?;
        Ok(Arc::new(Field::new(own.name(), self.of.clone(), own.is_nullable())))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.inner.sort_options()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.inner.reverse_expr() {
            ReversedUDWF::Reversed(inner) => {
                let reversed = Self { inner, of: self.of.clone() };
                ReversedUDWF::Reversed(Arc::new(WindowUDF::new_from_impl(reversed)))
            }
            other => other,
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}

/// An evaluator whose numbers are given as another type.
#[derive(Debug)]
struct Numbers {
    inner: Box<dyn PartitionEvaluator>,
    of: DataType,
}

impl Numbers {
    fn typed(&self, numbers: &ArrayRef) -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        Ok(cast_with_options(numbers, &self.of, &strict)?)
    }
}

impl PartitionEvaluator for Numbers {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.inner.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let numbers = self.inner.evaluate_all(values, rows)?;
        self.typed(&numbers)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.inner.evaluate(values, range)?.cast_to(&self.of)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        let numbers = self.inner.evaluate_all_with_rank(rows, ranks)?;
        self.typed(&numbers)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.inner.include_rank()
    }
}
