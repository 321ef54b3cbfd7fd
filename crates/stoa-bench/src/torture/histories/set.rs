//! A table to which each row is added once: what reads may show of it.
//!
//! In: inserts and deletes of rows by their numbers, and reads of all rows. Refused is a history in
//! which
//!
//! - a row whose insert was acknowledged before a read was sent is missing in it, and no delete of it
//!   was sent before the read ended (*lost*; for the session itself: read-your-writes);
//! - a row is there twice, or was refused, or was never sent (*phantom*);
//! - a row is there although its delete was acknowledged before the read was sent (*undead*);
//! - a row of unknown outcome was seen, and a later read lacks it, or one whose delete was seen is
//!   there again (*not monotonic*).
//!
//! What went through another server may not be seen until it is in files: for such rows only what
//! must not be there counts, except in the last read, before which all is brought into files.

use std::collections::{BTreeMap, BTreeSet};

use stoa_error::Result;

use super::op::{End, Moment, Span, wrong};

/// What was done to the rows of one table.
#[derive(Debug, Default)]
pub(crate) struct SetHistory {
    pub inserts: Vec<(i64, Span)>,
    /// Deletes of rows by those who had added them.
    pub deletes: Vec<(i64, Span)>,
    pub reads: Vec<SetRead>,
}

/// All rows at some moment between the sending and the end of a read.
#[derive(Debug)]
pub(crate) struct SetRead {
    pub span: Span,
    pub rows: Vec<i64>,
    /// Whether everything was brought into files before, while nobody wrote.
    pub sees_all: bool,
}

/// What is known of one row.
struct Row {
    insert: Span,
    deletes: Vec<Span>,
    /// When the first read that showed it had ended, and at which server.
    seen: Option<(Moment, usize)>,
    /// The same of the first read that lacked it because of a delete.
    gone: Option<(Moment, usize)>,
}

impl SetHistory {
    /// Checks the history of table `name`; gives back how many rows were seen.
    ///
    /// # Errors
    /// `Corrupt` where no order of the statements explains what was read.
    pub(crate) fn check(mut self, name: &str) -> Result<u64> {
        let mut rows: BTreeMap<i64, Row> = BTreeMap::new();
        for (number, insert) in self.inserts {
            rows.insert(number, Row { insert, deletes: Vec::new(), seen: None, gone: None });
        }
        for (number, delete) in self.deletes {
            if let Some(row) = rows.get_mut(&number) {
                row.deletes.push(delete);
            }
        }
        // A read that had ended before another was sent comes first.
        self.reads.sort_by_key(|read| read.span.ended);
        let mut shown = 0;
        for read in &self.reads {
            shown += read.rows.len() as u64;
            check_read(&mut rows, read).map_err(|error| {
                error.at(format!(
                    "table {name}, read at server {} from {} to {}",
                    read.span.server, read.span.sent, read.span.ended
                ))
            })?;
        }
        Ok(shown)
    }
}

fn check_read(rows: &mut BTreeMap<i64, Row>, read: &SetRead) -> Result<()> {
    let mut found = BTreeSet::new();
    for number in &read.rows {
        if !found.insert(*number) {
            return Err(wrong(format!("row {number} is there twice")));
        }
        let Some(row) = rows.get_mut(number) else {
            return Err(wrong(format!("row {number} was sent by nobody")));
        };
        row.may_be_in(*number, read)?;
        if row.seen.is_none() {
            row.seen = Some((read.span.ended, read.span.server));
        }
    }
    for (number, row) in rows.iter_mut().filter(|(number, _)| !found.contains(number)) {
        row.may_be_absent_from(*number, read)?;
    }
    Ok(())
}

impl Row {
    fn may_be_in(&self, number: i64, read: &SetRead) -> Result<()> {
        if self.insert.end == End::Refused {
            return Err(wrong(format!("row {number} was refused and is there")));
        }
        if self.insert.sent > read.span.ended {
            return Err(wrong(format!("row {number} is there before it was sent")));
        }
        let undone = self.deletes.iter().find(|delete| {
            delete.end == End::Done && delete.is_before(&read.span) && self.insert.is_before(delete)
        });
        match undone {
            Some(_) => Err(wrong(format!("row {number} was deleted and is there"))),
            None if was(self.gone, read) => Err(wrong(format!("row {number} has come back"))),
            None => Ok(()),
        }
    }

