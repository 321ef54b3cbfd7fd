//! One run: files made, answers compared, rounds measured.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_array::RecordBatch;
use stoa_error::{Error, ErrorKind, Result};

use super::contender::{Answer, Contender, Format, Job, Outcome};
use super::in_process::{InProcess, Library};
use super::input::{Input, io_error};
use super::outcome::{Measurement, OrcResult};
use super::parquet::ParquetRs;
use super::pyarrow::Pyarrow;
use super::stoa::Stoa;
use super::sums::Sums;
use super::work::Workload;
use crate::ad_report::AdReportSpec;
use crate::check::check;

/// What to run.
#[derive(Clone, Debug)]
pub struct OrcOptions {
    /// The table.
    pub spec: AdReportSpec,
    /// Where files are made and kept.
    pub work_dir: PathBuf,
    /// How often each contender does each work, at least once; the median counts.
    pub rounds: usize,
    /// A Python that has pyarrow; `None` = `python3` or `python` of the path if they have it.
    pub python: Option<PathBuf>,
    /// What to measure.
    pub works: Vec<Workload>,
}

/// Measures Stoa, pyarrow (if it is there), parquet-rs and `others`.
///
/// Says what it does through `progress`.
///
/// # Errors
/// `Corrupt` if somebody's answer is wrong; `NotFound` if the named Python has no pyarrow;
/// `Unavailable` if a file or the Python process fails.
pub fn run(
    options: &OrcOptions,
    others: Vec<Box<dyn Contender>>,
    progress: &mut dyn FnMut(&str),
) -> Result<OrcResult> {
    let mut contenders: Vec<Box<dyn Contender>> = vec![Box::new(InProcess(Stoa::default()))];
    let mut notes = Vec::new();
    match Pyarrow::start(options.python.as_deref())? {
        Some(pyarrow) => contenders.push(Box::new(pyarrow)),
        None => notes.push(
            "pyarrow is not measured: neither python3 nor python has it; name one that has with \
             --python"
                .to_owned(),
        ),
    }
    contenders.push(Box::new(InProcess(ParquetRs)));
    contenders.extend(others);
    progress("preparing the table");
    let input = Input::prepare(options.spec.clone(), &options.work_dir)?;
    let rounds = options.rounds.max(1);
    let mut run = Run { input, contenders, batches: Vec::new(), rounds, notes };
    run.write_orc_files(progress)?;
    let mut measurements = Vec::new();
    for work in Workload::ALL.into_iter().filter(|work| options.works.contains(work)) {
        progress(work.title());
        measurements.extend(run.measure(work)?);
    }
    Ok(OrcResult { spec: options.spec.clone(), rounds, measurements, notes: run.notes })
}

struct Run {
    input: Input,
    contenders: Vec<Box<dyn Contender>>,
    /// Rows to write; empty while reads are measured.
    batches: Vec<RecordBatch>,
    rounds: usize,
    /// Who was left out, and why.
    notes: Vec<String>,
}

impl Run {
    /// Makes the files to read: Stoa's anew, as it is what is measured, others unless they are there.
    fn write_orc_files(&mut self, progress: &mut dyn FnMut(&str)) -> Result<()> {
        self.batches = self.input.batches()?;
        for at in 0..self.contenders.len().min(2) {
            let contender = &self.contenders[at];
            let name = contender.name();
            let path = self.input.orc_of(&name);
            if contender.format() != Format::Orc || (at > 0 && path.exists()) {
                continue;
            }
            progress(&format!("{name} writes the file to read"));
            self.checked(at, Workload::Write)?;
            std::fs::rename(self.input.output(), &path).map_err(|e| io_error(&path, e))?;
        }
        self.batches = Vec::new();
        self.contenders.iter_mut().try_for_each(|contender| contender.forget())
    }

