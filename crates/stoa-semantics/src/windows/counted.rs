//! Aggregates over windows whose values may be large: `array_agg`, `string_agg`, `max` of a text.
//!
//! Each row of a window has a value of its own: a running `array_agg` of n rows makes n²/2 elements, and
//! the engine counts none of them. The functions here are the engine's, with accumulators that reserve memory
//! for each value that they give, until their partition is done.
//!
//! Not here: aggregates over groups, which count their state; values of fixed size.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr::{
    AggregateFunctionParams, WindowFunction, WindowFunctionDefinition, WindowFunctionParams,
};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ExprSchemable, ReversedUDAF, SetMonotonicity,
    Signature,
};

use super::given::{Given, Values, has_fixed_size, partition_rows};
use crate::scope::Scope;

/// Counts what an aggregate gives, if its values may be large; whether it is changed.
pub(super) fn rewrite(window: &mut WindowFunction, scope: &Scope<'_>) -> bool {
    let WindowFunctionDefinition::AggregateUDF(inner) = &window.fun else { return false };
    if inner.inner().is::<Counted>() {
        return false;
    }
    let args = window.params.args.iter().map(|arg| arg.get_type(&scope.schema));
    // What has no type, the engine's coercion refuses.
    let Ok(args) = args.collect::<Result<Vec<_>>>() else { return false };
    let result = inner.coerce_types(&args).and_then(|args| inner.return_type(&args));
    let result = result.or_else(|_| inner.return_type(&args));
    if result.is_ok_and(|of| has_fixed_size(&of)) {
        return false;
    }
    let counted = Counted {
        inner: Arc::clone(inner),
        memory: Arc::clone(scope.memory),
        values: Values::over(&window.params.window_frame),
    };
    window.fun = Arc::new(AggregateUDF::new_from_impl(counted)).into();
    true
}

/// An aggregate over a window.
#[derive(Debug)]
struct Counted {
    inner: Arc<AggregateUDF>,
    memory: Arc<dyn MemoryPool>,
    values: Values,
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        (&self.inner, self.values) == (&other.inner, other.values)
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.inner, self.values).hash(state);
    }
}

impl Counted {
    fn count(&self, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        Box::new(CountedValues {
            inner,
            given: Given::new(self.inner.name(), &self.memory, self.values),
            rows: (self.values == Values::One).then_some(0),
        })
    }
}

impl AggregateUDFImpl for Counted {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.human_display(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.display_name(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn default_value(&self, of: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(of)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args).map(|inner| self.count(inner))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args).map(|inner| self.count(inner))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            // Values in another order need another frame, over which the engine cannot compute all of these.
            _ => ReversedUDAF::NotSupported,
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn set_monotonicity(&self, of: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(of)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }
}

/// An accumulator, and memory for what it has given.
#[derive(Debug)]
struct CountedValues {
    inner: Box<dyn Accumulator>,
    given: Given,
    /// Rows that were seen, where all rows of the partition have the next value: fewer than those under FILTER.
    rows: Option<usize>,
}

impl Accumulator for CountedValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let (Some(rows), Some(column)) = (&mut self.rows, values.first()) {
            *rows += column.len();
        }
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.inner.evaluate()?;
        let rows = self.rows.map_or(1, |rows| rows.max(partition_rows()));
        self.given.count(&value, rows)?;
        Ok(value)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, StringArray};
    use datafusion::error::DataFusionError;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::super::given::over_partition;
    use super::*;

    /// Gives all texts that it has seen.
    #[derive(Debug, Default)]
    struct Joined(String);

    impl Accumulator for Joined {
        fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
            self.0.extend(values[0].as_string::<i32>().iter().flatten());
            Ok(())
        }

        fn evaluate(&mut self) -> Result<ScalarValue> {
            Ok(ScalarValue::Utf8(Some(self.0.clone())))
        }

        fn size(&self) -> usize {
            self.0.capacity()
        }

        fn state(&mut self) -> Result<Vec<ScalarValue>> {
            Ok(vec![self.evaluate()?])
        }

        fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
            self.update_batch(states)
        }
    }

    fn counted(pool: &Arc<dyn MemoryPool>, rows: Option<usize>) -> CountedValues {
        let given = Given::new("test", pool, Values::Each);
        CountedValues { inner: Box::new(Joined::default()), given, rows }
    }

    #[test]
    fn values_take_memory_until_their_partition_is_done() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(16 << 20));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 16)]));
        let mut running = counted(&pool, None);
        let mut given = 0;
        let error = loop {
            running.update_batch(&[Arc::clone(&text)]).unwrap();
            match running.evaluate() {
                Ok(_) => given += 1,
                Err(error) => break error,
            }
        };
        assert!((8..16).contains(&given), "{given}");
        assert!(matches!(error, DataFusionError::ResourcesExhausted(_)), "{error}");
        assert!(pool.reserved() > 0);
        drop(running);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn a_value_of_all_rows_is_counted_for_each() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(16 << 20));
        let texts = StringArray::from(vec!["0123456789"; 4096]);
        let mut whole = counted(&pool, Some(0));
        whole.update_batch(&[Arc::new(texts)]).unwrap();
        assert!(whole.evaluate().is_err());
        let mut once = counted(&pool, None);
        once.update_batch(&[Arc::new(StringArray::from(vec!["0123456789"; 4096]))]).unwrap();
        once.evaluate().unwrap();
        assert_eq!(pool.reserved(), 0, "a small value asks nobody");

        // Of a partition of which a filter leaves one row.
        let mut filtered = counted(&pool, Some(0));
        filtered.update_batch(&[Arc::new(StringArray::from(vec!["x".repeat(1000)]))]).unwrap();
        assert!(over_partition(1 << 20, || filtered.evaluate()).is_err());
    }
}
