//! Values as text, as PostgreSQL shows them where Arrow's way differs.

use arrow_array::cast::AsArray;
use arrow_array::types::Time64MicrosecondType;
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, DurationFormat, FormatOptions};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use stoa_error::{Error, Result};
use stoa_query::{NUMERIC, numeric_text, time_text};

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_duration_format(DurationFormat::Pretty);

/// The columns of one batch, ready to be shown.
pub(super) struct Values<'a> {
    columns: Vec<(ArrayFormatter<'a>, &'a dyn Array)>,
}

impl<'a> Values<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Result<Self> {
        let columns = batch.columns().iter().map(|column| {
            let formatter = ArrayFormatter::try_new(column.as_ref(), &OPTIONS)?;
            Ok((formatter, column.as_ref()))
        });
        Ok(Self { columns: columns.collect::<Result<_, ArrowError>>().map_err(cannot_show)? })
    }

    /// Appends the value to `text`; `false`, and nothing appended, for NULL.
    pub(super) fn append(&self, column: usize, row: usize, text: &mut String) -> Result<bool> {
        let Some((formatter, array)) = self.columns.get(column) else { return Ok(false) };
        if array.is_null(row) {
            return Ok(false);
        }
        if *array.data_type() == DataType::Time64(TimeUnit::Microsecond) {
            text.push_str(&time_text(array.as_primitive::<Time64MicrosecondType>().value(row)));
            return Ok(true);
        }
        let begin = text.len();
        formatter.value(row).write(text).map_err(cannot_show)?;
        if *array.data_type() == NUMERIC {
            let shown = numeric_text(&text[begin..]).len();
            text.truncate(begin + shown);
        }
        Ok(true)
    }

    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }
}

/// Whether values of the type stand to the right of their column.
pub(super) fn is_right_aligned(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

pub(super) fn cannot_show(error: ArrowError) -> Error {
    Error::internal("cannot show a value").with_source(error)
}
