//! Who is measured.

use std::path::Path;
use std::time::Duration;

use arrow_array::RecordBatch;
use stoa_error::Result;

use super::sums::Sums;
use super::work::Workload;
use crate::ad_report::DailySums;
use crate::report::Report;

/// Somebody who reads and writes files of the table.
pub trait Contender {
    /// Name and version, `library 1.2.3`; the first word stands for the library.
    fn name(&self) -> String;

    /// The format it reads and writes.
    fn format(&self) -> Format;

    /// Does `job` once; `None` if that makes no sense for it.
    ///
    /// # Errors
    /// `Unsupported` if it cannot do that, which is noted; the measurement ends with any other.
    fn run(&mut self, job: &Job<'_>) -> Result<Option<Outcome>>;

    /// Frees what it holds from job to job.
    ///
    /// # Errors
    /// It is gone.
    fn forget(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ORC, zstd, dictionaries.
    Orc,
    /// Parquet, zstd, dictionaries.
    Parquet,
}

/// One thing to do.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What.
    pub work: Workload,
    /// ORC file to read.
    pub orc: &'a Path,
    /// The same rows as Parquet: what readers of Parquet read, and where a process of its own
    /// gets the rows that it is to write.
    pub parquet: &'a Path,
    /// File to write.
    pub output: &'a Path,
    /// Rows to write.
    pub batches: &'a [RecordBatch],
    /// Reports to answer, one at least.
    pub reports: &'a [Report],
    /// Whether the answer counts; else only the CPU time does.
    pub check: bool,
}

/// What a contender did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// User and system time; per report for [`Workload::Report`].
    pub cpu: Duration,
    /// What came of it.
    pub answer: Answer,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Rows read, where the answer does not count.
    Rows(u64),
    /// Sums of what was read.
    Sums(Sums),
    /// The reports' answers.
    Reports(Vec<Vec<DailySums>>),
    /// A file of so many bytes was written.
    File(u64),
}
