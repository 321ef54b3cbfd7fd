//! Rows of one file, or of a part of one.
//!
//! ```text
//! ORC ──────────► stripes ────┐
//! Parquet ──────► row groups ─┼─► columns wanted, found by name ─► types of the table ─► batches
//! text ─► lines ─► fields ────┤
//! SequenceFile ─► lines ──────┘
//! ```

mod lines;
mod orc;
mod parquet;
mod parquet_groups;
mod sequence;
mod source;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use stoa_error::{Error, Place, Result};
use stoa_orc::{Predicate, with_one_nan};
use stoa_rangeio::{ReadCounts, ReadMetrics};
use stoa_store::Location;

use crate::adapt::{Limit, limited};
use crate::{DataFile, Definition, FileFormat, TextFormat};
use lines::LineReader;
use orc::OrcRows;
use parquet::ParquetRows;
use sequence::SequenceReader;
use source::Source;

/// A part of a file.
#[derive(Clone, Debug)]
pub struct FilePart {
    /// The file.
    pub file: DataFile,
    /// Which of the parts, counted from 0.
    pub part: usize,
    /// How many there are; 1 for files that cannot be cut.
    pub parts: usize,
}

/// How files are read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// All columns that files have, that is, all but partition columns, with field ids.
    pub columns: SchemaRef,
    /// Those wanted, by their places in `columns`.
    pub wanted: Vec<usize>,
    /// Narrower types of `columns`, by place; may be shorter.
    pub limits: Vec<Option<Limit>>,
    /// On field ids of `columns`: stripes and row groups that cannot match need not be read. What is read may hold rows
    /// that do not match.
    pub predicate: Predicate,
    /// Most rows in a batch.
    pub batch_rows: usize,
}

impl ReadOptions {
    fn schema(&self) -> Result<SchemaRef> {
        let schema = self.columns.project(&self.wanted);
        let schema = schema
            .map_err(|e| Error::internal("columns are wanted that are not there").with_source(e))?;
        Ok(Arc::new(Schema::new(schema.fields)))
    }
}

impl FilePart {
    /// Into how many parts of about `bytes` a file of this format can be cut.
    pub fn parts_of(file: &DataFile, format: FileFormat, bytes: u64) -> usize {
        let is_whole = match format {
            FileFormat::Sequence => true,
            FileFormat::Text => lines::is_compressed(&file.path),
            FileFormat::Orc | FileFormat::Parquet => false,
        };
        match is_whole {
            true => 1,
            false => usize::try_from(file.bytes.div_ceil(bytes.max(1))).unwrap_or(1).clamp(1, 4096),
        }
    }

    /// The part of `count` things that is to be read.
    fn range_of(&self, count: usize) -> std::ops::Range<usize> {
        let parts = self.parts.max(1);
        count * self.part / parts..count * (self.part + 1) / parts
    }
}

/// The rows of a part of a file.
pub struct Rows {
    rows: Kind,
    limits: Vec<Option<Limit>>,
    place: String,
    counters: Arc<ReadMetrics>,
}

/// How much of a file's parts was left out by statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrunedGroups {
    /// Stripes of ORC, or row groups of Parquet, of the part of the file.
    pub stripes_total: u64,
    /// Those that were not read.
    pub stripes_pruned: u64,
    /// ORC's row groups in the stripes that were looked into.
    pub row_groups_total: u64,
    /// Those that were not read.
    pub row_groups_pruned: u64,
}

enum Kind {
    Orc(Box<OrcRows>),
    Parquet(Box<ParquetRows>),
    Lines(Box<LineRows>),
}

/// Lines that become batches.
struct LineRows {
    source: LineSource,
    format: TextFormat,
    schema: SchemaRef,
    places: Vec<usize>,
    batch_rows: usize,
    block: lines::Block,
    /// The next line of the block.
    next: usize,
}

enum LineSource {
    Text(LineReader),
    Sequence(SequenceReader),
}

