//! Column statistics: of a file, a stripe or a row group.
//!
//! In: the protocol buffer message (or a writer that counts). Out: [`ColumnStatistics`] with
//! parsed values. **Invariant:** a missing or unreadable part is `None`, that is: anything goes.
//! Not here: which statistics a writer's version may be trusted with, and judging (`prune`).

use crate::proto;

/// Statistics of one column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Number of values that are not NULL, if known.
    pub values: Option<u64>,
    /// Whether there may be NULLs; true if the writer did not say.
    pub has_null: bool,
    /// Bytes of the column's streams in the file, if known.
    pub bytes_on_disk: Option<u64>,
    /// Bounds, by type.
    pub bounds: ValueStatistics,
}

/// Bounds of the values that are not NULL. All `None` where the file does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ValueStatistics {
    /// Nothing is known.
    #[default]
    None,
    /// TINYINT, SMALLINT, INT, BIGINT.
    Integer {
        /// Smallest value.
        min: Option<i64>,
        /// Largest value.
        max: Option<i64>,
        /// Sum, `None` on overflow.
        sum: Option<i64>,
    },
    /// FLOAT, DOUBLE.
    Double {
        /// Smallest value.
        min: Option<f64>,
        /// Largest value.
        max: Option<f64>,
        /// Sum; NaN tells that a value was NaN, and `min`/`max` say nothing.
        sum: Option<f64>,
    },
    /// STRING, VARCHAR, CHAR. Bytes compare as UTF-8 does.
    String {
        /// No value is smaller.
        lower: Option<Vec<u8>>,
        /// No value is larger.
        upper: Option<Vec<u8>>,
        /// Whether `lower` is itself a value (else a cut one).
        lower_is_exact: bool,
        /// Whether `upper` is itself a value (else a cut one).
        upper_is_exact: bool,
        /// Total length in bytes.
        total_bytes: Option<i64>,
    },
    /// BOOLEAN.
    Boolean {
        /// Number of true values.
        true_count: Option<u64>,
    },
    /// DECIMAL: unscaled value and scale of each.
    Decimal {
        /// Smallest value.
        min: Option<(i128, i8)>,
        /// Largest value.
        max: Option<(i128, i8)>,
        /// Sum, `None` on overflow.
        sum: Option<(i128, i8)>,
    },
    /// DATE, in days since 1970-01-01.
    Date {
        /// First day.
        min: Option<i32>,
        /// Last day.
        max: Option<i32>,
    },
    /// BINARY.
    Binary {
        /// Total length in bytes.
        total_bytes: Option<i64>,
    },
    /// TIMESTAMP (wall clock counted as if in UTC), TIMESTAMP_INSTANT (UTC).
    Timestamp {
        /// First point in time.
        min: Option<TimestampBound>,
        /// Last point in time.
        max: Option<TimestampBound>,
    },
    /// LIST, MAP.
    Collection {
        /// Smallest number of children in a value.
        min_children: Option<u64>,
        /// Largest number of children in a value.
        max_children: Option<u64>,
        /// Number of children of all values.
        total_children: Option<u64>,
    },
}

/// A point in time with nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimestampBound {
    /// Milliseconds since 1970-01-01, rounded down.
    pub millis: i64,
    /// Nanoseconds since that millisecond, 0 ..= 999,999.
    pub nanos: u32,
}

impl ColumnStatistics {
    /// Parses a message.
    pub fn from_proto(message: &proto::ColumnStatistics) -> Self {
        Self {
            values: message.number_of_values,
            has_null: message.has_null.unwrap_or(true),
            bytes_on_disk: message.bytes_on_disk,
            bounds: bounds_from_proto(message),
        }
    }

    /// The message; timestamps go to the UTC fields (and the old ones, for old readers).
    pub fn to_proto(&self) -> proto::ColumnStatistics {
        let mut message = proto::ColumnStatistics {
            number_of_values: self.values,
            has_null: Some(self.has_null),
            bytes_on_disk: self.bytes_on_disk,
            ..Default::default()
        };
        bounds_to_proto(&self.bounds, &mut message);
        message
    }
}

