//! What reports look at most, written down before a stop and read again after a start.
//!
//! A list names files and parts of them, not their content: what it brings back is read from the
//! store as it is then, so a list may be old, or wrong. Not here: where it is saved, and when.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use stoa_error::{Error, Result};
use stoa_rangeio::ReadMetrics;
use stoa_table::{Table, TableIdent};
use uuid::Uuid;

use crate::portion::FileWork;
use crate::report::Column;
use crate::reports::Reports;
use crate::view::{TableView, ViewFile};
use crate::warm::columns_of;

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Row groups read at a time of a file: bounds the memory beside the cache's, and how long a report
/// waits that wants the same file.
const GROUPS_AT_ONCE: usize = 32;

/// Chunks by file, the hottest file first. Made by [`Reports::hot_list`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotList {
    version: u32,
    /// The hottest first.
    pub files: Vec<HotFile>,
}

/// A data file and which parts of it are hot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotFile {
    /// The table's UUID, hyphenated.
    pub table: String,
    /// Its namespace when the list was made.
    pub namespace: String,
    /// Its name when the list was made.
    pub name: String,
    /// The file's location, as its manifest has it.
    pub location: String,
    /// Its length.
    pub file_bytes: u64,
    /// Disjoint parts.
    pub parts: Vec<HotPart>,
}

/// Some columns of some row groups: each of these with each of those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotPart {
    /// Field ids.
    pub fields: Vec<i32>,
    /// Runs of row groups, counted through the file: the first, and how many.
    pub groups: Vec<(u32, u32)>,
}

/// Bounds of [`Reports::rewarm`].
#[derive(Clone, Copy, Debug)]
pub struct RewarmOptions {
    /// Ends when so much memory of the cache is in use, bytes; at nine tenths of it in any case.
    /// Exceeded by what is being read then at most: 32 row groups of each file.
    pub bytes_max: u64,
    /// Files read at the same time, at least 1.
    pub files_at_once: usize,
}

impl Default for RewarmOptions {
    fn default() -> Self {
        Self { bytes_max: u64::MAX, files_at_once: 4 }
    }
}

/// What [`Reports::rewarm`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewarmed {
    /// Files of which parts were brought into memory.
    pub files: u64,
    /// Their chunks that are in memory now.
    pub chunks: u64,
    /// Files that are gone, or of tables that are.
    pub files_gone: u64,
    /// Files that could not be read.
    pub files_failed: u64,
    /// Files, or the rest of one, for which there was no room.
    pub files_left: u64,
}

