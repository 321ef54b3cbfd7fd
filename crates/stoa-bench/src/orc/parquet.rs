//! parquet-rs as a contender: the same rows as Parquet, zstd.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{DEFAULT_CREATED_BY, WriterProperties};
use stoa_error::{Error, Result};

use super::contender::Format;
use super::in_process::{Library, Sink};
use super::input::{create, io_error};
use crate::ad_report::AdReport;

/// Reads batches as large as the others do; writes zstd of the level that `stoa-orc` has as its
/// default, and defaults else.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParquetRs;

const BATCH_ROWS: usize = 8192;
const ZSTD_LEVEL: i32 = 3;

impl Library for ParquetRs {
    fn name(&self) -> String {
        DEFAULT_CREATED_BY.replace(" version ", " ")
    }

    fn format(&self) -> Format {
        Format::Parquet
    }

    fn read(&self, path: &Path, columns: Option<&[&str]>, sink: &mut Sink<'_>) -> Result<()> {
        let place = |e| parquet_error(path, e);
        let file = File::open(path).map_err(|e| io_error(path, e))?;
        let options = ArrowReaderOptions::new();
        let builder =
            ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(place)?;
        let mask = match columns {
            Some(names) => ProjectionMask::columns(builder.parquet_schema(), names.iter().copied()),
            None => ProjectionMask::all(),
        };
        let reader = builder.with_batch_size(BATCH_ROWS).with_projection(mask).build();
        for batch in reader.map_err(place)? {
            sink(batch.map_err(|e| parquet_error(path, e.into()))?)?;
        }
        Ok(())
    }

    fn write(&self, path: &Path, batches: &[RecordBatch]) -> Result<()> {
        let place = |e| parquet_error(path, e);
        let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(place)?;
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let file = create(path)?;
        let mut writer =
            ArrowWriter::try_new(file, AdReport::schema(), Some(properties)).map_err(place)?;
        batches.iter().try_for_each(|batch| writer.write(batch)).map_err(place)?;
        writer.close().map(drop).map_err(place)
    }
}

fn parquet_error(path: &Path, error: ParquetError) -> Error {
    Error::unavailable(format!("parquet-rs fails on {}", path.display())).with_source(error)
}
