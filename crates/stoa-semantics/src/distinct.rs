//! Sums and averages of the values that differ.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal256Type, Field, FieldRef, i256};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;

use super::numeric::{Decimals, out_of_range};

/// Makes the result, which is of a type, of a sum, its scale and the count of values.
pub(super) type Finish = fn(i256, i8, usize, &DataType) -> Result<ScalarValue>;

/// The values of one group that differ, integers or decimals.
#[derive(Debug)]
pub(super) struct Distinct {
    of: DataType,
    scale: i8,
    values: HashSet<i256>,
    result: DataType,
    finish: Finish,
}

impl Distinct {
    pub(super) fn new(of: &DataType, result: &DataType, finish: Finish) -> Self {
        let scale = match of {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale,
            _ => 0,
        };
        Self { of: of.clone(), scale, values: HashSet::new(), result: result.clone(), finish }
    }

    /// What is passed on: the values.
    pub(super) fn state_field(name: &str, of: &DataType) -> FieldRef {
        let item = Field::new_list_field(of.clone(), true);
        Field::new_list(format_state_name(name, "values"), item, true).into()
    }

    fn add(&mut self, column: &ArrayRef) -> Result<()> {
        let decimals = Decimals::of(column)?;
        let values = (0..column.len()).filter_map(|row| decimals.get(row));
        self.values.extend(values.map(|value| value.digits));
        Ok(())
    }

    fn as_column(&self) -> Result<ArrayRef> {
        let wide = self.values.iter().copied().collect::<PrimitiveArray<Decimal256Type>>();
        let wide = wide.with_data_type(DataType::Decimal256(76, self.scale));
        Ok(cast(&wide, &self.of)?)
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values.first().map_or(Ok(()), |column| self.add(column))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.values.iter().try_fold(i256::ZERO, |sum, value| sum.checked_add(*value));
        let sum = sum.ok_or_else(out_of_range)?;
        (self.finish)(sum, self.scale, self.values.len(), &self.result)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<i256>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list = SingleRowListArrayBuilder::new(self.as_column()?).with_nullable(true);
        Ok(vec![list.build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first() else { return Ok(()) };
        lists.as_list::<i32>().iter().flatten().try_for_each(|values| self.add(&values))
    }
}
