//! New files in Hive's layout.
//!
//! ```text
//! rows ─► by partition ─► encoders ─► .stoa-staging-<id>/0, 1, …     hidden
//!                                       └► commit: day=2024-05-01/<id>-0, …; files that were replaced go
//! ```
//! **Invariants:** nothing is visible before [`HiveWriter::commit`]; a writer that is given up, or whose commit fails,
//! leaves no file of its own. As in Hive, files of one commit appear one after the other; those that they replace go
//! after that, so that a crash in between loses no row.

mod encoder;
mod file;
mod sending;
mod sequence;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStoreExt, RenameOptions};
use stoa_env::random;
use stoa_env::task::{self, Spawner};
use stoa_error::{Error, Result};
use stoa_store::{Location, also_charged, from_object_store};

use crate::layout::below;
use crate::text::value_text;
use crate::{DEFAULT_PARTITION, DataFile, Definition, escaped, files};
use file::OpenFile;
use sending::Sending;

/// What directories of files that are not complete yet begin with.
const STAGING: &str = ".stoa-staging-";

/// Files that are open at a time; beyond that, the largest ends.
const OPEN_FILES_MAX: usize = 64;

/// Bytes that all open files hold in memory; beyond that, the largest ends.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// A file ends at about this size.
const FILE_BYTES: u64 = 256 << 20;

/// Files that are moved or deleted at a time.
const CHANGES_MAX: usize = 8;

/// Most partitions that one statement writes to.
const PARTITIONS_MAX: usize = 10_000;

/// Where rows go.
#[derive(Clone, Debug)]
pub struct WriteTarget {
    /// The directory of the table.
    pub location: Location,
    /// How files are written.
    pub definition: Definition,
    /// The columns of the rows to come.
    pub schema: SchemaRef,
    /// Places of the partition columns in `schema`.
    pub partition_columns: Vec<usize>,
    /// Whether files that are there go: those of the partitions into which rows come, and of `replaced`.
    pub overwrites: bool,
    /// Partitions whose files go, also if no rows come into them; the empty name is the whole table.
    pub replaced: Vec<String>,
}

/// Writes rows.
pub struct HiveWriter {
    target: WriteTarget,
    id: String,
    staging: Path,
    /// The columns of files.
    file_schema: SchemaRef,
    file_columns: Vec<usize>,
    open: BTreeMap<String, OpenFile>,
    complete: Vec<Staged>,
    partitions: BTreeSet<String>,
    files_begun: usize,
    rows: u64,
    /// Takes away what is left when the writer is dropped.
    spawner: Spawner,
}

/// A complete file that is not visible yet.
struct Staged {
    partition: String,
    file: Sending,
    /// Its name in the partition.
    name: String,
}

