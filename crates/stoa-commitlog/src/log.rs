//! The log as its users see it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use stoa_env::Env;
use stoa_env::task::spawn_thread;
use stoa_error::{Error, Result};
use tokio::sync::watch;

use crate::appended::{Appended, Durability};
use crate::blocking::block_on;
use crate::core::Core;
use crate::options::LogOptions;
use crate::queue::Queue;
use crate::recover::{self, Recovery};
use crate::replay::Replay;
use crate::status::LogStatus;
use crate::storage::{LogStorage, StorageKind};
use crate::writer::Writer;
use crate::{LogId, LogPosition};

/// How often a storage that failed is asked whether it answers.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A commit log that is open for appends.
///
/// Share it in an `Arc`. Dropped without [`CommitLog::close`], it still writes and syncs what is
/// queued, in its own thread, but nobody learns whether that went well.
#[derive(Debug)]
pub struct CommitLog {
    core: Arc<Core>,
}

impl CommitLog {
    /// Opens the log in `storage`, or makes one: recovers what is there, takes it over from any
    /// other writer, and starts the thread that writes.
    ///
    /// # Errors
    /// `Corrupt` where the log is damaged anywhere but in a torn tail, naming segment and offset;
    /// `Unavailable` (55006) where another process has it open; `Invalid` for options that cannot
    /// work; the storage's.
    pub async fn open(
        storage: Arc<dyn LogStorage>,
        options: LogOptions,
    ) -> Result<(Self, Recovery)> {
        Self::open_in(&Env::real(), storage, options).await
    }

