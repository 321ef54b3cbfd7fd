//! Queries between their plan (GetFlightInfo) and their rows (DoGet).
//!
//! GetFlightInfo plans and tells the columns; the query runs when its ticket comes, once. Statements
//! that give no rows run at GetFlightInfo: nobody may come for rows that are not there.
//!
//! **Invariant:** a query is known under its ticket from GetFlightInfo until its last row was taken,
//! its client went away, or it was cancelled.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use stoa_error::{Error, ErrorKind, Result};
use stoa_query::{
    Kept, Outcome, Prepared, RowStream, ScalarValue, Session, Statement, number_parameters,
    plain_batch,
};

use crate::bound::Bound;
use crate::client::Client;
use crate::handles::{Handle, Handles};
use crate::metadata::described;

/// A planned query that waits for its ticket, or runs.
pub(crate) struct Query {
    client: Arc<Client>,
    prepared: Prepared,
    /// The query runs once for each of these, and the rows come one after another.
    bindings: Arc<Bound>,
    schema: SchemaRef,
    redeemed: AtomicBool,
    cancelled: AtomicBool,
    /// Its number in the registry once it runs; 0 before.
    running: AtomicU64,
    /// What it counts for under its ticket.
    _kept: Option<Kept>,
}

/// A query whose rows another daemon gives.
pub(crate) struct Moved {
    pub(crate) user: String,
    /// The number of that daemon.
    pub(crate) daemon: u32,
}

/// What came of cancelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// It will never run.
    Done,
    /// It runs, and will end soon.
    Begun,
}

impl Query {
    /// A query whose plan has rows.
    pub(crate) fn new(
        client: Arc<Client>,
        prepared: Prepared,
        bindings: Arc<Bound>,
        schema: SchemaRef,
    ) -> Self {
        Self {
            client,
            prepared,
            bindings,
            schema,
            redeemed: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            running: AtomicU64::new(0),
            _kept: None,
        }
    }

    /// About how many bytes it takes; values count with their statement.
    pub(crate) fn bytes(&self) -> usize {
        self.prepared.bytes()
    }

    /// Notes what it counts for from here on.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self._kept = Some(kept);
    }

    /// Whose it is.
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// The columns, in types that every client reads.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The text of its statement.
    pub(crate) fn sql(&self) -> &str {
        self.prepared.statement().text()
    }

    /// The values with which it runs, a row for each run.
    pub(crate) fn values(&self) -> &[Vec<ScalarValue>] {
        &self.bindings.rows
    }

    pub(crate) fn belongs_to(&self, client: &Client) -> bool {
        self.client.user == client.user
    }

    /// Notes that its ticket is used up.
    ///
    /// # Errors
    /// It was before; the query was cancelled.
    pub(crate) fn take(&self) -> Result<()> {
        match self.redeemed.swap(true, Ordering::SeqCst) {
            true => Err(unknown_ticket()),
            false if self.cancelled.load(Ordering::SeqCst) => Err(cancelled()),
            false => Ok(()),
        }
    }

    /// Stops it, or keeps it from running.
    pub(crate) fn cancel(&self, queries: &stoa_query::QueryRegistry) -> Cancelled {
        self.cancelled.store(true, Ordering::SeqCst);
        match self.running.load(Ordering::SeqCst) {
            0 if !self.redeemed.load(Ordering::SeqCst) => Cancelled::Done,
            0 => Cancelled::Begun,
            id => {
                queries.cancel(id);
                Cancelled::Begun
            }
        }
    }

    /// Runs it for the `nth` of its bindings.
    async fn run(&self, nth: usize) -> Result<RowStream> {
        let values = self.bindings.rows.get(nth).cloned().unwrap_or_default();
        if self.cancelled.load(Ordering::SeqCst) {
            return Err(cancelled());
        }
        let outcome = self.client.session.execute(&self.prepared, values).await?;
        let Outcome::Rows(rows) = outcome else {
            return Err(Error::internal("a statement planned with rows gave none"));
        };
        self.running.store(rows.query_id(), Ordering::SeqCst);
        match self.cancelled.load(Ordering::SeqCst) {
            true => Err(cancelled()),
            false => Ok(rows),
        }
    }
}

/// Runs the query of a ticket.
///
/// # Errors
/// A ticket that is not this client's, unknown, expired or redeemed before; what the query meets
/// before its first row. Later errors come with the rows.
pub(crate) async fn redeem(
    queries: &Arc<Handles<Query>>,
    handle: Option<Handle>,
    client: &Client,
) -> Result<(SchemaRef, BoxStream<'static, Result<RecordBatch>>)> {
    let handle = handle.ok_or_else(unknown_ticket)?;
    let query = queries.get(handle).filter(|query| query.belongs_to(client));
    let query = query.ok_or_else(unknown_ticket)?;
    query.take()?;
    let ended = Ended { queries: Arc::clone(queries), handle };
    let session = Arc::clone(&query.client.session);
    let timeout = session.statement_timeout();
    let first = within(timeout, query.run(0)).await?;
    let schema = query.schema();
    let later = stream::iter(1..query.bindings.rows.len().max(1)).then(move |nth| {
        let query = Arc::clone(&query);
        async move { query.run(nth).await }
    });
    let told = Arc::clone(&schema);
    let rows = stream::once(async { Ok(first) }).chain(later).try_flatten();
    let rows = rows.map(move |batch| {
        // Held until the last row was taken or the client went away.
        let _ = &ended;
        plain_batch(&batch?, &told)
    });
    Ok((schema, limited(rows.boxed(), timeout)))
}

