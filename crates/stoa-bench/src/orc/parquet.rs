//! parquet-rs as a contender: the same rows as Parquet, zstd.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::{DEFAULT_CREATED_BY, WriterProperties};
use stoa_error::{Error, Result};

use super::contender::Format;
use super::in_process::{Library, Sink};
use super::input::{create, io_error};
use crate::ad_report::AdReport;
use crate::report::Report;
use crate::report_scan::{REPORT_COLUMNS, epoch_days};

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

    fn prunes(&self) -> bool {
        true
    }

    fn read_report(&self, path: &Path, report: &Report, sink: &mut Sink<'_>) -> Result<()> {
        let place = |e| parquet_error(path, e);
        let file = File::open(path).map_err(|e| io_error(path, e))?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let builder =
            ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(place)?;
        let rows = rows_that_may_match(builder.metadata(), report);
        let mask = ProjectionMask::columns(builder.parquet_schema(), REPORT_COLUMNS);
        let builder = builder.with_projection(mask).with_row_selection(rows);
        for batch in builder.with_batch_size(BATCH_ROWS).build().map_err(place)? {
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

/// Rows of pages whose bounds of account and day do not rule the report out.
fn rows_that_may_match(file: &ParquetMetaData, report: &Report) -> RowSelection {
    let days = epoch_days(report);
    let of_account = pages_where(file, "account_id", |index, page| match index {
        ColumnIndexMetaData::INT64(index) => {
            let id = &report.account_id;
            index.min_value(page).is_none_or(|min| min <= id)
                && index.max_value(page).is_none_or(|max| id <= max)
        }
        _ => true,
    });
    let of_days = pages_where(file, "day", |index, page| match index {
        ColumnIndexMetaData::INT32(index) => {
            index.min_value(page).is_none_or(|min| min <= days.end())
                && index.max_value(page).is_none_or(|max| days.start() <= max)
        }
        _ => true,
    });
    of_account.intersection(&of_days)
}

/// Rows of those pages of a column for which `keep`, given the column's bounds and the page's number.
fn pages_where(
    file: &ParquetMetaData,
    name: &str,
    keep: impl Fn(&ColumnIndexMetaData, usize) -> bool,
) -> RowSelection {
    let columns = file.file_metadata().schema_descr().columns();
    let column = columns.iter().position(|column| column.name() == name);
    let indexes = file.column_index().into_iter().flatten();
    let offsets = file.offset_index().into_iter().flatten();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut rows = 0;
    for ((group, indexes), offsets) in file.row_groups().iter().zip(indexes).zip(offsets) {
        let (first_row, end) = (rows, rows + group.num_rows() as usize);
        rows = end;
        let of_column = column.and_then(|at| indexes.get(at).zip(offsets.get(at)));
        let Some((index, offsets)) = of_column else { continue };
        let pages = offsets.page_locations();
        for (page, location) in pages.iter().enumerate().filter(|(page, _)| keep(index, *page)) {
            let next = pages.get(page + 1);
            let until = next.map_or(end, |next| first_row + next.first_row_index as usize);
            ranges.push(first_row + location.first_row_index as usize..until);
        }
    }
    RowSelection::from_consecutive_ranges(ranges.into_iter(), rows)
}

fn parquet_error(path: &Path, error: ParquetError) -> Error {
    Error::unavailable(format!("parquet-rs fails on {}", path.display())).with_source(error)
}
