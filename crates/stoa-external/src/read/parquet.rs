//! Rows of a Parquet file: one row group after the other, but for those that statistics rule out.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};
use stoa_error::{Error, Result};

use super::source::Source;
use super::{FilePart, PrunedGroups, ReadOptions, parquet_groups};
use crate::adapt::{self, Matching};

/// The end of a file that is read first: most footers are in there.
const TAIL_BYTES: u64 = 64 << 10;

pub(super) struct ParquetRows {
    source: Source,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    schema: SchemaRef,
    /// Which of the columns that are read each column is.
    from: Vec<Option<usize>>,
    batch_rows: usize,
    groups: VecDeque<usize>,
    pruned: PrunedGroups,
    open: Option<ParquetPushDecoder>,
}

impl ParquetRows {
    pub(super) async fn open(
        source: Source,
        part: &FilePart,
        options: &ReadOptions,
    ) -> Result<Self> {
        let parsed = Arc::new(footer(&source).await?);
        // What pyarrow and others say about Arrow types is not needed, and may be anything.
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata =
            ArrowReaderMetadata::try_new(Arc::clone(&parsed), plain.clone()).map_err(damaged)?;
        let metadata = match in_micros(metadata.schema(), &parsed) {
            None => metadata,
            Some(schema) => {
                let options = plain.with_schema(schema);
                ArrowReaderMetadata::try_new(Arc::clone(&parsed), options).map_err(damaged)?
            }
        };
        let schema = options.schema()?;
        let file: &Schema = metadata.schema();
        let found = Matching::Name.find(file, &schema, &options.wanted);
        let mut read: Vec<usize> = found.iter().copied().flatten().collect();
        read.sort_unstable();
        read.dedup();
        let from = found.iter().map(|at| read.iter().position(|own| Some(*own) == *at)).collect();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), read);
        let kept = parquet_groups::kept(&parsed, &metadata, options);
        let part = part.range_of(parsed.num_row_groups());
        let total = part.len() as u64;
        let is_kept = |group: &usize| kept.get(*group).copied().unwrap_or(true);
        let groups: VecDeque<usize> = part.filter(is_kept).collect();
        let pruned = PrunedGroups {
            stripes_total: total,
            stripes_pruned: total - groups.len() as u64,
            ..PrunedGroups::default()
        };
        let batch_rows = options.batch_rows.max(1);
        Ok(Self { source, metadata, mask, schema, from, batch_rows, groups, pruned, open: None })
    }

    /// What was left out.
    pub(super) fn pruned(&self) -> PrunedGroups {
        self.pruned
    }

    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(decoder) = &mut self.open else {
                let Some(group) = self.groups.pop_front() else { return Ok(None) };
                let decoder = ParquetPushDecoderBuilder::new_with_metadata(self.metadata.clone())
                    .with_row_groups(vec![group])
                    .with_projection(self.mask.clone())
                    .with_batch_size(self.batch_rows)
                    .build();
                self.open = Some(decoder.map_err(damaged)?);
                continue;
            };
            match decoder.try_decode().map_err(damaged)? {
                DecodeResult::NeedsData(ranges) => {
                    let bytes = exactly(&self.source, &ranges).await?;
                    decoder.push_ranges(ranges, bytes).map_err(damaged)?;
                }
                DecodeResult::Data(batch) => {
                    let rows = batch.num_rows();
                    return adapt::batch(&self.schema, &self.from, batch.columns(), rows).map(Some);
                }
                DecodeResult::Finished => self.open = None,
            }
        }
    }
}

async fn footer(source: &Source) -> Result<ParquetMetaData> {
    let decoder = ParquetMetaDataPushDecoder::try_new(source.bytes).map_err(damaged)?;
    let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Skip);
    let tail = source.bytes.saturating_sub(TAIL_BYTES)..source.bytes;
    let bytes = exactly(source, std::slice::from_ref(&tail)).await?;
    decoder.push_ranges(vec![tail], bytes).map_err(damaged)?;
    loop {
        match decoder.try_decode().map_err(damaged)? {
            DecodeResult::NeedsData(ranges) => {
                let bytes = exactly(source, &ranges).await?;
                decoder.push_ranges(ranges, bytes).map_err(damaged)?;
            }
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::Finished => return Err(Error::corrupt("the Parquet file has no footer")),
        }
    }
}

/// The bytes of each range.
async fn exactly(source: &Source, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let read = source.read(ranges).await?;
    let find = |range: &Range<u64>| {
        read.iter().find_map(|(at, bytes)| {
            let start = usize::try_from(range.start.checked_sub(*at)?).ok()?;
            let end = usize::try_from(range.end.checked_sub(*at)?).ok()?;
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        })
    };
    let found =
        |range| find(range).ok_or_else(|| Error::corrupt("fewer bytes came than were asked for"));
    ranges.iter().map(found).collect()
}

fn damaged(source: ParquetError) -> Error {
    let what = match source {
        ParquetError::NYI(_) => Error::unsupported("the Parquet file cannot be read"),
        _ => Error::corrupt("the Parquet file cannot be read"),
    };
    what.with_detail(source.to_string())
}

/// The schema with timestamps of 96 bits, which Hive writes, in microseconds: years beyond those of 64-bit nanoseconds
/// fit. `None` where there are none.
fn in_micros(schema: &SchemaRef, parsed: &ParquetMetaData) -> Option<SchemaRef> {
    let leaves = parsed.file_metadata().schema_descr();
    let is_int96 = |leaf: usize| leaves.column(leaf).physical_type() == PhysicalType::INT96;
    if !(0..leaves.num_columns()).any(is_int96) {
        return None;
    }
    let mut leaf = 0;
    let fields: Fields =
        schema.fields().iter().map(|field| micros(field, &mut leaf, &is_int96)).collect();
    Some(Arc::new(Schema::new(fields)))
}

fn micros(field: &FieldRef, leaf: &mut usize, is_int96: &impl Fn(usize) -> bool) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| micros(field, leaf, is_int96)).collect())
        }
        DataType::List(item) => DataType::List(micros(item, leaf, is_int96)),
        DataType::Map(entries, sorted) => DataType::Map(micros(entries, leaf, is_int96), *sorted),
        other => {
            *leaf += 1;
            match other {
                DataType::Timestamp(TimeUnit::Nanosecond, zone) if is_int96(*leaf - 1) => {
                    DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
                }
                other => other.clone(),
            }
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}
