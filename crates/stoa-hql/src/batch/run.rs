//! Many batches as one sorted run.

use std::cmp::Ordering;

use stoa_error::Result;

use super::order::{row_prefix, row_second};
use super::{CellBatch, CellBatchBuilder};
use crate::cell::CellKind;

/// Cells of a batch that comes out.
const RUN_BATCH_CELLS: usize = 16 << 10;

/// Timestamps that lie apart less than this leave room for a family beside them in a number.
const TIMES_MAX: i64 = 1 << 56;

/// Batches in any order as batches that follow each other in the order of cells.
///
/// Of cells that are equal in everything but the value, the one with the highest revision stays; of
/// equal revisions, the one that lies last. Memory beside the batches: 24 bytes per cell, and one
/// batch.
pub struct SortedRun {
    batches: Vec<CellBatch>,
    order: std::vec::IntoIter<Entry>,
    /// Whether keys that are equal mean cells that are equal.
    exact: bool,
    previous: Option<Entry>,
}

/// A cell: the first bytes of its row, what follows in the order of cells, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    row: u64,
    rest: u64,
    pub(super) batch: u32,
    pub(super) index: u32,
}

impl SortedRun {
    /// Sorts `batches`. Takes time; not for async tasks.
    pub fn new(batches: Vec<CellBatch>) -> Self {
        let (mut order, exact) = entries(&batches);
        match exact {
            true => order.sort_unstable_by_key(|entry| entry.exact_key()),
            false => order.sort_unstable_by(|a, b| compare_wholly(&batches, *a, *b)),
        }
        Self { batches, order: order.into_iter(), exact, previous: None }
    }

    /// Merges `batches`, each of which is more or less sorted: the same, sooner.
    pub fn of_sorted(batches: Vec<CellBatch>) -> Self {
        let (mut order, exact) = entries(&batches);
        match exact {
            true => order.sort_by_key(|entry| entry.exact_key()),
            false => order.sort_by(|a, b| compare_wholly(&batches, *a, *b)),
        }
        Self { batches, order: order.into_iter(), exact, previous: None }
    }

    /// All cells in one batch.
    ///
    /// # Errors
    /// As [`CellBatchBuilder::push`].
    pub fn into_batch(mut self) -> Result<CellBatch> {
        let all = self.order.len();
        self.gather(all)
    }

    /// The next cells, at most `cells`; none only at the end.
    fn gather(&mut self, cells: usize) -> Result<CellBatch> {
        let mut places = Vec::with_capacity(cells.min(self.order.len()));
        while places.len() < cells {
            let Some(entry) = self.order.next() else { break };
            if !self.is_repeated(entry) {
                places.push(entry);
            }
            self.previous = Some(entry);
        }
        CellBatchBuilder::gather(&self.batches, &places)
    }

    fn is_repeated(&self, entry: Entry) -> bool {
        self.previous.is_some_and(|previous| {
            (previous.row, previous.rest) == (entry.row, entry.rest)
                && (self.exact || compare(&self.batches, previous, entry) == Ordering::Equal)
        })
    }
}

impl Iterator for SortedRun {
    type Item = Result<CellBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.gather(RUN_BATCH_CELLS) {
            Ok(batch) if batch.is_empty() => None,
            batch => Some(batch),
        }
    }
}

impl Entry {
    /// The key, and of equal cells the one first that was written last.
    fn exact_key(&self) -> (u64, u64, u64) {
        (self.row, self.rest, !((u64::from(self.batch) << 32) | u64::from(self.index)))
    }
}

impl CellBatch {
    /// Whether rows are at most eight bytes long, without qualifiers, markers and revisions.
    fn has_short_keys(&self) -> bool {
        let longest = self.rows.value_offsets().windows(2).map(|pair| pair[1] - pair[0]).max();
        longest.unwrap_or(0) <= 8
            && super::contiguous(&self.qualifiers).is_empty()
            && self.kinds.values().iter().all(|kind| *kind == CellKind::INSERT_CODE)
            && self.revisions.is_none()
    }
}

/// The cells of all batches with their keys; and whether these say everything.
fn entries(batches: &[CellBatch]) -> (Vec<Entry>, bool) {
    let times = batches.iter().flat_map(|batch| batch.timestamps());
    let (first, last) =
        times.fold((i64::MAX, i64::MIN), |(a, b), time| (a.min(*time), b.max(*time)));
    let near = last.checked_sub(first).is_some_and(|apart| apart < TIMES_MAX);
    let exact = near && batches.iter().all(CellBatch::has_short_keys);
    let rest = |batch: &CellBatch, index: usize| match exact {
        true => {
            let age = (last - batch.timestamps.value(index)).cast_unsigned();
            (u64::from(batch.families.value(index).cast_unsigned()) << 56) | age
        }
        false => row_second(&batch.rows, index),
    };
    let mut order = Vec::with_capacity(batches.iter().map(CellBatch::len).sum());
    for (batch, nth) in batches.iter().zip(0_u32..) {
        order.extend((0..batch.len()).map(|index| Entry {
            row: row_prefix(&batch.rows, index),
            rest: rest(batch, index),
            batch: nth,
            index: index as u32,
        }));
    }
    (order, exact)
}

/// The order of cells; of equal ones, the one first that was written last.
fn compare_wholly(batches: &[CellBatch], a: Entry, b: Entry) -> Ordering {
    let by_key = (a.row, a.rest).cmp(&(b.row, b.rest));
    by_key.then_with(|| compare(batches, a, b)).then_with(|| {
        let revision = |e: Entry| batches[e.batch as usize].revision(e.index as usize);
        (revision(b), b.batch, b.index).cmp(&(revision(a), a.batch, a.index))
    })
}

fn compare(batches: &[CellBatch], a: Entry, b: Entry) -> Ordering {
    batches[a.batch as usize].order(a.index as usize, &batches[b.batch as usize], b.index as usize)
}