    fn may_be_absent_from(&mut self, number: i64, read: &SetRead) -> Result<()> {
        let here = read.sees_all || self.insert.server == read.span.server;
        let had_come = self.insert.end == End::Done && self.insert.is_before(&read.span);
        if self.deletes.iter().any(|delete| delete.may_be_seen_by(&read.span)) {
            if self.gone.is_none() && (here && had_come || was(self.seen, read)) {
                self.gone = Some((read.span.ended, read.span.server));
            }
            return Ok(());
        }
        if here && had_come {
            return Err(wrong(format!("row {number} was acknowledged and is not there"))
                .with_detail(format!("{:?}", self.insert)));
        }
        match was(self.seen, read) {
            true => Err(wrong(format!("row {number} was seen before and is not there any more"))),
            false => Ok(()),
        }
    }
}

/// Whether something that another read had found must still be so for this one.
fn was(found: Option<(Moment, usize)>, read: &SetRead) -> bool {
    found.is_some_and(|(at, server)| {
        at < read.span.sent && (read.sees_all || server == read.span.server)
    })
}

#[cfg(test)]
mod tests {
    use super::super::op::span;
    use super::*;

    fn read(sent: Moment, ended: Moment, rows: &[i64]) -> SetRead {
        SetRead { span: span(sent, ended, End::Done), rows: rows.to_vec(), sees_all: false }
    }

    /// Whether the history is refused with words that hold `what`; it must be allowed if `what` is
    /// empty.
    fn check(inserts: &[(i64, Span)], deletes: &[(i64, Span)], reads: Vec<SetRead>, what: &str) {
        let history = SetHistory { inserts: inserts.to_vec(), deletes: deletes.to_vec(), reads };
        match history.check("t") {
            Ok(_) => assert_eq!(what, "", "this history was allowed"),
            Err(error) => {
                assert!(!what.is_empty() && error.message().contains(what), "{error:?}");
            }
        }
    }

    #[test]
    fn rows_are_there_once_from_their_acknowledgement_on() {
        let done = [(1, span(10, 20, End::Done))];
        check(&done, &[], vec![read(21, 22, &[1])], "");
        check(&done, &[], vec![read(21, 22, &[])], "acknowledged and is not there");
        check(&done, &[], vec![read(21, 22, &[1, 1])], "twice");
        check(&done, &[], vec![read(15, 16, &[])], "");
        check(&done, &[], vec![read(15, 30, &[])], "");
        check(&done, &[], vec![read(15, 16, &[1])], "");
        check(&done, &[], vec![read(1, 9, &[1])], "before it was sent");
        check(&done, &[], vec![read(21, 22, &[1, 2])], "sent by nobody");
    }

    #[test]
    fn what_was_refused_is_not_there_and_what_is_in_doubt_stays() {
        let refused = [(1, span(10, 20, End::Refused))];
        check(&refused, &[], vec![read(21, 22, &[])], "");
        check(&refused, &[], vec![read(21, 22, &[1])], "refused");
        let unknown = [(1, span(10, 20, End::Unknown))];
        check(&unknown, &[], vec![read(21, 22, &[])], "");
        check(&unknown, &[], vec![read(21, 22, &[1]), read(23, 24, &[1])], "");
        check(&unknown, &[], vec![read(21, 22, &[]), read(23, 24, &[1])], "");
        check(&unknown, &[], vec![read(21, 22, &[1]), read(23, 24, &[])], "seen before");
        // Reads at the same time may be in either order.
        check(&unknown, &[], vec![read(21, 25, &[1]), read(23, 26, &[])], "");
    }

    #[test]
    fn deletes_take_away_what_was_there() {
        let insert = [(1, span(10, 20, End::Done))];
        for end in [End::Done, End::Unknown] {
            let delete = [(1, span(30, 40, end))];
            check(&insert, &delete, vec![read(21, 22, &[])], "acknowledged and is not there");
            check(&insert, &delete, vec![read(35, 38, &[]), read(36, 39, &[1])], "");
            check(&insert, &delete, vec![read(50, 60, &[])], "");
        }
        let unknown = [(1, span(30, 40, End::Unknown))];
        check(&insert, &unknown, vec![read(35, 36, &[]), read(37, 38, &[1])], "come back");
        let delete = [(1, span(30, 40, End::Done))];
        check(&insert, &delete, vec![read(50, 60, &[1])], "deleted and is there");
        let refused = [(1, span(30, 40, End::Refused))];
        check(&insert, &refused, vec![read(50, 60, &[])], "acknowledged and is not there");
        check(&insert, &refused, vec![read(50, 60, &[1])], "");
    }

    #[test]
    fn another_servers_rows_are_seen_once_they_are_in_files() {
        let there = [(1, Span { server: 1, ..span(10, 20, End::Done) })];
        check(&there, &[], vec![read(21, 22, &[])], "");
        check(&there, &[], vec![read(21, 22, &[1]), read(23, 24, &[])], "seen before");
        let last = SetRead { sees_all: true, ..read(30, 31, &[]) };
        check(&there, &[], vec![last], "acknowledged and is not there");
    }
}
