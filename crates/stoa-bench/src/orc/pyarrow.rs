//! pyarrow, that is ORC C++, as a contender: a Python process that does one job at a time.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use stoa_error::{Error, Result};

use super::contender::{Answer, Contender, Format, Job, Outcome};
use super::input::file_bytes;
use super::sums::Sums;
use super::work::Workload;
use crate::report::Report;
use crate::report_scan::{epoch_days, line};

/// What the process runs.
const SCRIPT: &str = include_str!("pyarrow.py");

/// Where pyarrow is looked for if nobody says.
const CANDIDATES: [&str; 2] = ["python3", "python"];

const HINT: &str = "name a Python that has pyarrow with --python: \
                    python3 -m venv DIR && DIR/bin/pip install pyarrow";

/// A running process.
#[derive(Debug)]
pub(super) struct Pyarrow {
    child: Child,
    jobs: ChildStdin,
    answers: BufReader<ChildStdout>,
    version: String,
}

/// Day, impressions, clicks and conversions of a report's rows, as the script prints them.
type ReportRows = Vec<(i32, i64, i64, i64)>;

/// What the process says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reply {
    error: Option<String>,
    version: String,
    cpu: f64,
    rows: u64,
    bytes: u64,
    sums: Option<Sums>,
    reports: Option<Vec<ReportRows>>,
}

impl Pyarrow {
    /// Starts `python`, or the first Python on the path that has pyarrow; `None` if none has.
    ///
    /// # Errors
    /// `NotFound` if `python` is named and has no pyarrow.
    pub(super) fn start(python: Option<&Path>) -> Result<Option<Self>> {
        if let Some(python) = python {
            return Self::start_with(python).map(Some).map_err(|e| {
                Error::not_found(format!("{} has no pyarrow", python.display()))
                    .with_hint(HINT)
                    .with_source(e)
            });
        }
        let found = CANDIDATES.into_iter().map(PathBuf::from).map(|at| Self::start_with(&at));
        Ok(found.filter_map(Result::ok).next())
    }

    fn start_with(python: &Path) -> Result<Self> {
        let mut child = Command::new(python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| Error::not_found("it cannot be started").with_source(e))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (jobs, answers) = pipes.ok_or_else(|| Error::internal("a process without pipes"))?;
        let answers = BufReader::new(answers);
        let mut this = Self { child, jobs, answers, version: String::new() };
        this.version = this.ask(&json!({ "do": "hello" }))?.version;
        Ok(this)
    }

    fn ask(&mut self, job: &Value) -> Result<Reply> {
        let gone = |e| Error::unavailable("the Python process ended").with_source(e);
        writeln!(self.jobs, "{job}").map_err(gone)?;
        self.jobs.flush().map_err(gone)?;
        let mut text = String::new();
        self.answers.read_line(&mut text).map_err(gone)?;
        let reply: Reply = serde_json::from_str(&text)
            .map_err(|e| Error::unavailable("the Python process gave no answer").with_source(e))?;
        match reply.error {
            Some(error) => Err(Error::unavailable(format!("pyarrow: {error}"))),
            None => Ok(reply),
        }
    }

    fn read(&mut self, job: &Job<'_>) -> Result<Outcome> {
        let reports: &[Report] = if job.work == Workload::Report { job.reports } else { &[] };
        let reply = self.ask(&json!({
            "do": "read",
            "file": job.orc,
            "columns": job.work.columns(),
            "reports": reports.iter().map(as_json).collect::<Vec<_>>(),
            "check": job.check,
        }))?;
        let answer = match (reply.sums, reply.reports) {
            (Some(sums), _) => Answer::Sums(sums),
            (None, Some(reports)) => Answer::Reports(
                reports
                    .into_iter()
                    .map(|lines| lines.into_iter().map(|(day, a, b, c)| line(day, [a, b, c])))
                    .map(Iterator::collect)
                    .collect(),
            ),
            (None, None) => Answer::Rows(reply.rows),
        };
        Ok(Outcome { cpu: seconds(reply.cpu), answer })
    }

    fn write(&mut self, job: &Job<'_>) -> Result<Outcome> {
        let question = json!({ "do": "write", "parquet": job.parquet, "output": job.output });
        let reply = self.ask(&question)?;
        let bytes = file_bytes(job.output)?;
        if bytes != reply.bytes {
            let said = reply.bytes;
            return Err(Error::corrupt(format!(
                "pyarrow wrote {said} bytes, the file has {bytes}"
            )));
        }
        Ok(Outcome { cpu: seconds(reply.cpu), answer: Answer::File(bytes) })
    }
}

impl Contender for Pyarrow {
    fn name(&self) -> String {
        format!("pyarrow {}", self.version)
    }

    fn format(&self) -> Format {
        Format::Orc
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Option<Outcome>> {
        match job.work {
            Workload::Write => self.write(job),
            _ => self.read(job),
        }
        .map(Some)
    }

    fn forget(&mut self) -> Result<()> {
        self.ask(&json!({ "do": "forget" })).map(drop)
    }
}

impl Drop for Pyarrow {
    fn drop(&mut self) {
        // Whether it ends by itself or is ended makes no difference.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn as_json(report: &Report) -> Value {
    let days = epoch_days(report);
    json!({
        "account_id": report.account_id,
        "first_day": days.start(),
        "last_day": days.end(),
    })
}

fn seconds(cpu: f64) -> Duration {
    Duration::try_from_secs_f64(cpu).unwrap_or_default()
}
