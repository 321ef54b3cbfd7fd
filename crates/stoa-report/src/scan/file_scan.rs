//! The scan of one file, or a part of it.
//!
//! In: the file's row groups and their bounds, columns, a filter. Out: batches, one row group after the other. Chunks
//! come from the cache or are read, and kept there if the scan says so, those of judged columns first.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::{Error, Place, Result};
use stoa_rangeio::ReadMetrics;
use stoa_table::ScanFile;

use super::columns::BatchColumns;
use super::filter::Masks;
use super::judge::Judged;
use super::{ChunkScan, ScanFilter};
use crate::cache::Key;
use crate::chunk::Chunk;
use crate::files::{FileTail, GroupPlace, read_chunks};
use crate::report::Column;
use crate::reports::Reports;
use crate::rows::{ChunkRows, Selection};
use crate::run::GROUP_ROWS_MAX;
use crate::view::ViewFile;
use crate::work::ReportWork;
use crate::zones::Zones;

/// Rows of the row groups that are looked up, and read, together.
const ROWS_AT_ONCE: usize = 256 << 10;

/// The same where they are not kept: no more than are looked at before others are read.
const ROWS_AT_ONCE_PASSING: usize = 64 << 10;

/// A scan of a file: batch by batch.
pub struct FileScan {
    reports: Arc<Reports>,
    scan: Arc<ChunkScan>,
    file: ViewFile,
    tail: Arc<FileTail>,
    metrics: Arc<ReadMetrics>,
    /// Row groups that may match and were not looked at yet, counted through the file.
    groups: VecDeque<u32>,
    /// Those of which rows are left to be given.
    ready: VecDeque<ReadyGroup>,
    batch: BatchColumns,
    masks: Masks,
    /// Columns of the filter and of the judges, by index, ascending.
    judged: Vec<usize>,
    /// Bounds of those, in the same order.
    zones: Vec<Arc<Zones>>,
    judges: Vec<Judged>,
    work: ReportWork,
}

/// A row group with rows that are kept.
pub(crate) struct ReadyGroup {
    group: u32,
    /// Those of the batches' columns, in their order.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// A list, or all of `rows`.
    pub(crate) list: Option<Vec<u32>>,
    /// How many.
    pub(crate) rows: usize,
    /// How many of them were given.
    given: usize,
}

/// The rows of a row group that are kept, and its columns that were judged.
struct KeptRows {
    group: u32,
    judged: Vec<Arc<Chunk>>,
    list: Option<Vec<u32>>,
    rows: usize,
}

impl FileScan {
    pub(super) async fn open(
        reports: Arc<Reports>,
        scan: Arc<ChunkScan>,
        file: &Arc<ScanFile>,
        (part, parts): (usize, usize),
        metrics: &Arc<ReadMetrics>,
    ) -> Result<Option<Self>> {
        let file = reports.numbers.number(Arc::clone(file));
        let mut judged = scan.filter.columns();
        judged.extend(scan.judges.iter().flat_map(|judge| judge.columns()));
        judged.sort_unstable();
        judged.dedup();
        let columns: Vec<&Column> =
            judged.iter().filter_map(|column| scan.columns.get(*column)).collect();
        let zones = match reports.known_zones(file.number, &columns) {
            Some(known) => Ok(known),
            None => reports.read_zones(&file, &scan.table, &columns, metrics).await,
        };
        let (tail, zones) = zones.map_err(|error| reports.noting_change(error, &file))?;
        if tail.groups.iter().any(|group| group.rows > GROUP_ROWS_MAX) {
            return Ok(None);
        }
        let stripes = tail.metadata.stripes.len();
        let stripes = stripes * part / parts.max(1)..stripes * (part + 1) / parts.max(1);
        let of_part = tail.groups.iter().enumerate();
        let of_part: Vec<usize> = of_part
            .filter(|(_, place)| stripes.contains(&(place.stripe as usize)))
            .map(|(group, _)| group)
            .collect();
        let may_match = |group: &usize| {
            scan.filter.may_match(&|column| {
                let at = judged.binary_search(&column).ok()?;
                zones.get(at)?.of_group(*group)
            })
        };
        let groups: VecDeque<u32> =
            of_part.iter().copied().filter(may_match).map(|group| group as u32).collect();
        let work = ReportWork {
            row_groups_total: (of_part.len() - groups.len()) as u64,
            ..ReportWork::default()
        };
        let batch = BatchColumns::new(Arc::clone(&scan.schema), scan.batch_rows)?;
        let judges = scan.judges.iter().map(|judge| Judged::new(Arc::clone(judge))).collect();
        Ok(Some(Self {
            reports,
            scan,
            file,
            tail,
            metrics: Arc::clone(metrics),
            groups,
            ready: VecDeque::new(),
            batch,
            masks: Masks::default(),
            judged,
            zones,
            judges,
            work,
        }))
    }

    /// What was looked at since the last call.
    pub fn take_work(&mut self) -> ReportWork {
        std::mem::take(&mut self.work)
    }

