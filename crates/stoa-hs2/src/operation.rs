//! Operations: statements that run, and results that are there already.
//!
//! ```text
//!  begun ─► running ─┬─► finished: rows are there, or there are none ─► pages
//!                    ├─► failed, timed out
//!                    └─► cancelled
//! ```
//!
//! A statement is finished for its client when its first [`PREFETCH_BYTES`] of rows are there, or all of them: errors
//! of its execution are known then, and a small result holds neither slot nor memory of the engine any more. Later
//! rows are computed as they are fetched.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parking_lot::Mutex;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind, Result};
use stoa_query::{Outcome, Prepared, QueryInfo, QueryRegistry, Session, without_secrets};
use stoa_thrift::{
    Column, Failure, Handle, OperationKind, OperationState, OperationStatus, Orientation, Progress,
    RowSet,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::column_type::column;
use crate::page::Rows;
use crate::row_set::row_set;
use crate::small_table::{Cell, Of, small_table};
use crate::{failure, peer};

/// Bytes of rows, about, that are computed before a client fetches any.
pub(crate) const PREFETCH_BYTES: usize = 1 << 20;
/// A client that asks how far an operation is waits for its end for so long, and longer for longer operations, as with
/// Hive (`CLIService.getOperationStatus`): it asks again at once.
const POLL_STEP: Duration = Duration::from_millis(500);
const POLL_MAX: Duration = Duration::from_secs(5);
/// Characters of a statement in the log of its operation.
const LOGGED_CHARS_MAX: usize = 2000;
/// How long a statement that was cancelled has to notice it, before it is let go of.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// A statement or a call for metadata, with what came of it.
pub(crate) struct Operation {
    pub(crate) handle: Handle,
    pub(crate) kind: OperationKind,
    session: Arc<Session>,
    schema: Option<SchemaRef>,
    timeout: Option<Duration>,
    started: Instant,
    started_unix_ms: i64,
    stage: watch::Sender<Stage>,
    rows: tokio::sync::Mutex<Rows>,
    log: Mutex<Log>,
    /// Its number in the registry once it has rows; 0 before.
    query_id: AtomicU64,
    cancelled: CancellationToken,
    used: Mutex<Instant>,
}

/// How far it is.
#[derive(Clone, Debug)]
struct Stage {
    state: OperationState,
    failure: Option<Failure>,
    completed_unix_ms: Option<i64>,
    changed_rows: Option<i64>,
}

/// Lines for people who watch, and how many of them were fetched.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    fetched: usize,
}

impl Operation {
    fn new(session: &Arc<Session>, kind: OperationKind, schema: Option<SchemaRef>) -> Self {
        let running = Stage {
            state: OperationState::Running,
            failure: None,
            completed_unix_ms: None,
            changed_rows: None,
        };
        Self {
            handle: peer::new_handle(),
            kind,
            session: Arc::clone(session),
            schema,
            timeout: None,
            started: clock::monotonic(),
            started_unix_ms: clock::unix_ms(),
            stage: watch::Sender::new(running),
            rows: tokio::sync::Mutex::default(),
            log: Mutex::default(),
            query_id: AtomicU64::new(0),
            cancelled: CancellationToken::new(),
            used: Mutex::new(clock::monotonic()),
        }
    }

    /// An operation that has ended, with these rows.
    pub(crate) fn done(
        session: &Arc<Session>,
        kind: OperationKind,
        rows: Option<RecordBatch>,
    ) -> Self {
        let mut this = Self::new(session, kind, rows.as_ref().map(RecordBatch::schema));
        if let Some(rows) = rows {
            this.rows = tokio::sync::Mutex::new(Rows::of_batch(rows));
        }
        this.end(OperationState::Finished, None, None);
        this
    }

    /// An operation that will run a statement.
    pub(crate) fn statement(
        session: &Arc<Session>,
        prepared: &Prepared,
        timeout: Option<Duration>,
    ) -> Self {
        let mut this = Self::new(session, OperationKind::Statement, prepared.schema());
        this.timeout = [timeout, session.statement_timeout()].into_iter().flatten().min();
        let id = this.handle.name();
        let text = without_secrets(prepared.statement().text());
        let end = text.char_indices().nth(LOGGED_CHARS_MAX).map_or(text.len(), |(end, _)| end);
        let text = &text[..end];
        this.tell(format!("INFO  : Executing command(queryId={id}): {text}"));
        this
    }

    pub(crate) fn has_rows(&self) -> bool {
        self.schema.is_some()
    }

