//! What became of a commit whose connection was lost.
//!
//! Each change writes its number into the row of its writer, in its own transaction. Another connection
//! that writes that row waits until that transaction has ended, whichever way, and then finds the
//! number if and only if it was committed.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Executor, Row as _};
use stoa_env::timer;

use super::rows::within;
use super::sessions::{self, Writer};
use super::{Shared, failure};

/// How long PostgreSQL may be away until the outcome counts as unknown.
const SETTLE_WAIT: Duration = Duration::from_secs(30);

/// As long as PostgreSQL lets a statement wait for a row, and a little.
const ROW_TIMEOUT: Duration = Duration::from_secs(35);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    Undone,
    Unknown,
}

pub(super) async fn settle(shared: &Arc<Shared>, writer: Writer) -> Outcome {
    let deadline = timer::now() + SETTLE_WAIT;
    while shared.reach.wait_until_here(deadline).await {
        match within(ROW_TIMEOUT, last_change_of(shared, writer)).await {
            Ok(last) if last == writer.change => return Outcome::Committed,
            Ok(_) => return Outcome::Undone,
            Err(error) if failure::is_lost(&error) => shared.reach.mark_away(shared, &error),
            Err(error) => {
                tracing::error!(%error, "the last change of a connection cannot be read");
                return Outcome::Unknown;
            }
        }
    }
    Outcome::Unknown
}

/// The number of the last change that the writer has committed, once its transaction has ended; 0 if it
/// has committed none.
async fn last_change_of(shared: &Arc<Shared>, writer: Writer) -> sqlx::Result<i64> {
    let mut session = sessions::open(shared).await?;
    let query = sqlx::query(
        "INSERT INTO stoa_writers (writer, change) VALUES ($1, 0)
         ON CONFLICT (writer) DO UPDATE SET changed_at = clock_timestamp() RETURNING change",
    );
    let row = session.connection().fetch_one(query.bind(writer.id.to_string())).await?;
    shared.sessions.put(session);
    row.try_get(0)
}
