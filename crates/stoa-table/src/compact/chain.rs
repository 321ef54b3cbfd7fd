//! Files one after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::Result;

use super::read::{FileReader, ReadLimits};
use super::work::Meter;
use crate::ScanFile;

/// Reads files in turn, one open at a time.
pub(super) struct FileChain {
    files: VecDeque<Arc<ScanFile>>,
    open: Option<FileReader>,
    limits: ReadLimits,
    /// Where the last batch came from.
    location: String,
    /// Rows left out of files that were read to their end.
    deleted_rows: u64,
}

impl FileChain {
    pub(super) fn new(files: &[Arc<ScanFile>], limits: ReadLimits) -> Self {
        let files = files.iter().cloned().collect();
        Self { files, open: None, limits, location: String::new(), deleted_rows: 0 }
    }

    /// The next rows, at least one; `None` after the last.
    pub(super) async fn next(&mut self, meter: &Meter<'_>) -> Result<Option<RecordBatch>> {
        loop {
            meter.go_on()?;
            let Some(open) = &mut self.open else {
                let Some(file) = self.files.pop_front() else { return Ok(None) };
                self.location.clone_from(&file.location);
                self.open = Some(FileReader::open(file, self.limits.clone(), meter).await?);
                continue;
            };
            match open.next(meter).await? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    meter.work.progress.add_rows_read(batch.num_rows() as u64);
                    return Ok(Some(batch));
                }
                None => {
                    meter.work.progress.add_files_read(1);
                    self.deleted_rows += open.deleted_rows();
                    self.open = None;
                }
            }
        }
    }

    /// Rows left out because they are deleted, of files that were read to their end.
    pub(super) fn deleted_rows(&self) -> u64 {
        self.deleted_rows
    }

    /// The file that the last batch came from.
    pub(super) fn location(&self) -> &str {
        &self.location
    }
}
