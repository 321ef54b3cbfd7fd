//! Which row groups of a Parquet file may have rows that a predicate keeps, by their statistics.
//!
//! **Invariant:** a row group is left out only if no row of it can match. Statistics that old writers compared as
//! signed bytes, and columns whose values change their order when they are converted to the table's type, are not judged
//! by. Where a conversion makes NULL of a value that does not fit, there may be NULLs that no statistics count.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use stoa_orc::{ColumnRef, ColumnStatistics, TimestampBound, ValueStatistics};

use super::ReadOptions;
use crate::adapt::{self, Limit, Matching, fits, limited};

const NANOS_PER_MICRO: i64 = 1_000;
const MICROS_PER_MILLI: i64 = 1_000;

/// Whether each row group may have matching rows; empty where all may.
pub(super) fn kept(
    parsed: &ParquetMetaData,
    metadata: &ArrowReaderMetadata,
    options: &ReadOptions,
) -> Vec<bool> {
    if options.predicate.is_always() {
        return Vec::new();
    }
    let mut columns: Vec<(ColumnRef, Vec<ColumnStatistics>)> = Vec::new();
    options.predicate.for_each_column(&mut |column| {
        if !columns.iter().any(|(known, _)| *known == column)
            && let Some(known) = statistics(parsed, metadata, options, column)
        {
            columns.push((column, known));
        }
    });
    let may = |group: usize| {
        options.predicate.may_match(&|column| {
            let (_, known) = columns.iter().find(|(known, _)| *known == column)?;
            known.get(group).cloned()
        })
    };
    (0..parsed.num_row_groups()).map(may).collect()
}

/// What the row groups tell of a column of the table; `None` where that is nothing, or may not be trusted.
fn statistics(
    parsed: &ParquetMetaData,
    metadata: &ArrowReaderMetadata,
    options: &ReadOptions,
    column: ColumnRef,
) -> Option<Vec<ColumnStatistics>> {
    let (place, wanted, limit) = options.column(column)?;
    let file: &Schema = metadata.schema();
    let one = Schema::new(vec![wanted.clone().with_nullable(true)]);
    let at = Matching::Name.find(file, &one, &[place]).first().copied().flatten()?;
    let own = file.fields().get(at)?;
    if !keeps_order(own.data_type(), wanted.data_type()) {
        return None;
    }
    let fits = limit != Some(Limit::Short) && fits(own.data_type(), wanted.data_type());
    let schema = metadata.parquet_schema();
    let converter = StatisticsConverter::try_new(own.name(), file, schema).ok()?;
    let leaf = converter.parquet_column_index()?;
    let groups = parsed.row_groups();
    let in_table = |array: ArrayRef| -> Option<ArrayRef> {
        let rows = array.len();
        let batch = adapt::batch(&Arc::new(one.clone()), &[Some(0)], &[array], rows).ok()?;
        // Cutting texts off keeps their order.
        Some(limited(Arc::clone(batch.column(0)), limit))
    };
    let least = in_table(converter.row_group_mins(groups.iter()).ok()?)?;
    let most = in_table(converter.row_group_maxes(groups.iter()).ok()?)?;
    let of_group = |(at, group): (usize, &RowGroupMetaData)| {
        let rows = u64::try_from(group.num_rows()).ok();
        let nulls = group.column(leaf).statistics().and_then(|known| known.null_count_opt());
        let nulls = nulls.filter(|_| fits);
        ColumnStatistics {
            values: rows.zip(nulls).map(|(rows, nulls)| rows.saturating_sub(nulls)),
            has_null: nulls.is_none_or(|nulls| nulls > 0),
            bytes_on_disk: None,
            bounds: match is_trusted(group, leaf) {
                true => bounds(&least, &most, at),
                false => ValueStatistics::None,
            },
        }
    };
    Some(groups.iter().enumerate().map(of_group).collect())
}

/// Whether values that are compared in the file compare alike in the table.
fn keeps_order(own: &DataType, wanted: &DataType) -> bool {
    let is_integer = |of: &DataType| of.is_signed_integer();
    match (own, wanted) {
        (own, wanted) if own == wanted => true,
        (own, wanted) if is_integer(own) && is_integer(wanted) => true,
        (DataType::Timestamp(_, own), DataType::Timestamp(TimeUnit::Microsecond, wanted)) => {
            own == wanted
        }
        _ => false,
    }
}

