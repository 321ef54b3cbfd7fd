//! Sorted runs become one.
//!
//! In: runs, each a chain of files whose rows are in the order of the table. Out: batches of all
//! their rows in that order; rows of equal key in the order of the runs.
//!
//! ```text
//! run 0  ▒▒▒▒▒▒▒│head ▸ keys ─┐
//! run 1    ▒▒▒▒▒│head ▸ keys ─┼─ heap of runs by next key ─► rows taken ─► batch
//! run 2  ▒▒▒▒▒▒▒│head ▸ keys ─┘
//! ```
//! Memory: one window of row groups and one batch with its keys per run, and one batch of output.
//! **Invariant:** a run that turns out not to be in order is an error, never wrong output.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_row::{OwnedRow, RowConverter, Rows};
use arrow_select::interleave::interleave_record_batch;
use stoa_error::{Error, Result};

use super::chain::FileChain;
use super::read::ReadLimits;
use super::work::Meter;
use crate::ScanFile;
use crate::order::TableOrder;

/// Rows of a batch of output.
pub(super) const BATCH_ROWS: usize = 8192;

/// A merge at work.
pub(super) struct Merge<'a> {
    order: &'a TableOrder,
    converter: RowConverter,
    runs: Vec<Run>,
    /// Runs that have rows; each comes before its children at 2i + 1 and 2i + 2.
    heap: Vec<usize>,
    /// Batches that rows are taken from.
    held: Vec<RecordBatch>,
    /// The next output: batch in `held`, row in it.
    taken: Vec<(usize, usize)>,
    disordered: Option<String>,
}

struct Run {
    chain: FileChain,
    head: Option<Head>,
    /// The key of the last row of the batch before.
    last: Option<OwnedRow>,
}

/// The batch that a run is at.
struct Head {
    /// Where in [`Merge::held`].
    batch: usize,
    keys: Rows,
    next: usize,
}

impl<'a> Merge<'a> {
    /// Begins; instead gives back a file whose first rows are not in order.
    pub(super) async fn start(
        order: &'a TableOrder,
        runs: &[Vec<Arc<ScanFile>>],
        limits: &ReadLimits,
        meter: &Meter<'_>,
    ) -> Result<Result<Self, String>> {
        let run = |files: &Vec<Arc<ScanFile>>| Run {
            chain: FileChain::new(files, limits.clone()),
            head: None,
            last: None,
        };
        let mut merge = Self {
            converter: order.converter(&RecordBatch::new_empty(limits.schema.clone()))?,
            order,
            runs: runs.iter().map(run).collect(),
            heap: Vec::new(),
            held: Vec::new(),
            taken: Vec::with_capacity(BATCH_ROWS),
            disordered: None,
        };
        for run in 0..merge.runs.len() {
            match merge.advance(run, meter).await {
                Ok(true) => merge.heap.push(run),
                Ok(false) => {}
                Err(error) => return merge.disordered.ok_or(error).map(Err),
            }
        }
        for parent in (0..merge.heap.len() / 2).rev() {
            merge.sink(parent);
        }
        Ok(Ok(merge))
    }

    /// The next rows; `None` after the last.
    pub(super) async fn next(&mut self, meter: &Meter<'_>) -> Result<Option<RecordBatch>> {
        while let Some(run) = self.heap.first().copied() {
            if self.taken.len() >= BATCH_ROWS {
                return self.output().map(Some);
            }
            if self.take_from(run) && !self.advance(run, meter).await? {
                self.heap.swap_remove(0);
            }
            self.sink(0);
        }
        if self.taken.is_empty() { Ok(None) } else { self.output().map(Some) }
    }

    /// Rows left out because they are deleted, of files that were read to their end.
    pub(super) fn deleted_rows(&self) -> u64 {
        self.runs.iter().map(|run| run.chain.deleted_rows()).sum()
    }

    /// After an error: the file whose rows are not in order, if that was it.
    pub(super) fn disordered(&self) -> Option<&str> {
        self.disordered.as_deref()
    }