/// Forgets a query when its rows are done with.
struct Ended {
    queries: Arc<Handles<Query>>,
    handle: Handle,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.queries.remove(self.handle);
    }
}

/// What a text of one or more statements comes to.
pub(crate) enum Planned {
    /// The last one has rows, of this schema.
    Rows(Box<Prepared>, SchemaRef),
    /// It has none, and was run: so many rows were changed.
    Done(u64),
}

/// Runs all statements of a text but the last, and that too if it gives no rows.
///
/// # Errors
/// The first error; statements before it have taken effect.
pub(crate) async fn plan(session: &Session, sql: &str) -> Result<Planned> {
    let mut planned = Planned::Done(0);
    for statement in session.parse(&number_parameters(sql)).await? {
        if let Planned::Rows(before, _) = planned {
            drain(session, &before).await?;
        }
        planned = plan_one(session, statement).await?;
    }
    Ok(planned)
}

async fn plan_one(session: &Session, statement: Statement) -> Result<Planned> {
    let prepared = session.prepare(statement, Vec::new()).await?;
    if let Some(schema) = prepared.schema() {
        return Ok(Planned::Rows(Box::new(prepared), described(&schema)));
    }
    changed_rows(session, &prepared, Vec::new()).await.map(Planned::Done)
}

/// The columns of the last statement's rows; nothing is run.
///
/// # Errors
/// Those of parsing and planning.
pub(crate) async fn describe(session: &Session, sql: &str) -> Result<Option<SchemaRef>> {
    let Some(last) = session.parse(&number_parameters(sql)).await?.pop() else { return Ok(None) };
    let prepared = session.prepare(last, Vec::new()).await?;
    Ok(prepared.schema().map(|schema| described(&schema)))
}

/// Runs a statement for its effect; rows that it gives are left out. Returns how many it changed.
///
/// # Errors
/// Those of the statement; COPY FROM STDIN, which has another protocol.
pub(crate) async fn changed_rows(
    session: &Session,
    prepared: &Prepared,
    values: Vec<ScalarValue>,
) -> Result<u64> {
    let timeout = session.statement_timeout();
    match within(timeout, session.execute(prepared, values)).await? {
        Outcome::Done(completion) => Ok(completion.rows),
        Outcome::Rows(rows) => {
            let count =
                |all: u64, batch: RecordBatch| async move { Ok(all + batch.num_rows() as u64) };
            let rows = limited(rows.boxed(), timeout).try_fold(0, count).await?;
            // Those of a query are not changed.
            Ok(if prepared.changes_rows() { rows } else { 0 })
        }
        Outcome::CopyIn(_) => {
            Err(Error::unsupported("COPY … FROM STDIN is not possible over Flight SQL")
                .with_hint("send the rows as an ingest (DoPut), as adbc_ingest does"))
        }
    }
}

async fn drain(session: &Session, prepared: &Prepared) -> Result<()> {
    changed_rows(session, prepared, Vec::new()).await.map(|_| ())
}

async fn within<T>(timeout: Option<Duration>, work: impl Future<Output = Result<T>>) -> Result<T> {
    match timeout {
        None => work.await,
        Some(timeout) => match stoa_env::timer::timeout(timeout, work).await {
            Ok(done) => done,
            Err(_) => Err(timed_out()),
        },
    }
}

/// The rows that come in time, then an error.
fn limited(
    rows: BoxStream<'static, Result<RecordBatch>>,
    timeout: Option<Duration>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let Some(timeout) = timeout else { return rows };
    let late = Box::pin(stoa_env::timer::sleep(timeout));
    stream::unfold((Some(rows), late), |(rows, mut late)| async move {
        let mut rows = rows?;
        tokio::select! {
            biased;
            () = &mut late => Some((Err(timed_out()), (None, late))),
            batch = rows.next() => batch.map(|batch| (batch, (Some(rows), late))),
        }
    })
    .boxed()
}

fn timed_out() -> Error {
    Error::new(ErrorKind::Timeout, "canceling statement due to statement timeout")
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "canceling statement due to user request")
}

pub(crate) fn unknown_ticket() -> Error {
    Error::not_found("the ticket is not known, was used before, or has expired")
        .with_sqlstate("26000")
        .with_hint("ask for the query again (GetFlightInfo), and fetch its rows once")
}
