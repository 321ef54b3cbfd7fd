//! Bounds of one column: of the row groups of a file, of the files of a table, of blocks of fresh rows.

use std::ops::Range;

use arrow_schema::DataType;
use stoa_orc::{ColumnStatistics, FileMetadata, Literal, StripeMetadata, ValueStatistics};
use stoa_table::ScanFile;

use crate::chunk::{Chunk, Values};
use crate::condition::{Bounds, End};
use crate::report::{Column, Test};

/// Bounds of one column in some rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zone {
    bounds: OwnBounds,
    has_null: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum OwnBounds {
    Unknown,
    NoValue,
    Numbers(i128, i128),
    Texts(Box<[u8]>, Box<[u8]>),
}

impl Zone {
    /// Rows of which nothing is known.
    pub(crate) const UNKNOWN: Self = Self { bounds: OwnBounds::Unknown, has_null: true };
    /// Rows that are all NULL.
    pub(crate) const NULLS: Self = Self { bounds: OwnBounds::NoValue, has_null: true };

    /// Rows that are here.
    pub(crate) fn of_chunk(chunk: &Chunk) -> Self {
        let valued = || (0..chunk.rows()).filter(|row| !chunk.is_null(*row));
        let has_null = chunk.has_nulls();
        if valued().next().is_none() {
            return Self::NULLS;
        }
        let bounds = match &chunk.values {
            Values::Ints(_) | Values::Wide(_) => {
                let ends = valued()
                    .map(|row| chunk.number(row))
                    .fold((i128::MAX, i128::MIN), |(least, greatest), value| {
                        (least.min(value), greatest.max(value))
                    });
                OwnBounds::Numbers(ends.0, ends.1)
            }
            Values::Text(_) | Values::Codes(_) => {
                let texts = || valued().map(|row| chunk.text(row).as_bytes());
                let ends = (texts().min().unwrap_or_default(), texts().max().unwrap_or_default());
                OwnBounds::Texts(ends.0.into(), ends.1.into())
            }
            Values::Floats(_) => OwnBounds::Unknown,
        };
        Self { bounds, has_null }
    }

    /// Whether such rows may meet a test.
    pub(crate) fn may_match(&self, test: &Test) -> bool {
        let bounds = match &self.bounds {
            OwnBounds::Unknown => Bounds::Unknown,
            OwnBounds::NoValue => Bounds::NoValue,
            OwnBounds::Numbers(least, greatest) => Bounds::Numbers(*least, *greatest),
            OwnBounds::Texts(least, greatest) => Bounds::Texts(least, greatest),
        };
        test.may_match(bounds, self.has_null)
    }

    /// Whether neither end of the bounds is above that of `other`.
    fn is_before(&self, other: &Self) -> bool {
        match (&self.bounds, &other.bounds) {
            (OwnBounds::Numbers(a, b), OwnBounds::Numbers(c, d)) => a <= c && b <= d,
            (OwnBounds::Texts(a, b), OwnBounds::Texts(c, d)) => a <= c && b <= d,
            _ => false,
        }
    }

    fn ends_before(&self, low: End<'_>) -> bool {
        match (&self.bounds, low) {
            (OwnBounds::Numbers(_, greatest), End::Number(low)) => *greatest < low,
            (OwnBounds::Texts(_, greatest), End::Text(low)) => **greatest < *low,
            _ => false,
        }
    }

    fn begins_after(&self, high: End<'_>) -> bool {
        match (&self.bounds, high) {
            (OwnBounds::Numbers(least, _), End::Number(high)) => *least > high,
            (OwnBounds::Texts(least, _), End::Text(high)) => **least > *high,
            _ => false,
        }
    }

