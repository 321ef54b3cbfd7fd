//! Parquet files to batches.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use stoa_error::{Error, Result};

use crate::LoadOptions;
use crate::adapt::Adapter;
use crate::batches::{FileBatches, FileShare};
use crate::input::{cannot_read, display};
use crate::rejects::Rejects;

/// One Parquet file being read.
pub(crate) struct ParquetFile {
    name: String,
    batches: ParquetRecordBatchReader,
    adapter: Adapter,
    rows_done: u64,
    rows_total: u64,
    share: FileShare,
}

impl ParquetFile {
    pub fn open(
        name: String,
        path: &Path,
        target: SchemaRef,
        options: &LoadOptions,
        share: FileShare,
    ) -> Result<Self> {
        let builder = builder(&name, path)?;
        let adapter = Adapter::new(&name, builder.schema(), target, options)?;
        let rows_total = builder.metadata().file_metadata().num_rows().try_into().unwrap_or(0);
        let columns = adapter.projection().iter().copied();
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
        let batches = builder
            .with_projection(mask)
            .with_batch_size(options.batch_rows)
            .build()
            .map_err(|e| damaged(&name, e))?;
        Ok(Self { name, batches, adapter, rows_done: 0, rows_total, share })
    }
}

impl FileBatches for ParquetFile {
    fn next_batch(&mut self, _: &mut Rejects) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.batches.next() else {
            return Ok(None);
        };
        let batch = batch.map_err(|e| {
            Error::corrupt(format!(
                "{}: damaged Parquet data after row {}",
                self.name, self.rows_done
            ))
            .with_source(e)
        })?;
        self.rows_done += batch.num_rows() as u64;
        self.share.advance(self.rows_done, self.rows_total);
        self.adapter.adapt(&batch).map(Some)
    }
}

/// The schema in the file's footer.
pub(crate) fn schema(path: &Path) -> Result<SchemaRef> {
    Ok(builder(&display(path), path)?.schema().clone())
}

/// The schema in the footer that `tail`, which may be less than the file, ends with.
pub(crate) fn schema_of_tail(name: &str, tail: Bytes) -> Result<SchemaRef> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(tail).map_err(|e| damaged(name, e))?;
    Ok(builder.schema().clone())
}

fn builder(name: &str, path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(path).map_err(|e| cannot_read(name, e))?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(name, e))
}

fn damaged(name: &str, error: ParquetError) -> Error {
    Error::corrupt(format!("{name} is not a readable Parquet file"))
        .with_hint("if it is in another format, set the option format")
        .with_source(error)
}
