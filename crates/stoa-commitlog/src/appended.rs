//! An append that has its place, and what has become of it.

use std::sync::Arc;

use stoa_error::{Error, Result};
use tokio::sync::watch;

use crate::LogPosition;
use crate::blocking::block_on;
use crate::poison::Poison;

/// When an append counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When a sync that covers it has returned. The default everywhere.
    Sync,
    /// When it has been handed to the storage: it survives the end of the process, not a power
    /// cut (on put-if-absent storage, neither). For tables with `stoa.log-sync = off`.
    Relaxed,
}

/// How far a group of frames has come.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    Queued,
    Written,
    Durable,
    /// The log stopped before the group was touched.
    NotWritten(Arc<Poison>),
    /// The log stopped on or after writing the group.
    Unknown(Arc<Poison>),
}

impl Progress {
    /// Whether nothing more can happen.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Queued | Self::Written)
    }

    /// Whether enough has happened for `durability`, or nothing more can.
    fn is_enough_for(&self, durability: Durability) -> bool {
        let written = matches!(self, Self::Written) && durability == Durability::Relaxed;
        written || self.is_final()
    }
}

/// An append in its place in the log.
///
/// The position is final, so that the caller can order what it applies to memory by it. Dropping
/// this changes nothing: the frame is written all the same.
#[derive(Debug)]
#[must_use = "an append counts only once it is acknowledged"]
pub struct Appended {
    pub(crate) position: LogPosition,
    pub(crate) durability: Durability,
    pub(crate) progress: watch::Receiver<Progress>,
}

impl Appended {
    /// Where the frame stands.
    pub fn position(&self) -> LogPosition {
        self.position
    }

    /// Waits until the append counts as done, by the [`Durability`] it was given.
    ///
    /// Can be dropped and asked again.
    ///
    /// # Errors
    /// `Unavailable` where the log has stopped; with SQLSTATE 08007 where it is known only when the
    /// log is opened again whether the frame is kept.
    pub async fn acknowledged(&mut self) -> Result<LogPosition> {
        self.reached(self.durability).await
    }

    /// Waits until a sync that covers the frame has returned, also for a relaxed append. For that
    /// one nothing causes a sync; see [`crate::CommitLog::sync`].
    ///
    /// # Errors
    /// As [`Self::acknowledged`].
    pub async fn durable(&mut self) -> Result<LogPosition> {
        self.reached(Durability::Sync).await
    }

    /// [`Self::acknowledged`] for threads that may block.
    ///
    /// # Errors
    /// As [`Self::acknowledged`].
    pub fn wait(mut self) -> Result<LogPosition> {
        block_on(self.acknowledged(), None)
            .unwrap_or_else(|| Err(Error::internal("waiting without a deadline ended")))
    }

    async fn reached(&mut self, durability: Durability) -> Result<LogPosition> {
        let position = self.position;
        match self.progress.wait_for(|progress| progress.is_enough_for(durability)).await {
            Ok(progress) => match &*progress {
                Progress::NotWritten(poison) => Err(poison.refusal()),
                Progress::Unknown(poison) => Err(poison.unknown_outcome()),
                _ => Ok(position),
            },
            Err(_) => Err(Error::internal(format!("the fate of log position {position} is lost"))),
        }
    }
}
