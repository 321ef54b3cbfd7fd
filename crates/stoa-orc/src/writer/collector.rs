//! Counting statistics of one column: over a row group, then merged over stripe and file.
//!
//! In: batches of values that are not NULL. Out: [`ColumnStatistics`] for the index, the stripe
//! and the file, and bounds as [`Literal`]s for a table's manifest.
//! **Invariant:** bounds hold for every value seen; a cut string bound says so (ORC-203).
//! Not here: the messages (`statistics`).

use crate::predicate::Literal;
use crate::proto::TypeKind;
use crate::statistics::{ColumnStatistics, TimestampBound, ValueStatistics};

mod strings;

pub(crate) use strings::StringBounds;

/// Statistics of a column so far.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    /// Values that are not NULL.
    pub(crate) values: u64,
    /// NULLs.
    pub(crate) nulls: u64,
    /// Whether the struct that the column is a field of was NULL somewhere: those who look for NULLs
    /// in the field (Spark does, by its statistics) mean these, too.
    pub(crate) absent: bool,
    pub(crate) bounds: Bounds,
}

/// What is known about the values, by type; starts as that of no value.
#[derive(Clone, Debug)]
pub(crate) enum Bounds {
    /// STRUCT, UNION.
    None,
    /// TINYINT to BIGINT; `min > max` if there are none.
    Integer {
        min: i64,
        max: i64,
        sum: i128,
    },
    /// DATE in days; `min > max` if there are none.
    Date {
        min: i64,
        max: i64,
    },
    /// Bounds are of values other than NaN, `min > max` if there are none.
    Float {
        min: f64,
        max: f64,
        sum: f64,
        nans: u64,
    },
    Boolean {
        trues: u64,
    },
    String(StringBounds),
    Binary {
        bytes: u64,
    },
    /// Unscaled; `min > max` if there are none; no sum after an overflow.
    Decimal {
        min: i128,
        max: i128,
        sum: Option<i128>,
        scale: i8,
    },
    Timestamp(Option<(TimestampBound, TimestampBound)>),
    /// LIST, MAP; `min > max` if there are none.
    Collection {
        min: u64,
        max: u64,
        total: u64,
    },
}

impl Collector {
    /// Nothing seen yet of a column of this type; `scale` is a decimal's.
    pub(crate) fn new(kind: TypeKind, scale: u32) -> Self {
        let bounds = match kind {
            TypeKind::Byte | TypeKind::Short | TypeKind::Int | TypeKind::Long => {
                Bounds::Integer { min: i64::MAX, max: i64::MIN, sum: 0 }
            }
            TypeKind::Date => Bounds::Date { min: i64::MAX, max: i64::MIN },
            TypeKind::Float | TypeKind::Double => {
                Bounds::Float { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, nans: 0 }
            }
            TypeKind::Boolean => Bounds::Boolean { trues: 0 },
            TypeKind::String | TypeKind::Varchar | TypeKind::Char => {
                Bounds::String(StringBounds::default())
            }
            TypeKind::Binary | TypeKind::Geometry | TypeKind::Geography => {
                Bounds::Binary { bytes: 0 }
            }
            TypeKind::Decimal => Bounds::Decimal {
                min: i128::MAX,
                max: i128::MIN,
                sum: Some(0),
                scale: i8::try_from(scale).unwrap_or(i8::MAX),
            },
            TypeKind::Timestamp | TypeKind::TimestampInstant => Bounds::Timestamp(None),
            TypeKind::List | TypeKind::Map => {
                Bounds::Collection { min: u64::MAX, max: 0, total: 0 }
            }
            TypeKind::Struct | TypeKind::Union => Bounds::None,
        };
        Self { values: 0, nulls: 0, absent: false, bounds }
    }