    /// Takes rows of `run`, the first of the heap, as long as they come before all others. Gives
    /// back whether its batch is used up.
    fn take_from(&mut self, run: usize) -> bool {
        let second = match (self.heap.get(1), self.heap.get(2)) {
            (Some(a), Some(b)) => Some(if self.compare(*a, *b).is_lt() { *a } else { *b }),
            (one, _) => one.copied(),
        };
        loop {
            let Some(head) = self.runs.get_mut(run).and_then(|run| run.head.as_mut()) else {
                return true;
            };
            self.taken.push((head.batch, head.next));
            head.next += 1;
            if head.next >= head.keys.num_rows() {
                return true;
            }
            let others_first = second.is_some_and(|second| self.compare(second, run).is_lt());
            if others_first || self.taken.len() >= BATCH_ROWS {
                return false;
            }
        }
    }

    /// Which of two runs has the next row.
    fn compare(&self, left: usize, right: usize) -> Ordering {
        let key = |run: usize| {
            let head = self.runs.get(run)?.head.as_ref()?;
            Some(head.keys.row(head.next))
        };
        match (key(left), key(right)) {
            (Some(a), Some(b)) => a.cmp(&b).then(left.cmp(&right)),
            // A run without rows comes last.
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }

    /// Moves the run at `parent` down the heap to where it belongs.
    fn sink(&mut self, mut parent: usize) {
        loop {
            let mut least = parent;
            for child in [2 * parent + 1, 2 * parent + 2] {
                if child < self.heap.len()
                    && self.compare(self.heap[child], self.heap[least]).is_lt()
                {
                    least = child;
                }
            }
            if least == parent {
                return;
            }
            self.heap.swap(parent, least);
            parent = least;
        }
    }

    /// Gives `run` its next batch; `false` if there is none.
    async fn advance(&mut self, run: usize, meter: &Meter<'_>) -> Result<bool> {
        let Some(run) = self.runs.get_mut(run) else { return Ok(false) };
        if let Some(head) = run.head.take() {
            run.last = head.keys.num_rows().checked_sub(1).map(|row| head.keys.row(row).owned());
        }
        let Some(batch) = run.chain.next(meter).await? else { return Ok(false) };
        let keys = self.order.keys(&self.converter, &batch)?;
        if !is_ordered(&keys, run.last.as_ref()) {
            self.disordered = Some(run.chain.location().to_owned());
            return Err(Error::internal(format!(
                "{}: rows are not in the order that the file claims",
                run.chain.location()
            )));
        }
        run.head = Some(Head { batch: self.held.len(), keys, next: 0 });
        self.held.push(batch);
        Ok(true)
    }

    /// The rows taken, as a batch; lets go of batches that are used up.
    fn output(&mut self) -> Result<RecordBatch> {
        let taken = std::mem::take(&mut self.taken);
        let output = gather(&self.held, &taken)?;
        let held = std::mem::take(&mut self.held);
        for head in self.runs.iter_mut().filter_map(|run| run.head.as_mut()) {
            if let Some(batch) = held.get(head.batch) {
                head.batch = self.held.len();
                self.held.push(batch.clone());
            }
        }
        self.taken.reserve(BATCH_ROWS);
        Ok(output)
    }
}

fn is_ordered(keys: &Rows, last: Option<&OwnedRow>) -> bool {
    let follows = last.is_none_or(|last| keys.num_rows() == 0 || last.row() <= keys.row(0));
    follows && (1..keys.num_rows()).all(|row| keys.row(row - 1) <= keys.row(row))
}

/// The rows at `taken` (batch, row) as one batch; without copying where they are one stretch.
pub(super) fn gather(batches: &[RecordBatch], taken: &[(usize, usize)]) -> Result<RecordBatch> {
    let in_one_stretch =
        taken.windows(2).all(|pair| pair[0].0 == pair[1].0 && pair[0].1 + 1 == pair[1].1);
    if let Some((batch, start)) = taken.first()
        && in_one_stretch
        && let Some(whole) = batches.get(*batch)
    {
        return Ok(whole.slice(*start, taken.len()));
    }
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    interleave_record_batch(&batches, taken).map_err(|source| {
        Error::internal("rows of runs cannot be put together").with_source(source)
    })
}