/// Whether the least and largest values of a column mean what they say. Old writers compared texts and decimals as
/// signed bytes, and timestamps of 96 bits have no order.
fn is_trusted(group: &RowGroupMetaData, leaf: usize) -> bool {
    let chunk = group.column(leaf);
    let is_number = matches!(
        chunk.column_type(),
        PhysicalType::BOOLEAN
            | PhysicalType::INT32
            | PhysicalType::INT64
            | PhysicalType::FLOAT
            | PhysicalType::DOUBLE
    );
    // One without bounds, of NULLs alone, counts as old, too.
    let is_old =
        |known: &Statistics| known.is_min_max_deprecated() && known.min_bytes_opt().is_some();
    chunk.column_type() != PhysicalType::INT96
        && chunk.statistics().is_none_or(|known| is_number || !is_old(known))
}

/// The bounds of a row group, as values of the table's type.
fn bounds(least: &ArrayRef, most: &ArrayRef, group: usize) -> ValueStatistics {
    /// The values of a primitive array in this place.
    macro_rules! both {
        ($type:ty) => {{
            let of = |array: &ArrayRef| {
                let array = array.as_primitive::<$type>();
                (group < array.len() && array.is_valid(group)).then(|| array.value(group))
            };
            (of(least), of(most))
        }};
    }
    match least.data_type() {
        DataType::Int32 => {
            let (min, max) = both!(Int32Type);
            ValueStatistics::Integer { min: min.map(i64::from), max: max.map(i64::from), sum: None }
        }
        DataType::Int64 => {
            let (min, max) = both!(Int64Type);
            ValueStatistics::Integer { min, max, sum: None }
        }
        DataType::Float32 => {
            let (min, max) = both!(Float32Type);
            floats(min.map(f64::from), max.map(f64::from))
        }
        DataType::Float64 => {
            let (min, max) = both!(Float64Type);
            floats(min, max)
        }
        DataType::Date32 => {
            let (min, max) = both!(Date32Type);
            ValueStatistics::Date { min, max }
        }
        DataType::Decimal128(_, scale) => {
            let (min, max) = both!(Decimal128Type);
            let scaled = |value: Option<i128>| value.map(|value| (value, *scale));
            ValueStatistics::Decimal { min: scaled(min), max: scaled(max), sum: None }
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let (min, max) = both!(TimestampMicrosecondType);
            ValueStatistics::Timestamp { min: min.map(timestamp), max: max.map(timestamp) }
        }
        DataType::Utf8 => {
            let of = |array: &ArrayRef| {
                let array = array.as_string::<i32>();
                let is_known = group < array.len() && array.is_valid(group);
                is_known.then(|| array.value(group).as_bytes().to_vec())
            };
            ValueStatistics::String {
                lower: of(least),
                upper: of(most),
                // They may be cut.
                lower_is_exact: false,
                upper_is_exact: false,
                total_bytes: None,
            }
        }
        _ => ValueStatistics::None,
    }
}

/// Bounds of floats. Parquet's have no NaN in them; where a writer has one, they say nothing.
fn floats(min: Option<f64>, max: Option<f64>) -> ValueStatistics {
    // A sum that is a number says that the bounds are to be believed.
    ValueStatistics::Double { min, max, sum: Some(0.0) }
}

fn timestamp(micros: i64) -> TimestampBound {
    let nanos = micros.rem_euclid(MICROS_PER_MILLI) * NANOS_PER_MICRO;
    TimestampBound {
        millis: micros.div_euclid(MICROS_PER_MILLI),
        nanos: u32::try_from(nanos).unwrap_or_default(),
    }
}

impl ReadOptions {
    /// A column of the table by its field id: its place, and what its values are limited to.
    pub(super) fn column(&self, column: ColumnRef) -> Option<(usize, &Field, Option<Limit>)> {
        let ColumnRef::Field(id) = column else { return None };
        let of = |field: &Field| field.metadata().get(stoa_orc::FIELD_ID_KEY)?.parse::<i32>().ok();
        let place = self.columns.fields().iter().position(|field| of(field) == Some(id))?;
        let limit = self.limits.get(place).copied().flatten();
        Some((place, self.columns.field(place), limit))
    }
}