    /// Adds integers or dates.
    pub(crate) fn add_integers(&mut self, values: &[i64]) {
        let (low, high) =
            values.iter().fold((i64::MAX, i64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        match &mut self.bounds {
            Bounds::Integer { min, max, sum } => {
                *min = low.min(*min);
                *max = high.max(*max);
                *sum += sum_of(values, low, high);
            }
            Bounds::Date { min, max } => {
                *min = low.min(*min);
                *max = high.max(*max);
            }
            _ => {}
        }
    }

    /// Adds floating-point numbers.
    pub(crate) fn add_floats(&mut self, values: impl Iterator<Item = f64>) {
        let Bounds::Float { min, max, sum, nans } = &mut self.bounds else { return };
        for value in values {
            *sum += value;
            if value.is_nan() {
                *nans += 1;
            } else {
                *min = if value < *min { value } else { *min };
                *max = if value > *max { value } else { *max };
            }
        }
    }

    /// Adds unscaled decimals.
    pub(crate) fn add_decimals(&mut self, values: &[i128]) {
        let Bounds::Decimal { min, max, sum, .. } = &mut self.bounds else { return };
        for value in values {
            *min = (*min).min(*value);
            *max = (*max).max(*value);
            *sum = sum.and_then(|sum| sum.checked_add(*value));
        }
    }

    /// Adds points in time by their extremes.
    pub(crate) fn add_timestamps(&mut self, low: TimestampBound, high: TimestampBound) {
        let Bounds::Timestamp(bounds) = &mut self.bounds else { return };
        *bounds = Some(match bounds {
            None => (low, high),
            Some((min, max)) => (low.min(*min), high.max(*max)),
        });
    }

    /// Adds what was seen elsewhere of the same column.
    pub(crate) fn merge(&mut self, other: &Self) {
        match (&mut self.bounds, &other.bounds) {
            (
                Bounds::Integer { min, max, sum },
                Bounds::Integer { min: low, max: high, sum: more },
            ) => {
                (*min, *max, *sum) = ((*low).min(*min), (*high).max(*max), *sum + more);
            }
            (Bounds::Date { min, max }, Bounds::Date { min: low, max: high }) => {
                (*min, *max) = ((*low).min(*min), (*high).max(*max));
            }
            (
                Bounds::Float { min, max, sum, nans },
                Bounds::Float { min: low, max: high, sum: more, nans: more_nans },
            ) => {
                (*min, *max) = (low.min(*min), high.max(*max));
                *sum += more;
                *nans += more_nans;
            }
            (Bounds::Boolean { trues }, Bounds::Boolean { trues: more }) => *trues += more,
            (Bounds::String(bounds), Bounds::String(more)) => bounds.merge(more),
            (Bounds::Binary { bytes }, Bounds::Binary { bytes: more }) => *bytes += more,
            (
                Bounds::Decimal { min, max, sum, .. },
                Bounds::Decimal { min: low, max: high, sum: more, .. },
            ) => {
                (*min, *max) = ((*low).min(*min), (*high).max(*max));
                *sum = sum.zip(*more).and_then(|(a, b)| a.checked_add(b));
            }
            (Bounds::Timestamp(_), Bounds::Timestamp(Some((low, high)))) => {
                self.add_timestamps(*low, *high);
            }
            (
                Bounds::Collection { min, max, total },
                Bounds::Collection { min: low, max: high, total: more },
            ) => {
                (*min, *max, *total) = ((*low).min(*min), (*high).max(*max), *total + more);
            }
            _ => {}
        }
        self.values += other.values;
        self.nulls += other.nulls;
        self.absent |= other.absent;
    }

    /// How many values were NaN; `None` if the type has none.
    pub(crate) fn nans(&self) -> Option<u64> {
        match self.bounds {
            Bounds::Float { nans, .. } => Some(nans),
            _ => None,
        }
    }

    /// The statistics of what was seen.
    pub(crate) fn statistics(&self, bytes_on_disk: Option<u64>) -> ColumnStatistics {
        ColumnStatistics {
            values: Some(self.values),
            has_null: self.nulls > 0 || self.absent,
            bytes_on_disk,
            bounds: self.value_statistics(),
        }
    }

    fn value_statistics(&self) -> ValueStatistics {
        let some = self.values > 0;
        match &self.bounds {
            Bounds::None => ValueStatistics::None,
            Bounds::Integer { min, max, sum } => ValueStatistics::Integer {
                min: some.then_some(*min),
                max: some.then_some(*max),
                sum: i64::try_from(*sum).ok(),
            },
            Bounds::Date { min, max } => ValueStatistics::Date {
                min: some.then_some(*min).and_then(|days| i32::try_from(days).ok()),
                max: some.then_some(*max).and_then(|days| i32::try_from(days).ok()),
            },
            Bounds::Float { sum, .. } => {
                let (min, max) = self.float_bounds().unzip();
                ValueStatistics::Double { min, max, sum: Some(*sum) }
            }
            Bounds::Boolean { trues } => ValueStatistics::Boolean { true_count: Some(*trues) },
            Bounds::String(bounds) => bounds.statistics(some),
            Bounds::Binary { bytes } => {
                ValueStatistics::Binary { total_bytes: i64::try_from(*bytes).ok() }
            }
            Bounds::Decimal { min, max, sum, scale } => ValueStatistics::Decimal {
                min: some.then_some((*min, *scale)),
                max: some.then_some((*max, *scale)),
                // A reader has 38 digits for the sum.
                sum: sum
                    .filter(|sum| sum.unsigned_abs() < 10_u128.pow(38))
                    .map(|sum| (sum, *scale)),
            },
            Bounds::Timestamp(bounds) => {
                let (min, max) = bounds.unzip();
                ValueStatistics::Timestamp { min, max }
            }
            Bounds::Collection { min, max, total } => ValueStatistics::Collection {
                min_children: some.then_some(*min),
                max_children: some.then_some(*max),
                total_children: Some(*total),
            },
        }
    }

    /// Bounds of values other than NaN; zeros as the widest of the two.
    fn float_bounds(&self) -> Option<(f64, f64)> {
        match self.bounds {
            Bounds::Float { min, max, .. } if min <= max => {
                let min = if min == 0.0 { -0.0 } else { min };
                let max = if max == 0.0 { 0.0 } else { max };
                Some((min, max))
            }
            _ => None,
        }
    }

    /// The smallest and the largest value for a table's manifest, NaN left out; a string's or a
    /// timestamp's may be rounded outwards.
    pub(crate) fn literals(&self) -> (Option<Literal>, Option<Literal>) {
        if self.values == 0 {
            return (None, None);
        }
        match &self.bounds {
            Bounds::Integer { min, max, .. } => {
                (Some(Literal::Int(*min)), Some(Literal::Int(*max)))
            }
            Bounds::Date { min, max } => {
                let day = |days: i64| i32::try_from(days).ok().map(Literal::Date);
                (day(*min), day(*max))
            }
            Bounds::Float { .. } => {
                let (min, max) = self.float_bounds().unzip();
                (min.map(Literal::Float), max.map(Literal::Float))
            }
            Bounds::Boolean { trues } => {
                let all = *trues == self.values;
                (Some(Literal::Boolean(all)), Some(Literal::Boolean(*trues > 0)))
            }
            Bounds::String(bounds) => bounds.literals(),
            Bounds::Decimal { min, max, scale, .. } => {
                (Some(Literal::Decimal(*min, *scale)), Some(Literal::Decimal(*max, *scale)))
            }
            Bounds::Timestamp(Some((min, max))) => {
                let micros = |at: &TimestampBound, nanos: u32| {
                    at.millis.checked_mul(1000)?.checked_add(i64::from(nanos / 1000))
                };
                let (min, max) = (micros(min, min.nanos), micros(max, max.nanos + 999));
                (min.map(Literal::TimestampMicros), max.map(Literal::TimestampMicros))
            }
            _ => (None, None),
        }
    }
}

/// The sum of `values`, all within `low..=high`.
fn sum_of(values: &[i64], low: i64, high: i64) -> i128 {
    let largest = low.unsigned_abs().max(high.unsigned_abs());
    if largest <= (1 << 62) / (values.len() as u64 + 1) {
        return i128::from(values.iter().sum::<i64>());
    }
    values.iter().map(|value| i128::from(*value)).sum()
}
