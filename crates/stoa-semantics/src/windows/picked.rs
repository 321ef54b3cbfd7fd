//! Functions that give a row a value of another one, where that may be large: `first_value`, `lag` and the like.
//!
//! `first_value(t) OVER ()` of one long text gives as many copies of it as there are rows, and the engine counts
//! none of them. The functions here are the engine's, with evaluators that reserve memory for what they give.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, ExprSchemable, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature,
    WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

use super::given::{Given, Values, bytes_of, has_fixed_size};
use crate::scope::Scope;

/// Counts what a function gives, if its values may be large; whether it is changed.
pub(super) fn rewrite(window: &mut WindowFunction, scope: &Scope<'_>) -> bool {
    let WindowFunctionDefinition::WindowUDF(inner) = &window.fun else { return false };
    let may_be_large = |of: Result<DataType>| of.is_ok_and(|of| !has_fixed_size(&of));
    // Its first argument is what it gives; `rank` and others give numbers and have none.
    let is_large = window.params.args.first().map(|arg| arg.get_type(&scope.schema));
    if inner.inner().is::<Picked>() || !is_large.is_some_and(may_be_large) {
        return false;
    }
    let values = match Values::over(&window.params.window_frame) {
        Values::One => Values::Each,
        other => other,
    };
    let picked =
        Picked { inner: Arc::clone(inner), memory: Memory(Arc::clone(scope.memory)), values };
    window.fun = WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::new_from_impl(picked)));
    true
}

/// A function over a window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Picked {
    inner: Arc<WindowUDF>,
    memory: Memory,
    values: Values,
}

/// Memory that is the same for all.
#[derive(Clone, Debug)]
struct Memory(Arc<dyn MemoryPool>);

impl PartialEq for Memory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Memory {}

impl std::hash::Hash for Memory {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl WindowUDFImpl for Picked {
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
        let literals = args.input_exprs().iter().filter_map(|arg| arg.downcast_ref::<Literal>());
        let default_bytes = literals.map(|literal| bytes_of(literal.value())).max().unwrap_or(0);
        let given = Given::new(self.inner.name(), &self.memory.0, self.values);
        let inner = self.inner.partition_evaluator_factory(args)?;
        Ok(Box::new(PickedValues { inner, given, default_bytes }))
    }

    fn simplify(&self) -> Option<WindowFunctionSimplification> {
        self.inner.simplify()
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.field(args)
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
                // Its frame is turned around, too: how many values there are at once is not known here.
                let reversed = Self { inner, values: Values::Each, ..self.clone() };
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

/// An evaluator, and memory for what it has given.
#[derive(Debug)]
struct PickedValues {
    inner: Box<dyn PartitionEvaluator>,
    given: Given,
    /// Bytes of the largest constant that it was given, such as what `lag` gives where there is no row.
    default_bytes: usize,
}

impl PartitionEvaluator for PickedValues {
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
        // Each row has a value of these, or the default.
        let bytes = |values: &ArrayRef| values.to_data().get_slice_memory_size();
        let own = values.iter().map(bytes).sum::<Result<usize, _>>()?;
        self.given.count_bytes(own.saturating_add(self.default_bytes.saturating_mul(rows)))?;
        self.inner.evaluate_all(values, rows)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let value = self.inner.evaluate(values, range)?;
        self.given.count(&value, 1)?;
        Ok(value)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        self.inner.evaluate_all_with_rank(rows, ranks)
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

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;
    use datafusion::error::DataFusionError;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    /// Gives the first value of its frame.
    #[derive(Debug)]
    struct First;

    impl PartitionEvaluator for First {
        fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
            ScalarValue::try_from_array(&values[0], range.start)
        }

        fn evaluate_all(&mut self, values: &[ArrayRef], _: usize) -> Result<ArrayRef> {
            Ok(Arc::clone(&values[0]))
        }
    }

    fn picked(pool: &Arc<dyn MemoryPool>, default_bytes: usize) -> PickedValues {
        let given = Given::new("test", pool, Values::Each);
        PickedValues { inner: Box::new(First), given, default_bytes }
    }

    #[test]
    fn copies_of_a_long_text_take_memory() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(16 << 20));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 16)]));
        let mut first = picked(&pool, 0);
        let refused = (0..1000).find_map(|_| first.evaluate(&[Arc::clone(&texts)], &(0..1)).err());
        assert!(matches!(refused, Some(DataFusionError::ResourcesExhausted(_))), "{refused:?}");
        drop(first);
        assert_eq!(pool.reserved(), 0);
        // Of a text that is there already, all at once.
        picked(&pool, 0).evaluate_all(&[Arc::clone(&texts)], 1000).unwrap();
        picked(&pool, 1 << 16).evaluate_all(&[texts], 1000).unwrap_err();
    }
}
