//! Running a report: prune, look up, read what is missing, select, sum.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::Field;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use stoa_error::Result;
use stoa_ingest::FreshRows;
use stoa_orc::FIELD_ID_KEY;
use stoa_rangeio::{RangeReader, ReadMetrics};
use stoa_table::{ScanFile, Table};
use uuid::Uuid;

use crate::aggregate::Groups;
use crate::cache::{CacheStatus, ChunkCache};
use crate::chunk::Chunk;
use crate::files::{Chunks, FileTail, GroupPlace, projected, read_chunks, read_zones};
use crate::output::answer;
use crate::report::{Column, Report, kind_of};
use crate::select::select;
use crate::view::{TableView, ViewFile};
use crate::zones::Zones;

/// Files that are read from at the same time.
const FILES_AT_ONCE: usize = 16;

/// Tables whose files are remembered.
const VIEWS_MAX: usize = 1024;

/// Bounds of [`Reports`].
#[derive(Clone, Copy, Debug)]
pub struct ReportOptions {
    /// Memory for chunks, bounds of row groups and tails of files, bytes.
    pub cache_bytes_max: u64,
    /// A report that must look at more rows than this is left to a scan on all cores.
    pub rows_max: u64,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { cache_bytes_max: 512 << 20, rows_max: 512 << 10 }
    }
}

/// Answers reports, and keeps what it takes to answer the next ones.
pub struct Reports {
    cache: ChunkCache,
    options: ReportOptions,
    views: Mutex<HashMap<Uuid, (String, Arc<TableView>)>>,
    numbers: Mutex<Numbers>,
    /// One lock per file that is being read, so that two reports do not read the same.
    reading: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>,
    answered: AtomicU64,
}

/// Numbers of files, by location and length.
#[derive(Default)]
struct Numbers {
    by_file: HashMap<(String, u64), u32>,
    next: u32,
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
    /// Rows in these, and fresh rows.
    pub rows_read: u64,
    /// Rows that met all conditions.
    pub rows_selected: u64,
    /// Chunks that were in memory.
    pub chunk_hits: u64,
    /// Chunks that were not.
    pub chunk_misses: u64,
    /// Read requests.
    pub requests: u64,
    /// Bytes read.
    pub bytes_read: u64,
}

/// The tail of a file, and the bounds of some columns in its row groups.
type KnownFile = (Arc<FileTail>, Vec<Arc<Zones>>);

/// What [`Reports::warm`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmed {
    /// Chunks of the table that were read or were there.
    pub chunks: u64,
    /// Whether that is all of them; else there was no room for the others.
    pub complete: bool,
}

/// The row groups of one file that a report looks at.
struct FileWork<'a> {
    file: &'a ViewFile,
    tail: Arc<FileTail>,
    groups: Vec<u32>,
}

impl Reports {
    /// With an empty cache.
    pub fn new(options: ReportOptions) -> Self {
        Self {
            cache: ChunkCache::new(options.cache_bytes_max),
            options,
            views: Mutex::default(),
            numbers: Mutex::default(),
            reading: Mutex::default(),
            answered: AtomicU64::new(0),
        }
    }

    /// How full the cache is and how well it does.
    pub fn cache_status(&self) -> CacheStatus {
        self.cache.status()
    }

    /// Reports answered since the start.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Drops all that is kept.
    pub fn clear(&self) {
        self.cache.clear();
        self.views.lock().clear();
    }

