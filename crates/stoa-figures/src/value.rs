//! The value of a figure at one moment.

/// What a getter found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not known, or not for this viewer.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// Yes or no.
    Boolean(bool),
    /// A text.
    Text(&'a str),
    /// Texts.
    Texts(&'a [String]),
    /// Milliseconds since 1970-01-01 UTC.
    Time(i64),
    /// Sizes.
    Histogram(&'a Histogram),
}

/// How often values of which size occurred.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bound (inclusive, seconds) and number of values up to it, both ascending.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all values, seconds.
    pub sum: f64,
    /// Number of all values.
    pub count: u64,
}

impl<'a> Value<'a> {
    /// Counts beyond an `i64` end there.
    pub(crate) fn count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(crate) fn or_null<T>(value: Option<T>, some: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, some)
    }

    /// As Prometheus has it; `None` for what is no number.
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(number as f64),
            Self::Float(number) => Some(number),
            Self::Boolean(is_so) => Some(f64::from(u8::from(is_so))),
            Self::Null | Self::Text(_) | Self::Texts(_) | Self::Time(_) | Self::Histogram(_) => {
                None
            }
        }
    }
}
