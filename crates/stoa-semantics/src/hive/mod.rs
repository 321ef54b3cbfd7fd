//! Hive's meaning of functions and comparisons, for statements that were HiveQL (`stoa-hiveql`).
//!
//! In: calls of `hive_…` functions, which any statement may name; comparisons of sessions that speak HiveQL. Out:
//! functions of columns; comparisons whose sides are of one kind. **Invariant:** other sessions' comparisons are left
//! alone.

mod columns;
mod mixed;
mod sums;

use std::any::Any;
use std::hash::{Hash, Hasher};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF};
use stoa_hiveql::pack::value::Value;
use stoa_hiveql::pack::{self, Function};

use super::call::{Operation, function};
use crate::errors::to_datafusion;

pub(super) use mixed::{between, binary, in_list};
pub(super) use sums::as_sum;
pub use sums::sum_of_session;

/// The key of [`HiveComparisons`] among a session's options.
pub const HIVE_COMPARISONS_KEY: &str = "stoa_hive.comparisons";

/// An extension of the options of sessions that speak HiveQL: texts are compared with numbers as doubles, and what is
/// none is NULL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiveComparisons;

impl HiveComparisons {
    fn are_asked_for(options: &ConfigOptions) -> bool {
        options.extensions.get::<Self>().is_some()
    }
}

impl ConfigExtension for HiveComparisons {
    const PREFIX: &'static str = "stoa_hive";
}

impl ExtensionOptions for HiveComparisons {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(*self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match (key, value) {
            ("comparisons", "on") => Ok(()),
            _ => Err(DataFusionError::Configuration(format!("{key} cannot be \"{value}\""))),
        }
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let value = Some("on".to_owned());
        vec![ConfigEntry { key: HIVE_COMPARISONS_KEY.to_owned(), value, description: "" }]
    }
}

/// The functions, as calls name them.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    pack::functions().map(|of| function(HiveCall(of)))
}

/// A function of Hive's on columns.
#[derive(Clone, Copy, Debug)]
struct HiveCall(&'static Function);

impl PartialEq for HiveCall {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for HiveCall {}

impl Hash for HiveCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl Operation for HiveCall {
    fn name(&self) -> &str {
        self.0.name
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        let types = types.iter().map(columns::type_of).collect::<Result<Vec<_>>>()?;
        let made = self.0.result(&types).map_err(to_datafusion)?;
        Ok(columns::arrow_type(&made))
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let arrays = super::call::columns(operands, rows)?;
        let types = arrays
            .iter()
            .map(|array| columns::type_of(array.data_type()))
            .collect::<Result<Vec<_>>>()?;
        let made = self.0.result(&types).map_err(to_datafusion)?;
        let operands = arrays.iter().map(columns::values).collect::<Result<Vec<_>>>()?;
        let mut row = vec![Value::Null; operands.len()];
        let mut found = Vec::with_capacity(rows);
        for at in 0..rows {
            for (place, operand) in row.iter_mut().zip(&operands) {
                place.clone_from(&operand[at]);
            }
            found.push(self.0.call(&row).map_err(to_datafusion)?);
        }
        columns::array(found, &made)
    }
}
