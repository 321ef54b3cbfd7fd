//! Writing rows: split by partition value, one ORC file per partition at a time, one commit.
//!
//! In: Arrow batches in the table's column order. Out: durable data files, and at the end one
//! snapshot that holds them all.
//!
//! **Invariants:** nothing is visible before the commit; a writer dropped on the way leaves only
//! files that no snapshot refers to; memory is bounded by
//! [`WriteOptions::memory_max_bytes`] plus one batch.
//! Not here: sorting (the caller does it, see [`crate::Table::partition_columns`]; whether he did is
//! noted per file), encoding (`stoa-orc`).

mod convert;
mod file;
mod finishing;
mod properties;
mod split;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use futures::future::BoxFuture;
use iceberg::spec::{DataFile, PrimitiveType};
use stoa_error::{Error, ErrorKind, Result};
use stoa_orc::Literal;

use crate::failpoint;
use crate::order::TableOrder;
use crate::positions::LogAdvance;
use crate::snapshot::{CommitOptions, NewFiles, check_format};
use crate::transform::{partition_path, value_text};
use crate::writers::AtWork;
use crate::{Table, Transform};
use convert::Converter;
use file::{FileTarget, OpenFile, WrittenFile};
use finishing::Finishing;
use properties::FileProperties;
pub(crate) use properties::check_properties;
use split::{PartitionKey, split};
pub use written::{CommitOutcome, WrittenFiles};

/// How rows are written. Properties of the table say the rest.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Files open at a time; when another partition needs one, the longest unused is finished.
    /// Input sorted by partition needs one.
    pub open_files_max: usize,
    /// Bytes that open files may hold; beyond it, the longest unused are finished early.
    pub memory_max_bytes: usize,
    /// Overrides the table's `write.target-file-size-bytes`.
    pub target_file_bytes: Option<u64>,
    /// No stripe is larger, whatever the table's `write.orc.stripe-size-bytes` says; a stripe
    /// takes about four times its bytes in memory until it is written.
    pub stripe_bytes_max: Option<usize>,
    /// The rows come in the table's order: it is not checked, and files are marked as sorted.
    pub sorted: bool,
    /// The rows are those of the table, or were checked before: the limits of declared types are not applied to them.
    pub within_limits: bool,
    /// Added to the snapshot's summary, such as who wrote it.
    pub summary: BTreeMap<String, String>,
    /// Positions of commit logs that the rows bring the table to; see [`CommitOptions::log`].
    pub log: Vec<LogAdvance>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            open_files_max: 16,
            memory_max_bytes: 512 << 20,
            target_file_bytes: None,
            stripe_bytes_max: None,
            sorted: false,
            within_limits: false,
            summary: BTreeMap::new(),
            log: Vec::new(),
        }
    }
}

/// Writes rows into a table; see the module's invariants. Dropped before [`Self::commit`], the
/// rows are not in the table.
pub struct TableWriter {
    table: Table,
    options: WriteOptions,
    properties: FileProperties,
    converter: Converter,
    /// The table's sort order; files whose rows follow it are marked with its id.
    order: Option<TableOrder>,
    /// Partition field names, transforms and result types, in order.
    partition: Vec<PartitionField>,
    /// Open files, the longest unused first.
    open: Vec<(PartitionKey, OpenFile)>,
    finishing: Finishing,
    finished: Vec<DataFile>,
    /// Makes the file names of this writer unique.
    uuid: uuid::Uuid,
    /// This writer, and those whose files it has taken over.
    at_work: Vec<Arc<AtWork>>,
    file_count: u32,
    rows: u64,
}

/// One field of the partition spec that is written.
#[derive(Clone, Debug)]
struct PartitionField {
    name: String,
    transform: Transform,
    result: PrimitiveType,
}

impl Table {
    /// Begins writing rows. Nothing is visible before [`TableWriter::commit`].
    ///
    /// # Errors
    /// `Unsupported` where the table cannot be written (format version 3, a partition source inside
    /// a nested column), `Invalid` for a property that makes no sense.
    pub fn writer(&self, options: WriteOptions) -> Result<TableWriter> {
        TableWriter::new(self.clone(), options)
    }
}

impl TableWriter {
    fn new(table: Table, options: WriteOptions) -> Result<Self> {
        check_format(&table)?;
        let properties = FileProperties::of(&table, &options)?;
        let partition = partition_fields(&table)?;
        let converter =
            Converter::new(table.ident().clone(), table.schema(), options.within_limits);
        let uuid = table.warehouse().env().uuid();
        let at_work = vec![table.warehouse().writers().begin(uuid)];
        Ok(Self {
            order: TableOrder::of(&table),
            table,
            options,
            properties,
            converter,
            partition,
            open: Vec::new(),
            finishing: Finishing::default(),
            finished: Vec::new(),
            uuid,
            at_work,
            file_count: 0,
            rows: 0,
        })
    }

