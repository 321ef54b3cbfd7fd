//! What sort of thing a figure is.

/// How a figure behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sum since the start, which only grows.
    Counter,
    /// A number, or yes or no, as it is now.
    Gauge,
    /// How often values of which size occurred since the start. Only Prometheus shows it.
    Histogram,
    /// Words.
    Text,
    /// A moment.
    Time,
    /// What a row is about; a label in Prometheus.
    Key,
}

impl Kind {
    /// The name as documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Text => "text",
            Self::Time => "time",
            Self::Key => "key",
        }
    }
}

/// What a figure counts or measures in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// US dollars.
    Dollars,
    /// Seconds.
    Seconds,
    /// Thousandths of a second; seconds in Prometheus.
    Milliseconds,
    /// Millionths of a second; seconds in Prometheus.
    Microseconds,
    /// A part of the whole, 0 to 1.
    Ratio,
    /// Yes or no; 1 or 0 in Prometheus.
    YesNo,
    /// Things, named in the plural.
    Of(&'static str),
    /// None: a text.
    Text,
    /// A moment: milliseconds since 1970-01-01 UTC in JSON, a timestamp in SQL.
    Moment,
}

impl Unit {
    /// The name as documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Dollars => "US$",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "µs",
            Self::Ratio => "0 to 1",
            Self::YesNo => "yes or no",
            Self::Of(things) => things,
            Self::Text => "text",
            Self::Moment => "time",
        }
    }

    /// How many of it make one of Prometheus' unit, which wants seconds.
    pub(crate) fn per_base(self) -> f64 {
        match self {
            Self::Milliseconds => 1e3,
            Self::Microseconds => 1e6,
            _ => 1.0,
        }
    }
}

/// What a figure's value is in SQL and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A whole number of 64 bits.
    Integer,
    /// A double.
    Float,
    /// Yes or no.
    Boolean,
    /// A text.
    Text,
    /// A list of texts in JSON, one text with `, ` between them in SQL.
    Texts,
    /// A moment: an integer in JSON, a timestamp of microseconds in UTC in SQL.
    Time,
    /// Neither in SQL nor in JSON.
    Histogram,
}