    /// Answers `report` on one version of a table and the `fresh` rows that it lacks. `None` where
    /// too many rows must be looked at.
    ///
    /// # Errors
    /// Those of reading the table's files, as a scan has them.
    pub async fn run(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
    ) -> Result<Option<Answer>> {
        let view = self.view(table).await?;
        let metrics = Arc::new(ReadMetrics::default());
        let mut work = Work { files_total: view.files.len() as u64, ..Work::default() };
        let fresh_rows = fresh.rows();
        if fresh_rows > self.options.rows_max {
            return Ok(None);
        }
        let files = view.surviving(report);
        work.files_read = files.len() as u64;
        let Some(files) = self.plan(files, table, report, &metrics, &mut work).await? else {
            return Ok(None);
        };
        work.rows_read += fresh_rows;
        let mut groups = Groups::new(report);
        let mut selected = Vec::new();
        for file in &files {
            let sources = self.chunks(file, table, report, &metrics, &mut work).await?;
            for (place, chunks) in sources {
                select(&report.conditions, &chunks, place.rows as usize, &mut selected);
                work.rows_selected += selected.len() as u64;
                groups.add(chunks, &selected);
            }
        }
        for batch in fresh.batches() {
            let batch = batch?;
            let chunks = fresh_chunks(&batch, report);
            select(&report.conditions, &chunks, batch.num_rows(), &mut selected);
            work.rows_selected += selected.len() as u64;
            groups.add(chunks, &selected);
        }
        let counts = metrics.counts();
        (work.requests, work.bytes_read) = (counts.requests, counts.bytes_read);
        self.cache.count(work.chunk_hits, work.chunk_misses);
        self.answered.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Answer { batch: answer(report, &groups)?, work }))
    }

    /// Reads a table's columns into memory, file after file, until nine tenths of it are full.
    ///
    /// # Errors
    /// Those of reading the table's files.
    pub async fn warm(&self, table: &Table) -> Result<Warmed> {
        let view = self.view(table).await?;
        let schema = table.schema();
        let columns: Vec<Column> =
            schema.fields().iter().enumerate().filter_map(column_at).collect();
        let all: Vec<&Column> = columns.iter().collect();
        let metrics = Arc::new(ReadMetrics::default());
        let mut warmed = Warmed { chunks: 0, complete: true };
        for file in &view.files {
            let (tail, _) = self.read_zones(file, table, &all, &metrics).await?;
            for group in 0..tail.groups.len() as u32 {
                let status = self.cache.status();
                if status.bytes > status.bytes_max / 10 * 9 {
                    return Ok(Warmed { complete: false, ..warmed });
                }
                let is_here = |column: &&Column| {
                    self.cache.chunk(file.number, group, column.field_id).is_some()
                };
                if !all.iter().all(is_here) {
                    let reader = reader(&file.file, &metrics);
                    let groups = [group];
                    let read = read_chunks(&reader, &file.file, &tail, &groups, &all, &schema);
                    for ((group, field), chunk) in read.await? {
                        self.cache.put_chunk(file.number, group, field, chunk);
                    }
                }
                warmed.chunks += all.len() as u64;
            }
        }
        Ok(warmed)
    }

    /// The files of a version, from memory if they were asked for before.
    async fn view(&self, table: &Table) -> Result<Arc<TableView>> {
        let location = table.metadata_location();
        if let Some((known, view)) = self.views.lock().get(&table.uuid())
            && known == location
        {
            return Ok(view.clone());
        }
        let view = Arc::new(TableView::of(table, |file| self.number(file)).await?);
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
        let gone = view.files.iter().filter(|file| !kept.contains(&file.number));
        let gone: HashMap<u32, &ScanFile> =
            gone.map(|file| (file.number, file.file.as_ref())).collect();
        if gone.is_empty() {
            return;
        }
        let mut numbers = self.numbers.lock();
        for file in gone.values() {
            numbers.by_file.remove(&(file.location.clone(), file.file_bytes));
        }
        drop(numbers);
        self.cache.forget(|file| gone.contains_key(&file));
    }

    fn number(&self, file: &ScanFile) -> u32 {
        let mut numbers = self.numbers.lock();
        let next = numbers.next;
        let number =
            *numbers.by_file.entry((file.location.clone(), file.file_bytes)).or_insert(next);
        numbers.next = next.max(number + 1);
        number
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
            report.conditions.iter().filter_map(|c| report.columns.get(c.column)).collect();
        if judged.is_empty() {
            let rows: u64 = files.iter().map(|file| file.file.rows).sum();
            if rows > self.options.rows_max {
                return Ok(None);
            }
        }
        let mut missing = Vec::new();
        let mut known: Vec<Option<KnownFile>> = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let found = self.known_zones(file.number, &judged);
            if found.is_none() {
                missing.push((index, *file));
            }
            known.push(found);
        }
        if !missing.is_empty() {
            let reads: Vec<_> = missing
                .into_iter()
                .map(|(index, file)| {
                    let judged = &judged;
                    async move {
                        let read = self.read_zones(file, table, judged, metrics).await?;
                        Result::<_>::Ok((index, read))
                    }
                })
                .collect();
            let mut reads = futures::stream::iter(reads).buffer_unordered(FILES_AT_ONCE);
            while let Some((index, read)) = reads.try_next().await? {
                known[index] = Some(read);
            }
        }
        let mut planned = Vec::with_capacity(files.len());
        for (file, found) in files.into_iter().zip(known) {
            let Some((tail, zones)) = found else { continue };
            let may_match = |group: usize| {
                report.conditions.iter().zip(&zones).all(|(condition, zones)| {
                    zones.0.get(group).is_none_or(|zone| zone.may_match(&condition.test))
                })
            };
            let groups: Vec<u32> =
                (0..tail.groups.len()).filter(|g| may_match(*g)).map(|g| g as u32).collect();
            work.row_groups_total += tail.groups.len() as u64;
            work.row_groups_read += groups.len() as u64;
            let rows = groups.iter().filter_map(|g| tail.groups.get(*g as usize));
            work.rows_read += rows.map(|place| u64::from(place.rows)).sum::<u64>();
            if work.rows_read > self.options.rows_max {
                return Ok(None);
            }
            planned.push(FileWork { file, tail, groups });
        }
        Ok(Some(planned))
    }

    fn known_zones(&self, file: u32, columns: &[&Column]) -> Option<KnownFile> {
        let tail = self.cache.tail(file)?;
        let zones = columns.iter().map(|column| self.cache.zones(file, column.field_id));
        Some((tail, zones.collect::<Option<_>>()?))
    }

    async fn read_zones(
        &self,
        file: &ViewFile,
        table: &Table,
        columns: &[&Column],
        metrics: &Arc<ReadMetrics>,
    ) -> Result<KnownFile> {
        let lock = self.lock_of(file.number);
        let _reading = lock.lock().await;
        if let Some(known) = self.known_zones(file.number, columns) {
            return Ok(known);
        }
        let reader = reader(&file.file, metrics);
        let mut tail = match self.cache.tail(file.number) {
            Some(tail) => tail,
            None => Arc::new(FileTail::new(Arc::new(file.file.read_metadata(&reader).await?))),
        };
        let mut distinct: Vec<&Column> = columns.to_vec();
        distinct.sort_by_key(|column| column.field_id);
        distinct.dedup_by_key(|column| column.field_id);
        let schema = projected(&table.schema(), &distinct);
        let (zones, learnt) = read_zones(&reader, &file.file, &tail, &distinct, schema).await?;
        if let Some(learnt) = learnt {
            tail = Arc::new(learnt);
        }
        self.cache.put_tail(file.number, tail.clone());
        let zones: Vec<Arc<Zones>> = zones.into_iter().map(Arc::new).collect();
        for (column, zones) in distinct.iter().zip(&zones) {
            self.cache.put_zones(file.number, column.field_id, zones.clone());
        }
        let of = |column: &&Column| {
            let at = distinct.iter().position(|one| one.field_id == column.field_id);
            at.and_then(|at| zones.get(at)).cloned()
        };
        Ok((tail, columns.iter().filter_map(of).collect()))
    }

    /// The report's columns of the row groups of a file, in the file's order.
    async fn chunks(
        &self,
        work: &FileWork<'_>,
        table: &Table,
        report: &Report,
        metrics: &Arc<ReadMetrics>,
        counts: &mut Work,
    ) -> Result<Vec<(GroupPlace, Vec<Arc<Chunk>>)>> {
        let number = work.file.number;
        let known = |group: u32| -> Option<Vec<Arc<Chunk>>> {
            let chunk = |column: &Column| self.cache.chunk(number, group, column.field_id);
            report.columns.iter().map(chunk).collect()
        };
        let mut found: Vec<Option<Vec<Arc<Chunk>>>> =
            work.groups.iter().map(|group| known(*group)).collect();
        let width = report.columns.len() as u64;
        counts.chunk_hits += width * found.iter().flatten().count() as u64;
        if found.iter().any(Option::is_none) {
            let lock = self.lock_of(number);
            let _reading = lock.lock().await;
            let missing: Vec<u32> = work
                .groups
                .iter()
                .zip(&mut found)
                .filter_map(|(group, found)| {
                    // Somebody else may have read it meanwhile.
                    *found = found.take().or_else(|| known(*group));
                    found.is_none().then_some(*group)
                })
                .collect();
            counts.chunk_misses += width * missing.len() as u64;
            let mut read = self.read_chunks(work, &missing, table, report, metrics).await?;
            for (group, found) in work.groups.iter().zip(&mut found) {
                if found.is_none() {
                    let chunk = |column: &Column| read.remove(&(*group, column.field_id));
                    *found = report.columns.iter().map(chunk).collect();
                }
            }
        }
        let places = work.groups.iter().filter_map(|group| work.tail.groups.get(*group as usize));
        Ok(places.copied().zip(found.into_iter().map(Option::unwrap_or_default)).collect())
    }

    async fn read_chunks(
        &self,
        work: &FileWork<'_>,
        groups: &[u32],
        table: &Table,
        report: &Report,
        metrics: &Arc<ReadMetrics>,
    ) -> Result<Chunks> {
        if groups.is_empty() || report.columns.is_empty() {
            return Ok(Chunks::new());
        }
        let reader = reader(&work.file.file, metrics);
        let columns: Vec<&Column> = report.columns.iter().collect();
        let (file, schema) = (&work.file.file, table.schema());
        let chunks = read_chunks(&reader, file, &work.tail, groups, &columns, &schema).await?;
        for ((group, field), chunk) in &chunks {
            self.cache.put_chunk(work.file.number, *group, *field, chunk.clone());
        }
        Ok(chunks)
    }

    fn lock_of(&self, file: u32) -> Arc<tokio::sync::Mutex<()>> {
        let mut reading = self.reading.lock();
        // Locks that nobody holds are not needed any more.
        if reading.len() > 1024 {
            reading.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        reading.entry(file).or_default().clone()
    }
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reports").field(&self.cache).finish()
    }
}

fn reader(file: &ScanFile, metrics: &Arc<ReadMetrics>) -> RangeReader {
    file.reader.clone().with_metrics(metrics.clone())
}

/// A column that reports can use.
fn column_at((position, field): (usize, &Arc<Field>)) -> Option<Column> {
    kind_of(field.data_type())?;
    let field_id = field.metadata().get(FIELD_ID_KEY)?.parse().ok()?;
    Some(Column { position, field_id, data_type: field.data_type().clone() })
}

fn fresh_chunks(batch: &RecordBatch, report: &Report) -> Vec<Arc<Chunk>> {
    let chunk = |column: &Column| batch.columns().get(column.position).and_then(Chunk::of);
    report.columns.iter().filter_map(chunk).map(Arc::new).collect()
}
