//! The group check: pointers and the version of the policy, exact for every report, at a load on
//! PostgreSQL that does not depend on how many there are.
//!
//! One task has one query in flight. All that is asked until that is answered waits for the next query,
//! which answers all of it. So an answer is of a query that was sent after its question: it shows
//! every commit that anybody knew of when he asked, and a question waits for two round trips at most.
//!
//! Every ten seconds the task asks for all that is remembered, beside what others ask: to note that
//! PostgreSQL is away, and so that what is remembered then is not old. While reports are answered it looks for moves
//! that are announced, so that few have to ask (`read_lease`).

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::{Executor, PgConnection, Row as _};
use stoa_env::timer;
use stoa_error::{Error, Result};
use tokio::sync::{mpsc, oneshot};

use super::rows::within;
use super::sessions::{self, Session};
use super::{READ_TIMEOUT, Shared, failure, read_lease};
use crate::TableIdent;
use crate::database::{Row, Value};
use crate::lookup;

/// Questions that one query answers, and names that it refreshes.
const BATCH_MAX: usize = 1000;

/// How often everything that is remembered is asked for.
const REFRESH_EVERY: Duration = Duration::from_secs(10);

/// The query, and the last announcement of a move (`read_lease`) or a constant.
macro_rules! query {
    ($number:expr) => {
        concat!(
            "SELECT asked.number, held.table_name IS NOT NULL, held.iceberg_type,
                held.metadata_location,
                (SELECT version FROM stoa_policy_version WHERE catalog_name = $1),
                ",
            $number,
            " FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS asked(namespace, name, number)
            LEFT JOIN iceberg_tables AS held ON held.catalog_name = $1
              AND held.table_namespace = asked.namespace AND held.table_name = asked.name"
        )
    };
}

const QUERY: &str = query!("NULL::bigint");
const QUERY_AND_LOOK: &str = query!(concat!("(", read_lease::last_move!(), ")"));

pub(super) struct Question {
    ident: Option<TableIdent>,
    answer: oneshot::Sender<Result<Option<Answer>>>,
}

#[derive(Clone)]
pub(super) struct Answer {
    /// Type and location of the name, if there is such a name.
    pub(super) found: Option<Row>,
    pub(super) policy_version: i64,
}

/// Asks the task; `None` where PostgreSQL was away when it was asked.
pub(super) async fn ask(
    questions: &mpsc::Sender<Question>,
    ident: Option<&TableIdent>,
) -> Result<Option<Answer>> {
    let (answer, answered) = oneshot::channel();
    let closed = || Error::unavailable("the catalog is closed");
    let question = Question { ident: ident.cloned(), answer };
    questions.send(question).await.map_err(|_| closed())?;
    answered.await.map_err(|_| closed())?
}

/// Answers questions until nobody can ask any more.
pub(super) async fn serve(shared: Weak<Shared>, mut asked: mpsc::Receiver<Question>) {
    let mut session = None;
    let mut batch: Vec<Question> = Vec::new();
    let mut to_refresh: Vec<TableIdent> = Vec::new();
    let mut refresh_at = timer::now() + REFRESH_EVERY;
    loop {
        let next_look = match shared.upgrade() {
            Some(shared) => shared.read_lease.next_look(),
            None => return,
        };
        let wake_at = next_look.map_or(refresh_at, |at| at.min(refresh_at));
        let wait = match to_refresh.is_empty() {
            true => wake_at.saturating_duration_since(timer::now()),
            false => Duration::ZERO,
        };
        if let Ok(0) = timer::timeout(wait, asked.recv_many(&mut batch, BATCH_MAX)).await {
            return;
        }
        // Whatever else is ready to run on this thread may ask as well: where much is going on, more questions are
        // answered by one query, and where nothing is, this takes no time.
        tokio::task::yield_now().await;
        while batch.len() < BATCH_MAX
            && let Ok(question) = asked.try_recv()
        {
            batch.push(question);
        }
        let Some(shared) = shared.upgrade() else { return };
        if shared.sessions.is_closed() {
            return;
        }
        if to_refresh.is_empty() && timer::now() >= refresh_at {
            to_refresh = shared.memory.names();
            refresh_at = timer::now() + REFRESH_EVERY;
        }
        let mut names = to_refresh.split_off(to_refresh.len().saturating_sub(BATCH_MAX));
        names.extend(batch.iter().filter_map(|question| question.ident.clone()));
        names.sort_unstable();
        names.dedup();
        if !shared.reach.is_here() {
            answer(batch.drain(..), Ok(None));
            continue;
        }
        if !names.is_empty() || !batch.is_empty() {
            let outcome = check(&shared, &mut session, names).await;
            answer(batch.drain(..), outcome);
        }
        read_lease::keep(&shared, &mut session).await;
    }
}

