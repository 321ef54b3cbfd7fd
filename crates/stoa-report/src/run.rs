//! Running a report: prune, look up, read what is missing, select, sum.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use parking_lot::Mutex;
use stoa_error::Result;
use stoa_ingest::FreshRows;
use stoa_rangeio::ReadMetrics;
use stoa_table::Table;
use uuid::Uuid;

use crate::aggregate::Groups;
use crate::cache::{CacheStatus, ChunkCache};
use crate::disk::{DiskOptions, DiskTier};
use crate::fresh::FreshIndex;
use crate::identity::Numbers;
use crate::memory::{Memory, Taken, Uncounted};
use crate::missing::{FileWork, Locks};
use crate::output::answer;
use crate::portion::next_portion;
use crate::report::{Column, Report};
use crate::rows::Selection;
use crate::select::select;
use crate::view::{TableView, ViewFile};
use crate::zones::Zones;

/// Tables whose files are remembered.
const VIEWS_MAX: usize = 1024;

/// Rows that are looked at before others have their turn: a millisecond's work.
const ROWS_AT_ONCE: usize = 1 << 20;

/// Rows that could be looked at in the time that one takes which is selected: it is put into its group, or
/// compared with others.
const SELECTED_COST: usize = 16;

/// Rows of a row group that are looked at without a pause; files with larger ones are the planner's.
const GROUP_ROWS_MAX: u32 = 1 << 18;

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
    /// What of remote files is kept beside memory.
    pub(crate) disk: Option<DiskTier>,
}

/// The answer to a report.
#[derive(Clone, Debug)]
pub struct Answer {
    /// All rows, in order.
    pub batch: RecordBatch,
    /// What it took.
    pub work: Work,
}