    /// Whether all such rows meet a test, as far as their bounds tell.
    pub(crate) fn all_match(&self, test: &Test) -> bool {
        if self.has_null {
            return self.bounds == OwnBounds::NoValue && *test == Test::IsNull;
        }
        match (&self.bounds, test) {
            (OwnBounds::Numbers(..) | OwnBounds::Texts(..), Test::IsNotNull) => true,
            (OwnBounds::Numbers(least, greatest), Test::Between(low, high)) => {
                low <= least && greatest <= high
            }
            (OwnBounds::Numbers(least, greatest), Test::OneOf(values)) => {
                least == greatest && values.binary_search(least).is_ok()
            }
            (OwnBounds::Numbers(least, greatest), Test::NotEqual(value)) => {
                value < least || greatest < value
            }
            (OwnBounds::Texts(least, greatest), Test::TextBetween { low, high }) => {
                let is_above = low.as_ref().is_none_or(|(low, within)| match within {
                    true => low.as_bytes() <= &**least,
                    false => low.as_bytes() < &**least,
                });
                let is_below = high.as_ref().is_none_or(|(high, within)| match within {
                    true => **greatest <= *high.as_bytes(),
                    false => **greatest < *high.as_bytes(),
                });
                is_above && is_below
            }
            _ => false,
        }
    }

    /// The least and the greatest number. They are values of rows where the file's writer is trusted.
    pub(crate) fn numbers(&self) -> Option<(i128, i128)> {
        match self.bounds {
            OwnBounds::Numbers(least, greatest) => Some((least, greatest)),
            _ => None,
        }
    }

    /// The number that all rows have.
    pub(crate) fn one_number(&self) -> Option<i128> {
        self.numbers()
            .filter(|(least, greatest)| least == greatest && !self.has_null)
            .map(|(one, _)| one)
    }

    /// A test that just those values meet that are not less than all of these rows; `None` where nothing is known of
    /// them.
    pub(crate) fn at_or_above_least(&self) -> Option<Test> {
        match &self.bounds {
            OwnBounds::Numbers(least, _) => Some(Test::Between(*least, i128::MAX)),
            OwnBounds::Texts(least, _) => {
                let low = std::str::from_utf8(least).ok()?;
                Some(Test::TextBetween { low: Some((low.into(), true)), high: None })
            }
            OwnBounds::Unknown | OwnBounds::NoValue => None,
        }
    }

    /// Memory this takes, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let texts = match &self.bounds {
            OwnBounds::Texts(least, greatest) => least.len() + greatest.len(),
            _ => 0,
        };
        size_of::<Self>() + texts
    }
}

/// The zones of one column in the row groups of a file, in the file's order.
#[derive(Debug)]
pub(crate) struct Zones {
    zones: Vec<Zone>,
    /// Whether both ends of the bounds ascend, as where a file is sorted by the column.
    ascend: bool,
    totals: Option<GroupTotals>,
}

/// What the values of one column come to in each row group of a file. Only of files that Stoa has written: nobody else relies
/// on what others write there.
#[derive(Debug)]
pub(crate) struct GroupTotals {
    /// Rows with a value.
    values: Box<[u32]>,
    /// Of integers and decimals (unscaled).
    sums: Option<Box<[i128]>>,
}

impl GroupTotals {
    /// Of row groups without a sum, there are none.
    fn of(statistics: &[ColumnStatistics], data_type: &DataType) -> Option<Self> {
        let values = statistics.iter().map(|one| u32::try_from(one.values?).ok());
        let sums = statistics.iter().map(|one| sum_of(one, data_type)).collect();
        Some(Self { values: values.collect::<Option<_>>()?, sums })
    }

    /// How many rows of a row group have a value.
    pub(crate) fn values(&self, group: usize) -> Option<u32> {
        self.values.get(group).copied()
    }

    /// The sum of a row group's values.
    pub(crate) fn sum(&self, group: usize) -> Option<i128> {
        self.sums.as_ref()?.get(group).copied()
    }

    fn memory_bytes(&self) -> usize {
        let sums = self.sums.as_ref().map_or(0, |sums| size_of_val::<[i128]>(sums));
        size_of_val::<[u32]>(&self.values) + sums
    }
}

