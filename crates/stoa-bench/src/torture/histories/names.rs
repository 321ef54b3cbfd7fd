//! A name under which tables come and go while rows are written to it.
//!
//! In: the lives of the tables that had the name, one after another, the writes that named it, and
//! what is in each table in the end. Refused is a history in which
//!
//! - a row was acknowledged and is in no table, although no table was dropped or truncated that had the
//!   name when the write ended or while it was under way (*lost*): a drop that was over before the
//!   last row was sent excuses nothing;
//! - a row is in two tables, or twice in one, or was refused, or was never sent (*phantom*);
//! - a row is in a table that did not have the name while it was written (*misplaced*): a COPY that is
//!   left open keeps to the table that had the name when it began.

use std::collections::BTreeMap;

use stoa_error::Result;

use super::op::{End, Moment, Span, wrong};

/// Time during which something may be so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// It was not so before this.
    pub from: Moment,
    /// It was not so after this.
    pub to: Moment,
}

impl Period {
    fn meets(&self, write: &Write) -> bool {
        self.from <= write.span.ended && write.begun <= self.to
    }
}

/// Rows that are written together.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub rows: Vec<i64>,
    /// When it named its table: before its last row was sent, if it was left open.
    pub begun: Moment,
    pub span: Span,
    /// What the server said to it; empty where it said nothing.
    pub code: String,
}

/// One table.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    /// When it had the name: from the sending of what gave it to the end of what took it away.
    pub named: Period,
    /// When it may have been emptied or dropped, each time.
    pub emptied: Vec<Period>,
    /// Its rows in the end; none if it was dropped.
    pub rows: Vec<i64>,
}

/// What was done under one name.
#[derive(Debug, Default)]
pub(crate) struct NameHistory {
    pub lives: Vec<Life>,
    pub writes: Vec<Write>,
}

impl NameHistory {
    /// Checks the history of `name`; gives back the rows that were acknowledged.
    ///
    /// # Errors
    /// `Corrupt` where no order of the statements explains what there is in the end.
    pub(crate) fn check(self, name: &str) -> Result<u64> {
        self.check_rows().map_err(|error| error.at(format!("name {name}")))
    }

    fn check_rows(&self) -> Result<u64> {
        let mut places: BTreeMap<i64, usize> = BTreeMap::new();
        for (place, life) in self.lives.iter().enumerate() {
            for row in &life.rows {
                if let Some(other) = places.insert(*row, place) {
                    return Err(wrong(match other == place {
                        true => format!("row {row} is there twice"),
                        false => format!("row {row} is in two tables"),
                    }));
                }
            }
        }
        let mut acknowledged = 0;
        for write in &self.writes {
            let Write { rows, span, .. } = write;
            let found: Vec<Option<usize>> = rows.iter().map(|row| places.remove(row)).collect();
            if found.windows(2).any(|pair| pair[0] != pair[1]) {
                return Err(wrong(format!("rows {rows:?} of one write are not together")));
            }
            if span.end == End::Done {
                acknowledged += rows.len() as u64;
            }
            self.check_write(write, found.first().copied().flatten())?;
        }
        match places.first_key_value() {
            Some((row, _)) => Err(wrong(format!("row {row} was sent by nobody"))),
            None => Ok(acknowledged),
        }
    }

    fn check_write(&self, write: &Write, place: Option<usize>) -> Result<()> {
        let Write { rows, span, code, .. } = write;
        let fail = |what: &str| {
            let near = self.lives_near(write);
            let place = place.map(|place| self.lives[place].named);
            let detail = format!("{write:?}, told {code:?}, in: {place:?}, tables: {near:?}");
            Err(wrong(format!("rows {rows:?} {what}")).with_detail(detail))
        };
        match place {
            Some(_) if span.end == End::Refused => fail("were refused and are there"),
            Some(place) if !self.lives[place].named.meets(write) => {
                fail("are in a table that had another name then")
            }
            Some(_) => Ok(()),
            None if span.end != End::Done => Ok(()),
            None => {
                let mut candidates = self.lives.iter().filter(|life| life.named.meets(write));
                let emptied = |life: &Life| life.emptied.iter().any(|when| when.to >= span.sent);
                match candidates.any(emptied) {
                    true => Ok(()),
                    false => fail("were acknowledged and are in no table"),
                }
            }
        }
    }

