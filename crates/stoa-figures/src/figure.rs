//! A figure's declaration.

use crate::kind::{Kind, Type, Unit};
use crate::seen::Seen;
use crate::value::{Histogram, Value};

/// One figure of a group whose rows are `S`.
#[derive(Debug)]
pub struct Figure<S: 'static> {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    pub(crate) help: &'static str,
    /// Where fewer see it than see its group.
    pub(crate) seen: Option<Seen>,
    pub(crate) metric: Option<Metric>,
    /// Where the kind and the unit do not say whether daemons of a cluster have it together.
    pub(crate) summed: Option<bool>,
    pub(crate) get: Get<S>,
}

/// The metric of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    /// Of a family that several figures share: what it is, and which part this figure is.
    pub(crate) part: Option<(&'static str, (&'static str, &'static str))>,
}

/// Several figures that are one metric, told apart by a label.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) help: &'static str,
}

/// Where a figure comes from, which also says of what type it is.
#[derive(Debug)]
pub(crate) enum Get<S: 'static> {
    Integer(fn(&S) -> u64),
    MaybeInteger(fn(&S) -> Option<u64>),
    MaybeId(fn(&S) -> Option<i64>),
    Float(fn(&S) -> f64),
    MaybeFloat(fn(&S) -> Option<f64>),
    Boolean(fn(&S) -> bool),
    Text(fn(&S) -> &str),
    MaybeText(fn(&S) -> Option<&str>),
    MaybeTexts(fn(&S) -> Option<&[String]>),
    Time(fn(&S) -> i64),
    MaybeTime(fn(&S) -> Option<i64>),
    Histogram(fn(&S) -> &Histogram),
}