/// The sum of integers, or of decimals at the column's scale.
fn sum_of(statistics: &ColumnStatistics, data_type: &DataType) -> Option<i128> {
    match (&statistics.bounds, data_type) {
        (ValueStatistics::Integer { sum, .. }, of) if of.is_integer() => sum.map(i128::from),
        (ValueStatistics::Decimal { sum: Some((sum, of)), .. }, DataType::Decimal128(_, scale)) => {
            let digits = u32::try_from(scale.checked_sub(*of)?).ok()?;
            sum.checked_mul(10_i128.checked_pow(digits)?)
        }
        // Its kind is not known then.
        _ if statistics.values == Some(0) => Some(0),
        _ => None,
    }
}

impl Zones {
    pub(crate) fn new(zones: Vec<Zone>) -> Self {
        let ascend = zones.is_sorted_by(|a, b| a.is_before(b));
        Self { ascend, zones, totals: None }
    }

    /// What the values of the row groups come to, where that is known of all.
    pub(crate) fn totals(&self) -> Option<&GroupTotals> {
        self.totals.as_ref()
    }

    /// Whether both ends of the bounds ascend.
    pub(crate) fn ascend(&self) -> bool {
        self.ascend
    }

    /// What is known of a row group.
    pub(crate) fn of_group(&self, group: usize) -> Option<&Zone> {
        self.zones.get(group)
    }

    /// Whether rows of a row group may meet a test; true for row groups of which nothing is known.
    pub(crate) fn may_match(&self, group: usize, test: &Test) -> bool {
        self.zones.get(group).is_none_or(|zone| zone.may_match(test))
    }

    /// All row groups that may meet a test are among these; found by bisection where bounds ascend.
    pub(crate) fn range(&self, test: &Test) -> Range<usize> {
        if !self.ascend {
            return 0..usize::MAX;
        }
        let (low, high) = test.ends();
        let before = |zone: &Zone| low.is_some_and(|low| zone.ends_before(low));
        let start = self.zones.partition_point(before);
        let not_after = |zone: &Zone| high.is_none_or(|high| !zone.begins_after(high));
        let end = self.zones[start..].partition_point(not_after);
        start..start + end
    }

    /// From the row indexes of all stripes that have rows; `groups` tells how many row groups each
    /// of them has.
    pub(crate) fn of_row_groups<'a>(
        file: &FileMetadata,
        column: &Column,
        stripes: impl Iterator<Item = (Option<&'a StripeMetadata>, usize)>,
    ) -> Self {
        let in_file = file.types.column_of_field(column.field_id);
        let is_missing = file.types.has_field_ids() && in_file.is_none();
        let mut zones = Vec::new();
        let mut known = Vec::new();
        for (stripe, groups) in stripes {
            let start = zones.len();
            if let (Some(stripe), Some(in_file)) = (stripe, in_file) {
                let mut statistics = file.row_group_statistics(stripe, in_file);
                // An index of other row groups says nothing of these.
                if statistics.len() != groups {
                    statistics.clear();
                }
                let zone = |one: &Option<ColumnStatistics>| {
                    one.as_ref()
                        .map_or(Zone::UNKNOWN, |one| zone_of_statistics(one, &column.data_type))
                };
                zones.extend(statistics.iter().map(zone));
                known.extend(statistics.into_iter().flatten());
            }
            let unknown = if is_missing { Zone::NULLS } else { Zone::UNKNOWN };
            zones.resize(start + groups, unknown);
        }
        let is_own = file.writer.software.as_ref().is_some_and(|by| by.starts_with("stoa-"));
        let totals = (is_own && known.len() == zones.len())
            .then(|| GroupTotals::of(&known, &column.data_type))
            .flatten();
        Self { totals, ..Self::new(zones) }
    }

    /// Memory this takes, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let totals = self.totals.as_ref().map_or(0, GroupTotals::memory_bytes);
        size_of::<Self>() + self.zones.iter().map(Zone::memory_bytes).sum::<usize>() + totals
    }
}

