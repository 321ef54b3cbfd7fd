//! What is kept between reports: chunks, tails, bounds, and the files of tables' versions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_error::Result;
use stoa_table::Table;
use uuid::Uuid;

use crate::cache::{CacheStatus, ChunkCache};
use crate::disk::{DiskOptions, DiskTier};
use crate::fresh_index::FreshIndex;
use crate::identity::Numbers;
use crate::locks::Locks;
use crate::seen::SeenColumns;
use crate::view::{TableView, ViewFile};

/// Tables whose files are remembered.
const VIEWS_MAX: usize = 1024;

/// Bounds of [`Reports`].
#[derive(Clone, Copy, Debug)]
pub struct ReportOptions {
    /// Memory for chunks, bounds of row groups and tails of files, bytes.
    pub cache_bytes_max: u64,
    /// A report that must look at more rows than this is left to a scan on all cores.
    pub rows_max: u64,
    /// Groups, or rows of an answer; a report that has more is the planner's.
    pub answer_rows_max: usize,
    /// Memory of one report beside the cache, bytes; one that needs more is the planner's.
    pub bytes_max: usize,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            cache_bytes_max: 512 << 20,
            rows_max: 8 << 20,
            answer_rows_max: 32 << 10,
            bytes_max: 256 << 20,
        }
    }
}

/// Answers reports, and keeps what it takes to answer the next ones.
pub struct Reports {
    pub(crate) cache: ChunkCache,
    pub(crate) options: ReportOptions,
    pub(crate) views: Mutex<HashMap<Uuid, (String, Arc<TableView>)>>,
    pub(crate) numbers: Numbers,
    /// One per file that is being read, so that two reports do not read the same.
    pub(crate) reading: Locks,
    /// Batches of fresh rows of which something is kept.
    pub(crate) fresh: FreshIndex,
    /// Columns that have been scanned.
    pub(crate) seen: SeenColumns,
    /// What of remote files is kept beside memory.
    pub(crate) disk: Option<DiskTier>,
}

impl Reports {
    /// With an empty cache.
    pub fn new(options: ReportOptions) -> Self {
        Self {
            cache: ChunkCache::new(options.cache_bytes_max),
            options,
            views: Mutex::default(),
            numbers: Numbers::default(),
            reading: Locks::default(),
            fresh: FreshIndex::default(),
            seen: SeenColumns::default(),
            disk: None,
        }
    }

    /// The same, with chunks of remote files also on a local disk. The folder is opened in the
    /// background; where it cannot be, there is a warning in the log and
    /// [`CacheStatus::disk_is_writing`] is false. Dropping the reports waits for what is being
    /// written.
    #[must_use]
    pub fn with_disk(self, options: DiskOptions) -> Self {
        Self { disk: Some(DiskTier::open(options)), ..self }
    }

    /// How full the cache is and how well it does.
    pub fn cache_status(&self) -> CacheStatus {
        let status = self.cache.status();
        match &self.disk {
            Some(disk) => status.with_disk(disk.status()),
            None => status,
        }
    }

    /// Bytes of the memory for chunks: in use by reports, and in all. What scans keep there does not count, unlike in
    /// [`Self::cache_status`]: it makes room for reports.
    pub fn memory(&self) -> (u64, u64) {
        (self.cache.bytes(), self.cache.bytes_max())
    }

    /// Drops all that is kept, in memory and on disk.
    pub fn clear(&self) {
        self.cache.clear();
        self.seen.clear();
        if let Some(disk) = &self.disk {
            disk.clear();
        }
        self.views.lock().clear();
    }

    /// The files of a version, from memory if they were asked for before.
    pub(crate) async fn view(&self, table: &Table) -> Result<Arc<TableView>> {
        let location = table.metadata_location();
        if let Some((known, view)) = self.views.lock().get(&table.uuid())
            && known == location
        {
            return Ok(view.clone());
        }
        let view = Arc::new(TableView::of(table, |file| self.numbers.number(file)).await?);
        let before = {
            let mut views = self.views.lock();
            if views.len() >= VIEWS_MAX {
                views.clear();
            }
            views.insert(table.uuid(), (location.to_owned(), view.clone()))
        };
        if let Some((_, before)) = before {
            self.forget(&before, Some(&view));
        }
        Ok(view)
    }

    /// Drops all that is kept of a table.
    pub fn forget_table(&self, table: &Table) {
        let view = self.views.lock().remove(&table.uuid());
        if let Some((_, view)) = view {
            self.forget(&view, None);
        }
    }

    /// Drops what is kept of the files of `view` that `still` does not have.
    fn forget(&self, view: &TableView, still: Option<&TableView>) {
        let kept: HashSet<u32> =
            still.iter().flat_map(|view| &view.files).map(|file| file.number).collect();
        self.forget_files(view.files.iter().filter(|file| !kept.contains(&file.number)));
    }

    /// `view` without anything that is kept of files whose content has changed, so that they are
    /// read anew; `None` where there are none.
    pub(crate) fn renewed(&self, table: &Table, view: &TableView) -> Option<Arc<TableView>> {
        let changed = view.files.iter().filter(|file| file.pin.is_broken());
        changed.clone().next()?;
        self.forget_files(changed);
        let files = view.files.iter().map(|file| self.numbers.number(file.file.clone()));
        let renewed = Arc::new(TableView::of_files(table, files.collect()));
        let known = (table.metadata_location().to_owned(), renewed.clone());
        self.views.lock().insert(table.uuid(), known);
        Some(renewed)
    }

    /// Drops what is kept of a file whose content is another one now.
    pub(crate) fn forget_file(&self, file: &ViewFile) {
        self.forget_files(std::iter::once(file));
    }

    fn forget_files<'a>(&self, gone: impl Iterator<Item = &'a ViewFile> + Clone) {
        let numbers: HashSet<u32> = gone.clone().map(|file| file.number).collect();
        if numbers.is_empty() {
            return;
        }
        self.numbers.forget(gone);
        self.cache.forget(|file| numbers.contains(&file));
    }
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reports").field(&self.cache).finish()
    }
}
