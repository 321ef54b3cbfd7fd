//! How a report ends.

use arrow_array::RecordBatch;

use crate::work::ReportWork;

/// The answer to a report.
#[derive(Clone, Debug)]
pub struct Answer {
    /// All rows, in order.
    pub batch: RecordBatch,
    /// What it took.
    pub work: ReportWork,
}

/// How a report ended.
#[derive(Clone, Debug)]
pub enum Outcome<T = Answer> {
    /// It was answered.
    Done(T),
    /// It is beyond a bound of [`ReportOptions`](crate::ReportOptions), or must read files that are not ORC or have
    /// deleted rows: the planner must answer.
    Beyond,
    /// Something that it needs is not in memory, and it was not to read.
    Cold,
}

/// What a report may do where something is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Read it.
    Read,
    /// End as [`Outcome::Cold`].
    Leave,
}
