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
struct Entry {
    row: u64,
    rest: u64,
    batch: u32,
    index: u32,
}

impl SortedRun {
    /// Sorts `batches`. Takes time; not for async tasks.
    pub fn new(batches: Vec<CellBatch>) -> Self {
        Self::sorted_by(batches, |order, compare| order.sort_unstable_by(compare))
    }

    /// Merges `batches`, each of which is more or less sorted: the same, sooner.
    pub fn of_sorted(batches: Vec<CellBatch>) -> Self {
        Self::sorted_by(batches, |order, compare| order.sort_by(compare))
    }

    fn sorted_by(
        batches: Vec<CellBatch>,
        sort: impl FnOnce(&mut [Entry], &mut dyn FnMut(&Entry, &Entry) -> Ordering),
    ) -> Self {
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
        sort(&mut order, &mut |a, b| {
            (a.row, a.rest).cmp(&(b.row, b.rest)).then_with(|| behind_keys(&batches, exact, *a, *b))
        });
        Self { batches, order: order.into_iter(), exact, previous: None }
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
        let mut builder = CellBatchBuilder::new();
        builder.reserve(RUN_BATCH_CELLS.min(self.order.len()));
        while builder.len() < RUN_BATCH_CELLS && !builder.is_full() {
            let Some(entry) = self.order.next() else { break };
            if !self.is_repeated(entry) {
                let batch = &self.batches[entry.batch as usize];
                if let Err(error) = builder.push_from(batch, entry.index as usize) {
                    return Some(Err(error));
                }
            }
            self.previous = Some(entry);
        }
        (!builder.is_empty()).then(|| Ok(builder.finish()))
    }
}

impl CellBatch {
    /// Whether rows are at most eight bytes long, without qualifiers and markers.
    fn has_short_keys(&self) -> bool {
        let longest = self.rows.value_offsets().windows(2).map(|pair| pair[1] - pair[0]).max();
        longest.unwrap_or(0) <= 8
            && super::contiguous(&self.qualifiers).is_empty()
            && self.kinds.values().iter().all(|kind| *kind == CellKind::INSERT_CODE)
    }
}

/// The order of cells whose keys are equal.
fn behind_keys(batches: &[CellBatch], exact: bool, a: Entry, b: Entry) -> Ordering {
    let order = if exact { Ordering::Equal } else { compare(batches, a, b) };
    // Last written first, so that the first of equals is the one to keep.
    order.then_with(|| {
        let revision = |e: Entry| batches[e.batch as usize].revision(e.index as usize);
        (revision(b), b.batch, b.index).cmp(&(revision(a), a.batch, a.index))
    })
}

fn compare(batches: &[CellBatch], a: Entry, b: Entry) -> Ordering {
    batches[a.batch as usize].order(a.index as usize, &batches[b.batch as usize], b.index as usize)
}
