//! Rows put into groups, by the engine's own aggregate functions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::{filter, prep_null_mask_filter};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, PhysicalGroupBy, evaluate_group_by,
};

use super::{batch_of, internal};

/// Keys and aggregates.
pub(super) struct Grouping {
    keys: PhysicalGroupBy,
    key_schema: SchemaRef,
    aggregates: Vec<Computed>,
    schema: SchemaRef,
}

/// An aggregate, its arguments, and which rows count.
struct Computed {
    function: Arc<AggregateFunctionExpr>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    counted: Option<Arc<dyn PhysicalExpr>>,
}

/// The arguments of one aggregate for the rows of a batch.
struct Arguments {
    values: Vec<ArrayRef>,
    counted: Option<BooleanArray>,
}

impl Grouping {
    /// That of an aggregation in one step or in two, and what it reads.
    pub(super) fn of(last: &AggregateExec) -> Option<(Self, &Arc<dyn ExecutionPlan>)> {
        let first = match last.mode() {
            AggregateMode::Single | AggregateMode::SinglePartitioned => last,
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                let first = last.input().downcast_ref::<AggregateExec>()?;
                matches!(first.mode(), AggregateMode::Partial).then_some(first)?
            }
            _ => return None,
        };
        if last.limit_options().is_some() || first.limit_options().is_some() {
            return None;
        }
        let one = |(function, counted): (&Arc<AggregateFunctionExpr>, &Option<_>)| {
            // The order of rows within a group would be another operator's work.
            function.order_bys().is_empty().then(|| Computed {
                function: Arc::clone(function),
                arguments: function.expressions(),
                counted: Option::clone(counted),
            })
        };
        let aggregates = first.aggr_expr().iter().zip(first.filter_expr()).map(one);
        let keys = first.group_expr().clone();
        let grouping = Self {
            key_schema: keys.group_schema(&first.input().schema()).ok()?,
            keys,
            aggregates: aggregates.collect::<Option<_>>()?,
            schema: last.schema(),
        };
        Some((grouping, first.input()))
    }

    /// The groups of some rows.
    ///
    /// # Errors
    /// Those of expressions and aggregate functions.
    pub(super) fn compute(&self, batch: &RecordBatch) -> EngineResult<RecordBatch> {
        match self.keys.is_true_no_grouping() {
            true => self.one_group(batch),
            false => self.groups(batch),
        }
    }

    fn one_group(&self, batch: &RecordBatch) -> EngineResult<RecordBatch> {
        let value = |computed: &Computed| {
            let mut accumulator = computed.function.create_accumulator()?;
            let Arguments { values, counted } = computed.arguments(batch)?;
            let values = match counted {
                Some(counted) => {
                    let kept = values.iter().map(|values| Ok(filter(values, &counted)?));
                    kept.collect::<EngineResult<Vec<_>>>()?
                }
                None => values,
            };
            accumulator.update_batch(&values)?;
            accumulator.evaluate()?.to_array()
        };
        let columns = self.aggregates.iter().map(value).collect::<EngineResult<Vec<_>>>()?;
        batch_of(&self.schema, columns, 1)
    }

    fn groups(&self, batch: &RecordBatch) -> EngineResult<RecordBatch> {
        let mut keys = new_group_values(Arc::clone(&self.key_schema), &GroupOrdering::None)?;
        let of = |computed: &Computed| Ok((computed.accumulator()?, computed.arguments(batch)?));
        let mut states = self.aggregates.iter().map(of).collect::<EngineResult<Vec<_>>>()?;
        let mut group_of = Vec::with_capacity(batch.num_rows());
        if batch.num_rows() == 0 {
            self.add_totals(&mut *keys, batch)?;
            for (accumulator, Arguments { values, .. }) in &mut states {
                accumulator.update_batch(values, &[], None, keys.len())?;
            }
        } else {
            for set in evaluate_group_by(&self.keys, batch)? {
                keys.intern(&set, &mut group_of)?;
                for (accumulator, Arguments { values, counted }) in &mut states {
                    accumulator.update_batch(values, &group_of, counted.as_ref(), keys.len())?;
                }
            }
        }
        let groups = keys.len();
        let mut columns = match groups {
            0 => return Ok(RecordBatch::new_empty(Arc::clone(&self.schema))),
            _ => keys.emit(EmitTo::All)?,
        };
        for (accumulator, _) in &mut states {
            columns.push(accumulator.evaluate(EmitTo::All)?);
        }
        batch_of(&self.schema, columns, groups)
    }
}

impl Grouping {
    /// Adds the groups that there are without any row: those of grouping sets without columns.
    fn add_totals(&self, keys: &mut dyn GroupValues, batch: &RecordBatch) -> EngineResult<()> {
        let is_total = |set: &Vec<bool>| set.iter().all(|is_left_out| *is_left_out);
        if !self.keys.groups().iter().any(is_total) {
            return Ok(());
        }
        let fields = batch.schema();
        let fields = fields.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let nothing = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1));
        let row = batch_of(&schema, nothing.collect(), 1)?;
        let sets = evaluate_group_by(&self.keys, &row)?;
        for (set, _) in sets.iter().zip(self.keys.groups()).filter(|(_, set)| is_total(set)) {
            keys.intern(set, &mut Vec::new())?;
        }
        Ok(())
    }
}

impl Computed {
    fn accumulator(&self) -> EngineResult<Box<dyn GroupsAccumulator>> {
        match self.function.groups_accumulator_supported() {
            true => self.function.create_groups_accumulator(),
            false => {
                let function = Arc::clone(&self.function);
                let make = move || function.create_accumulator();
                Ok(Box::new(GroupsAccumulatorAdapter::new(make)))
            }
        }
    }

    fn arguments(&self, batch: &RecordBatch) -> EngineResult<Arguments> {
        let rows = batch.num_rows();
        let value = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(rows);
        let values = self.arguments.iter().map(value).collect::<EngineResult<Vec<_>>>()?;
        let counted = match &self.counted {
            Some(counted) => {
                let counted = counted.evaluate(batch)?.into_array(rows)?;
                let counted = counted.as_boolean_opt();
                let counted = counted.ok_or_else(|| internal("a condition is none"))?;
                Some(match counted.null_count() {
                    0 => counted.clone(),
                    _ => prep_null_mask_filter(counted),
                })
            }
            None => None,
        };
        Ok(Arguments { values, counted })
    }
}