impl HiveWriter {
    /// Begins to write.
    ///
    /// # Errors
    /// `Invalid` for a location that cannot have directories in it.
    pub fn new(target: WriteTarget) -> Result<Self> {
        let id = random::uuid().simple().to_string();
        let staging = below(&target.location.path, &format!("{STAGING}{id}"))?;
        let is_file = |at: &usize| !target.partition_columns.contains(at);
        let file_columns: Vec<usize> = (0..target.schema.fields().len()).filter(is_file).collect();
        let plain = |at: &usize| {
            let field = target.schema.field(*at);
            Field::new(field.name(), field.data_type().clone(), true)
        };
        let file_schema: SchemaRef =
            Arc::new(Schema::new(file_columns.iter().map(plain).collect::<Vec<_>>()));
        Ok(Self {
            target,
            id,
            staging,
            file_schema,
            file_columns,
            open: BTreeMap::new(),
            complete: Vec::new(),
            partitions: BTreeSet::new(),
            files_begun: 0,
            rows: 0,
            spawner: Spawner::current(),
        })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Values that files cannot hold (22P04), too many partitions (54000), and those of the store.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let cannot = |e| Error::internal("rows cannot be dealt to partitions").with_source(e);
        let columns: Vec<ArrayRef> =
            self.file_columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows =
            RecordBatch::try_new_with_options(Arc::clone(&self.file_schema), columns, &options);
        let rows = rows.map_err(cannot)?;
        for (partition, places) in self.by_partition(batch)? {
            let part = match places {
                None => rows.clone(),
                Some(places) => {
                    take_record_batch(&rows, &UInt32Array::from(places)).map_err(cannot)?
                }
            };
            self.write_part(partition, &part).await?;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// The rows of each partition; `None` is all.
    fn by_partition(&self, batch: &RecordBatch) -> Result<BTreeMap<String, Option<Vec<u32>>>> {
        if self.target.partition_columns.is_empty() {
            return Ok(BTreeMap::from([(String::new(), None)]));
        }
        let mut all: BTreeMap<String, Option<Vec<u32>>> = BTreeMap::new();
        let names: Vec<String> = (self.target.partition_columns.iter())
            .map(|at| escaped(self.target.schema.field(*at).name()))
            .collect();
        let mut last: Option<(Vec<Option<String>>, String)> = None;
        for row in 0..batch.num_rows() {
            let values = self.target.partition_columns.iter();
            let values = values.map(|at| value_text(batch.column(*at), row));
            let values = values.collect::<Result<Vec<_>>>()?;
            let name = match &last {
                Some((same, name)) if *same == values => name.clone(),
                _ => {
                    let name = partition_name(&names, &values);
                    last = Some((values, name.clone()));
                    name
                }
            };
            let row =
                u32::try_from(row).map_err(|_| Error::internal("a batch has too many rows"))?;
            all.entry(name).or_default().get_or_insert_default().push(row);
        }
        Ok(all)
    }

    async fn write_part(&mut self, partition: String, rows: &RecordBatch) -> Result<()> {
        if !self.open.contains_key(&partition) {
            self.partitions.insert(partition.clone());
            if self.partitions.len() > PARTITIONS_MAX {
                return Err(Error::invalid(format!(
                    "the rows go to more than {PARTITIONS_MAX} partitions"
                ))
                .with_sqlstate("54000")
                .with_hint("write them with several statements"));
            }
            if self.open.len() >= OPEN_FILES_MAX {
                self.end_largest().await?;
            }
            let path = below(&self.staging, &self.files_begun.to_string())?;
            self.files_begun += 1;
            let mut location = self.target.location.clone();
            location.path = path;
            let file = OpenFile::new(location, &self.target.definition, &self.file_schema)?;
            self.open.insert(partition.clone(), file);
        }
        let Some(file) = self.open.get_mut(&partition) else {
            return Err(Error::internal("a file was not opened"));
        };
        file.write(rows).await?;
        if file.bytes() >= FILE_BYTES {
            return self.end_file(&partition).await;
        }
        let held: usize = self.open.values().map(OpenFile::memory_bytes).sum();
        match held > MEMORY_BYTES_MAX {
            true => self.end_largest().await,
            false => Ok(()),
        }
    }

    /// Ends the file that holds most memory.
    async fn end_largest(&mut self) -> Result<()> {
        let largest = self.open.iter().max_by_key(|(_, file)| file.memory_bytes());
        match largest.map(|(name, _)| name.clone()) {
            Some(name) => self.end_file(&name).await,
            None => Ok(()),
        }
    }

    async fn end_file(&mut self, partition: &str) -> Result<()> {
        let Some(file) = self.open.remove(partition) else { return Ok(()) };
        let sending = file.sending().clone();
        let number = self.complete.len();
        let ending = encoder::ending(&self.target.definition);
        // Noted before it is there, so that it goes if that fails half-way.
        let name = format!("{}-{number:05}{ending}", self.id);
        self.complete.push(Staged { partition: partition.to_owned(), file: sending, name });
        file.finish().await
    }

    /// The names of the partitions into which rows come.
    pub fn partitions(&self) -> &BTreeSet<String> {
        &self.partitions
    }

    /// Makes the rows visible, and takes away what they replace. Says how many rows there are.
    ///
    /// # Errors
    /// Those of the store. Before the new files are all visible, all of them are taken away again; files that should be
    /// replaced may stay beside them after that, which the error says.
    pub async fn commit(mut self) -> Result<u64> {
        match self.publish().await {
            Ok(()) => Ok(self.rows),
            Err(error) => {
                self.abort().await;
                Err(error)
            }
        }
    }

    async fn publish(&mut self) -> Result<()> {
        let names: Vec<String> = self.open.keys().cloned().collect();
        for name in names {
            self.end_file(&name).await?;
        }
        let old = self.replaced_files().await?;
        self.show_files().await?;
        self.complete.clear();
        let location = &self.target.location;
        let delete = |file: DataFile| {
            let (location, store) = (location.clone(), Arc::clone(&location.store));
            async move {
                match store.delete(&file.path).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(from_object_store(&location.literal_of(&file.path), error)),
                }
            }
        };
        let deleted = stream::iter(old).map(delete).buffer_unordered(CHANGES_MAX);
        let deleted: Result<()> = deleted.try_collect().await;
        deleted.map_err(|error| {
            error
                .with_detail("the new rows are there, beside some that they should replace")
                .with_hint("repeat the statement")
        })?;
        self.remove_staging().await;
        Ok(())
    }

    /// Moves the files to where they are seen, or none of them.
    async fn show_files(&self) -> Result<()> {
        let location = &self.target.location;
        let moves = self.complete.iter().map(|staged| {
            let to = below(&self.directory(&staged.partition)?, &staged.name)?;
            Ok((staged.file.path().clone(), to))
        });
        let moves: Vec<(Path, Path)> = moves.collect::<Result<_>>()?;
        let rename = |(from, to): (Path, Path)| {
            let (location, store) = (location.clone(), Arc::clone(&location.store));
            async move {
                let renamed = store.rename_opts(&from, &to, RenameOptions::default()).await;
                renamed.map_err(|error| from_object_store(&location.literal_of(&to), error))
            }
        };
        let renamed = stream::iter(moves.clone()).map(rename).buffer_unordered(CHANGES_MAX);
        let renamed: Vec<Result<()>> = renamed.collect().await;
        let Some(error) = renamed.into_iter().find_map(Result::err) else { return Ok(()) };
        for (_, to) in moves {
            // What was not moved is not there; what cannot be taken away either is told by the first error.
            let _ = location.store.delete(&to).await;
        }
        Err(error)
    }

    /// The files that go.
    async fn replaced_files(&self) -> Result<Vec<DataFile>> {
        if !self.target.overwrites {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        let names: BTreeSet<&String> =
            self.partitions.iter().chain(&self.target.replaced).collect();
        for name in names {
            all.extend(files(&self.target.location, &self.directory(name)?).await?);
        }
        Ok(all)
    }

    /// The directory of a partition.
    fn directory(&self, partition: &str) -> Result<Path> {
        let root = &self.target.location.path;
        match partition.is_empty() {
            true => Ok(root.clone()),
            false => below(root, partition),
        }
    }

    /// Gives everything up, to the end, whoever waits for it. What cannot be taken away is hidden, and told in no other
    /// error.
    pub async fn abort(&mut self) {
        let files = self.take_files();
        let given_up = also_charged(async move {
            for file in files {
                file.give_up().await;
            }
        });
        // Fails only where the process ends.
        drop(task::spawn(given_up).await);
        self.remove_staging().await;
    }

    /// What is not visible yet.
    fn take_files(&mut self) -> Vec<Sending> {
        let open = std::mem::take(&mut self.open).into_values();
        let complete = std::mem::take(&mut self.complete).into_iter();
        open.map(|file| file.sending().clone()).chain(complete.map(|staged| staged.file)).collect()
    }

    /// Takes the empty directory away, where a store has directories.
    async fn remove_staging(&self) {
        let place = self.target.location.literal_of(&self.staging);
        if let Some(path) = place.strip_prefix("file://") {
            stoa_store::remove_empty_directory(path).await;
        }
    }
}

/// Given up half-way, as when a statement is cancelled: on a disk, its files go at once. In an object store they go a
/// little later, or stay hidden if the process ends before that.
impl Drop for HiveWriter {
    fn drop(&mut self) {
        if self.open.is_empty() && self.complete.is_empty() {
            return;
        }
        let files = self.take_files();
        let place = self.target.location.literal_of(&self.staging);
        if let Some(path) = place.strip_prefix("file://") {
            stoa_store::remove_hidden_directory(path);
            // A request that is under way may make the directory again.
            if !files.iter().any(Sending::is_busy) {
                return;
            }
        }
        self.spawner.spawn(async move {
            for file in files {
                // What cannot be taken away stays hidden; the statement has told its own error.
                file.give_up().await;
            }
            if let Some(path) = place.strip_prefix("file://") {
                stoa_store::remove_hidden_directory(path);
            }
        });
    }
}

/// `day=2024-05-01/hour=1`; `names` are escaped.
fn partition_name(names: &[String], values: &[Option<String>]) -> String {
    let part = |(name, value): (&String, &Option<String>)| match value.as_deref() {
        // As in Hive, an empty text has no directory of its own.
        None | Some("") => format!("{name}={DEFAULT_PARTITION}"),
        Some(value) => format!("{name}={}", escaped(value)),
    };
    names.iter().zip(values).map(part).collect::<Vec<_>>().join("/")
}

impl std::fmt::Debug for HiveWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HiveWriter({})", self.target.location.literal_of(&self.target.location.path))
    }
}