type Found = (HashMap<TableIdent, Row>, i64);

fn answer(questions: impl Iterator<Item = Question>, outcome: Result<Option<Found>>) {
    for question in questions {
        let answer = match &outcome {
            Ok(Some((found, policy_version))) => {
                let found = question.ident.and_then(|ident| found.get(&ident).cloned());
                Ok(Some(Answer { found, policy_version: *policy_version }))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error.copied()),
        };
        // Who has asked may be gone.
        let _ = question.answer.send(answer);
    }
}

/// What `names` stand for; `None` where PostgreSQL is away.
async fn check(
    shared: &Arc<Shared>,
    session: &mut Option<Session>,
    names: Vec<TableIdent>,
) -> Result<Option<Found>> {
    loop {
        // What was given up may be connected to a server that another one has taken over from.
        *session = session.take().filter(|session| shared.sessions.is_current(session));
        let is_new = session.is_none();
        let age = shared.memory.age();
        let work = async {
            let mut opened = match session.take() {
                Some(session) => session,
                None => {
                    shared.read_lease.start_again();
                    sessions::open(shared).await?
                }
            };
            let sent = timer::now();
            let looks = shared.read_lease.is_noted();
            let found = query(opened.connection(), shared.name.as_str(), &names, looks).await?;
            Ok((opened, sent, found))
        };
        match within(READ_TIMEOUT, work).await {
            Ok((opened, sent, (found, policy_version, number))) => {
                *session = Some(opened);
                let known: Vec<_> = names
                    .into_iter()
                    .map(|ident| {
                        let row = found.get(&ident);
                        let relation = row.and_then(|row| lookup::of_row(row, &ident).ok());
                        (ident, relation)
                    })
                    .collect();
                if let Some(number) = number {
                    let known = known.iter().map(|(ident, relation)| (ident, relation.as_ref()));
                    shared.read_lease.found(sent, number, known, Some(policy_version));
                }
                shared.memory.put_relations(known.into_iter(), policy_version, age);
                return Ok(Some((found, policy_version)));
            }
            // A connection that was lost while nobody used it says nothing of PostgreSQL.
            Err(error) if !is_new => {
                tracing::debug!(%error, "a connection to the catalog was lost");
                shared.sessions.forget_idle();
            }
            Err(error) if failure::is_lost(&error) => {
                shared.reach.mark_away(shared, &error);
                return Ok(None);
            }
            Err(error) => return Err(shared.failed(error)),
        }
    }
}

async fn query(
    connection: &mut PgConnection,
    catalog: &str,
    names: &[TableIdent],
    looks: bool,
) -> sqlx::Result<(HashMap<TableIdent, Row>, i64, Option<i64>)> {
    // One more, which no namespace is called, so that there is a row for the version.
    let last = || [""].into_iter();
    let namespaces: Vec<&str> =
        names.iter().map(|ident| ident.namespace.as_str()).chain(last()).collect();
    let tables: Vec<&str> = names.iter().map(|ident| ident.name.as_str()).chain(last()).collect();
    let text = if looks { QUERY_AND_LOOK } else { QUERY };
    let query = sqlx::query(text).bind(catalog).bind(namespaces).bind(tables);
    let rows = connection.fetch_all(query).await?;
    let mut found = HashMap::new();
    let (mut policy_version, mut last_move) = (0, None);
    for row in &rows {
        let (number, exists): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
        policy_version = row.try_get::<Option<i64>, _>(4)?.unwrap_or(0);
        last_move = row.try_get(5)?;
        let ident = usize::try_from(number - 1).ok().and_then(|index| names.get(index));
        if let (Some(ident), true) = (ident, exists) {
            let held = Row(vec![Value::Text(row.try_get(2)?), Value::Text(row.try_get(3)?)]);
            found.insert(ident.clone(), held);
        }
    }
    Ok((found, policy_version, last_move))
}
