//! One order out of several sorted inputs.

use std::cmp::Ordering;
use std::ops::Range;

use crate::batch::CellBatch;

/// What comes next.
pub(super) enum MergeStep {
    /// The next batch of this input, or that it has no more, must be pushed first.
    NeedsInput(usize),
    /// These cells of this input's batch.
    Run(usize, Range<usize>),
    /// Nothing is left.
    Finished,
}

/// Merges inputs into runs: stretches of one input that no other input interrupts.
///
/// Cells that are equal in everything but the value come out from the highest revision to the lowest;
/// of equal revisions, from the newest input to the oldest.
pub(super) struct Merge {
    inputs: Vec<Input>,
    /// Inputs that have a cell, as a binary heap; the first is the one whose cell comes next.
    heap: Vec<usize>,
    /// Inputs that must be pushed before the order is known.
    waiting: Vec<usize>,
}

struct Input {
    batch: CellBatch,
    at: usize,
}

impl Merge {
    pub(super) fn new(inputs: usize) -> Self {
        let none = crate::CellBatchBuilder::new().finish();
        Self {
            inputs: (0..inputs).map(|_| Input { batch: none.clone(), at: 0 }).collect(),
            heap: Vec::with_capacity(inputs),
            waiting: (0..inputs).rev().collect(),
        }
    }

    /// The batch in which the last run of `input` lies.
    pub(super) fn batch(&self, input: usize) -> &CellBatch {
        &self.inputs[input].batch
    }

    /// Gives the input that was asked for its next batch; none if it has ended.
    pub(super) fn push(&mut self, input: usize, batch: Option<CellBatch>) {
        let Some(batch) = batch else {
            self.waiting.retain(|waiting| *waiting != input);
            return;
        };
        if batch.is_empty() {
            return;
        }
        self.waiting.retain(|waiting| *waiting != input);
        self.inputs[input] = Input { batch, at: 0 };
        self.heap.push(input);
        self.sift_up(self.heap.len() - 1);
    }

    pub(super) fn step(&mut self) -> MergeStep {
        if let Some(input) = self.waiting.last() {
            return MergeStep::NeedsInput(*input);
        }
        let Some(first) = self.heap.first().copied() else {
            return MergeStep::Finished;
        };
        let start = self.inputs[first].at;
        let end = self.run_end(first);
        self.inputs[first].at = end;
        if end == self.inputs[first].batch.len() {
            self.heap.swap_remove(0);
            self.waiting.push(first);
        }
        self.sift_down(0);
        MergeStep::Run(first, start..end)
    }

    /// How far `first` goes before another input has its turn.
    fn run_end(&self, first: usize) -> usize {
        let Input { batch, at } = &self.inputs[first];
        let end = batch.len();
        let Some(next) = self.runner_up() else { return end };
        let limit = &self.inputs[next];
        let before = |index: usize| match batch.order(index, &limit.batch, limit.at) {
            Ordering::Less => true,
            Ordering::Equal => self.is_newer(first, index, next, limit.at),
            Ordering::Greater => false,
        };
        if before(end - 1) {
            return end;
        }
        // Steps that double, then halves: runs are mostly short or the whole batch.
        let mut step = 1;
        let mut low = *at;
        while low + step < end && before(low + step) {
            low += step;
            step *= 2;
        }
        let mut high = end.min(low + step);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// The input whose cell comes next after the first one's.
    fn runner_up(&self) -> Option<usize> {
        match (self.heap.get(1), self.heap.get(2)) {
            (Some(left), Some(right)) if self.precedes(*right, *left) => Some(*right),
            (left, _) => left.copied(),
        }
    }

    /// Whether the cell of `a` comes before that of `b`; of equals, that of the newer input.
    fn precedes(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.inputs[a], &self.inputs[b]);
        match left.batch.order(left.at, &right.batch, right.at) {
            Ordering::Less => true,
            Ordering::Equal => self.is_newer(a, left.at, b, right.at),
            Ordering::Greater => false,
        }
    }

    /// Whether of two cells that are equal in everything but the value, the one of input `a` was
    /// written later.
    fn is_newer(&self, a: usize, a_index: usize, b: usize, b_index: usize) -> bool {
        let revision = |input: usize, index| self.inputs[input].batch.revision(index);
        (revision(a, a_index), a) > (revision(b, b_index), b)
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.precedes(self.heap[place], self.heap[parent]) {
                return;
            }
            self.heap.swap(place, parent);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let mut least = place;
            for child in [left, right] {
                if child < self.heap.len() && self.precedes(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }
}