fn bounds_from_proto(m: &proto::ColumnStatistics) -> ValueStatistics {
    if let Some(s) = &m.int_statistics {
        ValueStatistics::Integer { min: s.minimum, max: s.maximum, sum: s.sum }
    } else if let Some(s) = &m.double_statistics {
        ValueStatistics::Double { min: s.minimum, max: s.maximum, sum: s.sum }
    } else if let Some(s) = &m.string_statistics {
        ValueStatistics::String {
            lower: s.minimum.clone().or_else(|| s.lower_bound.clone()),
            upper: s.maximum.clone().or_else(|| s.upper_bound.clone()),
            lower_is_exact: s.minimum.is_some(),
            upper_is_exact: s.maximum.is_some(),
            total_bytes: s.sum,
        }
    } else if let Some(s) = &m.bucket_statistics {
        ValueStatistics::Boolean { true_count: s.count.first().copied() }
    } else if let Some(s) = &m.decimal_statistics {
        let parse = |text: &Option<Vec<u8>>| text.as_deref().and_then(parse_decimal);
        ValueStatistics::Decimal {
            min: parse(&s.minimum),
            max: parse(&s.maximum),
            sum: parse(&s.sum),
        }
    } else if let Some(s) = &m.date_statistics {
        ValueStatistics::Date { min: s.minimum, max: s.maximum }
    } else if let Some(s) = &m.binary_statistics {
        ValueStatistics::Binary { total_bytes: s.sum }
    } else if let Some(s) = &m.timestamp_statistics {
        ValueStatistics::Timestamp {
            min: s.minimum_utc.map(|ms| bound(ms, s.minimum_nanos, 0)),
            max: s.maximum_utc.map(|ms| bound(ms, s.maximum_nanos, 999_999)),
        }
    } else if let Some(s) = &m.collection_statistics {
        ValueStatistics::Collection {
            min_children: s.min_children,
            max_children: s.max_children,
            total_children: s.total_children,
        }
    } else {
        ValueStatistics::None
    }
}

fn bounds_to_proto(bounds: &ValueStatistics, m: &mut proto::ColumnStatistics) {
    match bounds {
        ValueStatistics::None => {}
        ValueStatistics::Integer { min, max, sum } => {
            m.int_statistics =
                Some(proto::IntegerStatistics { minimum: *min, maximum: *max, sum: *sum });
        }
        ValueStatistics::Double { min, max, sum } => {
            m.double_statistics =
                Some(proto::DoubleStatistics { minimum: *min, maximum: *max, sum: *sum });
        }
        ValueStatistics::String { lower, upper, lower_is_exact, upper_is_exact, total_bytes } => {
            let take = |bound: &Option<Vec<u8>>, wanted: bool| bound.clone().filter(|_| wanted);
            m.string_statistics = Some(proto::StringStatistics {
                minimum: take(lower, *lower_is_exact),
                maximum: take(upper, *upper_is_exact),
                sum: *total_bytes,
                lower_bound: take(lower, !lower_is_exact),
                upper_bound: take(upper, !upper_is_exact),
            });
        }
        ValueStatistics::Boolean { true_count } => {
            let count = true_count.iter().copied().collect();
            m.bucket_statistics = Some(proto::BucketStatistics { count });
        }
        ValueStatistics::Decimal { min, max, sum } => {
            let text = |v: &Option<(i128, i8)>| v.map(|(v, s)| format_decimal(v, s).into_bytes());
            m.decimal_statistics = Some(proto::DecimalStatistics {
                minimum: text(min),
                maximum: text(max),
                sum: text(sum),
            });
        }
        ValueStatistics::Date { min, max } => {
            m.date_statistics = Some(proto::DateStatistics { minimum: *min, maximum: *max });
        }
        ValueStatistics::Binary { total_bytes } => {
            m.binary_statistics = Some(proto::BinaryStatistics { sum: *total_bytes });
        }
        ValueStatistics::Timestamp { min, max } => {
            let nanos = |b: &Option<TimestampBound>| b.map(|b| b.nanos as i32 + 1);
            m.timestamp_statistics = Some(proto::TimestampStatistics {
                minimum: min.map(|b| b.millis),
                maximum: max.map(|b| b.millis),
                minimum_utc: min.map(|b| b.millis),
                maximum_utc: max.map(|b| b.millis),
                minimum_nanos: nanos(min),
                maximum_nanos: nanos(max),
            });
        }
        ValueStatistics::Collection { min_children, max_children, total_children } => {
            m.collection_statistics = Some(proto::CollectionStatistics {
                min_children: *min_children,
                max_children: *max_children,
                total_children: *total_children,
            });
        }
    }
}

