//! Tails, zones and chunks that a report needs: from memory, else read.
//!
//! All files at once: a cold report waits for one round of tails and one round of chunks, where
//! tails bring along where row groups are. **Invariant:** of two reports that miss the same file at
//! once, one reads.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use stoa_error::{Error, Place, Result};
use stoa_rangeio::ReadMetrics;
use stoa_table::Table;

use crate::cache::Key;
use crate::chunk::Chunk;
use crate::disk::{DiskKey, DiskTier};
use crate::files::{Chunks, FileTail, GroupPlace, projected, read_chunks, read_zones};
use crate::memory::Taken;
use crate::outcome::{Missing, Outcome};
use crate::portion::FileWork;
use crate::report::{Column, Report};
use crate::reports::Reports;
use crate::view::ViewFile;
use crate::work::ReportWork;
use crate::zones::Zones;

/// Files that a report reads from at the same time. What the store bears is the range reader's
/// concern.
pub(crate) const FILES_AT_ONCE: usize = 64;

/// The tail of a file, and the bounds of some columns in its row groups.
pub(crate) type KnownFile = (Arc<FileTail>, Vec<Arc<Zones>>);

/// The columns of a report in one row group.
type GroupChunks = Vec<Arc<Chunk>>;

/// Row groups with the columns of a report.
pub(crate) type Sources = Vec<(GroupPlace, GroupChunks)>;

impl Reports {
    /// Tails of `files` and the bounds of `columns` in each, in the order of `files`. `None` where some are not in
    /// memory and are not to be read.
    pub(crate) async fn zones(
        &self,
        files: &[&ViewFile],
        table: &Table,
        columns: &[&Column],
        metrics: &Arc<ReadMetrics>,
        missing: Missing,
    ) -> Result<Option<Vec<KnownFile>>> {
        let mut known: Vec<Option<KnownFile>> =
            files.iter().map(|file| self.known_zones(file.number, columns)).collect();
        if known.iter().any(Option::is_none) {
            if missing == Missing::Leave {
                return Ok(None);
            }
            // Boxed: most reports have all in memory, and are not to make room for this.
            Box::pin(self.read_unknown_zones(&mut known, files, table, columns, metrics)).await?;
        }
        let whole = known.into_iter().zip(files);
        whole.map(|(known, file)| known.ok_or_else(|| lost("bounds", file)).map(Some)).collect()
    }

    /// Reads the zones of those of `files` whose place in `known` is empty, and puts them there.
    async fn read_unknown_zones(
        &self,
        known: &mut [Option<KnownFile>],
        files: &[&ViewFile],
        table: &Table,
        columns: &[&Column],
        metrics: &Arc<ReadMetrics>,
    ) -> Result<()> {
        let unknown = known.iter().zip(files).enumerate().filter(|(_, (known, _))| known.is_none());
        // The futures are made before they are streamed, which would else keep this one from
        // being `Send`.
        let reads: Vec<_> = unknown
            .map(|(index, (_, file))| async move {
                Result::<_>::Ok((index, self.read_zones(file, table, columns, metrics).await?))
            })
            .collect();
        let mut reads = futures::stream::iter(reads).buffer_unordered(FILES_AT_ONCE);
        while let Some((index, read)) = reads.try_next().await? {
            if let Some(known) = known.get_mut(index) {
                *known = Some(read);
            }
        }
        Ok(())
    }

    pub(crate) fn known_zones(&self, file: u32, columns: &[&Column]) -> Option<KnownFile> {
        let tail = self.cache.tail(file)?;
        let zones = columns.iter().map(|column| self.cache.zones(zones_key(file, column)));
        Some((tail, zones.collect::<Option<_>>()?))
    }

    pub(crate) async fn read_zones(
        &self,
        file: &ViewFile,
        table: &Table,
        columns: &[&Column],
        metrics: &Arc<ReadMetrics>,
    ) -> Result<KnownFile> {
        let lock = self.reading.of(file.number);
        let _reading = lock.lock().await;
        if let Some(known) = self.known_zones(file.number, columns) {
            return Ok(known);
        }
        let reader = file.reader(metrics);
        let mut tail = match self.cache.tail(file.number) {
            Some(tail) => tail,
            None => Arc::new(FileTail::new(Arc::new(file.file.read_metadata(&reader).await?))),
        };
        let mut distinct: Vec<&Column> = columns.to_vec();
        distinct.sort_by_key(|column| column.field_id);
        distinct.dedup_by_key(|column| column.field_id);
        let schema = projected(&table.schema(), &distinct)?;
        let (zones, learnt) = read_zones(&reader, &file.file, &tail, &distinct, schema).await?;
        if let Some(learnt) = learnt {
            tail = Arc::new(learnt);
        }
        self.cache.put_tail(file.number, tail.clone());
        let zones: Vec<Arc<Zones>> = zones.into_iter().map(Arc::new).collect();
        if zones.len() != distinct.len() {
            return Err(lost("bounds of a column", file));
        }
        for (column, zones) in distinct.iter().zip(&zones) {
            self.cache.put_zones(zones_key(file.number, column), zones.clone());
        }
        let of = |column: &&Column| {
            let at = distinct.iter().position(|one| one.field_id == column.field_id);
            let zones = at.and_then(|at| zones.get(at)).cloned();
            zones.ok_or_else(|| lost("bounds of a column", file))
        };
        let zones = columns.iter().map(of).collect::<Result<_>>()?;
        Ok((tail, zones))
    }