/// What a report took, and what it was spared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Data files of the version.
    pub files_total: u64,
    /// Those that may hold rows of the report.
    pub files_read: u64,
    /// Row groups in these files.
    pub row_groups_total: u64,
    /// Those that may hold rows of the report.
    pub row_groups_read: u64,
    /// Rows in these, and fresh rows of blocks that may hold rows of the report.
    pub rows_read: u64,
    /// Rows that met all conditions.
    pub rows_selected: u64,
    /// Chunks that were in memory.
    pub chunk_hits: u64,
    /// Chunks that were not.
    pub chunk_misses: u64,
    /// Those of them that were on disk.
    pub disk_hits: u64,
    /// Read requests.
    pub requests: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Requests among them that were sent a second time because the first was slow.
    pub hedges: u64,
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

    /// Drops all that is kept, in memory and on disk.
    pub fn clear(&self) {
        self.cache.clear();
        if let Some(disk) = &self.disk {
            disk.clear();
        }
        self.views.lock().clear();
    }

    /// Answers `report` on one version of a table and the `fresh` rows that it lacks. `None` where it
    /// is beyond a bound of [`ReportOptions`], or must read files that are not ORC or have deleted
    /// rows.
    ///
    /// # Errors
    /// Those of reading the table's files, as a scan has them; `Conflict` where a file is
    /// overwritten again and again.
    pub async fn run(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
    ) -> Result<Option<Answer>> {
        self.run_within(table, fresh, report, &Uncounted).await
    }

    /// The same, with memory from `memory`; `None` also where that has too little. What it took stays taken:
    /// it is that of the answer.
    ///
    /// # Errors
    /// As [`Reports::run`].
    pub async fn run_within(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        memory: &dyn Memory,
    ) -> Result<Option<Answer>> {
        report.check()?;
        if report.rows_kept().is_some_and(|rows| rows > self.options.answer_rows_max) {
            return Ok(None);
        }
        let view = self.view(table).await?;
        let answer = self.run_on(&view, table, fresh, report, memory).await;
        match answer.is_err().then(|| self.renewed(table, &view)).flatten() {
            Some(view) => self.run_on(&view, table, fresh, report, memory).await,
            None => answer,
        }
    }

    async fn run_on(
        &self,
        view: &TableView,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        memory: &dyn Memory,
    ) -> Result<Option<Answer>> {
        let metrics = Arc::new(ReadMetrics::default());
        let mut work = Work { files_total: view.files.len() as u64, ..Work::default() };
        let Some(pieces) = self.plan_fresh(fresh, report, &mut work).await? else {
            return Ok(None);
        };
        let files = view.surviving(report);
        if !files.iter().all(|file| file.file.is_plain()) {
            return Ok(None);
        }
        work.files_read = files.len() as u64;
        let Some(mut files) = self.plan(files, table, report, &metrics, &mut work).await? else {
            return Ok(None);
        };
        let mut taken = Taken::new(memory, self.options.bytes_max);
        let mut groups = Groups::new(report, self.options.answer_rows_max);
        let mut selection = Selection::default();
        let mut turn = Turn::default();
        while !groups.is_complete()
            && let Some(portion) = next_portion(&mut files, report)
        {
            let before = groups.memory_bytes();
            let sources = self
                .chunks(&portion, table, report, &metrics, &mut work, &mut taken, before)
                .await?;
            let Some((sources, on_their_way)) = sources else { return Ok(None) };
            for (place, chunks) in sources {
                let rows = place.rows as usize;
                turn.pass(rows).await;
                select(&report.conditions, &chunks, rows, &mut selection);
                let selected = selection.rows();
                work.rows_selected += selected.len() as u64;
                turn.add(selected.len());
                if !groups.add(chunks, &selected)
                    || !taken.resize(groups.memory_bytes() + on_their_way)
                {
                    return Ok(None);
                }
            }
        }
        for piece in &pieces {
            if groups.is_complete() {
                break;
            }
            turn.pass(piece.rows.len()).await;
            let chunks = self.fresh_chunks(fresh, piece, report)?;
            select(&report.conditions, &chunks, piece.rows.len(), &mut selection);
            let selected = selection.rows();
            work.rows_selected += selected.len() as u64;
            turn.add(selected.len());
            if !groups.add(chunks, &selected) || !taken.resize(groups.memory_bytes()) {
                return Ok(None);
            }
        }
        let counts = metrics.counts();
        (work.requests, work.bytes_read) = (counts.requests, counts.bytes_read);
        work.hedges = counts.hedges;
        self.cache.count(work.chunk_hits, work.chunk_misses);
        let Some(batch) = answer(report, &groups, &mut taken).await? else { return Ok(None) };
        drop(groups);
        // Less than before: there is that much.
        taken.resize(batch.get_array_memory_size());
        Ok(Some(Answer { batch, work }))
    }

    /// Chooses row groups; `None` where they have too many rows.
    async fn plan<'a>(
        &self,
        files: Vec<&'a ViewFile>,
        table: &Table,
        report: &Report,
        metrics: &Arc<ReadMetrics>,
        work: &mut Work,
    ) -> Result<Option<Vec<FileWork<'a>>>> {
        let judged: Vec<&Column> =
            report.conditions.iter().map(|condition| &report.columns[condition.column]).collect();
        if judged.is_empty() {
            let rows: u64 = files.iter().map(|file| file.file.rows).sum();
            if rows > self.options.rows_max {
                return Ok(None);
            }
        }
        let known = self.zones(&files, table, &judged, metrics).await?;
        let mut planned = Vec::with_capacity(files.len());
        for (file, (tail, zones)) in files.into_iter().zip(known) {
            let groups = groups_that_may_match(report, &zones, tail.groups.len());
            work.row_groups_total += tail.groups.len() as u64;
            work.row_groups_read += groups.len() as u64;
            let rows_of = |group: &u32| tail.groups[*group as usize].rows;
            if groups.iter().any(|group| rows_of(group) > GROUP_ROWS_MAX) {
                return Ok(None);
            }
            // All of them are in the tail: they were counted by it.
            let rows = groups.iter().map(|group| u64::from(rows_of(group)));
            work.rows_read += rows.sum::<u64>();
            if work.rows_read > self.options.rows_max {
                return Ok(None);
            }
            planned.push(FileWork { file, tail, groups });
        }
        Ok(Some(planned))
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

    fn forget_files<'a>(&self, gone: impl Iterator<Item = &'a ViewFile> + Clone) {
        let numbers: HashSet<u32> = gone.clone().map(|file| file.number).collect();
        if numbers.is_empty() {
            return;
        }
        self.numbers.forget(gone);
        self.cache.forget(|file| numbers.contains(&file));
    }
}

/// How much was done since others on this thread had their turn.
#[derive(Default)]
struct Turn {
    rows: usize,
}

impl Turn {
    /// Before `rows` more are looked at: others have their turn if this one has lasted.
    async fn pass(&mut self, rows: usize) {
        if self.rows + rows > ROWS_AT_ONCE {
            tokio::task::yield_now().await;
            self.rows = 0;
        }
        self.rows += rows;
    }

    /// Counts rows that were selected.
    fn add(&mut self, selected: usize) {
        self.rows += selected * SELECTED_COST;
    }
}

/// Row groups of a file of `count`; `zones` are those of the conditions' columns.
fn groups_that_may_match(report: &Report, zones: &[Arc<Zones>], count: usize) -> Vec<u32> {
    let judged = || report.conditions.iter().map(|condition| &condition.test).zip(zones);
    let range = judged().fold(0..count, |range, (test, zones)| {
        let of_test = zones.range(test);
        range.start.max(of_test.start)..range.end.min(of_test.end)
    });
    let may_match = |group: &usize| judged().all(|(test, zones)| zones.may_match(*group, test));
    range.filter(may_match).map(|group| group as u32).collect()
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reports").field(&self.cache).finish()
    }
}