/// `nanos` is the sub-millisecond part plus one; absent = anything within the millisecond.
fn bound(millis: i64, nanos: Option<i32>, absent: u32) -> TimestampBound {
    let nanos = match nanos {
        Some(n) if (1..=1_000_000).contains(&n) => (n - 1) as u32,
        _ => absent,
    };
    TimestampBound { millis, nanos }
}

/// Parses `-12.345` to (−12345, 3); `None` if it is not that, or does not fit.
pub(crate) fn parse_decimal(text: &[u8]) -> Option<(i128, i8)> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let (mut value, mut scale, mut seen_point, mut seen_digit) = (0i128, 0i8, false, false);
    for byte in digits {
        match byte {
            b'0'..=b'9' => {
                seen_digit = true;
                value = value.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                scale = if seen_point { scale.checked_add(1)? } else { scale };
            }
            b'.' if !seen_point => seen_point = true,
            _ => return None,
        }
    }
    seen_digit.then_some((if negative { -value } else { value }, scale))
}

/// The text of an unscaled value: (−12345, 3) is `-12.345`.
pub(crate) fn format_decimal(value: i128, scale: i8) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs().to_string();
    let Some(scale) = usize::try_from(scale).ok().filter(|s| *s > 0) else {
        return format!("{sign}{digits}{}", "0".repeat(usize::from(scale.unsigned_abs())));
    };
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bounds: ValueStatistics) {
        let stats =
            ColumnStatistics { values: Some(3), has_null: false, bytes_on_disk: Some(9), bounds };
        assert_eq!(ColumnStatistics::from_proto(&stats.to_proto()), stats);
    }

    #[test]
    fn statistics_survive_the_message() {
        check(ValueStatistics::None);
        check(ValueStatistics::Integer { min: Some(i64::MIN), max: Some(7), sum: None });
        check(ValueStatistics::Double { min: Some(-0.5), max: Some(7.0), sum: Some(6.5) });
        check(ValueStatistics::String {
            lower: Some(b"a".to_vec()),
            upper: Some(b"zz".to_vec()),
            lower_is_exact: true,
            upper_is_exact: false,
            total_bytes: Some(1200),
        });
        check(ValueStatistics::Boolean { true_count: Some(2) });
        check(ValueStatistics::Decimal {
            min: Some((-12345, 3)),
            max: Some((5, 2)),
            sum: Some((0, 0)),
        });
        check(ValueStatistics::Date { min: Some(-1), max: Some(20_000) });
        check(ValueStatistics::Timestamp {
            min: Some(TimestampBound { millis: -1, nanos: 999_999 }),
            max: Some(TimestampBound { millis: 5, nanos: 0 }),
        });
    }

    #[test]
    fn decimals_parse_and_print() {
        for (text, value) in
            [("0", (0, 0)), ("-0.05", (-5, 2)), ("12.340", (12340, 3)), ("99", (99, 0))]
        {
            assert_eq!(parse_decimal(text.as_bytes()), Some(value));
            assert_eq!(format_decimal(value.0, value.1), text);
        }
        for bad in ["", "-", ".", "1e5", "1.2.3", "9999999999999999999999999999999999999999"] {
            assert_eq!(parse_decimal(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn what_a_writer_did_not_say_may_be_anything() {
        let stats = ColumnStatistics::from_proto(&proto::ColumnStatistics::default());
        assert!(stats.has_null);
        assert_eq!(stats.values, None);
    }
}