    /// [`Self::open`] in the world `env`, whose clock and randomness the log uses from then on.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_in(
        env: &Env,
        storage: Arc<dyn LogStorage>,
        options: LogOptions,
    ) -> Result<(Self, Recovery)> {
        let world = env.clone();
        let open = move || Self::open_and_write(world, storage, options);
        env.spawn_blocking(open).await.map_err(interrupted)?
    }

    /// [`Self::open`] for threads that may block.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_blocking(
        storage: Arc<dyn LogStorage>,
        options: LogOptions,
    ) -> Result<(Self, Recovery)> {
        Self::open_and_write(Env::real(), storage, options)
    }

    fn open_and_write(
        env: Env,
        storage: Arc<dyn LogStorage>,
        options: LogOptions,
    ) -> Result<(Self, Recovery)> {
        let (log, recovery, writer) = Self::open_with_writer(env, storage, options)?;
        spawn_thread("stoa-log", || writer.run()).map_err(|source| {
            Error::unavailable("cannot start the commit log's thread").with_source(source)
        })?;
        Ok((log, recovery))
    }

    /// Opens the log and leaves it to the caller to run the writer.
    pub(crate) fn open_with_writer(
        env: Env,
        storage: Arc<dyn LogStorage>,
        options: LogOptions,
    ) -> Result<(Self, Recovery, Writer)> {
        options.check()?;
        let lock = storage.lock()?;
        let opened = recover::open(&storage, &env)?;
        let (header, place) = (opened.header, storage.place());
        let core = Arc::new(Core {
            log: header.log,
            epoch: header.epoch,
            place: place.clone(),
            storage,
            queue: Queue::new(header.log, place, header.frame_magic, header.after, options, env),
            segments: Mutex::new(opened.segments),
            written: AtomicU64::new(header.after),
            durable: AtomicU64::new(header.after),
            released: AtomicU64::new(0),
            stopped: watch::Sender::new(false),
        });
        let writer = Writer::new(core.clone(), header, opened.writer, lock);
        Ok((Self { core }, opened.recovery, writer))
    }

    /// The log's id.
    pub fn id(&self) -> LogId {
        self.core.log
    }

    /// Puts a payload, given in parts, at the end of the log. Returns as soon as it has its
    /// position; wait on the result before telling anybody that it is kept.
    ///
    /// Waits where too many bytes are in flight. Dropped while it waits, nothing is appended.
    /// Needs a tokio runtime with a timer.
    ///
    /// # Errors
    /// `Invalid` (54000) for a payload over the limit; `Exhausted` (retryable) where there was no
    /// room for `append_wait_max`; `Unavailable` where the log has stopped or is closed.
    pub async fn append(&self, payload: &[&[u8]], durability: Durability) -> Result<Appended> {
        self.core.queue.append(payload, durability).await
    }

    /// [`Self::append`] for threads that may block.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_blocking(&self, payload: &[&[u8]], durability: Durability) -> Result<Appended> {
        self.core.queue.append_blocking(payload, durability)
    }

    /// Makes everything appended so far durable, relaxed appends included, and returns up to where.
    ///
    /// To be called before rows of relaxed appends are published with a position of this log:
    /// after a power cut the log must not end before a position that others have seen.
    ///
    /// # Errors
    /// `Unavailable` where the log has stopped or is closed.
    pub async fn sync(&self) -> Result<LogPosition> {
        self.core.queue.sync()?.durable().await
    }

    /// [`Self::sync`] for threads that may block.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn sync_blocking(&self) -> Result<LogPosition> {
        self.core.queue.sync()?.wait()
    }

    /// Up to where the log is durable.
    pub fn durable(&self) -> LogPosition {
        self.core.durable()
    }

    /// The frames behind `after`, up to what is durable now. Blocks while it reads.
    ///
    /// # Errors
    /// `Invalid` for a position of another log; `NotFound` where frames behind it were released;
    /// `Corrupt` where the log ends before it.
    pub fn replay(&self, after: LogPosition) -> Result<Replay> {
        Replay::new(&self.core, after)
    }

    /// Gives up all frames up to and including `up_to`: segments that hold nothing else are
    /// removed, save the newest. Returns how many were. To be called when the frames' contents are
    /// durable elsewhere.
    ///
    /// # Errors
    /// `Invalid` for a position of another log or one that is not durable; `Unavailable` where the
    /// log has stopped; the storage's, after which it can be called again.
    pub async fn release(&self, up_to: LogPosition) -> Result<usize> {
        let core = self.core.clone();
        let env = &self.core.queue.env;
        env.spawn_blocking(move || core.release(up_to)).await.map_err(interrupted)?
    }

    /// [`Self::release`] for threads that may block.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn release_blocking(&self, up_to: LogPosition) -> Result<usize> {
        self.core.release(up_to)
    }

    /// Why the log takes no more appends, if it has stopped.
    pub fn stopped(&self) -> Option<String> {
        self.core.queue.poison().map(|poison| poison.cause().to_owned())
    }

    /// Waits until the log has stopped because of an error, and then until its storage answers again: whoever opens it
    /// then can write. Never returns while the log is well, after it was closed in order, or on a disk, where somebody
    /// must find out first what is wrong with it.
    pub async fn can_be_reopened(&self) {
        let mut stopped = self.core.stopped.subscribe();
        // The sender lives in `core`.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        let is_disk = self.core.storage.kind() == StorageKind::Appendable;
        if is_disk || self.core.queue.poison().is_none() {
            return std::future::pending().await;
        }
        let env = &self.core.queue.env;
        loop {
            let storage = self.core.storage.clone();
            if let Ok(Ok(_)) = env.spawn_blocking(move || storage.segments()).await {
                return;
            }
            env.sleep(LOOK_AGAIN).await;
        }
    }

    /// The log in numbers.
    pub fn status(&self) -> LogStatus {
        self.core.status()
    }

    /// Ends the log in order: takes no more appends, writes and syncs those it has, notes in the
    /// log that it ended so, and lets go of the storage.
    ///
    /// Dropped before it is done, the log ends all the same.
    ///
    /// # Errors
    /// `Unavailable` where the log had stopped, or stops now, because of an error.
    pub async fn close(&self) -> Result<()> {
        self.core.queue.close();
        let mut stopped = self.core.stopped.subscribe();
        // The sender lives in `core`, so this cannot end early.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        match self.core.queue.poison() {
            Some(poison) => Err(poison.refusal()),
            None => Ok(()),
        }
    }

    /// [`Self::close`] for threads that may block.
    ///
    /// # Errors
    /// As [`Self::close`].
    pub fn close_blocking(&self) -> Result<()> {
        block_on(self.close(), None).unwrap_or(Ok(()))
    }
}

impl Drop for CommitLog {
    fn drop(&mut self) {
        self.core.queue.close();
    }
}

fn interrupted(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal("work on the commit log was interrupted").with_source(source)
}
