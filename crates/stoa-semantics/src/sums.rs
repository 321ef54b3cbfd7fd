//! Sums that notice when they overflow, and how many values they are of.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, AsArray, BooleanArray, Int64Array, PrimitiveArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, Int64Type, i256,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::numeric::out_of_range;

/// Groups up to which sums of a batch are added up apart from the others.
const FEW_GROUPS: usize = 32;

/// Sums of a batch that are made side by side: one would wait for the other.
const LANES: usize = 4;

/// One sum and one count for each group. Values are of type `V` (or its native type widened), sums of
/// type `S`.
pub(super) struct Sums<S: ArrowPrimitiveType> {
    /// Sum and count, which are looked up together.
    groups: Vec<(S::Native, i64)>,
    sum_type: DataType,
}

/// To which group the values of a batch belong.
#[derive(Clone, Copy)]
pub(super) enum Places<'a> {
    /// All to the first.
    One,
    /// Each to its own.
    Each,
    /// Each to the one with this number.
    Groups(&'a [usize]),
}

/// A type of values that are summed.
pub(super) trait Summed: ArrowPrimitiveType {
    /// Whether a value is from `-most` to `most`; false for types that never are.
    fn is_within(value: Self::Native, most: i64) -> bool;

    /// A value that is within some 64 bits.
    fn low(value: Self::Native) -> i64;

    /// The same, as it was.
    fn wide(low: i64) -> Self::Native;
}

impl Summed for Int64Type {
    #[inline(always)]
    fn is_within(value: i64, most: i64) -> bool {
        (-most..=most).contains(&value)
    }

    #[inline(always)]
    fn low(value: i64) -> i64 {
        value
    }

    fn wide(low: i64) -> i64 {
        low
    }
}

impl Summed for Decimal128Type {
    #[inline(always)]
    fn is_within(value: i128, most: i64) -> bool {
        let low = value as i64;
        (value >> 64) as i64 == low >> 63 && -most <= low && low <= most
    }

    #[inline(always)]
    fn low(value: i128) -> i64 {
        value as i64
    }

    fn wide(low: i64) -> i128 {
        low.into()
    }
}

impl Summed for Decimal256Type {
    fn is_within(_: i256, _: i64) -> bool {
        false
    }

    fn low(value: i256) -> i64 {
        value.as_i128() as i64
    }

    fn wide(low: i64) -> i256 {
        i256::from_i128(low.into())
    }
}

/// Sums and counts of small values by group, of which there are few.
fn sums_by_group<V: Summed>(values: &[V::Native], groups: &[usize]) -> Vec<(i64, i64)> {
    let mut lanes = [[(0_i64, 0_i64); FEW_GROUPS]; LANES];
    let mut add = |lane: usize, value: V::Native, group: usize| {
        // There are no others; so the compiler knows, too.
        let (sum, count) = &mut lanes[lane][group % FEW_GROUPS];
        *sum += V::low(value);
        *count += 1;
    };
    let (rows, rest) = values.as_chunks::<LANES>();
    let (places, rest_places) = groups.as_chunks::<LANES>();
    for (values, groups) in rows.iter().zip(places) {
        for lane in 0..LANES {
            add(lane, values[lane], groups[lane]);
        }
    }
    rest.iter().zip(rest_places).for_each(|(value, group)| add(0, *value, *group));
    let sum = |group: usize| {
        let of_lanes = lanes.iter().map(|lane| lane[group]);
        of_lanes.fold((0, 0), |(sum, count), lane| (sum + lane.0, count + lane.1))
    };
    (0..FEW_GROUPS).map(sum).collect()
}

impl Places<'_> {
    fn of(self, row: usize) -> usize {
        match self {
            Self::One => 0,
            Self::Each => row,
            Self::Groups(groups) => groups[row],
        }
    }
}

