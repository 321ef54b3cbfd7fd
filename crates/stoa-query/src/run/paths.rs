//! On which way queries are answered, and how long they take on each.
//!
//! In: queries that finished, with their path and what they waited for a slot. Out: a histogram for each [`Series`], so
//! that answers given again and reports on the short path do not hide what scans take, and waiting is apart from both.

use crate::run::latency::LatencyHistogram;

/// How a query was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum QueryPath {
    /// Without a plan: settings, DDL, small writes.
    #[default]
    Other,
    /// A report, without the planner.
    Short,
    /// A plan computed it.
    Planned,
    /// With the answer of an equal one.
    Reused,
}

impl QueryPath {
    /// The name as users see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => Series::Other.name(),
            Self::Short => Series::Short.name(),
            Self::Planned => Series::Planned.name(),
            Self::Reused => Series::Reused.name(),
        }
    }

    /// That of the discriminant `number`.
    pub(crate) fn of(number: u8) -> Self {
        let all = [Self::Other, Self::Short, Self::Planned, Self::Reused];
        all.get(usize::from(number)).copied().unwrap_or_default()
    }
}

/// What is counted by itself: the paths, and waiting for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    Short,
    Planned,
    Reused,
    Other,
    Waiting,
}

/// All of them, in the order in which they are shown.
pub(crate) const SERIES: [Series; 5] =
    [Series::Short, Series::Planned, Series::Reused, Series::Other, Series::Waiting];

impl Series {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Planned => "planned",
            Self::Reused => "reused",
            Self::Other => "other",
            Self::Waiting => "waiting",
        }
    }
}

/// Times by series.
#[derive(Debug, Default)]
pub(crate) struct PathLatencies([LatencyHistogram; SERIES.len()]);

impl PathLatencies {
    /// Counts a query that took `elapsed_us`, of which it waited `wait_us` for a slot if it needed one.
    pub(crate) fn record(&self, path: QueryPath, elapsed_us: u64, wait_us: Option<u64>) {
        let (series, micros) = match path {
            QueryPath::Other => (Series::Other, elapsed_us),
            QueryPath::Short => (Series::Short, elapsed_us),
            QueryPath::Reused => (Series::Reused, elapsed_us),
            QueryPath::Planned => {
                (Series::Planned, elapsed_us.saturating_sub(wait_us.unwrap_or_default()))
            }
        };
        self.of(series).record(micros);
        if let Some(wait_us) = wait_us {
            self.of(Series::Waiting).record(wait_us);
        }
    }

    pub(crate) fn of(&self, series: Series) -> &LatencyHistogram {
        &self.0[series as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_counted_by_itself_and_waiting_apart() {
        let latencies = PathLatencies::default();
        latencies.record(QueryPath::Short, 100, None);
        latencies.record(QueryPath::Reused, 200, None);
        latencies.record(QueryPath::Planned, 50_000, Some(40_000));
        latencies.record(QueryPath::Planned, 8000, None);
        latencies.record(QueryPath::Other, 7, None);
        let longest = SERIES.map(|series| latencies.of(series).take_longest_us());
        assert_eq!(longest, [100, 10_000, 200, 7, 40_000]);
        let counts = SERIES.map(|series| latencies.of(series).snapshot().iter().sum::<u64>());
        assert_eq!(counts, [1, 2, 1, 1, 1]);
    }

    #[test]
    fn a_path_comes_back_from_its_number() {
        for path in [QueryPath::Other, QueryPath::Short, QueryPath::Planned, QueryPath::Reused] {
            assert_eq!(QueryPath::of(path as u8), path);
        }
        assert_eq!(QueryPath::of(99), QueryPath::Other);
    }
}
