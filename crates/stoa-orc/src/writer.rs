//! Arrow record batches to an ORC file.
//!
//! In: batches of one schema. Out: bytes for a sink, in order, and a [`FileSummary`].
//!
//! ```text
//! "ORC" · stripe… · statistics of stripes · footer · postscript · its length
//! stripe = row indexes and bloom filters by column · data streams by column · stripe footer
//! ```
//! **Invariants:** a row group's streams start where a run (and, if it holds enough, a compression
//! chunk) starts; memory is that of one stripe.
//! Not here: where the bytes go, encryption, padding for HDFS.

pub(crate) mod children;
pub(crate) mod collector;
pub(crate) mod column;
mod compressor;
mod options;
mod stream;
mod summary;
mod tail;
mod values;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use prost::Message;
use stoa_error::Error;

pub use options::{DictionaryChoice, WriterOptions};
pub use summary::{ColumnMetrics, FileSummary};

use crate::block_checksums::{BlockChecksumBuilder, CHECKSUMS_KEY};
use crate::bloom::hash_bytes;
use crate::compact_index::{COMPACT_INDEX_KEY, CompactIndexBuilder};
use crate::encode::int_rle::IntEncoder;
use crate::error::Result;
use crate::proto::{self, StreamKind};
use crate::record::{Record, StripeRecord};
use crate::schema::TypeTree;
use crate::stripe_info::StripeInfo;
use column::{Column, StripeParts};
use compressor::Compressor;
use stream::Context;

/// First bytes of a file.
const MAGIC: &[u8] = b"ORC";

/// Without row groups, the size of a stripe is looked at after this many rows.
const ROWS_AT_ONCE_MAX: u64 = 10_000;

