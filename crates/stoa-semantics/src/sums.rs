//! Sums that notice when they overflow, and how many values they are of.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, AsArray, BooleanArray, Int64Array, PrimitiveArray,
};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::numeric::out_of_range;

/// One sum and one count for each group. Values are of type `V` (or its native type widened), sums of
/// type `S`.
pub(super) struct Sums<S: ArrowPrimitiveType> {
    sums: Vec<S::Native>,
    counts: Vec<i64>,
    sum_type: DataType,
}

impl<S: ArrowPrimitiveType> Sums<S>
where
    S::Native: ArrowNativeTypeOp,
{
    pub(super) fn new(sum_type: DataType) -> Self {
        Self { sums: Vec::new(), counts: Vec::new(), sum_type }
    }

    /// Makes room for so many groups.
    pub(super) fn reserve(&mut self, groups: usize) {
        self.sums.resize(groups, S::Native::default());
        self.counts.resize(groups, 0);
    }

    /// Adds the values of rows to their groups.
    pub(super) fn add<V>(
        &mut self,
        values: &ArrayRef,
        groups: impl Fn(usize) -> usize,
        filter: Option<&BooleanArray>,
    ) -> Result<()>
    where
        V: ArrowPrimitiveType,
        S::Native: From<V::Native>,
    {
        let values = values.as_primitive::<V>();
        let mut add = |row: usize, value: V::Native| {
            let group = groups(row);
            let sum = self.sums[group].add_checked(value.into()).map_err(|_| out_of_range())?;
            self.sums[group] = sum;
            self.counts[group] += 1;
            Ok::<(), DataFusionError>(())
        };
        if values.null_count() == 0 && filter.is_none() {
            return values
                .values()
                .iter()
                .enumerate()
                .try_for_each(|(row, value)| add(row, *value));
        }
        for (row, value) in values.iter().enumerate() {
            if let Some(value) = value
                && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
            {
                add(row, value)?;
            }
        }
        Ok(())
    }

    /// Takes values away again that were added to the only group.
    pub(super) fn retract<V>(&mut self, values: &ArrayRef) -> Result<()>
    where
        V: ArrowPrimitiveType,
        S::Native: From<V::Native>,
    {
        for value in values.as_primitive::<V>().iter().flatten() {
            self.sums[0] = self.sums[0].sub_checked(value.into()).map_err(|_| out_of_range())?;
            self.counts[0] -= 1;
        }
        Ok(())
    }

    /// Adds sums and counts that were computed elsewhere.
    pub(super) fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let [sums, counts] = states else { return Ok(()) };
        let (sums, counts) = (sums.as_primitive::<S>(), counts.as_primitive::<Int64Type>());
        for (row, (sum, count)) in sums.iter().zip(counts).enumerate() {
            if let (Some(sum), Some(count)) = (sum, count) {
                let group = groups(row);
                self.sums[group] = self.sums[group].add_checked(sum).map_err(|_| out_of_range())?;
                self.counts[group] += count;
            }
        }
        Ok(())
    }

    /// Sums and counts, to be merged.
    pub(super) fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, counts) = self.take(emit);
        let sums =
            PrimitiveArray::<S>::from_iter_values(sums).with_data_type(self.sum_type.clone());
        Ok(vec![Arc::new(sums), Arc::new(Int64Array::from(counts))])
    }

    /// Sums and counts, one after the other.
    pub(super) fn take(&mut self, emit: EmitTo) -> (Vec<S::Native>, Vec<i64>) {
        (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts))
    }

    /// Sum and count of the only group.
    pub(super) fn only(&self) -> (S::Native, i64) {
        let sum = self.sums.first().copied().unwrap_or_default();
        (sum, self.counts.first().copied().unwrap_or(0))
    }

    /// The type of the sums.
    pub(super) fn sum_type(&self) -> &DataType {
        &self.sum_type
    }

    pub(super) fn size(&self) -> usize {
        self.sums.capacity() * size_of::<S::Native>() + self.counts.capacity() * size_of::<i64>()
    }
}

pub(super) type Finish<S> =
    fn(Vec<<S as ArrowPrimitiveType>::Native>, Vec<i64>, &DataType) -> Result<ArrayRef>;

/// Sums of values of type `V`.
pub(super) struct SumOf<V, S: ArrowPrimitiveType> {
    sums: Sums<S>,
    of: DataType,
    finish: Finish<S>,
    values: std::marker::PhantomData<fn() -> V>,
}

impl<V, S: ArrowPrimitiveType> SumOf<V, S> {
    /// `finish` makes the result of sums, counts and `of`.
    pub(super) fn new(sums: Sums<S>, of: DataType, finish: Finish<S>) -> Self {
        let values = std::marker::PhantomData;
        Self { sums, of, finish, values }
    }
}

impl<V, S> GroupsAccumulator for SumOf<V, S>
where
    V: ArrowPrimitiveType,
    S: ArrowPrimitiveType,
    S::Native: From<V::Native>,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sums.reserve(total);
        self.sums.add::<V>(&values[0], |row| groups[row], filter)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, counts) = self.sums.take(emit);
        (self.finish)(sums, counts, &self.of)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.sums.reserve(total);
        self.sums.merge(states, |row| groups[row])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut each = Sums::<S>::new(self.sums.sum_type().clone());
        each.reserve(values[0].len());
        each.add::<V>(&values[0], |row| row, filter)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}

/// A sum of one group.
#[derive(Debug)]
pub(super) struct Sum1<A>(A);

impl<V, S> Sum1<SumOf<V, S>>
where
    S: ArrowPrimitiveType,
{
    pub(super) fn new(mut of: SumOf<V, S>) -> Self {
        of.sums.reserve(1);
        Self(of)
    }
}

impl<V, S: ArrowPrimitiveType> std::fmt::Debug for SumOf<V, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SumOf").field("sums", &self.sums.sum_type).finish()
    }
}

impl<V, S> Accumulator for Sum1<SumOf<V, S>>
where
    V: ArrowPrimitiveType,
    S: ArrowPrimitiveType,
    S::Native: From<V::Native>,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.sums.add::<V>(&values[0], |_| 0, None)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.sums.retract::<V>(&values[0])
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (sum, count) = self.0.sums.only();
        let sum = (self.0.finish)(vec![sum], vec![count], &self.0.of)?;
        ScalarValue::try_from_array(&sum, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (sum, count) = self.0.sums.only();
        let sum = PrimitiveArray::<S>::from_iter_values([sum])
            .with_data_type(self.0.sums.sum_type().clone());
        Ok(vec![ScalarValue::try_from_array(&sum, 0)?, ScalarValue::Int64(Some(count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.sums.merge(states, |_| 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.sums.size()
    }
}
