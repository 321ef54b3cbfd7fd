//! `stoa_once(n)`: true where a key comes once; in an `INSERT … ON CONFLICT` it must not come more often.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use stoa_error::Error;
use stoa_sql::upsert::ONCE;

use super::call::{Operation, column};
use crate::errors::to_datafusion;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Once;

impl Operation for Once {
    fn name(&self) -> &str {
        ONCE
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let times = cast(&column(operands, rows)?, &DataType::Int64)?;
        if times.as_primitive::<Int64Type>().iter().flatten().any(|times| times > 1) {
            let what = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(to_datafusion(
                Error::invalid(what)
                    .with_sqlstate("21000")
                    .with_hint("ensure that no two rows of the INSERT have the same key"),
            ));
        }
        Ok(Arc::new(BooleanArray::from(vec![true; rows])))
    }
}
