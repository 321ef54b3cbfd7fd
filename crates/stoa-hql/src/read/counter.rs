//! Counters: families whose values are added up.
//!
//! `n` and `+n` add, `-n` takes away, `=n` starts anew; a marker hides what it hides, so that
//! nothing is left of what was counted before it (reference §2).

/// Whether `value` may be written to a counter.
pub fn is_counter_value(value: &[u8]) -> bool {
    parse(value).is_some()
}

/// What a value does to the sum: whether it starts anew, and by how much it changes it.
fn parse(value: &[u8]) -> Option<(bool, i64)> {
    let (restarts, number) = match value {
        [b'=', number @ ..] => (true, number),
        number => (false, number),
    };
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((restarts, number))
}

/// The sum of one cell's versions, given from the newest to the oldest.
#[derive(Debug, Default)]
pub(super) struct Counter {
    newest: Option<i64>,
    sum: i64,
    closed: bool,
}

impl Counter {
    /// Takes the next older version. What is no number counts as 0, a sum past 64 bits stays at
    /// the limit: a reader must be able to go on.
    pub(super) fn add(&mut self, timestamp: i64, value: &[u8]) {
        self.newest.get_or_insert(timestamp);
        if self.closed {
            return;
        }
        let (restarts, number) = parse(value).unwrap_or_default();
        self.sum = self.sum.saturating_add(number);
        self.closed = restarts;
    }

    /// Whether it has come to where the sum starts anew: nothing older counts.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The newest timestamp and the sum, if there was a version; the counter is empty afterwards.
    pub(super) fn take(&mut self) -> Option<(i64, i64)> {
        let counter = std::mem::take(self);
        counter.newest.map(|timestamp| (timestamp, counter.sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_goes_back_to_the_last_restart() {
        let mut counter = Counter::default();
        for (age, value) in ["-2", "5", "+4", "+3", "=0", "+9"].iter().enumerate() {
            counter.add(100 - age as i64, value.as_bytes());
        }
        assert_eq!(counter.take(), Some((100, 10)));
        assert_eq!(counter.take(), None);
    }

    #[test]
    fn counters_take_numbers_only() {
        for value in ["1", "+1", "-1", "=1", "=-1", "-9223372036854775808"] {
            assert!(is_counter_value(value.as_bytes()), "{value}");
        }
        for value in ["", "one", "=", "1.5", " 1", "9223372036854775808"] {
            assert!(!is_counter_value(value.as_bytes()), "{value}");
        }
    }
}
