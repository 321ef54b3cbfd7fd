//! Sends reports over the PostgreSQL protocol and measures the answers.
//!
//! Every client is a connection with a task of its own that asks, waits for the whole answer, decodes
//! it and asks again (closed loop: no think time). A sample of the answers is kept and compared after
//! the clock has stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::NaiveDate;
use hdrhistogram::Histogram;
use serde::Serialize;
use stoa_env::clock::monotonic;
use stoa_error::{Condition, Error, Result};
use tokio::sync::{Barrier, watch};
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Statement};

use crate::ad_report::{AdReport, DailySums};
use crate::check::check;
use crate::measure::{ServerProbe, ServerUsage};
use crate::report::{Report, ReportPicker};

/// How a report is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Prepared once per connection, then bound and executed.
    Prepared,
    /// Parsed, bound and executed in one round trip each time.
    Extended,
    /// As text with literals.
    Simple,
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After this time; reports under way are finished and counted.
    Duration(Duration),
    /// After this many reports of all clients together.
    Reports(u64),
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Host of the server.
    pub host: String,
    /// Its port of the PostgreSQL protocol.
    pub pg_port: u16,
    /// The table's name, as SQL writes it.
    pub table: String,
    /// How reports are sent.
    pub mode: Mode,
    /// Connections at once, at least 1.
    pub clients: usize,
    /// When to stop.
    pub limit: Limit,
    /// How long the clients send before measuring starts.
    pub warm_up: Duration,
    /// Which reports are sent.
    pub seed: u64,
    /// One of so many answers is checked; 0 = none.
    pub check_every: u64,
    /// Settings of each connection: `name = value`.
    pub settings: Vec<String>,
    /// Statements that other connections run over and over meanwhile.
    pub beside: Vec<String>,
}

/// What a run measured. Times in microseconds, as the client saw them.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// How reports were sent.
    pub mode: Mode,
    /// Connections at once.
    pub clients: usize,
    /// Reports answered.
    pub reports: u64,
    /// Reports that got an error in place of an answer.
    pub failed: u64,
    /// The first such error.
    pub first_error: Option<String>,
    /// Reports that the server was too busy for (53300), which a client sends again a little later.
    pub refused: u64,
    /// Runs of the statements beside.
    pub beside: u64,
    /// Answers compared with the generator's sums; all were right.
    pub checked: u64,
    /// Lines of all answers.
    pub lines: u64,
    /// How long the run took.
    pub seconds: f64,
    /// Reports per hour at this rate.
    pub reports_per_hour: f64,
    /// Median.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
    /// CPU time of the server per report.
    pub server_cpu_us_per_report: Option<f64>,
    /// Bytes the server read from storage per report.
    pub bytes_read_per_report: Option<f64>,
    /// Read requests the server sent to storage per report.
    pub read_requests_per_report: Option<f64>,
    /// The most memory the server ever had resident.
    pub server_peak_rss_bytes: Option<u64>,
}

/// At most so many answers are kept for checking, per client.
const SAMPLES_MAX: usize = 500;

/// Runs the workload once.
///
/// # Errors
/// Unavailable if no connection is made or no report is answered; corrupt if an answer is wrong.
pub async fn run(
    table: &Arc<AdReport>,
    options: &RunOptions,
    probe: &ServerProbe,
) -> Result<RunResult> {
    let clients = options.clients.max(1);
    // Two meetings: all warmed up, and the measurement begins.
    let barrier = Arc::new(Barrier::new(clients + 1));
    let left = Arc::new(AtomicU64::new(match options.limit {
        Limit::Reports(reports) => reports,
        Limit::Duration(_) => u64::MAX,
    }));
    let mut tasks = Vec::with_capacity(clients);
    for number in 0..clients {
        let connection = Connection::open(options).await?;
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        let picker = ReportPicker::new(Arc::clone(table), seed);
        let task = ClientTask {
            connection,
            picker,
            options: options.clone(),
            left: Arc::clone(&left),
            barrier: Arc::clone(&barrier),
        };
        tasks.push(stoa_env::task::spawn(task.run()));
    }
    let beside = Beside::start(options).await?;
    barrier.wait().await;
    let before = probe.sample().await?;
    let begin = monotonic();
    barrier.wait().await;
    let mut total = Tally::new()?;
    for task in tasks {
        let tally = task.await.map_err(|e| Error::internal("a client ended").with_source(e))??;
        total.add(tally)?;
    }
    let elapsed = begin.elapsed();
    total.beside = beside.stop().await?;
    let after = probe.sample().await?;
    let checked = total.samples.len() as u64;
    for (report, answer) in &total.samples {
        check(table, report, answer)?;
    }
    total.result(options, elapsed, checked, before, after)
}

