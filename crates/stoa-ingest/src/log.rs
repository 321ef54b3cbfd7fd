//! The commit log as this crate sees it: records at positions.
//!
//! A position is the sequence of a record's frame; bounds are exclusive, as `stoa-table` keeps them:
//! the first position that is not durable, not flushed, still needed.

use std::time::Duration;

use stoa_commitlog::{
    Appended, CommitLog, Durability, LogOptions, LogPosition, LogStatus, Recovery, Replay,
    storage_for_url,
};
use stoa_error::{Error, Result};
use stoa_table::Warehouse;
use tokio::runtime::Handle;
use url::Url;

pub(crate) struct LogWriter {
    log: CommitLog,
    /// As it stands in the tables' properties.
    id: String,
    /// The first record that can be replayed.
    first: Option<LogPosition>,
}

/// Opens the log at `location`: a directory, or a prefix of an object store, which is waited for for `store_wait`
/// where it does not answer.
///
/// # Errors
/// Those of [`CommitLog::open`] and of opening the store.
pub(crate) async fn open(
    warehouse: &Warehouse,
    location: &Url,
    store_wait: Duration,
) -> Result<(CommitLog, Recovery)> {
    let (location, stores, runtime) =
        (location.clone(), warehouse.stores().clone(), Handle::current());
    let env = warehouse.env();
    let storage = env.spawn_blocking(move || {
        storage_for_url(&location, &runtime, store_wait, |url| {
            let place = stores.open(url)?;
            Ok((place.store, place.path))
        })
    });
    let interrupted = |source| Error::internal("opening the commit log failed").with_source(source);
    let storage = storage.await.map_err(interrupted)??;
    let options = LogOptions::for_kind(storage.kind());
    CommitLog::open_in(env, storage, options).await
}

impl LogWriter {
    pub(crate) fn new(log: CommitLog, recovery: &Recovery) -> Self {
        Self { id: log.id().to_string(), log, first: recovery.first }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Puts a record at the end. The position is given out in the poll that completes this.
    ///
    /// # Errors
    /// `Exhausted` where the disk does not keep up, `Unavailable` where the log has stopped.
    pub(crate) async fn append(&self, record: &[u8], relaxed: bool) -> Result<(u64, Appended)> {
        let durability = if relaxed { Durability::Relaxed } else { Durability::Sync };
        let appended = self.log.append(&[record], durability).await?;
        Ok((appended.position().sequence, appended))
    }

    /// The first position that is not durable yet.
    pub(crate) fn durable_end(&self) -> u64 {
        self.log.durable().sequence + 1
    }

    /// Makes everything before `end` durable.
    ///
    /// # Errors
    /// `Unavailable` where the log has stopped.
    pub(crate) async fn sync(&self, end: u64) -> Result<()> {
        if end > self.durable_end() {
            self.log.sync().await?;
        }
        Ok(())
    }

    /// Lets go of everything before `needed`.
    ///
    /// # Errors
    /// As [`CommitLog::release`].
    pub(crate) async fn release(&self, needed: u64) -> Result<()> {
        let up_to = needed.saturating_sub(1);
        if up_to > 0 {
            self.log.release(self.log.id().at(up_to)).await?;
        }
        Ok(())
    }

    /// Whether there was a record at the opening.
    pub(crate) fn has_records(&self) -> bool {
        self.first.is_some()
    }

    /// All records there were at the opening; `None` for none. Blocks while it reads.
    ///
    /// # Errors
    /// As [`CommitLog::replay`].
    pub(crate) fn replay(&self) -> Result<Option<Replay>> {
        let before = |first: LogPosition| self.log.id().at(first.sequence.saturating_sub(1));
        self.first.map(|first| self.log.replay(before(first))).transpose()
    }

    pub(crate) fn stopped(&self) -> Option<String> {
        self.log.stopped()
    }

    /// As [`CommitLog::can_be_reopened`].
    pub(crate) async fn can_be_reopened(&self) {
        self.log.can_be_reopened().await;
    }

    pub(crate) fn status(&self) -> LogStatus {
        self.log.status()
    }

    /// # Errors
    /// As [`CommitLog::close`].
    pub(crate) async fn close(&self) -> Result<()> {
        self.log.close().await
    }
}