    fn lives_near(&self, write: &Write) -> Vec<(Period, &[Period])> {
        let near = self.lives.iter().filter(|life| life.named.meets(write));
        near.map(|life| (life.named, life.emptied.as_slice())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::op::span;
    use super::*;

    const LATE: Moment = Moment::MAX;

    fn life(from: Moment, to: Moment, emptied: &[(Moment, Moment)], rows: &[i64]) -> Life {
        let emptied = emptied.iter().map(|(from, to)| Period { from: *from, to: *to }).collect();
        Life { named: Period { from, to }, emptied, rows: rows.to_vec() }
    }

    fn check(lives: Vec<Life>, write: Span, what: &str) {
        check_begun(lives, write.sent, write, what);
    }

    fn check_begun(lives: Vec<Life>, begun: Moment, span: Span, what: &str) {
        let writes = vec![Write { rows: vec![1, 2], begun, span, code: String::new() }];
        let history = NameHistory { lives, writes };
        match history.check("t") {
            Ok(_) => assert_eq!(what, "", "this history was allowed"),
            Err(error) => {
                assert!(!what.is_empty() && error.message().contains(what), "{error:?}");
            }
        }
    }

    #[test]
    fn rows_go_with_a_table_only_if_they_came_before_its_drop() {
        // Dropped from 50 to 60, made again from 61 to 70.
        let lives = || vec![life(1, 60, &[(50, 60)], &[]), life(61, LATE, &[], &[])];
        check(lives(), span(20, 30, End::Done), "");
        check(lives(), span(45, 55, End::Done), "");
        check(lives(), span(55, 90, End::Done), "");
        check(lives(), span(65, 90, End::Done), "acknowledged and are in no table");
        check(lives(), span(65, 90, End::Refused), "");
        check(lives(), span(65, 90, End::Unknown), "");
        // Nothing has the name: there is no table to which they can have come.
        check(vec![life(1, 60, &[(50, 60)], &[])], span(70, 80, End::Done), "in no table");
    }

    #[test]
    fn rows_are_in_one_table_that_had_the_name() {
        let renamed =
            |old: &[i64], new: &[i64]| vec![life(1, 60, &[], old), life(61, LATE, &[], new)];
        check(renamed(&[1, 2], &[]), span(20, 30, End::Done), "");
        check(renamed(&[1, 2], &[]), span(55, 90, End::Done), "");
        check(renamed(&[], &[1, 2]), span(55, 90, End::Done), "");
        check(renamed(&[1, 2], &[]), span(65, 90, End::Done), "had another name");
        check(renamed(&[], &[1, 2]), span(20, 30, End::Done), "had another name");
        // Left open over the rename.
        check_begun(renamed(&[1, 2], &[]), 20, span(65, 90, End::Done), "");
        check_begun(renamed(&[], &[]), 20, span(65, 90, End::Done), "in no table");
        check(renamed(&[], &[]), span(20, 30, End::Done), "in no table");
        check(renamed(&[1, 2], &[1, 2]), span(55, 90, End::Done), "two tables");
        check(renamed(&[1, 2, 2], &[]), span(55, 90, End::Done), "twice");
        check(renamed(&[1], &[2]), span(55, 90, End::Done), "not together");
        check(renamed(&[1], &[]), span(55, 90, End::Done), "not together");
        check(renamed(&[1, 2], &[]), span(20, 30, End::Refused), "refused and are there");
        check(renamed(&[1, 2, 3], &[]), span(20, 30, End::Done), "sent by nobody");
    }

    #[test]
    fn a_truncation_takes_what_came_before_it() {
        let lives = || vec![life(1, LATE, &[(50, 60)], &[])];
        check(lives(), span(20, 30, End::Done), "");
        check(lives(), span(59, 70, End::Done), "");
        check(lives(), span(61, 70, End::Done), "in no table");
    }
}
