//! Contenders that are libraries of this process.

use std::path::Path;

use arrow_array::RecordBatch;
use stoa_error::Result;

use super::contender::{Answer, Contender, Format, Job, Outcome};
use super::cpu::measured;
use super::sums::Sums;
use super::work::Workload;
use crate::report::Report;
use crate::report_scan::{DailyTotals, REPORT_COLUMNS};

/// Takes the batches of a read.
pub type Sink<'a> = dyn FnMut(RecordBatch) -> Result<()> + 'a;

/// Reads and writes files, on the thread that calls it.
pub trait Library {
    /// Name and version, `library 1.2.3`.
    fn name(&self) -> String;

    /// The format it reads and writes.
    fn format(&self) -> Format;

    /// Hands every row of the named columns (`None` = all) to `sink`, in order.
    ///
    /// # Errors
    /// Whatever went wrong.
    fn read(&self, file: &Path, columns: Option<&[&str]>, sink: &mut Sink<'_>) -> Result<()>;

    /// Whether [`Self::read_report`] leaves out what the report does not need.
    fn prunes(&self) -> bool {
        false
    }

    /// Hands all rows of the report to `sink`, and perhaps others.
    ///
    /// # Errors
    /// Whatever went wrong.
    fn read_report(&self, file: &Path, report: &Report, sink: &mut Sink<'_>) -> Result<()> {
        let _ = report;
        self.read(file, Some(&REPORT_COLUMNS), sink)
    }

    /// Writes a new file.
    ///
    /// # Errors
    /// Whatever went wrong.
    fn write(&self, file: &Path, batches: &[RecordBatch]) -> Result<()>;
}

/// A library as a contender.
#[derive(Clone, Copy, Debug)]
pub struct InProcess<L>(pub L);

impl<L: Library> Contender for InProcess<L> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn format(&self) -> Format {
        self.0.format()
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Option<Outcome>> {
        let file = match self.0.format() {
            Format::Orc => job.orc,
            // Its own file has been read already.
            Format::Parquet if job.work == Workload::ReadAllOfPyarrow => return Ok(None),
            Format::Parquet => job.parquet,
        };
        match job.work {
            Workload::Write => self.write(job),
            Workload::Report => self.report(file, job),
            _ if job.check => self.sums(file, job.work),
            _ => self.read(file, job.work),
        }
        .map(Some)
    }
}

impl<L: Library> InProcess<L> {
    fn read(&self, file: &Path, work: Workload) -> Result<Outcome> {
        let mut rows = 0;
        let mut count = |batch: RecordBatch| {
            rows += std::hint::black_box(batch).num_rows() as u64;
            Ok(())
        };
        let (read, cpu) = measured(|| self.0.read(file, work.columns(), &mut count));
        read.map(|()| Outcome { cpu, answer: Answer::Rows(rows) })
    }

    fn sums(&self, file: &Path, work: Workload) -> Result<Outcome> {
        let mut sums = Sums::default();
        let read = || self.0.read(file, work.columns(), &mut |batch| sums.add(&batch));
        let (read, cpu) = measured(read);
        read.map(|()| Outcome { cpu, answer: Answer::Sums(sums) })
    }

    /// Answers all reports; who reads whole columns does so for one report where only time counts.
    fn report(&self, file: &Path, job: &Job<'_>) -> Result<Outcome> {
        let enough = if self.0.prunes() || job.check { job.reports.len() } else { 1 };
        let reports = job.reports.get(..enough).unwrap_or(job.reports);
        let answer = |report: &Report| {
            let mut totals = DailyTotals::new(report);
            self.0.read_report(file, report, &mut |batch| totals.add(&batch))?;
            Ok(totals.finish())
        };
        let (answers, cpu) = measured(|| reports.iter().map(answer).collect::<Result<_>>());
        let cpu = cpu / u32::try_from(reports.len().max(1)).unwrap_or(u32::MAX);
        Ok(Outcome { cpu, answer: Answer::Reports(answers?) })
    }

    fn write(&self, job: &Job<'_>) -> Result<Outcome> {
        let (written, cpu) = measured(|| self.0.write(job.output, job.batches));
        written?;
        Ok(Outcome { cpu, answer: Answer::File(super::input::file_bytes(job.output)?) })
    }
}