impl<S: ArrowPrimitiveType> Sums<S>
where
    S::Native: ArrowNativeTypeOp,
{
    pub(super) fn new(sum_type: DataType) -> Self {
        Self { groups: Vec::new(), sum_type }
    }

    /// Makes room for so many groups.
    pub(super) fn reserve(&mut self, groups: usize) {
        self.groups.resize(groups, (S::Native::default(), 0));
    }

    /// Adds the values of rows to their groups.
    pub(super) fn add<V>(
        &mut self,
        values: &ArrayRef,
        places: Places<'_>,
        filter: Option<&BooleanArray>,
    ) -> Result<()>
    where
        V: Summed,
        S::Native: From<V::Native>,
    {
        let values = values.as_primitive::<V>();
        if values.null_count() == 0 && filter.is_none() {
            if let Some(added) = self.add_small::<V>(values.values(), places) {
                return added;
            }
            if let Places::Groups(groups) = places {
                let mut values = values.values().iter().zip(groups);
                return values.try_for_each(|(value, group)| self.add_one(*group, *value, 1));
            }
            let mut values = values.values().iter().enumerate();
            return values.try_for_each(|(row, value)| self.add_one(places.of(row), *value, 1));
        }
        for (row, value) in values.iter().enumerate() {
            if let Some(value) = value
                && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
            {
                self.add_one(places.of(row), value, 1)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn add_one(&mut self, group: usize, value: impl Into<S::Native>, count: i64) -> Result<()> {
        let (sum, counted) = &mut self.groups[group];
        *sum = sum.add_checked(value.into()).map_err(|_| out_of_range())?;
        *counted += count;
        Ok(())
    }

    /// Adds values to few groups, if the sums of the batch fit 64 bits; `None` if not.
    fn add_small<V>(&mut self, values: &[V::Native], places: Places<'_>) -> Option<Result<()>>
    where
        V: Summed,
        S::Native: From<V::Native>,
    {
        let is_one = matches!(places, Places::One);
        if matches!(places, Places::Each) || (!is_one && self.groups.len() > FEW_GROUPS) {
            return None;
        }
        let each_max = i64::MAX / i64::try_from(values.len()).ok()?.max(1);
        let are_small = values.iter().fold(true, |all, value| all & V::is_within(*value, each_max));
        if !are_small {
            return None;
        }
        let sums = match places {
            Places::Groups(groups) => sums_by_group::<V>(values, groups),
            _ => vec![(values.iter().map(|value| V::low(*value)).sum(), values.len() as i64)],
        };
        let mut sums = sums.into_iter().enumerate().filter(|(_, (_, count))| *count > 0);
        Some(sums.try_for_each(|(group, (sum, count))| self.add_one(group, V::wide(sum), count)))
    }

    /// Takes values away again that were added to the only group.
    pub(super) fn retract<V>(&mut self, values: &ArrayRef) -> Result<()>
    where
        V: ArrowPrimitiveType,
        S::Native: From<V::Native>,
    {
        let (sum, count) = &mut self.groups[0];
        for value in values.as_primitive::<V>().iter().flatten() {
            *sum = sum.sub_checked(value.into()).map_err(|_| out_of_range())?;
            *count -= 1;
        }
        Ok(())
    }

    /// Adds sums and counts that were computed elsewhere.
    pub(super) fn merge(&mut self, states: &[ArrayRef], places: Places<'_>) -> Result<()> {
        let [sums, counts] = states else { return Ok(()) };
        let (sums, counts) = (sums.as_primitive::<S>(), counts.as_primitive::<Int64Type>());
        for (row, (sum, count)) in sums.iter().zip(counts).enumerate() {
            if let (Some(sum), Some(count)) = (sum, count) {
                self.add_one(places.of(row), sum, count)?;
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
        emit.take_needed(&mut self.groups).into_iter().unzip()
    }

    /// Sum and count of the only group.
    pub(super) fn only(&self) -> (S::Native, i64) {
        self.groups.first().copied().unwrap_or_default()
    }

    /// The type of the sums.
    pub(super) fn sum_type(&self) -> &DataType {
        &self.sum_type
    }

    pub(super) fn size(&self) -> usize {
        self.groups.capacity() * size_of::<(S::Native, i64)>()
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
    V: Summed,
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
        self.sums.add::<V>(&values[0], Places::Groups(groups), filter)
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
        self.sums.merge(states, Places::Groups(groups))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut each = Sums::<S>::new(self.sums.sum_type().clone());
        each.reserve(values[0].len());
        each.add::<V>(&values[0], Places::Each, filter)?;
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
    V: Summed,
    S: ArrowPrimitiveType,
    S::Native: From<V::Native>,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.sums.add::<V>(&values[0], Places::One, None)
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
        self.0.sums.merge(states, Places::One)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.sums.size()
    }
}
