//! Reads the splits of one plan partition, one after another.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;
use futures::stream;
use stoa_error::Place;
use stoa_error::{Error, ErrorKind, Result};
use stoa_ingest::FreshRows;
use stoa_orc::{Decoder, FileMetadata, Predicate, Projection, ReadOptions, Step};
use stoa_rangeio::{RangeReader, ReadMetrics};
use stoa_report::{ChunkScan, FileScan, Report};
use stoa_store::Charge;
use stoa_table::{FileFormat, RowOptions, RowReader, ScanFile};

use super::Split;
use super::metrics::ScanMetrics;
use crate::run::memory::ReportMemory;
use crate::run::progress::Progress;
use crate::tables::nested::retype;
use crate::tables::table::StoaTable;
use stoa_semantics::errors::to_datafusion;

/// What all splits of a plan partition have in common.
pub(super) struct SplitReader {
    pub(super) table: StoaTable,
    pub(super) schema: SchemaRef,
    pub(super) stored: SchemaRef,
    pub(super) predicate: Predicate,
    pub(super) batch_rows: usize,
    pub(super) metrics: ScanMetrics,
    pub(super) progress: Arc<Progress>,
    /// Plain files are read through chunks.
    pub(super) chunks: Option<Arc<ChunkScan>>,
}

/// A split that is being read.
struct OpenSplit {
    source: FileSource,
    rows: SplitRows,
    /// Rows in it that were not counted as scanned yet.
    rows_left: u64,
}

/// How the rows of a split come.
enum SplitRows {
    /// Out of an ORC file that has nothing but them.
    Plain(Decoder),
    /// The same, through chunks.
    Chunks(Box<ChunkRows>),
    /// Out of any other file.
    Others(RowReader),
}

/// The rows of a split, out of chunks.
struct ChunkRows {
    scan: FileScan,
    split: Split,
    /// Whether any of them have been given.
    given: bool,
}

impl OpenSplit {
    fn count(&mut self, rows: u64, progress: &Progress) {
        let rows = rows.min(self.rows_left);
        self.rows_left -= rows;
        progress.scan_rows(rows);
    }
}

/// The bytes of one file.
pub(super) struct FileSource {
    reader: RangeReader,
    counters: Arc<ReadMetrics>,
    file: Arc<ScanFile>,
}