/// Writes one ORC file.
///
/// Give it batches with [`Self::write`], move [`Self::take_output`] to the sink whenever it suits
/// (finished stripes wait there), call [`Self::finish`] and take the output a last time. Dropped
/// before that, what was taken is not a file. After an error the writer must be dropped.
///
/// ```
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use stoa_orc::{Writer, WriterOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let column: ArrayRef = std::sync::Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let batch = RecordBatch::try_from_iter([("number", column)])?;
/// let mut file: Vec<u8> = Vec::new();
/// let mut writer = Writer::new(&batch.schema(), WriterOptions::default())?;
/// writer.write(&batch)?;
/// file.extend_from_slice(&writer.take_output());
/// let summary = writer.finish()?;
/// file.extend_from_slice(&writer.take_output());
/// assert_eq!((summary.rows, summary.file_bytes), (3, file.len() as u64));
/// # Ok(()) }
/// ```
pub struct Writer {
    options: WriterOptions,
    types: TypeTree,
    /// Schema of the last batch, known to fit.
    schema: SchemaRef,
    root: Column,
    cx: Context,
    /// Rows in the row group and in the stripe at hand.
    group_rows: u64,
    stripe_rows: u64,
    output: Vec<u8>,
    taken_bytes: u64,
    stripes: Vec<proto::StripeInformation>,
    stripe_statistics: Vec<proto::StripeStatistics>,
    compact_index: CompactIndexBuilder,
    checksums: BlockChecksumBuilder,
    /// If the file is to be validated: by stripe.
    records: Vec<StripeRecord>,
    /// The same, once the file is finished.
    pub(crate) record: Option<Record>,
    rows: u64,
    is_finished: bool,
}

impl Writer {
    /// A writer of batches of `schema`.
    ///
    /// # Errors
    /// `Unsupported` for a type that ORC does not have; `Invalid` for options out of range.
    pub fn new(schema: &Schema, options: WriterOptions) -> Result<Self> {
        let types = TypeTree::from_arrow(schema)?;
        options.check(&types)?;
        let compressor = Compressor::new(options.compression, options.compression_block_bytes)?;
        let root = Column::new(&types, 0, &options)?;
        let mut checksums = BlockChecksumBuilder::new();
        checksums.push(MAGIC);
        Ok(Self {
            schema: Arc::new(schema.clone()),
            root,
            cx: Context { compressor, integers: IntEncoder::new() },
            group_rows: 0,
            stripe_rows: 0,
            output: MAGIC.to_vec(),
            taken_bytes: 0,
            stripes: Vec::new(),
            stripe_statistics: Vec::new(),
            compact_index: CompactIndexBuilder::default(),
            checksums,
            records: Vec::new(),
            record: None,
            rows: 0,
            is_finished: false,
            types,
            options,
        })
    }

    /// The types of the file.
    pub fn types(&self) -> &TypeTree {
        &self.types
    }

    /// Adds the rows of `batch`.
    ///
    /// # Errors
    /// `Invalid` if the batch's columns are of other ORC types than the writer's schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.is_finished {
            return Err(Error::internal("the ORC file is finished"));
        }
        self.check_schema(batch)?;
        let mut from = 0;
        while from < batch.num_rows() {
            if self.group_rows == 0 {
                self.root.start_row_group(&self.cx);
            }
            let room = match self.options.row_index_stride {
                0 => ROWS_AT_ONCE_MAX,
                stride => u64::from(stride) - self.group_rows,
            };
            let room =
                room.min(self.options.stripe_rows.max(self.stripe_rows + 1) - self.stripe_rows);
            let rows = (batch.num_rows() - from).min(usize::try_from(room).unwrap_or(usize::MAX));
            let part = batch.slice(from, rows);
            self.root.write_root(rows, part.columns(), &mut self.cx)?;
            self.group_rows += rows as u64;
            self.stripe_rows += rows as u64;
            from += rows;
            if self.group_rows == u64::from(self.options.row_index_stride) {
                self.end_row_group()?;
            }
            let is_border = self.group_rows == 0 || self.options.row_index_stride == 0;
            if self.stripe_rows >= self.options.stripe_rows || (is_border && self.is_stripe_full())
            {
                self.end_stripe()?;
            }
        }
        Ok(())
    }

    /// Bytes ready for the sink, possibly none. All outputs one after the other are the file.
    pub fn take_output(&mut self) -> Bytes {
        self.taken_bytes += self.output.len() as u64;
        Bytes::from(std::mem::take(&mut self.output))
    }

    /// Bytes held: the stripe at hand, finished stripes not taken yet, scratch space.
    pub fn memory_bytes(&self) -> usize {
        let kept = self.output.capacity()
            + self.compact_index.memory_bytes()
            + self.checksums.memory_bytes();
        self.root.memory_bytes() + kept + self.cx.compressor.memory_bytes()
    }

    /// Bytes of finished stripes, taken or not.
    pub fn bytes_written(&self) -> u64 {
        self.taken_bytes + self.output.len() as u64
    }

    /// About how many bytes the file will have if it ends now.
    pub fn estimated_bytes(&self) -> u64 {
        self.bytes_written() + self.root.stripe_bytes() as u64
    }

    /// Ends the file; take the output a last time afterwards.
    ///
    /// # Errors
    /// `Internal` if called twice, or if a codec fails.
    pub fn finish(&mut self) -> Result<FileSummary> {
        if self.is_finished {
            return Err(Error::internal("the ORC file is finished"));
        }
        self.end_stripe()?;
        self.is_finished = true;
        let content_end = self.bytes_written();
        self.write_tail()?;
        if self.options.validate {
            self.record = Some(self.record_of_file(content_end));
        }
        let mut columns = Vec::with_capacity(self.types.len());
        self.root.metrics(Some(self.rows), &mut columns);
        Ok(FileSummary {
            rows: self.rows,
            file_bytes: self.bytes_written(),
            tail_bytes: self.bytes_written() - content_end,
            stripe_offsets: self.stripes.iter().map(|stripe| stripe.offset()).collect(),
            columns,
        })
    }

    /// All that is remembered of the file.
    fn record_of_file(&mut self, content_end: u64) -> Record {
        let (mut bloom_columns, mut nano_columns) = (Vec::new(), Vec::new());
        self.root.bloom_columns(&mut bloom_columns);
        self.root.nano_columns(&mut nano_columns);
        let keys = self.options.user_metadata.iter();
        let keys =
            keys.filter(|(name, _)| ![COMPACT_INDEX_KEY, CHECKSUMS_KEY].contains(&name.as_str()));
        Record {
            types: self.types.clone(),
            compression: self.options.compression.kind(),
            block_bytes: self.options.compression_block_bytes,
            row_index_stride: self.options.row_index_stride,
            user_metadata: keys.map(|(name, value)| (name.clone(), value.clone().into())).collect(),
            bloom_columns,
            nano_columns,
            stripes: std::mem::take(&mut self.records),
            tail_from: content_end,
            tail_hash: hash_bytes(self.output_from(content_end)),
            file_bytes: self.bytes_written(),
        }
    }

    /// The output not taken yet, from an offset of the file on.
    fn output_from(&self, offset: u64) -> &[u8] {
        &self.output[(offset - self.taken_bytes) as usize..]
    }

    /// Whether `batch` has the ORC types of this file.
    fn check_schema(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema_ref();
        if Arc::ptr_eq(schema, &self.schema) {
            return Ok(());
        }
        let types = TypeTree::from_arrow(schema)?;
        let kinds = |tree: &TypeTree| {
            let each = tree.types().iter();
            each.map(|ty| (ty.kind, ty.precision, ty.scale, ty.children.clone()))
                .collect::<Vec<_>>()
        };
        if kinds(&types) != kinds(&self.types) {
            return Err(Error::invalid("a batch has other column types than the ORC file")
                .with_detail(format!("batch: {schema}; file: {}", self.schema)));
        }
        self.schema = schema.clone();
        Ok(())
    }

    fn is_stripe_full(&self) -> bool {
        self.root.stripe_bytes() >= self.options.stripe_bytes
    }

    fn end_row_group(&mut self) -> Result<()> {
        self.group_rows = 0;
        self.root.end_row_group(&mut self.cx)
    }

    /// Moves the stripe at hand, if it has rows, to the output.
    fn end_stripe(&mut self) -> Result<()> {
        if self.stripe_rows == 0 {
            return Ok(());
        }
        if self.group_rows > 0 {
            self.end_row_group()?;
        }
        let mut parts = StripeParts::default();
        self.root.end_stripe(&mut self.cx, &mut parts)?;

        let offset = self.bytes_written();
        let mut streams = Vec::new();
        let row_indexes = self.write_indexes(&parts, &mut streams)?;
        let data_from = self.bytes_written();
        self.output.reserve(parts.streams.iter().map(|(_, _, bytes)| bytes.len()).sum());
        for (column, kind, bytes) in parts.streams {
            streams.push(stream(column, kind, bytes.len()));
            self.output.extend_from_slice(&bytes);
        }
        let footer_from = self.bytes_written();
        let footer = proto::StripeFooter {
            streams,
            columns: parts.encodings,
            writer_timezone: Some("UTC".to_owned()),
            encryption: Vec::new(),
        };
        let footer = footer.encode_to_vec();
        self.cx.compressor.write_section(&footer, &mut self.output)?;
        let stripe = proto::StripeInformation {
            offset: Some(offset),
            index_length: Some(data_from - offset),
            data_length: Some(footer_from - data_from),
            footer_length: Some(self.bytes_written() - footer_from),
            number_of_rows: Some(self.stripe_rows),
        };
        if self.options.compact_index {
            self.compact_index.push(&stripe, &footer, &row_indexes);
        }
        if self.options.validate {
            let info = StripeInfo::of(&stripe, self.rows);
            let hash = hash_bytes(self.output_from(offset));
            self.records.push(StripeRecord { info, hash, checksums: parts.checksums });
        }
        if self.options.checksums {
            let from = (offset - self.taken_bytes) as usize;
            self.checksums.push(&self.output[from..]);
        }
        self.stripes.push(stripe);
        self.stripe_statistics.push(proto::StripeStatistics { col_stats: parts.statistics });
        self.rows += self.stripe_rows;
        self.stripe_rows = 0;
        Ok(())
    }

    /// Writes the row index and the bloom filters of every column; returns the row indexes
    /// (empty messages if the file has none).
    fn write_indexes(
        &mut self,
        parts: &StripeParts,
        streams: &mut Vec<proto::Stream>,
    ) -> Result<Vec<Vec<u8>>> {
        if self.options.row_index_stride == 0 {
            return Ok(vec![Vec::new(); parts.indexes.len()]);
        }
        let mut row_indexes = Vec::with_capacity(parts.indexes.len());
        for (column, (index, bloom)) in parts.indexes.iter().zip(&parts.blooms).enumerate() {
            let mut write = |kind, message: &[u8]| -> Result<()> {
                let from = self.output.len();
                self.cx.compressor.write_section(message, &mut self.output)?;
                streams.push(stream(column as u32, kind, self.output.len() - from));
                Ok(())
            };
            let index = index.encode_to_vec();
            write(StreamKind::RowIndex, &index)?;
            row_indexes.push(index);
            if let Some(bloom) = bloom {
                write(StreamKind::BloomFilterUtf8, &bloom.encode_to_vec())?;
            }
        }
        Ok(row_indexes)
    }
}

fn stream(column: u32, kind: StreamKind, length: usize) -> proto::Stream {
    proto::Stream { kind: Some(kind as i32), column: Some(column), length: Some(length as u64) }
}
