//! Rows of a data file of any format, without those that are deleted.
//!
//! ```text
//! ORC ─────► stripes, row groups ─┐
//! Parquet ─► row groups ──────────┼─► batches of the columns wanted, numbered ─► deletes ─► rows
//! Avro ────► the whole file ──────┘                   adapt, names, fill
//! ```
//! In: a [`ScanFile`] and the columns wanted, with field ids at every level. Out: batches of these
//! columns. What is not ORC, or has deletes, is read here; a plain ORC file is decoded by whoever
//! scans it ([`ScanFile::is_plain`]).
//!
//! Columns are found by field id; in a file without ids by the table's name mapping
//! (`schema.name-mapping.default`), else by name. A column that a file lacks has, in this order, the
//! value of an identity partition, the initial default of the schema (v3), NULL.
//!
//! **Invariant:** pruning leaves out whole row groups only, so that rows keep their numbers.
//! Memory: what is encoded of one row group (Parquet) or of a few (ORC), the whole file for Avro.

mod adapt;
mod avro;
mod fill;
mod names;
mod orc;
mod parquet;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use futures::future::BoxFuture;
use stoa_error::{Error, Place, Result};
use stoa_orc::{FileMetadata, Predicate};
use stoa_rangeio::RangeReader;

use crate::Table;
use crate::deletes::DeletedRows;
use crate::scan::{FileFormat, ScanFile};
pub(crate) use fill::{Fill, has_defaults};
use names::NameMap;

/// How a file is read.
#[derive(Clone, Debug)]
pub struct RowOptions {
    /// The columns wanted, with field ids.
    pub schema: SchemaRef,
    /// Row groups without matching rows may be left out; what is read may hold rows that do not
    /// match.
    pub predicate: Predicate,
    /// Most rows in a batch.
    pub batch_rows: usize,
    /// Of `parts` parts of about one size, which.
    pub part: usize,
    /// How many parts the file is cut into.
    pub parts: usize,
    /// Encoded bytes of an ORC file to hold at a time, about.
    pub ahead_bytes: u64,
    /// Reads the data file instead of its own reader, such as one that counts.
    pub reader: Option<RangeReader>,
    /// The tail of an ORC file, if it is known.
    pub orc_tail: Option<Arc<FileMetadata>>,
}

impl RowOptions {
    /// All rows, with these columns.
    pub fn of(schema: SchemaRef) -> Self {
        Self {
            schema,
            predicate: Predicate::always(),
            batch_rows: 8192,
            part: 0,
            parts: 1,
            ahead_bytes: 32 << 20,
            reader: None,
            orc_tail: None,
        }
    }

    /// The part of `count` things that is to be read.
    fn range_of(&self, count: usize) -> std::ops::Range<usize> {
        let parts = self.parts.max(1);
        count * self.part / parts..count * (self.part + 1) / parts
    }
}

/// The rows of a data file that are left, from the first to the last.
pub struct RowReader {
    rows: RowSource,
    deleted: DeletedRows,
    schema: SchemaRef,
    deleted_rows: u64,
    location: String,
}

enum RowSource {
    File(Box<FileRows>),
    /// Nothing but their number is asked for.
    Counted(Option<u64>),
}

impl Table {
    /// Begins to read `file`, which a scan of this version has planned.
    ///
    /// # Errors
    /// `Corrupt` for files that are missing or damaged; `Unsupported` for what cannot be read;
    /// those of the store.
    pub fn read_rows<'a>(
        &'a self,
        file: &'a Arc<ScanFile>,
        options: RowOptions,
    ) -> BoxFuture<'a, Result<RowReader>> {
        Box::pin(async move {
            let deleted = DeletedRows::load(self, &file.location, &file.deletes).await?;
            let schema = options.schema.clone();
            let location = file.location.clone();
            let counts = schema.fields().is_empty() && options.predicate.is_always();
            if let Some(left) = deleted.rows_left(file.rows).filter(|_| counts) {
                let left = if options.part == 0 { Some(left) } else { None };
                let deleted_rows = file.rows - left.unwrap_or(file.rows);
                let rows = RowSource::Counted(left);
                return Ok(RowReader { rows, deleted, schema, deleted_rows, location });
            }
            let options = RowOptions { schema: deleted.with_key_columns(&schema), ..options };
            let rows = RowSource::File(Box::new(FileRows::open(self, file, options).await?));
            Ok(RowReader { rows, deleted, schema, deleted_rows: 0, location })
        })
    }
}

impl RowReader {
    /// The next rows, maybe none; `None` after the last.
    ///
    /// # Errors
    /// As [`Table::read_rows`].
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let file = match &mut self.rows {
            RowSource::Counted(left) => return left.take().map(counted).transpose(),
            RowSource::File(file) => file,
        };
        let Some((first, batch)) = file.next().await? else { return Ok(None) };
        let before = batch.num_rows();
        let batch =
            self.deleted.apply(first, batch).map_err(|e| e.at(Place::file(&self.location)))?;
        self.deleted_rows += (before - batch.num_rows()) as u64;
        if batch.num_columns() == self.schema.fields().len() {
            return Ok(Some(batch));
        }
        let wanted: Vec<usize> = (0..self.schema.fields().len()).collect();
        batch.project(&wanted).map(Some).map_err(|source| {
            Error::internal("columns cannot be taken out of a batch").with_source(source)
        })
    }

    /// Rows left out so far because they are deleted.
    pub fn deleted_rows(&self) -> u64 {
        self.deleted_rows
    }
}

impl std::fmt::Debug for RowReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowReader({})", self.location)
    }
}

/// Rows without columns.
fn counted(rows: u64) -> Result<RecordBatch> {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(arrow_schema::Schema::empty()), vec![], &options)
        .map_err(|source| Error::internal("rows cannot be counted").with_source(source))
}

/// All rows of a file, deleted ones too, with the number of the first row of each batch.
pub(crate) enum FileRows {
    Orc(orc::OrcRows),
    Parquet(parquet::ParquetRows),
    Avro(avro::AvroRows),
}

impl FileRows {
    pub(crate) async fn open(
        table: &Table,
        file: &Arc<ScanFile>,
        options: RowOptions,
    ) -> Result<Self> {
        if file.is_encrypted {
            return Err(Error::unsupported("the file is encrypted")
                .at(Place::file(&file.location))
                .with_hint("read the table with an engine that has its keys"));
        }
        let names = NameMap::of(table, &options.schema)?;
        let fill = Fill::of(table, file)?;
        Ok(match file.format {
            FileFormat::Orc => Self::Orc(orc::OrcRows::open(file, options, fill).await?),
            FileFormat::Parquet => {
                let rows = parquet::ParquetRows::open(table, file, options, &names, fill);
                Self::Parquet(rows.await?)
            }
            FileFormat::Avro => {
                Self::Avro(avro::AvroRows::open(file, options, &names, fill).await?)
            }
            FileFormat::Puffin => {
                return Err(Error::corrupt(format!(
                    "{}: a Puffin file cannot hold rows",
                    file.location
                )));
            }
        })
    }

    pub(crate) async fn next(&mut self) -> Result<Option<(u64, RecordBatch)>> {
        match self {
            Self::Orc(rows) => rows.next().await,
            Self::Parquet(rows) => rows.next().await,
            Self::Avro(rows) => rows.next(),
        }
    }
}
