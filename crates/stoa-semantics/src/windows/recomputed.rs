//! Aggregates of floats over frames that move, computed from the rows of each frame.
//!
//! The engine adds the rows that come into a frame and takes away those that leave it. With floats that loses digits:
//! the sum of `1` alone is `0` once `1e20` was added to it and taken away. PostgreSQL computes such frames anew, row by row.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunctionParams, WindowFunction, WindowFunctionDefinition, WindowFunctionParams,
};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ExprSchemable, ReversedUDAF, Signature,
};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use crate::scope::Scope;

/// The aggregates that take rows away again.
const NAMES: &[&str] = &[
    "sum",
    "avg",
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
    "var_sample",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// Computes frames of floats anew, where rows leave them; whether it is changed.
pub(super) fn rewrite(window: &mut WindowFunction, scope: &Scope<'_>) -> bool {
    let WindowFunctionDefinition::AggregateUDF(inner) = &window.fun else { return false };
    let is_float = |of: Result<DataType>| of.is_ok_and(|of| of.is_floating());
    let any_float = window.params.args.iter().any(|arg| is_float(arg.get_type(&scope.schema)));
    let moves = !window.params.window_frame.start_bound.is_unbounded();
    if !any_float || !moves || !NAMES.contains(&inner.name()) || inner.inner().is::<Recomputed>() {
        return false;
    }
    let inner = Arc::clone(inner);
    window.fun = Arc::new(AggregateUDF::new_from_impl(Recomputed { inner })).into();
    true
}

/// An aggregate over a window.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Recomputed {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Recomputed {
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
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let made_by = Maker {
            inner: Arc::clone(&self.inner),
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys.to_vec(),
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        };
        Ok(Box::new(FrameRows { made_by, chunks: VecDeque::new(), left: 0 }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            _ => ReversedUDAF::NotSupported,
        }
    }
}

/// What an accumulator is made of.
#[derive(Debug)]
struct Maker {
    inner: Arc<AggregateUDF>,
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl Maker {
    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

/// Chunks of rows beyond which those of a frame are put together.
const CHUNKS_MAX: usize = 32;

/// The rows of a frame.
#[derive(Debug)]
struct FrameRows {
    made_by: Maker,
    /// Columns of the arguments, in the order in which they came.
    chunks: VecDeque<Vec<ArrayRef>>,
    /// Rows of the first chunk that have left the frame.
    left: usize,
}

impl FrameRows {
    /// Drops what has left, and puts many chunks together.
    fn tidy(&mut self) -> Result<()> {
        if let Some(first) = self.chunks.front_mut() {
            let (left, rows) = (self.left, rows_of(first));
            if left > 0 {
                *first = first.iter().map(|column| column.slice(left, rows - left)).collect();
                self.left = 0;
            }
        }
        if self.chunks.len() <= CHUNKS_MAX {
            return Ok(());
        }
        let columns = self.chunks.front().map_or(0, Vec::len);
        let together = (0..columns).map(|at| {
            let parts: Vec<&dyn Array> =
                self.chunks.iter().map(|chunk| chunk[at].as_ref()).collect();
            Ok(concat(&parts)?)
        });
        let together = together.collect::<Result<Vec<_>>>()?;
        self.chunks.clear();
        self.chunks.push_back(together);
        Ok(())
    }
}

fn rows_of(chunk: &[ArrayRef]) -> usize {
    chunk.first().map_or(0, |column| column.len())
}

impl Accumulator for FrameRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if rows_of(values) > 0 {
            self.chunks.push_back(values.to_vec());
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.left += rows_of(values);
        while let Some(rows) = self.chunks.front().map(|chunk| rows_of(chunk)) {
            if self.left < rows {
                break;
            }
            self.left -= rows;
            self.chunks.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.tidy()?;
        let mut accumulator = self.made_by.accumulator()?;
        for chunk in &self.chunks {
            accumulator.update_batch(chunk)?;
        }
        accumulator.evaluate()
    }

    fn size(&self) -> usize {
        let columns = self.chunks.iter().flatten();
        size_of_val(self) + columns.map(|column| column.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut accumulator = self.made_by.accumulator()?;
        for chunk in &self.chunks {
            accumulator.update_batch(chunk)?;
        }
        accumulator.state()
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        datafusion::common::internal_err!("frames of a window are not merged")
    }
}
