//! `to_char(value, format)`: PostgreSQL's template patterns for times and numbers.
//!
//! What is no pattern stands for itself, as do texts in double quotes. Patterns that are not
//! supported are refused (0A000), never written as they are.

mod number;
mod time;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, columns, failure};
use super::numeric::Decimals;
use super::time_zone::Zone;
use time::Fields;

/// The function, in sessions of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ToChar {
    pub(super) zone: Arc<str>,
}

impl Operation for ToChar {
    fn name(&self) -> &str {
        "to_char"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        let [of, format] = types else {
            return Err(failure("42883", "to_char takes a value and a format"));
        };
        let is_format = matches!(
            format,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
        );
        let is_value = of.is_numeric()
            || matches!(
                of,
                DataType::Date32
                    | DataType::Timestamp(..)
                    | DataType::Interval(_)
                    | DataType::Duration(_)
                    | DataType::Null
            );
        match is_value && is_format {
            true => Ok(DataType::Utf8),
            false => {
                Err(failure("42883", format!("function to_char({of}, {format}) does not exist")))
            }
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [values, formats] = columns.as_slice() else {
            return Err(failure("42883", "to_char takes a value and a format"));
        };
        let formats = cast(formats, &DataType::Utf8)?;
        let formats = formats.as_string::<i32>();
        let values = Values::of(values, &self.zone)?;
        let mut texts = StringBuilder::with_capacity(rows, rows * 16);
        for row in 0..rows {
            match (formats.is_null(row), values.is_null(row)) {
                (false, false) => texts.append_value(values.write(row, formats.value(row))?),
                _ => texts.append_null(),
            }
        }
        Ok(Arc::new(texts.finish()))
    }
}

enum Values {
    /// Instants have a zone, with its name.
    Times(ArrayRef, Option<(Zone, String)>),
    Intervals(ArrayRef),
    Floats(ArrayRef),
    Decimals(Decimals, ArrayRef),
}

impl Values {
    fn of(array: &ArrayRef, session: &str) -> Result<Self> {
        let micros = |zone| DataType::Timestamp(TimeUnit::Microsecond, zone);
        Ok(match array.data_type() {
            DataType::Timestamp(_, Some(zone)) => {
                let instants = cast(array, &micros(Some(Arc::clone(zone))))?;
                Self::Times(instants, Some((Zone::named(session)?, session.to_owned())))
            }
            DataType::Date32 | DataType::Timestamp(_, None) | DataType::Null => {
                Self::Times(cast(array, &micros(None))?, None)
            }
            DataType::Interval(_) | DataType::Duration(_) => {
                Self::Intervals(cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?)
            }
            of if of.is_floating() => Self::Floats(cast(array, &DataType::Float64)?),
            _ => Self::Decimals(Decimals::of(array)?, Arc::clone(array)),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Times(array, _)
            | Self::Intervals(array)
            | Self::Floats(array)
            | Self::Decimals(_, array) => array.is_null(row),
        }
    }

    fn write(&self, row: usize, format: &str) -> Result<String> {
        match self {
            Self::Times(array, zone) => {
                let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
                time::write(&Fields::of_time(micros, zone.as_ref())?, format)
            }
            Self::Intervals(array) => {
                let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
                time::write(&Fields::of_interval(interval), format)
            }
            Self::Floats(array) => {
                number::write_float(array.as_primitive::<Float64Type>().value(row), format)
            }
            Self::Decimals(decimals, _) => match decimals.get(row) {
                Some(decimal) => number::write_decimal(decimal, format),
                None => Ok(String::new()),
            },
        }
    }
}
