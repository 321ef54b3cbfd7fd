//! `to_char(value, format)`: PostgreSQL's template patterns for times and numbers.
//!
//! What is no pattern stands for itself, as do texts in double quotes. Patterns for times that are not
//! supported are refused (0A000), never written as they are. Numbers are read by the same patterns
//! ([`read_number`]).

mod number;
mod pattern;
pub(super) mod read_number;
mod time;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, columns, failure};
use super::made_texts::Texts;
use super::numeric::Decimals;
use super::operators::type_name;
use super::time_zone::Zone;
use pattern::Pattern;
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
                    | DataType::Time64(_)
                    | DataType::Interval(_)
                    | DataType::Duration(_)
                    | DataType::Null
            );
        match is_value && is_format {
            true => Ok(DataType::Utf8),
            false => {
                let (of, format) = (type_name(of), type_name(format));
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
        let mut texts = Texts::of("to_char");
        // Mostly, it is that of the row before.
        let mut pattern: Option<(&str, Pattern)> = None;
        for row in 0..rows {
            if formats.is_null(row) || values.is_null(row) {
                texts.append(None::<String>)?;
                continue;
            }
            let format = formats.value(row);
            if values.are_times() {
                texts.append(Some(values.write_time(row, format)?))?;
                continue;
            }
            let pattern = match pattern.take() {
                Some(same) if same.0 == format => pattern.insert(same),
                _ => pattern.insert((format, Pattern::of(format)?)),
            };
            texts.append(Some(values.write_number(row, &pattern.1)?))?;
        }
        Ok(Arc::new(texts.finish()))
    }
}

enum Values {
    /// Instants have a zone, with its name.
    Times(ArrayRef, Option<(Zone, String)>),
    Intervals(ArrayRef),
    /// Whether they are `bigint`.
    Integers(ArrayRef, bool),
    /// Whether they are `real`.
    Floats(ArrayRef, bool),
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
            DataType::Time64(TimeUnit::Microsecond) => {
                let since_midnight = array
                    .as_primitive::<Time64MicrosecondType>()
                    .unary::<_, IntervalMonthDayNanoType>(|micros| {
                    IntervalMonthDayNano::new(0, 0, micros * 1000)
                });
                Self::Intervals(Arc::new(since_midnight))
            }
            DataType::Interval(_) | DataType::Duration(_) => {
                Self::Intervals(cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?)
            }
            of @ (DataType::Int32 | DataType::UInt16 | DataType::Int64 | DataType::UInt32) => {
                let is_wide = matches!(of, DataType::Int64 | DataType::UInt32);
                Self::Integers(cast(array, &DataType::Int64)?, is_wide)
            }
            // Of a `smallint`, PostgreSQL makes a float.
            of @ (DataType::Float16
            | DataType::Float32
            | DataType::Float64
            | DataType::Int8
            | DataType::UInt8
            | DataType::Int16) => {
                let is_real = matches!(of, DataType::Float16 | DataType::Float32);
                Self::Floats(cast(array, &DataType::Float64)?, is_real)
            }
            _ => Self::Decimals(Decimals::of(array)?, Arc::clone(array)),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Times(array, _)
            | Self::Intervals(array)
            | Self::Integers(array, _)
            | Self::Floats(array, _)
            | Self::Decimals(_, array) => array.is_null(row),
        }
    }

    fn are_times(&self) -> bool {
        matches!(self, Self::Times(..) | Self::Intervals(_))
    }

    fn write_time(&self, row: usize, format: &str) -> Result<String> {
        match self {
            Self::Times(array, zone) => {
                let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
                time::write(&Fields::of_time(micros, zone.as_ref())?, format)
            }
            Self::Intervals(array) => {
                let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
                time::write(&Fields::of_interval(interval), format)
            }
            _ => Ok(String::new()),
        }
    }

    fn write_number(&self, row: usize, pattern: &Pattern) -> Result<String> {
        match self {
            Self::Integers(array, is_wide) => {
                let value = array.as_primitive::<Int64Type>().value(row);
                number::write_integer(value, *is_wide, pattern)
            }
            Self::Floats(array, is_real) => {
                let value = array.as_primitive::<Float64Type>().value(row);
                number::write_float(value, *is_real, pattern)
            }
            Self::Decimals(decimals, _) => match decimals.get(row) {
                Some(decimal) => number::write_decimal(decimal, pattern),
                None => Ok(String::new()),
            },
            Self::Times(..) | Self::Intervals(_) => Ok(String::new()),
        }
    }
}