impl SplitReader {
    pub(super) fn stream(self, splits: Vec<Split>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let state = (self, splits.into_iter(), None::<OpenSplit>);
        let batches = stream::try_unfold(state, |(reader, mut splits, mut open)| async move {
            loop {
                if let Some(split) = &mut open {
                    if let Some(batch) = reader.next_batch(split).await? {
                        split.count(batch.num_rows() as u64, &reader.progress);
                        return Ok(Some((batch, (reader, splits, open))));
                    }
                    if let SplitRows::Plain(decoder) = &split.rows {
                        reader.metrics.record_decoder(decoder.metrics());
                    }
                    split.count(u64::MAX, &reader.progress);
                    open = None;
                }
                let Some(split) = splits.next() else { return Ok(None) };
                let counts = reader.schema.fields().is_empty() && reader.predicate.is_always();
                if counts && split.file.is_plain() {
                    let batch = reader.row_count_batch(&split)?;
                    return Ok(Some((batch, (reader, splits, open))));
                }
                open = Some(reader.open(&split).await?);
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.map_err(to_datafusion)))
    }

    /// As [`Self::stream`], by way of the memory of reports.
    pub(super) fn stream_selected(
        self,
        report: Report,
        splits: Vec<Split>,
        memory: ReportMemory,
    ) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches = stream::once(async move {
            let batches = match self.select(&report, &memory).await? {
                Some(batch) => {
                    self.progress.scan_rows(splits.iter().map(|split| split.file.rows).sum());
                    slices(batch, self.batch_rows)
                }
                None => return Ok(self.stream(splits)),
            };
            // What they take is given back after the last of them.
            let counted = move |batch| {
                let _counted = &memory;
                Ok(batch)
            };
            let batches = stream::iter(batches.into_iter().map(counted));
            let stream = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches);
            Ok(Box::pin(stream) as SendableRecordBatchStream)
        });
        let batches = batches.map_err(to_datafusion).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }

    /// The rows of a report; `None` where they are beyond its bounds.
    async fn select(&self, report: &Report, memory: &ReportMemory) -> Result<Option<RecordBatch>> {
        let table = &self.table.table;
        let _timer = self.metrics.baseline.elapsed_compute().timer();
        let fresh = FreshRows::none(table);
        let run = self.table.reports.run_within(table, &fresh, report, memory);
        let charge = Arc::<Charge>::default();
        let answer = stoa_store::charged(Arc::clone(&charge), run).await;
        self.metrics.record_charge(&charge, &self.progress);
        let Some(answer) = answer? else { return Ok(None) };
        self.metrics.record_selected(&answer.work, &self.progress);
        self.metrics.baseline.record_output(answer.batch.num_rows());
        Ok(Some(answer.batch))
    }

    /// Rows without columns, as `count(*)` wants them: known without reading the file.
    fn row_count_batch(&self, split: &Split) -> Result<RecordBatch> {
        let rows = if split.part == 0 { split.file.rows } else { 0 };
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), Vec::new(), &options)
            .map_err(|e| Error::internal("cannot make a batch without columns").with_source(e))
    }

    async fn open(&self, split: &Split) -> Result<OpenSplit> {
        let source = FileSource::open(&split.file);
        let rows_left = split.file.rows / split.parts.max(1) as u64;
        if !split.file.is_plain() {
            let rows = SplitRows::Others(self.open_rows(&source, split).await?);
            return Ok(OpenSplit { source, rows, rows_left });
        }
        if let Some(scan) = &self.chunks {
            match self.open_chunks(scan, &source, split).await {
                Ok(Some(scan)) => {
                    let rows = ChunkRows { scan, split: split.clone(), given: false };
                    let rows = SplitRows::Chunks(Box::new(rows));
                    return Ok(OpenSplit { source, rows, rows_left });
                }
                Ok(None) => {}
                // The file is another one than before, which does not matter to who reads it anew.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        let rows = SplitRows::Plain(self.decoder(&source, split).await?);
        Ok(OpenSplit { source, rows, rows_left })
    }

    /// Begins to read a split through chunks; `None` where it has none.
    pub(super) async fn open_chunks(
        &self,
        scan: &Arc<ChunkScan>,
        source: &FileSource,
        split: &Split,
    ) -> Result<Option<FileScan>> {
        let reports = &self.table.reports;
        let parts = (split.part, split.parts);
        let open = reports.scan_file(scan, &split.file, parts, &source.counters);
        self.counted(source, open).await
    }

    /// Decodes a split of a plain file.
    async fn decoder(&self, source: &FileSource, split: &Split) -> Result<Decoder> {
        let metadata = self.metadata(source).await?;
        let options = ReadOptions::default()
            .with_projection(Projection::Fields(Arc::clone(&self.stored)))
            .with_predicate(self.predicate.clone())
            .with_batch_rows(self.batch_rows)
            .with_stripes(stripes_of(split, metadata.stripes.len()));
        Decoder::new(metadata, options).map_err(|e| e.at(Place::file(&split.file.location)))
    }

    /// The next rows out of chunks; a decoder instead, where nothing was given yet of a file that is found to be
    /// another one than before.
    async fn next_of_chunks(
        &self,
        source: &FileSource,
        rows: &mut ChunkRows,
    ) -> Result<Result<Option<RecordBatch>, Decoder>> {
        let next = {
            let _timer = self.metrics.baseline.elapsed_compute().timer();
            self.counted(source, rows.scan.next()).await
        };
        self.metrics.record_chunks(&rows.scan.take_work(), &self.progress);
        match next {
            Ok(batch) => {
                rows.given = true;
                let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
                self.metrics.baseline.record_output(rows);
                Ok(Ok(batch))
            }
            Err(error) if error.kind() == ErrorKind::Conflict && !rows.given => {
                Ok(Err(self.decoder(source, &rows.split).await?))
            }
            Err(error) => Err(error),
        }
    }

    /// Begins to read a file that has deleted rows or is not ORC.
    async fn open_rows(&self, source: &FileSource, split: &Split) -> Result<RowReader> {
        let orc_tail = match split.file.format {
            FileFormat::Orc => Some(self.metadata(source).await?),
            _ => None,
        };
        let options = RowOptions {
            predicate: self.predicate.clone(),
            batch_rows: self.batch_rows,
            part: split.part,
            parts: split.parts,
            reader: Some(source.reader.clone()),
            orc_tail,
            ..RowOptions::of(Arc::clone(&self.stored))
        };
        let rows = self.table.table.read_rows(&split.file, options);
        self.counted(source, rows).await
    }

    /// The parsed tail of a file, from the cache if it was read before.
    async fn metadata(&self, source: &FileSource) -> Result<Arc<FileMetadata>> {
        let file = &source.file;
        if let Some(known) = self.table.files.get(&file.location, file.file_bytes) {
            return Ok(known);
        }
        let metadata = self.counted(source, file.read_metadata(&source.reader)).await?;
        let metadata = Arc::new(metadata);
        self.table.files.insert(&file.location, file.file_bytes, Arc::clone(&metadata));
        Ok(metadata)
    }

    async fn next_batch(&self, split: &mut OpenSplit) -> Result<Option<RecordBatch>> {
        if let SplitRows::Chunks(rows) = &mut split.rows {
            match self.next_of_chunks(&split.source, rows).await? {
                Ok(batch) => return Ok(batch),
                Err(decoder) => split.rows = SplitRows::Plain(decoder),
            }
        }
        let location = &split.source.file.location;
        let decoder = match &mut split.rows {
            SplitRows::Chunks(_) => return Ok(None),
            SplitRows::Plain(decoder) => decoder,
            SplitRows::Others(rows) => {
                let batch = self.counted(&split.source, rows.next()).await?;
                return batch.map(|batch| self.finished(batch, location)).transpose();
            }
        };
        loop {
            let step = {
                let _timer = self.metrics.baseline.elapsed_compute().timer();
                decoder.next().map_err(|e| e.at(Place::file(location)))?
            };
            match step {
                Step::NeedsData(ranges) => {
                    for (offset, bytes) in self.read(&split.source, &ranges).await? {
                        decoder.push(offset, bytes);
                    }
                }
                Step::Batch(batch) => return self.finished(batch, location).map(Some),
                Step::Finished => return Ok(None),
            }
        }
    }

    /// A batch of the file at `location` as the engine has it.
    fn finished(&self, batch: RecordBatch, location: &str) -> Result<RecordBatch> {
        self.metrics.baseline.record_output(batch.num_rows());
        retype(batch, &self.schema).map_err(|e| {
            Error::corrupt("rows are not as the table says")
                .at(Place::file(location))
                .with_source(e)
        })
    }

    async fn read(&self, source: &FileSource, ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>> {
        let read = source.reader.read(&source.file.path, ranges);
        self.counted(source, read).await.map_err(|error| source.file.failed(error))
    }

    /// Counts what is read meanwhile as this scan's.
    pub(super) async fn counted<T>(&self, source: &FileSource, work: impl Future<Output = T>) -> T {
        let before = source.counters.counts();
        // Operators may run on tasks of their own, whose requests nobody else counts for the query.
        let charge = Arc::<Charge>::default();
        let done = stoa_store::charged(Arc::clone(&charge), work).await;
        self.metrics.record_charge(&charge, &self.progress);
        self.metrics.record_read(&before, &source.counters.counts(), &self.progress);
        done
    }
}

impl FileSource {
    pub(super) fn open(file: &Arc<ScanFile>) -> Self {
        let counters = Arc::new(ReadMetrics::default());
        let reader = file.reader.clone().with_metrics(Arc::clone(&counters));
        Self { reader, counters, file: Arc::clone(file) }
    }
}

/// A batch in parts of at most `rows` rows.
fn slices(batch: RecordBatch, rows: usize) -> Vec<RecordBatch> {
    let starts = (0..batch.num_rows()).step_by(rows.max(1));
    starts.map(|start| batch.slice(start, rows.min(batch.num_rows() - start))).collect()
}

/// The stripes of a split: an equal run of them, so that neighbours stay together.
fn stripes_of(split: &Split, stripes: usize) -> Range<usize> {
    stripes * split.part / split.parts..stripes * (split.part + 1) / split.parts
}