/// Rows of a table, by asking a server.
///
/// # Errors
/// Unavailable: no server answers, or it has no such table.
pub async fn count_rows(host: &str, pg_port: u16, table: &str) -> Result<u64> {
    let client = connect(host, pg_port).await?;
    let row = client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await;
    let rows: i64 = row.and_then(|row| row.try_get(0)).map_err(answer_error)?;
    Ok(rows.unsigned_abs())
}

async fn connect(host: &str, pg_port: u16) -> Result<Client> {
    let config =
        format!("host={host} port={pg_port} user=bench dbname=stoa application_name=stoa-bench");
    let place = format!("postgresql://{host}:{pg_port}");
    let (client, connection) = tokio_postgres::connect(&config, NoTls)
        .await
        .map_err(|e| Error::unavailable(format!("cannot connect to {place}")).with_source(e))?;
    // Ends when the client is dropped; its error shows in the client's calls.
    stoa_env::task::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

struct ClientTask {
    connection: Connection,
    picker: ReportPicker,
    options: RunOptions,
    left: Arc<AtomicU64>,
    barrier: Arc<Barrier>,
}

impl ClientTask {
    async fn run(mut self) -> Result<Tally> {
        let begin = monotonic();
        while begin.elapsed() < self.options.warm_up {
            // Errors count, and show, in the measured part.
            let _ = self.connection.ask(&self.picker.pick()).await;
        }
        self.barrier.wait().await;
        self.barrier.wait().await;
        let deadline = match self.options.limit {
            Limit::Duration(duration) => Some(monotonic() + duration),
            Limit::Reports(_) => None,
        };
        let mut tally = Tally::new()?;
        while self.may_go_on(deadline) {
            let report = self.picker.pick();
            let begin = monotonic();
            match self.connection.ask(&report).await {
                Ok(answer) => tally.answered(&self.options, begin.elapsed(), report, answer),
                Err(error) if self.connection.is_closed() => return Err(error),
                Err(error) if error.is(Condition::TooManyConnections) => {
                    tally.refused += 1;
                    stoa_env::timer::sleep(BUSY_PAUSE).await;
                }
                Err(error) => tally.failed(&error),
            }
        }
        Ok(tally)
    }

    fn may_go_on(&self, deadline: Option<Instant>) -> bool {
        match deadline {
            Some(deadline) => monotonic() < deadline,
            None => {
                let take = |left: u64| left.checked_sub(1);
                self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
            }
        }
    }
}

/// What a client, or all together, have seen.
struct Tally {
    latency_us: Histogram<u64>,
    failed: u64,
    first_error: Option<String>,
    refused: u64,
    beside: u64,
    lines: u64,
    samples: Vec<(Report, Vec<DailySums>)>,
}

/// How long a client waits whose server is too busy for one more.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Longer ones count as this; an hour.
const LATENCY_US_MAX: u64 = 3_600_000_000;

impl Tally {
    fn new() -> Result<Self> {
        // Saturating records never make a histogram larger: it has to span what may come.
        let latency_us = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3)
            .map_err(|e| Error::internal("cannot make a histogram").with_source(e))?;
        Ok(Self {
            latency_us,
            failed: 0,
            first_error: None,
            refused: 0,
            beside: 0,
            lines: 0,
            samples: Vec::new(),
        })
    }

    fn answered(
        &mut self,
        options: &RunOptions,
        took: Duration,
        report: Report,
        answer: Vec<DailySums>,
    ) {
        let number = self.latency_us.len();
        self.latency_us.saturating_record(took.as_micros() as u64);
        self.lines += answer.len() as u64;
        let chosen = options.check_every > 0 && number.is_multiple_of(options.check_every);
        if chosen && self.samples.len() < SAMPLES_MAX {
            self.samples.push((report, answer));
        }
    }

    fn failed(&mut self, error: &Error) {
        self.failed += 1;
        self.first_error.get_or_insert_with(|| format!("{error:?}"));
    }

    fn add(&mut self, other: Self) -> Result<()> {
        self.latency_us
            .add(other.latency_us)
            .map_err(|e| Error::internal("cannot add histograms").with_source(e))?;
        self.failed += other.failed;
        self.refused += other.refused;
        self.first_error = self.first_error.take().or(other.first_error);
        self.lines += other.lines;
        self.samples.extend(other.samples);
        Ok(())
    }

    fn result(
        self,
        options: &RunOptions,
        elapsed: Duration,
        checked: u64,
        before: ServerUsage,
        after: ServerUsage,
    ) -> Result<RunResult> {
        let reports = self.latency_us.len();
        if reports == 0 {
            let why = self.first_error.unwrap_or_else(|| "no time to ask one".into());
            return Err(Error::unavailable("no report was answered").with_detail(why));
        }
        let per_report =
            |before: Option<f64>, after: Option<f64>| Some((after? - before?) / reports as f64);
        let cpu_us = |usage: ServerUsage| usage.cpu.map(|cpu| cpu.as_micros() as f64);
        let bytes = |usage: ServerUsage| usage.bytes_read.map(|bytes| bytes as f64);
        let requests = |usage: ServerUsage| usage.read_requests.map(|requests| requests as f64);
        Ok(RunResult {
            mode: options.mode,
            clients: options.clients,
            reports,
            failed: self.failed,
            first_error: self.first_error,
            refused: self.refused,
            beside: self.beside,
            checked,
            lines: self.lines,
            seconds: elapsed.as_secs_f64(),
            reports_per_hour: reports as f64 / elapsed.as_secs_f64() * 3600.0,
            p50_us: self.latency_us.value_at_quantile(0.50),
            p95_us: self.latency_us.value_at_quantile(0.95),
            p99_us: self.latency_us.value_at_quantile(0.99),
            max_us: self.latency_us.max(),
            server_cpu_us_per_report: per_report(cpu_us(before), cpu_us(after)),
            bytes_read_per_report: per_report(bytes(before), bytes(after)),
            read_requests_per_report: per_report(requests(before), requests(after)),
            server_peak_rss_bytes: after.peak_rss_bytes,
        })
    }
}