    /// The next rows; `None` after the last. Others on this thread have their turn on the way.
    ///
    /// # Errors
    /// Those of reading the file, as a scan of it has them.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            while let Some(ready) = self.ready.front() {
                if self.batch.is_full() {
                    return self.batch.take().map(Some);
                }
                // More may be known than when its rows were found.
                let is_new = ready.given == 0 && !self.judges.is_empty();
                if is_new && !self.may_match(&self.filter_now(), ready.group) {
                    self.ready.pop_front();
                    continue;
                }
                let Some(ready) = self.ready.front_mut() else { break };
                let rows = match &ready.list {
                    Some(list) => ChunkRows::List(&list[ready.given..]),
                    None => ChunkRows::Range(ready.given..ready.rows),
                };
                ready.given += self.batch.add(&ready.chunks, &rows)?;
                if ready.given >= ready.rows {
                    self.ready.pop_front();
                }
            }
            if self.groups.is_empty() {
                let is_empty = self.batch.rows() == 0;
                return if is_empty { Ok(None) } else { self.batch.take().map(Some) };
            }
            self.look_at_more().await?;
            tokio::task::yield_now().await;
        }
    }

    /// The rows that are kept of the next row group that has any; `None` after the last. To be called instead of
    /// [`Self::next`]. Others on this thread have their turn on the way.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(crate) async fn next_rows(&mut self) -> Result<Option<ReadyGroup>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                // More may be known than when its rows were found.
                if self.judges.is_empty() || self.may_match(&self.filter_now(), ready.group) {
                    return Ok(Some(ready));
                }
                continue;
            }
            if self.groups.is_empty() {
                return Ok(None);
            }
            tokio::task::yield_now().await;
            self.look_at_more().await?;
        }
    }

    /// Finds the rows that are kept of the next row groups: first the columns that are judged, then the others of
    /// the row groups that have such rows.
    async fn look_at_more(&mut self) -> Result<()> {
        let scan = Arc::clone(&self.scan);
        let filter = self.filter_now();
        let rows_at_once = if scan.keeps { ROWS_AT_ONCE } else { ROWS_AT_ONCE_PASSING };
        let mut groups = Vec::new();
        let mut rows = 0;
        while let Some(group) = self.groups.front().copied()
            && rows < rows_at_once
        {
            self.groups.pop_front();
            self.work.row_groups_total += 1;
            if self.may_match(&filter, group) {
                rows += self.place(group)?.rows as usize;
                groups.push(group);
            }
        }
        self.work.row_groups_read += groups.len() as u64;
        self.work.rows_read += rows as u64;
        // Columns that are judged only by what is not known yet are not worth more than the others.
        let judged: Vec<usize> = match self.judges.iter().any(Judged::is_worth_it) {
            true => self.judged.clone(),
            false => filter.columns(),
        };
        let found = self.chunks(&groups, &judged).await?;
        let mut kept = Vec::with_capacity(groups.len());
        let mut selection = Selection::default();
        for (group, chunks) in groups.into_iter().zip(found) {
            let rows = self.place(group)?.rows as usize;
            let chunk = |column: usize| chunks.get(judged.binary_search(&column).ok()?);
            filter.select(&chunk, rows, &mut self.masks, &mut selection);
            for judge in 0..self.judges.len() {
                self.ask(judge, &chunk, &mut selection)?;
            }
            let list = selection.is_list.then(|| std::mem::take(&mut selection.list));
            let rows = list.as_ref().map_or(rows, Vec::len);
            if rows > 0 {
                kept.push(KeptRows { group, judged: chunks, list, rows });
            }
        }
        let wanted = 0..scan.schema.fields().len();
        let others: Vec<usize> =
            wanted.clone().filter(|column| judged.binary_search(column).is_err()).collect();
        let groups: Vec<u32> = kept.iter().map(|kept| kept.group).collect();
        let found = self.chunks(&groups, &others).await?;
        for (KeptRows { group, judged: known, list, rows }, found) in kept.into_iter().zip(found) {
            let chunk = |column: usize| match judged.binary_search(&column) {
                Ok(at) => known.get(at).cloned(),
                Err(_) => found.get(others.binary_search(&column).ok()?).cloned(),
            };
            let chunks: Option<Vec<_>> = wanted.clone().map(chunk).collect();
            let chunks = chunks.ok_or_else(|| self.lost("columns"))?;
            self.work.rows_selected += rows as u64;
            self.ready.push_back(ReadyGroup { group, chunks, list, rows, given: 0 });
        }
        Ok(())
    }

    /// The scan's filter with what is known besides by now.
    fn filter_now(&self) -> ScanFilter {
        let mut filter = vec![self.scan.filter.clone()];
        filter.extend(self.judges.iter().map(|judged| judged.judge.filter().0));
        ScanFilter::All(filter).simplified()
    }

    /// Whether the bounds of a row group let rows of it be kept.
    fn may_match(&self, filter: &ScanFilter, group: u32) -> bool {
        filter.may_match(&|column| {
            let at = self.judged.binary_search(&column).ok()?;
            self.zones.get(at)?.of_group(group as usize)
        })
    }

    /// Leaves out of `selection` what a judge does not keep.
    fn ask<'a>(
        &mut self,
        judge: usize,
        chunk: &impl Fn(usize) -> Option<&'a Arc<Chunk>>,
        selection: &mut Selection,
    ) -> Result<()> {
        let Some(judged) = self.judges.get_mut(judge).filter(|judged| judged.is_worth_it()) else {
            return Ok(());
        };
        if judged.judge.filter().1 {
            return Ok(());
        }
        let rows = selection.rows();
        let columns = judged.judge.columns();
        let chunks: Option<Vec<Arc<Chunk>>> =
            columns.iter().map(|column| chunk(*column).cloned()).collect();
        let Some(chunks) = chunks.filter(|_| !rows.is_empty()) else { return Ok(()) };
        let schema = self.scan.schema.project(columns);
        let schema = schema.map_err(|e| {
            Error::internal("a scan is judged by a column that it does not give").with_source(e)
        })?;
        let mut batch = BatchColumns::new(Arc::new(schema), rows.len())?;
        if batch.add(&chunks, &rows)? < rows.len() {
            // Texts of many megabytes: whoever asked for them judges them.
            return Ok(());
        }
        let Some(kept) = judged.keep(&batch.take()?)? else { return Ok(()) };
        let places = rows.iter().zip(kept.iter());
        let list: Vec<u32> =
            places.filter(|(_, kept)| *kept == Some(true)).map(|(row, _)| row as u32).collect();
        if list.len() < rows.len() {
            (selection.is_list, selection.list) = (true, list);
        }
        Ok(())
    }

    fn place(&self, group: u32) -> Result<GroupPlace> {
        let place = self.tail.groups.get(group as usize).copied();
        place.ok_or_else(|| self.lost("a row group"))
    }

    /// Columns, by index, of some row groups: from memory, else read.
    async fn chunks(&mut self, groups: &[u32], columns: &[usize]) -> Result<Vec<Vec<Arc<Chunk>>>> {
        let scan = Arc::clone(&self.scan);
        let columns: Vec<&Column> =
            columns.iter().filter_map(|column| scan.columns.get(*column)).collect();
        let cache = &self.reports.cache;
        let file = self.file.number;
        let key = |group: u32, column: &Column| Key::Chunk { file, group, field: column.field_id };
        let known = |group: &u32| {
            columns.iter().map(|column| cache.scanned_chunk(key(*group, column))).collect()
        };
        let mut found: Vec<Option<Vec<Arc<Chunk>>>> = groups.iter().map(known).collect();
        let missing = groups.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing: Vec<u32> = missing.map(|(group, _)| *group).collect();
        self.work.chunk_hits += ((groups.len() - missing.len()) * columns.len()) as u64;
        if scan.keeps {
            self.work.chunk_misses += (missing.len() * columns.len()) as u64;
        }
        if !missing.is_empty() {
            let reader = self.file.reader(&self.metrics);
            let schema = scan.table.schema();
            let (of, tail) = (&self.file.file, &self.tail);
            let read =
                read_chunks(&reader, of, tail, &missing, &columns, &schema, scan.keeps).await;
            let read = read.map_err(|error| self.reports.noting_change(error, &self.file))?;
            for ((group, field), chunk) in read.iter().filter(|_| scan.keeps) {
                let key = Key::Chunk { file, group: *group, field: *field };
                cache.put_scanned(key, Arc::clone(chunk));
            }
            for (group, found) in groups.iter().zip(&mut found) {
                if found.is_none() {
                    let chunk = |column: &&Column| read.get(&(*group, column.field_id)).cloned();
                    *found = columns.iter().map(chunk).collect();
                }
            }
        }
        let whole = groups.iter().zip(found).map(|(group, found)| {
            let rows = self.place(*group)?.rows as usize;
            let is_whole = |chunks: &Vec<Arc<Chunk>>| {
                chunks.len() == columns.len() && chunks.iter().all(|chunk| chunk.rows() == rows)
            };
            found.filter(is_whole).ok_or_else(|| self.lost("columns"))
        });
        whole.collect()
    }

    fn lost(&self, what: &str) -> Error {
        Error::internal(format!("{what} that a scan needs went missing"))
            .at(Place::file(&self.file.file.location))
            .with_hint("run the statement again; please report it")
    }
}

impl std::fmt::Debug for FileScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileScan({}, {} row groups left)", self.file.file.location, self.groups.len())
    }
}

impl Reports {
    /// `error`; where the file is found to be another one than before, nothing of it is used any more.
    fn noting_change(&self, error: Error, file: &ViewFile) -> Error {
        if file.pin.is_broken() {
            self.forget_file(file);
        }
        error
    }
}
