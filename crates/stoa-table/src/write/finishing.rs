//! Files being finished in the background: the last stripe is encoded and the store makes the file
//! durable while the next file is filled.

use std::collections::VecDeque;

use stoa_env::task::spawn;
use stoa_error::{Error, Result};
use stoa_store::also_charged;
use tokio::task::JoinHandle;

use super::file::{OpenFile, WrittenFile};
use super::split::PartitionKey;

/// Files finished at a time. Their fsyncs share journal commits.
const FILES_MAX: usize = 8;

/// Files on their way to being finished, oldest first. Dropped, they are given up.
#[derive(Default)]
pub(super) struct Finishing {
    files: VecDeque<File>,
}

struct File {
    key: PartitionKey,
    bytes: usize,
    task: JoinHandle<Result<WrittenFile>>,
}

impl Finishing {
    /// Begins to finish `file`, which holds rows of partition `key`.
    pub(super) fn push(&mut self, key: PartitionKey, file: OpenFile) {
        let bytes = file.memory_bytes();
        self.files.push_back(File { key, bytes, task: spawn(also_charged(file.finish())) });
    }

    /// Bytes that the files hold in memory, at most.
    pub(super) fn memory_bytes(&self) -> usize {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Whether the oldest should be waited for before another is begun.
    pub(super) fn is_full(&self) -> bool {
        self.files.len() >= FILES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Waits for the oldest file; `None` if there is none.
    pub(super) async fn next(&mut self) -> Option<Result<(PartitionKey, WrittenFile)>> {
        // It stays in the queue while it is waited for, so that it is given up if the caller is.
        let file = self.files.front_mut()?;
        let outcome = (&mut file.task).await;
        let file = self.files.pop_front()?;
        Some(match outcome {
            Ok(written) => written.map(|written| (file.key, written)),
            Err(source) => {
                Err(Error::unavailable("writing a data file was interrupted").with_source(source))
            }
        })
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| file.task.abort());
    }
}