    /// Rows taken so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that unfinished files hold in memory now.
    pub fn memory_bytes(&self) -> usize {
        let open: usize = self.open.iter().map(|(_, file)| file.memory_bytes()).sum();
        open + self.finishing.memory_bytes()
    }

    /// Takes the rows of `batch`: the table's columns in the table's order; types are cast where
    /// no value is lost.
    ///
    /// # Errors
    /// `Invalid` for wrong columns, values that do not fit (22003) or are too long (22001), NULL in a NOT NULL column
    /// (23502); `Unavailable` where the store fails. The writer must not be used after an error.
    pub fn write(&mut self, batch: RecordBatch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if batch.num_rows() == 0 {
                return Ok(());
            }
            let batch = self.converter.convert(batch)?;
            self.rows += batch.num_rows() as u64;
            if self.partition.is_empty() {
                return self.write_part(PartitionKey::default(), batch).await;
            }
            let columns = self.table.partition_columns(&batch)?;
            for (key, part) in split(&batch, &columns)? {
                self.write_part(key, part).await?;
            }
            Ok(())
        })
    }

    /// Finishes all files and adds them to the table as one snapshot. A staged table appears in the
    /// catalog now. Without rows an existing table gets no snapshot.
    ///
    /// # Errors
    /// As [`Self::finish`] and [`WrittenFiles::commit`]. Nothing is visible then, unless the error
    /// is `Unavailable`: whoever has to be certain then uses [`Self::finish`] and commits himself.
    pub fn commit(mut self) -> BoxFuture<'static, Result<CommitOutcome>> {
        Box::pin(async move {
            let options = CommitOptions {
                summary: std::mem::take(&mut self.options.summary),
                log: std::mem::take(&mut self.options.log),
                reads: Vec::new(),
            };
            let written = self.finish().await?;
            let outcome = written.commit(&options).await?;
            if outcome.already_committed {
                written.discard_unless_in(&outcome.table).await;
            }
            Ok(outcome)
        })
    }

    /// Finishes all files, so that they are durable, and leaves it to the caller to commit them.
    ///
    /// # Errors
    /// `Unavailable` where the store fails, `NotFound` where the table was dropped.
    pub fn finish(mut self) -> BoxFuture<'static, Result<WrittenFiles>> {
        Box::pin(async move {
            self.end_files().await?;
            let files = NewFiles {
                schema: self.table.metadata().current_schema().clone(),
                spec: self.table.partition_spec().clone(),
                files: std::mem::take(&mut self.finished),
            };
            failpoint::at("write.files_written").await?;
            let at_work = std::mem::take(&mut self.at_work);
            Ok(WrittenFiles::new(self.table.clone(), files, at_work))
        })
    }

    /// Ends all open files and waits until they are whole: rows that follow go to new ones.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn end_files(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.roll().await?;
            while !self.finishing.is_empty() {
                self.wait_for_finished().await?;
            }
            Ok(())
        })
    }

    /// Takes over the files of another writer, which has ended them.
    ///
    /// # Errors
    /// `Internal` where it wrote for another version of the columns or the partitioning, or has not
    /// ended its files.
    pub(crate) fn take_over(&mut self, mut other: Self) -> Result<()> {
        let alike = self.table.uuid() == other.table.uuid()
            && self.table.schema_id() == other.table.schema_id()
            && self.table.partition_spec() == other.table.partition_spec();
        if !alike || !other.open.is_empty() || !other.finishing.is_empty() {
            return Err(Error::internal(format!(
                "table {}: files of another writer cannot be taken over",
                self.table.ident()
            )));
        }
        self.rows += other.rows;
        self.finished.append(&mut other.finished);
        self.at_work.append(&mut other.at_work);
        Ok(())
    }

    /// Ends all open files: rows that follow go to new ones.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) async fn roll(&mut self) -> Result<()> {
        while !self.open.is_empty() {
            self.close_oldest().await?;
        }
        Ok(())
    }

    /// Gives up: deletes what was written, as far as possible.
    ///
    /// # Errors
    /// `Unavailable` where the store fails; files may stay behind as orphans then.
    pub fn abort(mut self) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            for (_, file) in std::mem::take(&mut self.open) {
                file.abort().await?;
            }
            while !self.finishing.is_empty() {
                // What could not be finished is not there to be deleted.
                let _ = self.wait_for_finished().await;
            }
            let written: Vec<String> =
                self.finished.iter().map(|file| file.file_path().to_owned()).collect();
            self.table.warehouse().files().delete(&written).await?;
            Ok(())
        })
    }

    /// Writes rows of one partition.
    async fn write_part(&mut self, key: PartitionKey, batch: RecordBatch) -> Result<()> {
        let file = match self.open.iter().position(|(open, _)| *open == key) {
            // Moves to the end: the most recently used.
            Some(index) => self.open.remove(index).1,
            None => {
                while self.open.len() >= self.options.open_files_max.max(1) {
                    self.close_oldest().await?;
                }
                self.open_file(&key)?
            }
        };
        self.open.push((key, file));
        let Some((_, file)) = self.open.last_mut() else { return Ok(()) };
        file.write(&batch, self.order.as_ref().filter(|_| !self.options.sorted)).await?;
        if file.estimated_bytes() >= self.properties.target_file_bytes
            && let Some((key, file)) = self.open.pop()
        {
            self.close(key, file).await?;
        }
        while self.memory_bytes() > self.options.memory_max_bytes {
            if !self.finishing.is_empty() {
                self.wait_for_finished().await?;
            } else if self.open.len() > 1 {
                self.close_oldest().await?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn open_file(&mut self, key: &PartitionKey) -> Result<OpenFile> {
        let directory =
            partition_path(self.partition.iter().zip(key.values()).map(|(field, value)| {
                let text = value.as_ref().map(|value| value_text(field.transform, value));
                (field.name.as_str(), text)
            }));
        self.file_count += 1;
        let name = format!("{:05}-{}.orc", self.file_count, self.uuid);
        let slash = if directory.is_empty() { "" } else { "/" };
        let location = format!("{}/data/{directory}{slash}{name}", self.table.location());
        OpenFile::create(self.table.warehouse().stores(), location, &self.file_target())
    }

    fn file_target(&self) -> FileTarget<'_> {
        FileTarget { schema: self.converter.schema(), options: &self.properties.orc }
    }

    async fn close_oldest(&mut self) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let (key, file) = self.open.remove(0);
        self.close(key, file).await
    }

    /// Begins to finish a file.
    async fn close(&mut self, key: PartitionKey, file: OpenFile) -> Result<()> {
        while self.finishing.is_full() {
            self.wait_for_finished().await?;
        }
        self.finishing.push(key, file);
        Ok(())
    }

    /// Waits until the file that is longest on its way is finished.
    async fn wait_for_finished(&mut self) -> Result<()> {
        match self.finishing.next().await {
            None => Ok(()),
            Some(Ok((key, written))) => self.note(&key, written),
            // The files of a table that is dropped vanish under its writers.
            Some(Err(error)) if error.kind() == ErrorKind::NotFound && !self.table.is_staged() => {
                Err(self.table.reload().await.err().unwrap_or(error))
            }
            Some(Err(error)) => Err(error),
        }
    }

    /// Notes a finished file for the commit.
    fn note(&mut self, key: &PartitionKey, written: WrittenFile) -> Result<()> {
        let metadata = self.table.metadata();
        let partition = self
            .partition
            .iter()
            .zip(key.values())
            .map(|(field, value)| partition_literal(field, value.as_ref()))
            .collect::<Result<Vec<_>>>()?;
        // 0 means no order (spec, "sort orders").
        let order = self.order.as_ref().filter(|_| written.in_order());
        let file = written.data_file(
            metadata.current_schema(),
            iceberg::spec::Struct::from_iter(partition),
            self.table.partition_spec().spec_id(),
            Some(order.map_or(0, TableOrder::id)),
        )?;
        self.finished.push(file);
        Ok(())
    }
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableWriter({}, {} rows)", self.table.ident(), self.rows)
    }
}

fn partition_fields(table: &Table) -> Result<Vec<PartitionField>> {
    let schema = table.metadata().current_schema();
    let sources = table.partition_sources()?;
    let fields = table.partition_spec().fields();
    fields
        .iter()
        .zip(sources)
        .map(|(field, (_, transform))| {
            let source = schema.field_by_id(field.source_id).ok_or_else(|| {
                Error::internal(format!("partition field {:?} has no source", field.name))
            })?;
            let result = transform.result_type(&source.name, &source.field_type)?;
            Ok(PartitionField { name: field.name.clone(), transform, result })
        })
        .collect()
}

fn partition_literal(
    field: &PartitionField,
    value: Option<&Literal>,
) -> Result<Option<iceberg::spec::Literal>> {
    let Some(value) = value else { return Ok(None) };
    crate::value::to_iceberg(value, &field.result).map(Some).ok_or_else(|| {
        Error::internal(format!(
            "partition field {:?}: {value:?} is no {}",
            field.name, field.result
        ))
    })
}

/// Shared by all files of a writer.
type OrcOptions = Arc<stoa_orc::WriterOptions>;