    /// Lets everybody do `work` once, with its answer checked, and then in rounds.
    fn measure(&mut self, work: Workload) -> Result<Vec<Measurement>> {
        if work == Workload::ReadAllOfPyarrow && self.pyarrow_file().is_none() {
            return Ok(Vec::new());
        }
        if work == Workload::Write {
            self.batches = self.input.batches()?;
        }
        let mut able = Vec::new();
        for at in 0..self.contenders.len() {
            if self.checked(at, work)? {
                able.push(at);
            }
        }
        let mut figures = vec![Vec::new(); self.contenders.len()];
        let mut bytes = vec![None; self.contenders.len()];
        for _ in 0..self.rounds {
            for &at in &able {
                let Some(outcome) = self.once(at, work, false)? else { continue };
                figures[at].push(outcome.cpu);
                if let Answer::File(length) = outcome.answer {
                    bytes[at] = Some(length);
                }
            }
        }
        remove(&self.input.output())?;
        let measurement = |at: usize| {
            measurement(work, self.contenders[at].name(), figures[at].clone(), bytes[at])
        };
        Ok(able.into_iter().map(measurement).collect())
    }

    /// Lets one contender do `work` and checks the answer; false if it cannot do it.
    fn checked(&mut self, at: usize, work: Workload) -> Result<bool> {
        let name = self.contenders[at].name();
        let outcome = match self.once(at, work, true) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => return Ok(false),
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                let title = work.title();
                self.notes.push(format!("{name}: {title}: {}", e.message_with_sources()));
                return Ok(false);
            }
            Err(e) => return Err(e),
        };
        self.check(at, work, &outcome.answer)
            .map_err(|e| e.at(format!("{name}: {}", work.title())))?;
        Ok(true)
    }

    fn once(&mut self, at: usize, work: Workload, check: bool) -> Result<Option<Outcome>> {
        let own = self.input.orc_of(&Stoa::default().name());
        let orc = match work {
            Workload::ReadAllOfPyarrow => self.pyarrow_file().unwrap_or(own),
            _ => own,
        };
        let (parquet, output) = (self.input.parquet(), self.input.output());
        let job = Job {
            work,
            orc: &orc,
            parquet: &parquet,
            output: &output,
            batches: &self.batches,
            reports: &self.input.reports,
            check,
        };
        self.contenders[at].run(&job)
    }

    /// The ORC file that pyarrow wrote, if pyarrow is there.
    fn pyarrow_file(&self) -> Option<PathBuf> {
        let names = self.contenders.iter().map(|contender| contender.name());
        let name = names.into_iter().find(|name| name.starts_with("pyarrow "))?;
        Some(self.input.orc_of(&name))
    }

    fn check(&self, at: usize, work: Workload, answer: &Answer) -> Result<()> {
        let expected = self.input.sums.of_columns(work.columns());
        match answer {
            Answer::Sums(sums) => same(&expected, sums),
            Answer::Reports(answers) if answers.len() == self.input.reports.len() => {
                let mut pairs = self.input.reports.iter().zip(answers);
                pairs.try_for_each(|(report, answer)| check(&self.input.table, report, answer))
            }
            Answer::File(_) => same(&expected, &self.written(at)?),
            other => Err(Error::internal(format!("{other:?} is no answer that can be checked"))),
        }
    }

    /// Sums of the file that was just written.
    fn written(&self, at: usize) -> Result<Sums> {
        let mut sums = Sums::default();
        let mut add = |batch: RecordBatch| sums.add(&batch);
        match self.contenders[at].format() {
            Format::Orc => Stoa::default().read(&self.input.output(), None, &mut add)?,
            Format::Parquet => ParquetRs.read(&self.input.output(), None, &mut add)?,
        }
        Ok(sums)
    }
}

fn same(expected: &Sums, found: &Sums) -> Result<()> {
    match expected.difference(found) {
        Some(difference) => Err(Error::corrupt(format!("wrong answer: {difference}"))),
        None => Ok(()),
    }
}

fn measurement(
    work: Workload,
    contender: String,
    mut figures: Vec<Duration>,
    file_bytes: Option<u64>,
) -> Measurement {
    figures.sort_unstable();
    let seconds = |figure: Option<&Duration>| figure.map_or(f64::NAN, Duration::as_secs_f64);
    Measurement {
        work,
        contender,
        cpu_seconds: seconds(figures.get(figures.len() / 2)),
        cpu_seconds_min: seconds(figures.first()),
        cpu_seconds_max: seconds(figures.last()),
        file_bytes,
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io_error(path, e)),
        _ => Ok(()),
    }
}
