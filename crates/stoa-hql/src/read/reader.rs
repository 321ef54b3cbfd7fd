//! The reader: asks for batches, hands out batches.

use stoa_error::Result;

use super::merge::{Merge, MergeStep};
use super::rules::Rules;
use super::selection::Selection;
use super::visibility::Visibility;
use crate::batch::CellBatch;
use crate::scan::ScanSpec;
use crate::schema::TableSchema;

/// What a reader wants or has.
#[derive(Debug)]
pub enum ReadStep {
    /// It must be given the next batch of this input, or told that there is none.
    NeedsInput(usize),
    /// The next cells of the answer.
    Batch(CellBatch),
    /// The answer is complete; inputs that are left need not be read.
    Finished,
}

/// How much of a table is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// All cells of the rows: markers go with what they hide, counters become one value, versions
    /// beyond the limit and cells beyond their age go.
    Full,
    /// All cells of the rows, but some that were written after this (nanoseconds since 1970-01-01 UTC, as
    /// [revisions](crate::cell::CellRef::revision)) may be missing, and come later. As [`Self::Full`] for what was written
    /// until then; later markers stay, and later counts are not added up.
    FullUntil(i64),
    /// Some files: only what is hidden or written over by another cell of these files goes, and
    /// cells beyond their age. Markers stay.
    Partial,
}

/// Answers a [`ScanSpec`] from sorted inputs, or merges them into one. See the module's doc.
///
/// Call [`step`](Self::step) and do what it says until it is finished.
pub struct CellReader {
    merge: Merge,
    visibility: Visibility,
    selection: Selection,
    /// Whether the batch of each input has markers.
    has_deletes: Vec<bool>,
    finished: bool,
}

impl CellReader {
    /// A reader that answers `spec` for a table of this schema from so many inputs. `now_ns`
    /// (nanoseconds since 1970-01-01 UTC) decides which cells are too old.
    pub fn new(schema: &TableSchema, spec: &ScanSpec, now_ns: i64, inputs: usize) -> Self {
        let rules = Rules::of_query(schema, spec, now_ns);
        let open = Selection::is_open(spec)
            && spec.ranges.is_empty()
            && spec.time.is_all()
            && spec.row_pattern.is_none()
            && spec.max_versions.is_none()
            && rules.are_open(schema);
        let visibility = Visibility::of_query(rules, spec, open);
        Self::with(visibility, Selection::new(spec), inputs)
    }

    /// A reader that merges inputs into the cells to be kept.
    pub fn compaction(schema: &TableSchema, kind: Compaction, now_ns: i64, inputs: usize) -> Self {
        let rules = Rules::of_compaction(schema, kind, now_ns);
        let open = rules.are_open(schema);
        let visibility = Visibility::of_compaction(rules, kind, open);
        Self::with(visibility, Selection::new(&ScanSpec::default()), inputs)
    }

    fn with(visibility: Visibility, selection: Selection, inputs: usize) -> Self {
        Self {
            merge: Merge::new(inputs),
            visibility,
            selection,
            has_deletes: vec![false; inputs],
            finished: false,
        }
    }

    /// Gives the input that was asked for its next batch, which must be sorted and follow the one
    /// before; none if the input has ended.
    pub fn push(&mut self, input: usize, batch: Option<CellBatch>) {
        if let (Some(flag), Some(batch)) = (self.has_deletes.get_mut(input), &batch) {
            *flag = batch.has_deletes();
        }
        self.merge.push(input, batch);
    }

    /// What comes next.
    ///
    /// # Errors
    /// [`Exhausted`](stoa_error::ErrorKind::Exhausted) if more must be held than
    /// [`BUFFER_BYTES_MAX`](super::BUFFER_BYTES_MAX).
    pub fn step(&mut self) -> Result<ReadStep> {
        loop {
            if let Some(batch) = self.selection.limits.take_ready() {
                return Ok(ReadStep::Batch(batch));
            }
            if self.finished {
                return Ok(ReadStep::Finished);
            }
            match self.merge.step() {
                MergeStep::NeedsInput(input) => return Ok(ReadStep::NeedsInput(input)),
                MergeStep::Run(input, range) => {
                    let deletes = self.has_deletes[input];
                    let batch = self.merge.batch(input);
                    self.visibility.accept_run(batch, range, deletes, &mut self.selection)?;
                }
                MergeStep::Finished => self.finished = true,
            }
            self.finished |= self.visibility.is_past_end() || self.selection.limits.is_done();
            if self.finished {
                self.visibility.finish(&mut self.selection)?;
                self.selection.limits.flush();
            }
        }
    }
}