impl<S: 'static> Figure<S> {
    const fn new(
        name: &'static str,
        kind: Kind,
        unit: Unit,
        help: &'static str,
        get: Get<S>,
    ) -> Self {
        Self { name, kind, unit, help, seen: None, metric: None, summed: None, get }
    }

    /// A sum since the start.
    pub const fn counter(
        name: &'static str,
        unit: Unit,
        help: &'static str,
        get: fn(&S) -> u64,
    ) -> Self {
        Self::new(name, Kind::Counter, unit, help, Get::Integer(get))
    }

    /// A sum since the start, where it is known.
    pub const fn maybe_counter(
        name: &'static str,
        unit: Unit,
        help: &'static str,
        get: fn(&S) -> Option<u64>,
    ) -> Self {
        Self::new(name, Kind::Counter, unit, help, Get::MaybeInteger(get))
    }

    /// A whole number as it is now.
    pub const fn gauge(
        name: &'static str,
        unit: Unit,
        help: &'static str,
        get: fn(&S) -> u64,
    ) -> Self {
        Self::new(name, Kind::Gauge, unit, help, Get::Integer(get))
    }

    /// A whole number as it is now, where it is known.
    pub const fn maybe_gauge(
        name: &'static str,
        unit: Unit,
        help: &'static str,
        get: fn(&S) -> Option<u64>,
    ) -> Self {
        Self::new(name, Kind::Gauge, unit, help, Get::MaybeInteger(get))
    }

    /// A number of `kind`.
    pub const fn float(
        name: &'static str,
        kind: Kind,
        unit: Unit,
        help: &'static str,
        get: fn(&S) -> f64,
    ) -> Self {
        Self::new(name, kind, unit, help, Get::Float(get))
    }

    /// A number of `kind`, where it is known.
    pub const fn maybe_float(
        name: &'static str,
        kind: Kind,
        unit: Unit,
        help: &'static str,
        get: fn(&S) -> Option<f64>,
    ) -> Self {
        Self::new(name, kind, unit, help, Get::MaybeFloat(get))
    }

    /// Yes or no.
    pub const fn flag(name: &'static str, help: &'static str, get: fn(&S) -> bool) -> Self {
        Self::new(name, Kind::Gauge, Unit::YesNo, help, Get::Boolean(get))
    }

    /// Words.
    pub const fn text(name: &'static str, help: &'static str, get: fn(&S) -> &str) -> Self {
        Self::new(name, Kind::Text, Unit::Text, help, Get::Text(get))
    }

    /// Words, where there are any.
    pub const fn maybe_text(
        name: &'static str,
        help: &'static str,
        get: fn(&S) -> Option<&str>,
    ) -> Self {
        Self::new(name, Kind::Text, Unit::Text, help, Get::MaybeText(get))
    }

    /// A list of words.
    pub const fn maybe_texts(
        name: &'static str,
        help: &'static str,
        get: fn(&S) -> Option<&[String]>,
    ) -> Self {
        Self::new(name, Kind::Text, Unit::Text, help, Get::MaybeTexts(get))
    }

    /// What a row is about.
    pub const fn key(name: &'static str, help: &'static str, get: fn(&S) -> &str) -> Self {
        Self::new(name, Kind::Key, Unit::Text, help, Get::Text(get))
    }

    /// What a row is about, by number.
    pub const fn number(
        name: &'static str,
        of: &'static str,
        help: &'static str,
        get: fn(&S) -> u64,
    ) -> Self {
        Self::new(name, Kind::Key, Unit::Of(of), help, Get::Integer(get))
    }

    /// A number that only names something.
    pub const fn maybe_id(
        name: &'static str,
        help: &'static str,
        get: fn(&S) -> Option<i64>,
    ) -> Self {
        Self::new(name, Kind::Gauge, Unit::Of("number"), help, Get::MaybeId(get))
    }

    /// A moment; `name` ends with `unix_ms`, which SQL leaves out.
    pub const fn time(name: &'static str, help: &'static str, get: fn(&S) -> i64) -> Self {
        Self::new(name, Kind::Time, Unit::Moment, help, Get::Time(get))
    }

    /// A moment that may not have come.
    pub const fn maybe_time(
        name: &'static str,
        help: &'static str,
        get: fn(&S) -> Option<i64>,
    ) -> Self {
        Self::new(name, Kind::Time, Unit::Moment, help, Get::MaybeTime(get))
    }

    /// Times in buckets, for Prometheus.
    pub const fn histogram(
        name: &'static str,
        help: &'static str,
        get: fn(&S) -> &Histogram,
    ) -> Self {
        Self::new(name, Kind::Histogram, Unit::Seconds, help, Get::Histogram(get))
    }

    /// Under this name in Prometheus, too.
    #[must_use]
    pub const fn metric(mut self, name: &'static str) -> Self {
        self.metric = Some(Metric { name, part: None });
        self
    }

    /// As the part `value` of a metric that several figures share.
    pub(crate) const fn part_of(mut self, family: &Family, value: &'static str) -> Self {
        let part = Some((family.help, (family.label, value)));
        self.metric = Some(Metric { name: family.name, part });
        self
    }

    /// For superusers only, in a group that others see; they find NULL.
    #[must_use]
    pub const fn for_superusers(mut self) -> Self {
        self.seen = Some(Seen::Superusers);
        self
    }

    /// Daemons of a cluster have it together although it is a time: it is added up.
    #[must_use]
    pub(crate) const fn summed(mut self) -> Self {
        self.summed = Some(true);
        self
    }

    /// Daemons of a cluster do not have it together: each says the same, or it only names something.
    #[must_use]
    pub(crate) const fn not_summed(mut self) -> Self {
        self.summed = Some(false);
        self
    }

    /// Whether the sum over daemons says something: of all counters, and of gauges that count things or bytes. Of
    /// times, shares, and yes or no, only the least and the greatest do.
    pub(crate) fn is_summed(&self) -> bool {
        let is_amount = match (self.kind, self.unit) {
            (Kind::Counter, _) => true,
            (Kind::Gauge, Unit::Bytes | Unit::Dollars | Unit::Of(_)) => {
                !matches!(self.get, Get::MaybeId(_))
            }
            _ => false,
        };
        self.summed.unwrap_or(is_amount)
    }

    /// Its value in SQL and JSON.
    pub(crate) fn r#type(&self) -> Type {
        match self.get {
            Get::Integer(_) | Get::MaybeInteger(_) | Get::MaybeId(_) => Type::Integer,
            Get::Float(_) | Get::MaybeFloat(_) => Type::Float,
            Get::Boolean(_) => Type::Boolean,
            Get::Text(_) | Get::MaybeText(_) => Type::Text,
            Get::MaybeTexts(_) => Type::Texts,
            Get::Time(_) | Get::MaybeTime(_) => Type::Time,
            Get::Histogram(_) => Type::Histogram,
        }
    }

    /// Whether somebody may find NULL.
    pub(crate) fn is_nullable(&self) -> bool {
        let is_always_there = matches!(
            self.get,
            Get::Integer(_)
                | Get::Float(_)
                | Get::Boolean(_)
                | Get::Text(_)
                | Get::Time(_)
                | Get::Histogram(_)
        );
        !is_always_there || self.seen.is_some()
    }

    /// Its value in `row`.
    pub(crate) fn value<'a>(&self, row: &'a S) -> Value<'a> {
        match self.get {
            Get::Integer(get) => Value::count(get(row)),
            Get::MaybeInteger(get) => Value::or_null(get(row), Value::count),
            Get::MaybeId(get) => Value::or_null(get(row), Value::Integer),
            Get::Float(get) => Value::Float(get(row)),
            Get::MaybeFloat(get) => Value::or_null(get(row), Value::Float),
            Get::Boolean(get) => Value::Boolean(get(row)),
            Get::Text(get) => Value::Text(get(row)),
            Get::MaybeText(get) => Value::or_null(get(row), Value::Text),
            Get::MaybeTexts(get) => Value::or_null(get(row), Value::Texts),
            Get::Time(get) => Value::Time(get(row)),
            Get::MaybeTime(get) => Value::or_null(get(row), Value::Time),
            Get::Histogram(get) => Value::Histogram(get(row)),
        }
    }
}