fn zone_of_statistics(statistics: &ColumnStatistics, data_type: &DataType) -> Zone {
    let has_null = statistics.has_null;
    if statistics.values == Some(0) {
        return Zone { bounds: OwnBounds::NoValue, has_null: true };
    }
    let bounds = match &statistics.bounds {
        ValueStatistics::Integer { min: Some(min), max: Some(max), .. } => {
            numbers(i128::from(*min), i128::from(*max))
        }
        ValueStatistics::Date { min: Some(min), max: Some(max) } => {
            numbers(i128::from(*min), i128::from(*max))
        }
        ValueStatistics::Timestamp { min: Some(min), max: Some(max) } => {
            let micros = |millis: i64, nanos: u32| i128::from(millis) * 1000 + i128::from(nanos);
            numbers(
                micros(min.millis, min.nanos / 1000),
                micros(max.millis, max.nanos.div_ceil(1000)),
            )
        }
        ValueStatistics::Decimal { min: Some(min), max: Some(max), .. } => {
            decimals(*min, *max, data_type)
        }
        ValueStatistics::String { lower: Some(lower), upper: Some(upper), .. } => {
            OwnBounds::Texts(lower.as_slice().into(), upper.as_slice().into())
        }
        _ => OwnBounds::Unknown,
    };
    Zone { bounds: fitting(bounds, data_type), has_null }
}

/// The bounds of a column in a data file, as its manifest has them.
pub(crate) fn zone_of_file(file: &ScanFile, column: &Column) -> Zone {
    let id = column.field_id;
    let (nulls, values) = (file.null_counts.get(&id), file.value_counts.get(&id));
    let has_null = nulls.is_none_or(|nulls| *nulls > 0);
    if let (Some(nulls), Some(values)) = (nulls, values)
        && nulls >= values
        && *values > 0
    {
        return Zone::NULLS;
    }
    let bounds = match (file.lower_bounds.get(&id), file.upper_bounds.get(&id)) {
        (Some(Literal::Int(least)), Some(Literal::Int(greatest)))
        | (Some(Literal::TimestampMicros(least)), Some(Literal::TimestampMicros(greatest))) => {
            numbers(i128::from(*least), i128::from(*greatest))
        }
        (Some(Literal::Date(least)), Some(Literal::Date(greatest))) => {
            numbers(i128::from(*least), i128::from(*greatest))
        }
        (Some(Literal::Boolean(least)), Some(Literal::Boolean(greatest))) => {
            numbers(i128::from(*least), i128::from(*greatest))
        }
        (Some(Literal::Decimal(least, scale)), Some(Literal::Decimal(greatest, upper_scale))) => {
            decimals((*least, *scale), (*greatest, *upper_scale), &column.data_type)
        }
        (Some(Literal::String(least)), Some(Literal::String(greatest))) => {
            OwnBounds::Texts(least.as_bytes().into(), greatest.as_bytes().into())
        }
        _ => OwnBounds::Unknown,
    };
    Zone { bounds: fitting(bounds, &column.data_type), has_null }
}

fn numbers(least: i128, greatest: i128) -> OwnBounds {
    OwnBounds::Numbers(least, greatest)
}

/// Unscaled values at the column's scale.
fn decimals(least: (i128, i8), greatest: (i128, i8), data_type: &DataType) -> OwnBounds {
    let DataType::Decimal128(_, scale) = data_type else { return OwnBounds::Unknown };
    // A bound of more digits than the column has is not its own.
    let scaled = |(value, of): (i128, i8)| {
        let digits = u32::try_from(scale.checked_sub(of)?).ok()?;
        value.checked_mul(10_i128.checked_pow(digits)?)
    };
    match (scaled(least), scaled(greatest)) {
        (Some(least), Some(greatest)) => OwnBounds::Numbers(least, greatest),
        _ => OwnBounds::Unknown,
    }
}