/// A connection in one of the modes.
pub(crate) struct Connection {
    client: Client,
    mode: Mode,
    table: String,
    /// With parameters.
    sql: String,
    prepared: Option<Statement>,
}

impl Connection {
    pub(crate) async fn open(options: &RunOptions) -> Result<Self> {
        let client = connect(&options.host, options.pg_port).await?;
        apply(&client, &options.settings).await?;
        let sql = Report::sql(&options.table);
        let prepared = match options.mode {
            Mode::Prepared => {
                let types = [Type::INT8, Type::DATE, Type::DATE];
                Some(client.prepare_typed(&sql, &types).await.map_err(answer_error)?)
            }
            Mode::Extended | Mode::Simple => None,
        };
        Ok(Self { client, mode: options.mode, table: options.table.clone(), sql, prepared })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(crate) async fn ask(&self, report: &Report) -> Result<Vec<DailySums>> {
        let id: &(dyn ToSql + Sync) = &report.account_id;
        let (first, last): (&(dyn ToSql + Sync), &(dyn ToSql + Sync)) =
            (&report.first_day, &report.last_day);
        let rows = match (&self.prepared, self.mode) {
            (Some(statement), _) => self.client.query(statement, &[id, first, last]).await,
            (None, Mode::Simple) => return self.ask_simple(report).await,
            (None, _) => {
                let parameters = [(id, Type::INT8), (first, Type::DATE), (last, Type::DATE)];
                self.client.query_typed(&self.sql, &parameters).await
            }
        };
        rows.map_err(answer_error)?.iter().map(binary_line).collect()
    }

    async fn ask_simple(&self, report: &Report) -> Result<Vec<DailySums>> {
        let sql = report.literal_sql(&self.table);
        let messages = self.client.simple_query(&sql).await.map_err(answer_error)?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(text_line(row)),
            _ => None,
        });
        rows.collect()
    }
}

