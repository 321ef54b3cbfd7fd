//! Sums by which it is seen that two readers read the same rows.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};
use stoa_error::{Error, Result};

/// Sums over rows of the table. All additions wrap around.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Rows.
    pub rows: u64,
    /// Per column, by name.
    pub columns: BTreeMap<String, ColumnSums>,
}

/// Sums of one column. The value of a date is its days since 1970, that of a string its bytes,
/// that of NULL zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSums {
    /// NULLs.
    pub nulls: u64,
    /// Sum of the values.
    pub sum: i64,
    /// Sum of the values times 1, 2, … 1009, 1, 2, …: rows that changed places show in it.
    pub weighted: i64,
    /// How often each string occurs.
    pub counts: BTreeMap<String, u64>,
}

/// Weights repeat after so many rows; a prime, so that they do not go with any batch size.
const WEIGHTS: u64 = 1009;

impl Sums {
    /// Sums of all `batches`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn of(batches: &[RecordBatch]) -> Result<Self> {
        let mut sums = Self::default();
        batches.iter().try_for_each(|batch| sums.add(batch))?;
        Ok(sums)
    }

    /// Adds the next rows.
    ///
    /// # Errors
    /// `Internal` for a type that the table does not have.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let sums = self.columns.entry(field.name().clone()).or_default();
            sums.add(column.as_ref(), self.rows)
                .map_err(|e| e.at(stoa_error::Place::field(field.name())))?;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// The sums of some columns; `None` = of all.
    #[must_use]
    pub fn of_columns(&self, names: Option<&[&str]>) -> Self {
        let wanted = |name: &String| names.is_none_or(|names| names.contains(&name.as_str()));
        let columns = self.columns.iter().filter(|(name, _)| wanted(name));
        Self { rows: self.rows, columns: columns.map(|(k, v)| (k.clone(), v.clone())).collect() }
    }

    /// Says how `other` differs from this, if it does.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.rows != other.rows {
            return Some(format!("{} rows, not {}", other.rows, self.rows));
        }
        let names = self.columns.keys().chain(other.columns.keys());
        let mut differ = names.filter(|name| self.columns.get(*name) != other.columns.get(*name));
        let name = differ.next()?;
        let show = |sums: &Self| match sums.columns.get(name) {
            Some(ColumnSums { nulls, sum, weighted, .. }) => {
                format!("{nulls} NULLs, sum {sum}, weighted {weighted}")
            }
            None => "nothing".to_owned(),
        };
        Some(format!("column {name}: {}; must be {}", show(other), show(self)))
    }
}

impl ColumnSums {
    fn add(&mut self, column: &dyn Array, first_row: u64) -> Result<()> {
        self.nulls += column.null_count() as u64;
        match column.data_type() {
            DataType::Int64 => {
                let values = column.as_primitive::<Int64Type>();
                self.add_values(values.iter().map(Option::unwrap_or_default), first_row);
            }
            DataType::Date32 => {
                let values = column.as_primitive::<Date32Type>();
                self.add_values(values.iter().map(|day| day.unwrap_or_default().into()), first_row);
            }
            DataType::Utf8 => {
                let values = column.as_string::<i32>();
                let bytes = |text: Option<&str>| text.map_or(0, |text| text.len() as i64);
                self.add_values(values.iter().map(bytes), first_row);
                values.iter().flatten().for_each(|text| self.count(text));
            }
            other => return Err(Error::internal(format!("there are no sums of {other}"))),
        }
        Ok(())
    }

    fn add_values(&mut self, values: impl Iterator<Item = i64>, first_row: u64) {
        for (value, row) in values.zip(first_row..) {
            self.sum = self.sum.wrapping_add(value);
            let weight = (row % WEIGHTS) as i64 + 1;
            self.weighted = self.weighted.wrapping_add(value.wrapping_mul(weight));
        }
    }

    fn count(&mut self, text: &str) {
        match self.counts.get_mut(text) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(text.to_owned(), 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AdReport, AdReportSpec};

    fn batches(batch_rows: usize) -> Vec<RecordBatch> {
        let table = AdReport::new(AdReportSpec { rows: 5_000, accounts: 100, seed: 3 });
        let chunks = table.chunks();
        chunks.iter().flat_map(|c| table.batches(c, batch_rows)).map(Result::unwrap).collect()
    }

    #[test]
    fn the_cut_into_batches_does_not_matter() {
        let sums = Sums::of(&batches(8192)).unwrap();
        assert_eq!(sums, Sums::of(&batches(77)).unwrap());
        assert_eq!((sums.rows, sums.columns.len()), (5_000, 11));
        assert_eq!(sums.columns["region"].counts.values().sum::<u64>(), 5_000);
        assert!(sums.columns["video_views"].nulls > 0);
    }

    #[test]
    fn every_kind_of_wrong_answer_shows() {
        let right = batches(8192);
        let sums = Sums::of(&right).unwrap();
        assert_eq!(sums.difference(&sums.clone()), None);
        let mut fewer = right.clone();
        fewer.pop();
        let wrong = sums.difference(&Sums::of(&fewer).unwrap()).unwrap();
        assert!(wrong.contains("rows, not 5000"), "{wrong}");
        let mut swapped = right.clone();
        swapped.swap(0, 1);
        let wrong = sums.difference(&Sums::of(&swapped).unwrap()).unwrap();
        assert!(wrong.contains("weighted"), "{wrong}");
        let three = sums.of_columns(Some(&["day", "cost"]));
        assert_eq!(three.columns.len(), 2);
        assert!(sums.difference(&three).is_some());
    }
}