/// Bounds of another kind than the column's, as a file of an older schema may have, say nothing.
fn fitting(bounds: OwnBounds, data_type: &DataType) -> OwnBounds {
    let fits = match &bounds {
        OwnBounds::Numbers(..) => {
            !matches!(data_type, DataType::Utf8 | DataType::Float32 | DataType::Float64)
        }
        OwnBounds::Texts(..) => *data_type == DataType::Utf8,
        OwnBounds::Unknown | OwnBounds::NoValue => true,
    };
    if fits { bounds } else { OwnBounds::Unknown }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stoa_orc::TimestampBound;

    use super::*;

    fn zone(bounds: ValueStatistics, data_type: DataType) -> Zone {
        let statistics =
            ColumnStatistics { values: Some(3), has_null: false, bytes_on_disk: None, bounds };
        zone_of_statistics(&statistics, &data_type)
    }

    #[test]
    fn statistics_become_bounds_in_the_columns_unit() {
        let decimal =
            ValueStatistics::Decimal { min: Some((15, 1)), max: Some((25, 0)), sum: None };
        let of_scale_two = zone(decimal.clone(), DataType::Decimal128(10, 2));
        assert_eq!(of_scale_two.bounds, OwnBounds::Numbers(150, 2500));
        assert_eq!(zone(decimal, DataType::Decimal128(10, 0)).bounds, OwnBounds::Unknown);
        let at = |millis, nanos| Some(TimestampBound { millis, nanos });
        let times = ValueStatistics::Timestamp { min: at(-1, 999_999), max: at(5, 1) };
        let micros = DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, None);
        assert_eq!(zone(times, micros).bounds, OwnBounds::Numbers(-1, 5001));
        let whole = ValueStatistics::Integer { min: Some(1), max: Some(2), sum: None };
        assert_eq!(zone(whole, DataType::Utf8).bounds, OwnBounds::Unknown);
    }

    proptest! {
        #[test]
        fn no_row_group_that_may_match_is_left_out(
            mut bounds in prop::collection::vec((-20_i128..20, 0_i128..6), 0..12),
            sorted in any::<bool>(),
            ends in (-25_i128..25, -25_i128..25),
            texts in any::<bool>(),
        ) {
            if sorted {
                bounds.sort_unstable();
            }
            let text = |n: i128| format!("{:03}", n + 100);
            let zones = bounds.iter().map(|(least, more)| {
                let bounds = match texts {
                    true => OwnBounds::Texts(
                        text(*least).as_bytes().into(), text(least + more).as_bytes().into()),
                    false => numbers(*least, least + more),
                };
                Zone { bounds, has_null: false }
            });
            let zones = Zones::new(zones.collect());
            let tests = match texts {
                true => vec![
                    Test::TextBetween { low: Some((text(ends.0).into(), false)), high: None },
                    Test::TextBetween { low: None, high: Some((text(ends.1).into(), true)) },
                    Test::TextOneOf(vec![text(ends.0).into()]),
                    Test::TextOneOf(vec![]),
                    Test::TextNotEqual(text(ends.0).into()),
                ],
                false => vec![
                    Test::Between(ends.0, ends.1),
                    Test::OneOf(vec![ends.0.min(ends.1), ends.0.max(ends.1)]),
                    Test::OneOf(vec![]),
                    Test::NotEqual(ends.0),
                    Test::IsNotNull,
                ],
            };
            for test in tests {
                let range = zones.range(&test);
                for group in (0..bounds.len()).filter(|group| !range.contains(group)) {
                    prop_assert!(!zones.may_match(group, &test), "{group} {test:?} {zones:?}");
                }
            }
        }
    }

    #[test]
    fn rows_without_a_value_match_only_is_null() {
        let none = ColumnStatistics { values: Some(0), ..ColumnStatistics::default() };
        let zone = zone_of_statistics(&none, &DataType::Int64);
        assert!(zone.may_match(&Test::IsNull));
        assert!(!zone.may_match(&Test::Between(i128::MIN, i128::MAX)));
    }
}