    /// The columns; none where there are no rows.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let fields = self.schema.iter().flat_map(|schema| schema.fields().iter());
        fields.map(|field| column(field)).collect()
    }

    fn tell(&self, line: String) {
        self.log.lock().lines.push(line);
    }

    fn end(&self, state: OperationState, failure: Option<Failure>, changed_rows: Option<i64>) {
        let completed_unix_ms = Some(clock::unix_ms());
        self.stage.send_replace(Stage { state, failure, completed_unix_ms, changed_rows });
    }

    /// Runs the statement up to its first rows.
    pub(crate) async fn run(self: Arc<Self>, prepared: Prepared, queries: QueryRegistry) {
        let ended = self.compute(&prepared, &queries).await;
        let id = self.handle.name();
        let seconds = self.started.elapsed().as_secs_f64();
        let (state, failure, changed) = match ended {
            Ok(changed) => {
                let text = format!(
                    "Completed executing command(queryId={id}); Time taken: {seconds:.3} seconds"
                );
                self.tell(format!("INFO  : {text}"));
                (OperationState::Finished, None, changed)
            }
            Err(error) => {
                self.tell(format!("ERROR : {}", error.message()));
                (state_of(&error), Some(failure::of_statement(&error)), None)
            }
        };
        self.end(state, failure, changed);
    }

    /// Executes the statement until its end, its limit, or a cancel; tells how many rows it changed.
    async fn compute(&self, prepared: &Prepared, queries: &QueryRegistry) -> Result<Option<i64>> {
        let mut work = pin!(self.execute(prepared));
        let late = async {
            match self.timeout {
                Some(timeout) => stoa_env::timer::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let why = tokio::select! {
            biased;
            () = self.cancelled.cancelled() => cancelled(),
            done = &mut work => return done,
            () = late => timed_out(self.timeout.unwrap_or_default()),
        };
        self.stop(prepared.statement().text(), queries);
        // It notes itself how it ends.
        let _ = stoa_env::timer::timeout(CANCEL_LIMIT, work).await;
        Err(why)
    }

    async fn execute(&self, prepared: &Prepared) -> Result<Option<i64>> {
        match self.session.execute(prepared, Vec::new()).await? {
            Outcome::Done(completion) => {
                for notice in &completion.notices {
                    self.tell(format!("INFO  : {notice}"));
                }
                Ok(i64::try_from(completion.rows).ok())
            }
            Outcome::Rows(stream) => {
                self.query_id.store(stream.query_id(), Ordering::Release);
                let mut rows = Rows::of_stream(stream);
                if let Some(bytes) = rows.read_ahead(PREFETCH_BYTES).await? {
                    rows.keep(self.session.keep(bytes)?);
                }
                *self.rows.lock().await = rows;
                Ok(None)
            }
            Outcome::CopyIn(_) => {
                Err(Error::unsupported("COPY … FROM STDIN is not possible over HiveServer2")
                    .with_hint("use COPY … FROM 'file', `stoa load`, or the PostgreSQL protocol"))
            }
        }
    }

    /// Has the registry cancel the query: that of this operation, or, while it has no number, those of the session with
    /// the same text.
    fn stop(&self, text: &str, queries: &QueryRegistry) {
        match self.query_id.load(Ordering::Acquire) {
            0 => {
                let text = without_secrets(text);
                let backend = self.session.backend_id();
                let is_own =
                    |query: &QueryInfo| query.backend_id == backend && text.starts_with(&query.sql);
                let running = queries.running().into_iter().filter(is_own);
                for query in running {
                    queries.cancel(query.id);
                }
            }
            id => {
                queries.cancel(id);
            }
        }
    }

    /// Stops it, if it has not ended; what of its rows was not fetched is gone.
    pub(crate) fn cancel(&self, queries: &QueryRegistry) {
        self.cancelled.cancel();
        let id = self.query_id.load(Ordering::Acquire);
        if id != 0 {
            queries.cancel(id);
        }
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&self) {
        let mut stage = self.stage.subscribe();
        // Its sender is in `self`.
        let _ = stage.wait_for(|stage| stage.state != OperationState::Running).await;
    }

    /// Why it failed, if it has.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.stage.borrow().failure.clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.stage.borrow().state == OperationState::Running
    }

    /// How far it is; waits a while if it runs.
    pub(crate) async fn status(
        &self,
        wants_progress: bool,
        queries: &QueryRegistry,
    ) -> OperationStatus {
        let steps = u32::try_from(self.started.elapsed().as_secs() / 10 + 1).unwrap_or(u32::MAX);
        let patience = POLL_STEP.saturating_mul(steps).min(POLL_MAX);
        let _ = stoa_env::timer::timeout(patience, self.ended()).await;
        let stage = self.stage.borrow().clone();
        let progress = wants_progress.then(|| self.progress(&stage, queries));
        OperationStatus {
            state: stage.state,
            failure: stage.failure,
            started_unix_ms: self.started_unix_ms,
            completed_unix_ms: stage.completed_unix_ms,
            has_rows: self.has_rows(),
            changed_rows: stage.changed_rows,
            progress,
        }
    }

    /// A table of one line, in the columns that beeline has places for.
    fn progress(&self, stage: &Stage, queries: &QueryRegistry) -> Progress {
        let is_complete = stage.state != OperationState::Running;
        let backend = self.session.backend_id();
        let share = match is_complete {
            true => 1.0,
            false => {
                let running =
                    queries.running().into_iter().filter(|query| query.backend_id == backend);
                running.filter_map(|query| query.progress).fold(0.0, f64::max)
            }
        };
        let percent = format!("{:.0}", share * 100.0);
        let state = if is_complete { "SUCCEEDED" } else { "RUNNING" };
        let row = ["Query", "stoa", state, "100", &percent, "1", "0", "0", "0"];
        let header = [
            "VERTICES",
            "MODE",
            "STATUS",
            "TOTAL",
            "COMPLETED",
            "RUNNING",
            "PENDING",
            "FAILED",
            "KILLED",
        ];
        Progress {
            header: header.map(str::to_owned).to_vec(),
            rows: vec![row.map(str::to_owned).to_vec()],
            share,
            footer: "PERCENT".to_owned(),
            started_unix_ms: self.started_unix_ms,
            is_complete,
        }
    }

    /// The next page of rows; waits for the statement if it runs.
    ///
    /// # Errors
    /// Why the statement failed; HY106 for an orientation that is not possible.
    pub(crate) async fn page(
        &self,
        orientation: Orientation,
        rows_max: i64,
    ) -> Result<RowSet, Failure> {
        self.ended().await;
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.next_page(orientation, rows_max).await.map_err(|error| failure::of_statement(&error))
    }

    async fn next_page(&self, orientation: Orientation, rows_max: i64) -> Result<RowSet> {
        let Some(schema) = &self.schema else {
            return Err(Error::invalid("the operation has no rows").with_sqlstate("24000"));
        };
        let mut rows = self.rows.lock().await;
        match orientation {
            Orientation::Next => {}
            Orientation::First => rows.rewind()?,
            Orientation::Other => return Err(no_orientation()),
        }
        let rows_max = usize::try_from(rows_max).unwrap_or_default();
        let page = tokio::select! {
            biased;
            () = self.cancelled.cancelled() => return Err(cancelled()),
            page = rows.page(rows_max) => page?,
        };
        let zone = self.session.engine_zone();
        row_set(schema, &page.batches, &zone, page.first_row, page.has_more)
    }

    /// The next lines of the log.
    ///
    /// # Errors
    /// HY106 for an orientation that is not possible.
    pub(crate) fn log(&self, orientation: Orientation, rows_max: i64) -> Result<RowSet, Failure> {
        let page = || {
            let mut log = self.log.lock();
            match orientation {
                Orientation::Next => {}
                Orientation::First => log.fetched = 0,
                Orientation::Other => return Err(no_orientation()),
            }
            let count = usize::try_from(rows_max).unwrap_or_default();
            let first = log.fetched;
            let lines = log.lines.iter().skip(first).take(count);
            let rows: Vec<_> = lines.map(|line| vec![Cell::from(line.as_str())]).collect();
            log.fetched += rows.len();
            let table = small_table(&[("operation_logs", Of::Text)], &rows)?;
            let first = i64::try_from(first).unwrap_or(i64::MAX);
            row_set(&table.schema(), &[table], "UTC", first, false)
        };
        page().map_err(|error| failure::of_call(&error))
    }

    /// Notes that somebody asks for it.
    pub(crate) fn touch(&self) {
        *self.used.lock() = clock::monotonic();
    }

    /// Whether nobody has asked for it for so long.
    pub(crate) fn is_idle(&self, idle_max: Duration) -> bool {
        !self.is_running() && self.used.lock().elapsed() >= idle_max
    }
}

fn state_of(error: &Error) -> OperationState {
    match error.kind() {
        ErrorKind::Cancelled => OperationState::Canceled,
        ErrorKind::Timeout => OperationState::TimedOut,
        _ => OperationState::Failed,
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "canceling statement due to user request")
}

fn timed_out(limit: Duration) -> Error {
    let message = format!("Query timed out after {} seconds", limit.as_secs());
    Error::new(ErrorKind::Timeout, message)
        .with_hint("raise the timeout that the client sets, or statement_timeout")
}

fn no_orientation() -> Error {
    Error::unsupported("rows are fetched in their order, or from the first one again")
        .with_sqlstate("HY106")
}
