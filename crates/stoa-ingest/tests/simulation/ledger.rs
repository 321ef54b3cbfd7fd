//! What became of each append, as its client was told.

use std::ops::Range;

use stoa_error::Error;

/// Appends by what is known of them. Ids are given out once.
#[derive(Default)]
pub struct Ledger {
    next_id: i64,
    /// Must be there, each row once.
    acknowledged: Vec<Range<i64>>,
    /// Must not be there.
    refused: Vec<Range<i64>>,
    /// There as a whole, once, or not at all.
    unknown: Vec<Range<i64>>,
}

impl Ledger {
    /// Ids for `rows` new rows.
    pub fn new_ids(&mut self, rows: u64) -> Range<i64> {
        let first = self.next_id;
        self.next_id += rows as i64;
        first..self.next_id
    }

    /// Notes what a client was told of its rows.
    pub fn note<T>(&mut self, ids: Range<i64>, outcome: Result<T, Error>) {
        match outcome {
            Ok(_) => self.acknowledged.push(ids),
            Err(error) if error.sqlstate() == "08007" => self.unknown.push(ids),
            Err(_) => self.refused.push(ids),
        }
    }

    /// Notes rows whose client was told nothing.
    pub fn unanswered(&mut self, ids: Range<i64>) {
        self.unknown.push(ids);
    }

    /// Compares with the ids that a reader finds, in ascending order.
    pub fn check(&self, found: &[i64]) {
        let twice = found.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "row {twice:?} is there twice");
        for ids in &self.acknowledged {
            assert_eq!(count(found, ids), length(ids), "acknowledged rows {ids:?} are missing");
        }
        for ids in &self.refused {
            assert_eq!(count(found, ids), 0, "refused rows {ids:?} are there");
        }
        for ids in &self.unknown {
            let count = count(found, ids);
            assert!(count == 0 || count == length(ids), "{count} of the rows {ids:?} are there");
        }
    }

    /// After a recovery: what is there stays, and what is not never comes.
    pub fn settle(&mut self, found: &[i64]) {
        self.check(found);
        let (there, gone): (Vec<_>, Vec<_>) =
            self.unknown.drain(..).partition(|ids| count(found, ids) > 0);
        self.acknowledged.extend(there);
        self.refused.extend(gone);
    }
}

/// How many of `ids` are in `found`, which ascends.
fn count(found: &[i64], ids: &Range<i64>) -> usize {
    found.partition_point(|id| *id < ids.end) - found.partition_point(|id| *id < ids.start)
}

fn length(ids: &Range<i64>) -> usize {
    (ids.end - ids.start) as usize
}
