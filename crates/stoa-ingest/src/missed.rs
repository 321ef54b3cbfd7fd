//! Noticing at the start that a commit log, or its end, is gone.
//!
//! In: the logs that the catalog knows, the positions that tables carry, and the log that was just
//! opened. Out: an ERROR in the server's log for each thing that is missing, and the count of them in
//! the [`crate::RecoveryReport`]. The start goes on: what is lost does not come back by waiting, and
//! a backup is restored without its log on purpose.
//!
//! What cannot be noticed: the cut end of a log that was not closed, as long as no table has passed
//! it; that looks as if the machine had crashed before those rows were durable.

use std::path::Path;

use stoa_catalog::KnownLog;
use stoa_commitlog::Recovery;
use stoa_error::Result;
use stoa_table::Table;

use crate::inner::Inner;
use crate::locate::AllTables;

/// What the catalog knew of logs before this one was opened.
pub(crate) struct KnownLogs {
    /// The one that was opened.
    own: Option<KnownLog>,
    /// Logs that are gone.
    gone: u64,
}

impl Inner {
    /// Looks for logs that the catalog knows and that are gone, and notes the one that was opened.
    ///
    /// # Errors
    /// Those of the catalog: no row may go into a log that nobody would miss.
    pub(crate) async fn note_opened(&self) -> Result<KnownLogs> {
        let catalog = self.warehouse.catalog();
        let (id, place) = (self.log.id(), self.log.status().place);
        let mut known = KnownLogs { own: None, gone: 0 };
        for log in catalog.known_logs().await? {
            if log.id == id {
                known.own = Some(log);
            } else if log.place == place || is_gone(&log.place) {
                say_gone(&log);
                known.gone += 1;
                catalog.forget_log(&log.id).await?;
            }
        }
        let now = KnownLog { id: id.to_owned(), place, closed_at: None };
        if known.own.as_ref() != Some(&now) {
            catalog.note_log(&now).await?;
        }
        Ok(known)
    }

    /// Notes that all rows of the log are in files.
    pub(crate) async fn note_closed(&self) -> Result<()> {
        let (id, place) = (self.log.id().to_owned(), self.log.status().place);
        let closed_at = Some(self.log.durable_end());
        self.warehouse.catalog().note_log(&KnownLog { id, place, closed_at }).await
    }

    /// Says which tables are at positions that the log does not reach.
    pub(crate) fn count_ahead(&self, all: &AllTables) -> u64 {
        let end = self.log.durable_end();
        let is_ahead = |table: &&Table| self.position(table).is_ok_and(|at| at > end);
        let ahead = all.tables.values().filter(is_ahead);
        ahead
            .map(|table| {
                tracing::error!(
                    table = %table.ident(), log = self.log.id(), end,
                    "the end of the commit log is missing: the table has rows from behind it, and \
                     takes no small writes until the log's newest segments are restored"
                );
            })
            .count() as u64
    }
}

impl KnownLogs {
    /// Logs that are gone.
    pub(crate) fn gone(&self) -> u64 {
        self.gone
    }

    /// Whether the log that was opened goes as far as it went when it was closed with all of its rows
    /// in files: then no table can be ahead of it.
    pub(crate) fn is_whole(&self, recovery: &Recovery) -> bool {
        recovery.created || self.closed_at().is_some_and(|end| recovery.last.sequence + 1 >= end)
    }

    fn closed_at(&self) -> Option<u64> {
        self.own.as_ref()?.closed_at
    }
}

/// Of logs elsewhere than on this disk nothing is known.
fn is_gone(place: &str) -> bool {
    let path = Path::new(place);
    path.is_absolute() && matches!(path.try_exists(), Ok(false))
}

fn say_gone(log: &KnownLog) {
    let (id, place) = (&log.id, &log.place);
    match log.closed_at {
        Some(_) => tracing::warn!(
            log = id,
            place,
            "a commit log is gone; it had been closed with all of its rows in files: nothing is lost"
        ),
        None => tracing::error!(
            log = id,
            place,
            "a commit log is gone: rows that clients were told are kept and that were in no file yet \
             are lost, unless it is restored"
        ),
    }
}