impl Rows {
    /// Begins to read a part of a file.
    ///
    /// # Errors
    /// `Corrupt` for a damaged file, `Unsupported` for one that cannot be read, and those of the store.
    pub async fn open(
        location: &Location,
        definition: &Definition,
        part: &FilePart,
        options: &ReadOptions,
    ) -> Result<Self> {
        let place = location.literal_of(&part.file.path);
        let counters = Arc::<ReadMetrics>::default();
        let source = Source::new(location, &part.file, &counters);
        let rows = Self::kind(source, definition, part, options).await;
        let rows = rows.map_err(|error| error.at(Place::file(&place)))?;
        let limit = |at: &usize| options.limits.get(*at).copied().flatten();
        let limits = options.wanted.iter().map(limit).collect();
        Ok(Self { rows, limits, place, counters })
    }

    /// What was read of the file so far.
    pub fn read_counts(&self) -> ReadCounts {
        self.counters.counts()
    }

    /// What was left out of the file so far.
    pub fn pruned(&self) -> PrunedGroups {
        match &self.rows {
            Kind::Orc(rows) => rows.pruned(),
            Kind::Parquet(rows) => rows.pruned(),
            Kind::Lines(_) => PrunedGroups::default(),
        }
    }

    async fn kind(
        source: Source,
        definition: &Definition,
        part: &FilePart,
        options: &ReadOptions,
    ) -> Result<Kind> {
        Ok(match definition.format {
            FileFormat::Orc => Kind::Orc(Box::new(OrcRows::open(source, part, options).await?)),
            FileFormat::Parquet => {
                Kind::Parquet(Box::new(ParquetRows::open(source, part, options).await?))
            }
            FileFormat::Text | FileFormat::Sequence => {
                let format = TextFormat::of(definition)?;
                let source = match definition.format {
                    FileFormat::Text => {
                        let header = definition.header_lines;
                        LineSource::Text(LineReader::new(source, part, header)?)
                    }
                    _ => LineSource::Sequence(
                        SequenceReader::open(source, definition.header_lines).await?,
                    ),
                };
                Kind::Lines(Box::new(LineRows {
                    source,
                    format,
                    schema: options.schema()?,
                    places: options.wanted.clone(),
                    batch_rows: options.batch_rows.max(1),
                    block: lines::Block::default(),
                    next: 0,
                }))
            }
        })
    }

    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match &mut self.rows {
            Kind::Orc(rows) => rows.next().await,
            Kind::Parquet(rows) => rows.next().await,
            Kind::Lines(rows) => rows.next().await,
        };
        let batch = batch.map_err(|error| error.at(Place::file(&self.place)))?;
        batch.map(|batch| self.within_limits(batch)).transpose()
    }

    /// Values within the limits of their types, and with one NaN.
    fn within_limits(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let (schema, columns, _) = batch.into_parts();
        let columns = columns.into_iter().zip(&self.limits);
        let columns = columns.map(|(column, limit)| {
            let column = with_one_nan(&column).unwrap_or(column);
            limited(column, *limit)
        });
        let columns = columns.collect();
        RecordBatch::try_new_with_options(schema, columns, &options)
            .map_err(|e| Error::internal("values do not fit within limits").with_source(e))
    }
}

impl LineRows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.next >= self.block.lines.len() {
            let block = match &mut self.source {
                LineSource::Text(reader) => reader.next_block().await?,
                LineSource::Sequence(reader) => reader.next_block().await?,
            };
            let Some(block) = block else { return Ok(None) };
            (self.block, self.next) = (block, 0);
        }
        let last = self.block.lines.len().min(self.next + self.batch_rows);
        let ranges = self.block.lines[self.next..last].iter();
        let lines: Vec<&[u8]> = ranges.map(|range| &self.block.text[range.clone()]).collect();
        let batch = self.format.batch(&lines, &self.schema, &self.places)?;
        self.next = last;
        Ok(Some(batch))
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({})", self.place)
    }
}