    /// The report's columns of all row groups of `files`, in their order, and how many bytes those may
    /// take that were not in memory, about. Beyond a bound where `taken` may not become so much on top of
    /// `before`.
    pub(crate) async fn chunks(
        &self,
        files: &[FileWork<'_>],
        table: &Table,
        report: &Report,
        metrics: &Arc<ReadMetrics>,
        counts: &mut ReportWork,
        taken: &mut Taken<'_>,
        before: usize,
        missing: Missing,
    ) -> Result<Outcome<(Sources, usize)>> {
        let columns: Vec<&Column> = report.columns.iter().collect();
        let columns = columns.as_slice();
        let mut found: Vec<Vec<Option<GroupChunks>>> = Vec::with_capacity(files.len());
        for work in files {
            let known = |group: &u32| self.known_chunks(work.file.number, *group, columns);
            found.push(work.groups.iter().map(known).collect());
        }
        let hits = found.iter().flatten().flatten().count();
        let all: usize = files.iter().map(|work| work.groups.len()).sum();
        let bytes = match hits == all {
            true => 0,
            false if missing == Missing::Leave => return Ok(Outcome::Cold),
            false => {
                let unknown = files.iter().zip(&found).map(|(work, found)| {
                    let unknown =
                        work.groups.iter().zip(found).filter(|(_, found)| found.is_none());
                    work.bytes_of(unknown.map(|(group, _)| *group), report)
                });
                unknown.fold(0, usize::saturating_add)
            }
        };
        counts.chunk_hits += (columns.len() * hits) as u64;
        if bytes > 0 && !taken.resize(before.saturating_add(bytes)) {
            return Ok(Outcome::Beyond);
        }
        if hits < all {
            // Boxed, as the zones are.
            Box::pin(self.read_unknown_chunks(&mut found, files, table, columns, metrics, counts))
                .await?;
        }
        let mut sources = Vec::new();
        for (work, found) in files.iter().zip(found) {
            for (group, found) in work.groups.iter().zip(found) {
                let place = work.tail.groups.get(*group as usize).copied();
                let place = place.ok_or_else(|| lost("a row group", work.file))?;
                let chunks = found.filter(|chunks| are_whole(chunks, columns, place));
                sources.push((place, chunks.ok_or_else(|| lost("columns", work.file))?));
            }
        }
        Ok(Outcome::Done((sources, bytes)))
    }

    /// Reads the chunks of those row groups whose place in `found` is empty, and puts them there.
    async fn read_unknown_chunks(
        &self,
        found: &mut [Vec<Option<GroupChunks>>],
        files: &[FileWork<'_>],
        table: &Table,
        columns: &[&Column],
        metrics: &Arc<ReadMetrics>,
        counts: &mut ReportWork,
    ) -> Result<()> {
        let unknown = found.iter().zip(files).enumerate().filter_map(|(index, (found, work))| {
            let groups = work.groups.iter().zip(found).filter(|(_, found)| found.is_none());
            let groups: Vec<u32> = groups.map(|(group, _)| *group).collect();
            (!groups.is_empty()).then_some((index, work, groups))
        });
        let reads: Vec<_> = unknown
            .map(|(index, work, groups)| async move {
                let read = self.read_missing(work, &groups, table, columns, metrics).await?;
                Result::<_>::Ok((index, read))
            })
            .collect();
        let mut reads = futures::stream::iter(reads).buffer_unordered(FILES_AT_ONCE);
        while let Some((index, read)) = reads.try_next().await? {
            counts.chunk_misses += read.misses;
            counts.disk_hits += read.disk_hits;
            let mut groups = read.groups.into_iter();
            for found in found.iter_mut().skip(index).take(1).flatten() {
                if found.is_none() {
                    *found = groups.next();
                }
            }
        }
        Ok(())
    }

    fn known_chunks(&self, file: u32, group: u32, columns: &[&Column]) -> Option<GroupChunks> {
        let chunk =
            |column: &&Column| self.cache.chunk(Key::Chunk { file, group, field: column.field_id });
        columns.iter().map(chunk).collect()
    }

    /// `columns` of the row groups `groups` of a file, in that order.
    pub(crate) async fn read_missing(
        &self,
        work: &FileWork<'_>,
        groups: &[u32],
        table: &Table,
        columns: &[&Column],
        metrics: &Arc<ReadMetrics>,
    ) -> Result<ReadGroups> {
        let number = work.file.number;
        let lock = self.reading.of(number);
        let _reading = lock.lock().await;
        // Somebody else may have read it meanwhile.
        let mut found: Vec<Option<GroupChunks>> =
            groups.iter().map(|group| self.known_chunks(number, *group, columns)).collect();
        let missing = |found: &[Option<GroupChunks>]| -> Vec<u32> {
            let missing = groups.iter().zip(found).filter(|(_, found)| found.is_none());
            missing.map(|(group, _)| *group).collect()
        };
        let wanted = missing(&found);
        let misses = (columns.len() * wanted.len()) as u64;
        let mut disk_hits = 0;
        if let Some(disk) = self.disk_of(work.file) {
            let mut kept = disk_chunks(disk, work, &wanted, columns).await;
            for (group, found) in groups.iter().zip(&mut found) {
                if let Some(chunks) = kept.remove(group) {
                    self.put_group(number, *group, columns, &chunks);
                    disk_hits += chunks.len() as u64;
                    *found = Some(chunks);
                }
            }
        }
        let wanted = missing(&found);
        let read = self.read_chunks(work, &wanted, table, columns, metrics).await?;
        for (group, found) in groups.iter().zip(&mut found) {
            if found.is_none() {
                let chunk = |column: &&Column| read.get(&(*group, column.field_id)).cloned();
                *found = columns.iter().map(chunk).collect();
            }
        }
        let whole = |found: Option<GroupChunks>| found.ok_or_else(|| lost("columns", work.file));
        let groups = found.into_iter().map(whole).collect::<Result<_>>()?;
        Ok(ReadGroups { groups, misses, disk_hits })
    }

    /// Where chunks of a file are kept beside memory.
    fn disk_of(&self, file: &ViewFile) -> Option<&DiskTier> {
        self.disk.as_ref().filter(|_| file.is_remote)
    }

    fn put_group(&self, file: u32, group: u32, columns: &[&Column], chunks: &[Arc<Chunk>]) {
        for (column, chunk) in columns.iter().zip(chunks) {
            let key = Key::Chunk { file, group, field: column.field_id };
            self.cache.put_chunk(key, chunk.clone());
        }
    }

    async fn read_chunks(
        &self,
        work: &FileWork<'_>,
        groups: &[u32],
        table: &Table,
        columns: &[&Column],
        metrics: &Arc<ReadMetrics>,
    ) -> Result<Chunks> {
        if groups.is_empty() || columns.is_empty() {
            return Ok(Chunks::new());
        }
        let reader = work.file.reader(metrics);
        let (file, schema) = (&work.file.file, table.schema());
        let chunks = read_chunks(&reader, file, &work.tail, groups, columns, &schema, true).await?;
        for ((group, field), chunk) in &chunks {
            let key = Key::Chunk { file: work.file.number, group: *group, field: *field };
            self.cache.put_chunk(key, chunk.clone());
            if let Some(disk) = self.disk_of(work.file)
                && let Some(key) = disk_key(work.file, *group, *field)
            {
                disk.put(key, chunk.clone());
            }
        }
        Ok(chunks)
    }
}

/// Whether these are all columns of a row group, with all of its rows.
fn are_whole(chunks: &[Arc<Chunk>], columns: &[&Column], place: GroupPlace) -> bool {
    chunks.len() == columns.len() && chunks.iter().all(|chunk| chunk.rows() == place.rows as usize)
}

/// A part that a report needs is not there. Without it, the answer would be another one.
fn lost(what: &str, file: &ViewFile) -> Error {
    Error::internal(format!("{what} that a report needs went missing"))
        .at(Place::file(&file.file.location))
        .with_hint("run the statement again, or with SET short_path = off; please report it")
}

fn zones_key(file: u32, column: &Column) -> Key {
    Key::Zones { file, field: column.field_id }
}

/// What [`Reports::read_missing`] found.
pub(crate) struct ReadGroups {
    /// Per row group.
    pub(crate) groups: Vec<GroupChunks>,
    /// Chunks that were not in memory.
    pub(crate) misses: u64,
    /// Those of them that were on disk.
    pub(crate) disk_hits: u64,
}

/// The row groups of which all `columns` are on disk.
async fn disk_chunks(
    disk: &DiskTier,
    work: &FileWork<'_>,
    groups: &[u32],
    columns: &[&Column],
) -> HashMap<u32, GroupChunks> {
    let keys = groups.iter().flat_map(|group| {
        columns.iter().filter_map(|column| disk_key(work.file, *group, column.field_id))
    });
    let keys: Vec<DiskKey> = keys.collect();
    let width = columns.len();
    // What the file is called is known since its tail was read; else nothing can be told.
    if keys.is_empty() || keys.len() != width * groups.len() {
        return HashMap::new();
    }
    let found = disk.get(keys).await;
    let whole = groups.iter().zip(found.chunks(width)).filter_map(|(group, chunks)| {
        let rows = work.tail.groups.get(*group as usize)?.rows as usize;
        let chunks = chunks.iter().map(|chunk| chunk.clone().filter(|c| c.rows() == rows));
        Some((*group, chunks.collect::<Option<_>>()?))
    });
    whole.collect()
}

fn disk_key(file: &ViewFile, group: u32, field: i32) -> Option<DiskKey> {
    let (location, bytes) = (&file.file.location, file.file.file_bytes);
    Some(DiskKey::new(location, bytes, file.pin.tag()?, group, field))
}