impl HotList {
    /// As one line of JSON.
    ///
    /// # Errors
    /// `Internal`, which does not happen.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|e| Error::internal("a hot list cannot be written").with_source(e))
    }

    /// What [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// `Corrupt` for other bytes, `Unsupported` for another version of the format. Either way one
    /// starts without a list.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let damaged = |e| Error::corrupt("this is no hot list").with_source(e);
        let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
        if head.version != VERSION {
            return Err(Error::unsupported(format!(
                "a hot list of version {}, not {VERSION}",
                head.version
            )));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

/// Chunks of a file by field id, and the heat of the hottest.
#[derive(Default)]
struct FileHeat {
    greatest: u32,
    groups: BTreeMap<i32, Vec<u32>>,
}

impl Reports {
    /// The hottest chunks in memory, up to `chunks_max` of them: those that were looked at most
    /// often, where each call halves what was counted before. So call it at even intervals. Takes
    /// time in proportion to the cache: not on a thread that answers reports.
    pub fn hot_list(&self, chunks_max: usize) -> HotList {
        let mut heat = self.cache.heat();
        heat.sort_unstable_by_key(|(file, group, field, uses)| {
            (std::cmp::Reverse(*uses), *file, *group, *field)
        });
        heat.truncate(chunks_max);
        let mut by_file: HashMap<u32, FileHeat> = HashMap::new();
        for (file, group, field, uses) in heat {
            let file = by_file.entry(file).or_default();
            file.greatest = file.greatest.max(uses);
            file.groups.entry(field).or_default().push(group);
        }
        let views: Vec<(Uuid, Arc<TableView>)> = {
            let views = self.views.lock();
            views.iter().map(|(uuid, (_, view))| (*uuid, view.clone())).collect()
        };
        let mut files = Vec::with_capacity(by_file.len());
        for (uuid, view) in &views {
            for file in &view.files {
                if let Some(heat) = by_file.remove(&file.number) {
                    files.push((heat.greatest, hot_file(*uuid, &view.ident, file, heat.groups)));
                }
            }
        }
        files.sort_by(|(a, one), (b, other)| b.cmp(a).then(one.location.cmp(&other.location)));
        HotList { version: VERSION, files: files.into_iter().map(|(_, file)| file).collect() }
    }

    /// Brings what `list` names into memory again, the hottest first. `lookup` gives the table of a
    /// name as it is now, or none; what is not the table of the list is left out. Does not fail:
    /// what cannot be read is counted. Reports are answered meanwhile; dropped on the way, what was
    /// read so far stays.
    pub async fn rewarm<F>(
        &self,
        list: &HotList,
        options: RewarmOptions,
        lookup: impl Fn(TableIdent) -> F,
    ) -> Rewarmed
    where
        F: Future<Output = Option<Table>>,
    {
        if let Some(disk) = &self.disk {
            disk.opened().await;
        }
        let tables = self.tables_of(list, lookup).await;
        let bytes_max = options.bytes_max.min(self.cache.warm_bytes_max());
        let reads: Vec<_> =
            list.files.iter().map(|file| self.rewarm_file(file, &tables, bytes_max)).collect();
        let mut reads = futures::stream::iter(reads).buffer_unordered(options.files_at_once.max(1));
        let mut all = Rewarmed::default();
        while let Some(one) = reads.next().await {
            all.files += one.files;
            all.chunks += one.chunks;
            all.files_gone += one.files_gone;
            all.files_failed += one.files_failed;
            all.files_left += one.files_left;
        }
        all
    }

    /// The tables of a list that are still there, with their files by location and length.
    async fn tables_of<'a, F>(
        &self,
        list: &'a HotList,
        lookup: impl Fn(TableIdent) -> F,
    ) -> HashMap<&'a str, HotTable>
    where
        F: Future<Output = Option<Table>>,
    {
        let mut tables = HashMap::new();
        let mut asked = std::collections::HashSet::new();
        for file in &list.files {
            if !asked.insert(file.table.as_str()) {
                continue;
            }
            let Some(table) = lookup(TableIdent::new(&file.namespace, &file.name)).await else {
                continue;
            };
            if table.uuid().to_string() != file.table {
                continue;
            }
            match self.view(&table).await {
                Ok(view) => drop(tables.insert(file.table.as_str(), HotTable::new(table, view))),
                Err(error) => {
                    tracing::warn!(table = %table.ident(), %error, "cannot be brought into memory");
                }
            }
        }
        tables
    }

    async fn rewarm_file(
        &self,
        hot: &HotFile,
        tables: &HashMap<&str, HotTable>,
        bytes_max: u64,
    ) -> Rewarmed {
        let gone = Rewarmed { files_gone: 1, ..Rewarmed::default() };
        let Some(table) = tables.get(hot.table.as_str()) else { return gone };
        let file = table.file(hot).filter(|file| file.file.is_plain());
        let Some(file) = file else { return gone };
        let mut chunks = 0;
        for part in &hot.parts {
            match self.rewarm_part(table, file, part, bytes_max).await {
                Ok((read, complete)) => {
                    chunks += read;
                    if !complete {
                        let files = u64::from(chunks > 0);
                        return Rewarmed { files, chunks, files_left: 1, ..Rewarmed::default() };
                    }
                }
                Err(error) => {
                    tracing::warn!(file = hot.location, %error, "cannot be brought into memory");
                    self.renewed(&table.table, &table.view);
                    return Rewarmed { chunks, files_failed: 1, ..Rewarmed::default() };
                }
            }
        }
        Rewarmed { files: 1, chunks, ..Rewarmed::default() }
    }

    /// How many chunks of a part are in memory, and whether there was room for all.
    async fn rewarm_part(
        &self,
        table: &HotTable,
        file: &ViewFile,
        part: &HotPart,
        bytes_max: u64,
    ) -> Result<(u64, bool)> {
        let is_hot = |column: &&Column| part.fields.contains(&column.field_id);
        let columns: Vec<&Column> = table.columns.iter().filter(is_hot).collect();
        if self.cache.bytes() >= bytes_max {
            return Ok((0, false));
        }
        let metrics = Arc::new(ReadMetrics::default());
        let (tail, _) = self.read_zones(file, &table.table, &columns, &metrics).await?;
        let known = 0..tail.groups.len() as u32;
        let runs = part.groups.iter().map(|(first, count)| *first..first.saturating_add(*count));
        let runs = runs.map(|run| run.start.min(known.end)..run.end.min(known.end));
        let groups: Vec<u32> = runs.flatten().collect();
        let work = FileWork { file, tail, groups: Vec::new() };
        let mut chunks = 0;
        for groups in groups.chunks(GROUPS_AT_ONCE) {
            if self.cache.bytes() >= bytes_max {
                return Ok((chunks, false));
            }
            self.read_missing(&work, groups, &table.table, &columns, &metrics).await?;
            chunks += (groups.len() * columns.len()) as u64;
        }
        Ok((chunks, true))
    }
}

/// A table of a list, as it is now.
struct HotTable {
    table: Table,
    view: Arc<TableView>,
    columns: Vec<Column>,
    /// Indexes into the view's files.
    by_location: HashMap<String, usize>,
}

impl HotTable {
    fn new(table: Table, view: Arc<TableView>) -> Self {
        let files = view.files.iter().enumerate();
        let by_location = files.map(|(at, file)| (file.file.location.clone(), at)).collect();
        Self { columns: columns_of(&table), table, view, by_location }
    }

    fn file(&self, hot: &HotFile) -> Option<&ViewFile> {
        let file = self.view.files.get(*self.by_location.get(&hot.location)?)?;
        (file.file.file_bytes == hot.file_bytes).then_some(file)
    }
}

fn hot_file(
    uuid: Uuid,
    ident: &TableIdent,
    file: &ViewFile,
    groups: BTreeMap<i32, Vec<u32>>,
) -> HotFile {
    // Columns that are hot in the same row groups make one part.
    let mut parts: BTreeMap<Vec<(u32, u32)>, Vec<i32>> = BTreeMap::new();
    for (field, groups) in groups {
        parts.entry(runs(groups)).or_default().push(field);
    }
    HotFile {
        table: uuid.to_string(),
        namespace: ident.namespace.clone(),
        name: ident.name.clone(),
        location: file.file.location.clone(),
        file_bytes: file.file.file_bytes,
        parts: parts.into_iter().map(|(groups, fields)| HotPart { fields, groups }).collect(),
    }
}

/// Runs of neighbours as first and count.
fn runs(mut groups: Vec<u32>) -> Vec<(u32, u32)> {
    groups.sort_unstable();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for group in groups {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == group => *count += 1,
            _ => runs.push((group, 1)),
        }
    }
    runs
}
