//! Counters that are raised by one, by whatever statement: no increment is lost or done twice.
//!
//! In: increments by key, and reads of all counters. Refused is a history in which a counter is lower
//! than the increments that were acknowledged before a read was sent (*lost update*), higher than those
//! that may have been done before it ended (*done twice*, or one that was refused), lower than an
//! earlier read showed (*not monotonic*), missing, or there twice.

use std::collections::BTreeMap;

use stoa_error::Result;

use super::op::{End, Span, wrong};

/// What was done to the counters of one table, which all began at 0.
#[derive(Debug, Default)]
pub(crate) struct CounterHistory {
    pub keys: Vec<i64>,
    pub increments: Vec<(i64, Span)>,
    pub reads: Vec<(Span, Vec<(i64, i64)>)>,
}

impl CounterHistory {
    /// Checks the history of table `name`; gives back the increments that were acknowledged.
    ///
    /// # Errors
    /// `Corrupt` where no order of the statements explains what was read.
    pub(crate) fn check(mut self, name: &str) -> Result<u64> {
        self.reads.sort_by_key(|(span, _)| span.ended);
        for place in 0..self.reads.len() {
            self.check_read(place).map_err(|error| {
                let (span, _) = &self.reads[place];
                let when = format!("read at server {}", span.server);
                error.at(format!("table {name}, {when} from {} to {}", span.sent, span.ended))
            })?;
        }
        Ok(self.increments.iter().filter(|(_, span)| span.end == End::Done).count() as u64)
    }

    fn check_read(&self, place: usize) -> Result<()> {
        let (read, rows) = &self.reads[place];
        let found: BTreeMap<i64, i64> = rows.iter().copied().collect();
        if found.len() != rows.len() || !found.keys().eq(self.keys.iter()) {
            return Err(wrong(format!("counters {:?} are {rows:?}", self.keys)));
        }
        for (key, value) in &found {
            let of_key =
                || self.increments.iter().filter(|(of, _)| of == key).map(|(_, span)| span);
            let least =
                of_key().filter(|span| span.end == End::Done && span.is_before(read)).count();
            let most = of_key().filter(|span| span.may_be_seen_by(read)).count();
            if *value < least as i64 {
                return Err(wrong(format!(
                    "counter {key} is {value}, and {least} increments were acknowledged before"
                )));
            }
            if *value > most as i64 {
                return Err(wrong(format!("counter {key} is {value} after {most} increments")));
            }
            let earlier = self.reads[..place].iter().filter(|(span, _)| span.is_before(read));
            let before = earlier.flat_map(|(_, rows)| rows).filter(|(of, _)| of == key);
            if let Some(before) = before.map(|(_, value)| *value).max().filter(|v| v > value) {
                return Err(wrong(format!("counter {key} was {before} and is {value}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::op::{Moment, span};
    use super::*;

    fn check(ends: &[End], reads: &[(Moment, Moment, i64)], what: &str) {
        let increments =
            ends.iter().zip(1..).map(|(end, n)| (7, span(n * 10, n * 10 + 5, *end))).collect();
        let reads = reads.iter().map(|(sent, ended, value)| {
            (span(*sent, *ended, End::Done), vec![(7, *value), (8, 0)])
        });
        let history = CounterHistory { keys: vec![7, 8], increments, reads: reads.collect() };
        match history.check("c") {
            Ok(_) => assert_eq!(what, "", "this history was allowed"),
            Err(error) => {
                assert!(!what.is_empty() && error.message().contains(what), "{error:?}");
            }
        }
    }

    #[test]
    fn increments_count_once() {
        let two = [End::Done, End::Done];
        check(&two, &[(100, 101, 2)], "");
        check(&two, &[(100, 101, 1)], "2 increments were acknowledged");
        check(&two, &[(100, 101, 3)], "after 2 increments");
        check(&two, &[(17, 18, 1)], "");
        check(&two, &[(17, 18, 2)], "after 1 increments");
        check(&two, &[(21, 22, 1), (23, 24, 2), (100, 101, 2)], "");
    }

    #[test]
    fn refused_ones_do_not_count_and_unknown_ones_may() {
        check(&[End::Done, End::Refused], &[(100, 101, 1)], "");
        check(&[End::Done, End::Refused], &[(100, 101, 2)], "after 1 increments");
        for value in [1, 2] {
            check(&[End::Done, End::Unknown], &[(100, 101, value)], "");
        }
        let unknown = [End::Done, End::Unknown];
        check(&unknown, &[(100, 101, 2), (102, 103, 1)], "was 2 and is 1");
        check(&unknown, &[(100, 101, 1), (102, 103, 2)], "");
        check(&unknown, &[(100, 105, 2), (102, 106, 1)], "");
    }

    #[test]
    fn counters_do_not_go_or_multiply() {
        for rows in [vec![(7, 0)], vec![(7, 0), (8, 0), (8, 0)], vec![(7, 0), (8, 0), (9, 0)]] {
            let reads = vec![(span(1, 2, End::Done), rows)];
            let history = CounterHistory { keys: vec![7, 8], increments: Vec::new(), reads };
            assert!(history.check("c").unwrap_err().message().contains("counters [7, 8] are"));
        }
    }
}