fn binary_line(row: &tokio_postgres::Row) -> Result<DailySums> {
    Ok(DailySums {
        day: row.try_get::<_, NaiveDate>(1).map_err(answer_error)?,
        impressions: row.try_get(2).map_err(answer_error)?,
        clicks: row.try_get(3).map_err(answer_error)?,
        cost: row.try_get(4).map_err(answer_error)?,
    })
}

fn text_line(row: &tokio_postgres::SimpleQueryRow) -> Result<DailySums> {
    let text = |column: usize| row.try_get(column).map_err(answer_error).map(|t| t.unwrap_or(""));
    let number = |column: usize| {
        text(column)?.parse::<i64>().map_err(|e| unreadable(column, text(column)).with_source(e))
    };
    Ok(DailySums {
        day: text(1)?.parse::<NaiveDate>().map_err(|e| unreadable(1, text(1)).with_source(e))?,
        impressions: number(2)?,
        clicks: number(3)?,
        cost: number(4)?,
    })
}

fn unreadable(column: usize, text: Result<&str>) -> Error {
    Error::corrupt(format!("column {} of an answer is {:?}", column + 1, text.unwrap_or("")))
}

fn answer_error(error: tokio_postgres::Error) -> Error {
    let text = match error.as_db_error() {
        Some(db) => format!("the server answered: {} ({})", db.message(), db.code().code()),
        None => "the server's answer cannot be read".into(),
    };
    let is_busy = error
        .as_db_error()
        .is_some_and(|db| db.code().code() == Condition::TooManyConnections.sqlstate());
    let answer = Error::unavailable(text).with_source(error);
    if is_busy { answer.with_condition(Condition::TooManyConnections) } else { answer }
}

/// Sets settings of a connection.
async fn apply(client: &Client, settings: &[String]) -> Result<()> {
    for setting in settings {
        client.batch_execute(&format!("SET {setting}")).await.map_err(answer_error)?;
    }
    Ok(())
}

/// Connections that run statements over and over.
struct Beside {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Result<u64>>>,
}

impl Beside {
    async fn start(options: &RunOptions) -> Result<Self> {
        let stop = watch::Sender::new(false);
        let mut tasks = Vec::with_capacity(options.beside.len());
        for sql in options.beside.clone() {
            let client = connect(&options.host, options.pg_port).await?;
            apply(&client, &options.settings).await?;
            let stop = stop.subscribe();
            tasks.push(stoa_env::task::spawn(async move {
                let mut runs = 0;
                while !*stop.borrow() {
                    client.simple_query(&sql).await.map_err(answer_error)?;
                    runs += 1;
                }
                Ok(runs)
            }));
        }
        Ok(Self { stop, tasks })
    }

    /// Gives the runs of all statements, after the last of each.
    async fn stop(self) -> Result<u64> {
        self.stop.send_replace(true);
        let mut runs = 0;
        for task in self.tasks {
            runs += task.await.map_err(|e| Error::internal("a client ended").with_source(e))??;
        }
        Ok(runs)
    }
}
