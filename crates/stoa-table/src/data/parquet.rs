//! Rows of a Parquet file with their numbers.
//!
//! Row groups are read one after the other; those whose statistics rule the predicate out are not.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};
use stoa_error::{Error, Place, Result};
use stoa_orc::{ColumnRef, Predicate};
use stoa_rangeio::RangeReader;

use super::fill::Fill;
use super::names::{NameMap, has_ids};
use super::{RowOptions, adapt};
use crate::Table;
use crate::scan::{FieldBounds, ScanFile, comparable_columns, may_match};
use crate::schema::FIELD_ID_KEY;
use crate::value;

/// The end of a file that is read first: most footers are in there.
const TAIL_BYTES: u64 = 64 << 10;

pub(crate) struct ParquetRows {
    file: Arc<ScanFile>,
    reader: RangeReader,
    metadata: ArrowReaderMetadata,
    /// The leaf columns that are read.
    mask: ProjectionMask,
    /// What is read, with ids.
    fields: Fields,
    schema: SchemaRef,
    fill: Fill,
    batch_rows: usize,
    /// Row groups still to be read: number, first row.
    groups: VecDeque<(usize, u64)>,
    open: Option<(u64, ParquetPushDecoder)>,
}

impl ParquetRows {
    pub(super) async fn open(
        table: &Table,
        file: &Arc<ScanFile>,
        options: RowOptions,
        names: &NameMap,
        fill: Fill,
    ) -> Result<Self> {
        let reader = options.reader.clone().unwrap_or_else(|| file.reader.clone());
        let parsed = Arc::new(read_footer(file, &reader).await?);
        let rows: i64 = parsed.row_groups().iter().map(|group| group.num_rows()).sum();
        if u64::try_from(rows).ok() != Some(file.rows) {
            return Err(Error::corrupt(format!(
                "{}: the data file has {rows} rows, its manifest says {}",
                file.location, file.rows
            )));
        }
        let failed = |source| damaged(file, source);
        // What pyarrow and others say about Arrow types is not needed, and may be anything.
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata =
            ArrowReaderMetadata::try_new(parsed.clone(), plain.clone()).map_err(failed)?;
        let metadata = match without_int96(metadata.schema(), &parsed) {
            None => metadata,
            Some(schema) => ArrowReaderMetadata::try_new(parsed.clone(), plain.with_schema(schema))
                .map_err(failed)?,
        };
        let all = metadata.schema().fields();
        let marked = if has_ids(all) { all.clone() } else { names.mark(all) };
        let wanted: Vec<usize> = (0..marked.len())
            .filter(|at| is_wanted(&marked[*at], options.schema.fields()))
            .collect();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), wanted.iter().copied());
        let mut file_rows = Self {
            file: file.clone(),
            reader,
            mask,
            fields: wanted.iter().map(|at| marked[*at].clone()).collect(),
            schema: options.schema.clone(),
            fill,
            batch_rows: options.batch_rows.max(1),
            groups: VecDeque::new(),
            open: None,
            metadata,
        };
        let part = options.range_of(parsed.num_row_groups());
        let judge =
            Judge { table, rows: &file_rows, marked: &marked, predicate: &options.predicate };
        let keep = judge.row_groups(&parsed);
        let mut first = 0;
        for (number, group) in parsed.row_groups().iter().enumerate() {
            if part.contains(&number) && keep.get(number).copied().unwrap_or(true) {
                file_rows.groups.push_back((number, first));
            }
            first += u64::try_from(group.num_rows()).unwrap_or_default();
        }
        Ok(file_rows)
    }

    pub(super) async fn next(&mut self) -> Result<Option<(u64, RecordBatch)>> {
        loop {
            let Some((first, decoder)) = &mut self.open else {
                let Some((group, first)) = self.groups.pop_front() else { return Ok(None) };
                self.open = Some((first, self.decoder(group)?));
                continue;
            };
            let step = decoder.try_decode().map_err(|source| damaged(&self.file, source))?;
            match step {
                DecodeResult::NeedsData(ranges) => {
                    let bytes = read_exactly(&self.file, &self.reader, &ranges).await?;
                    decoder.push_ranges(ranges, bytes).map_err(|e| damaged(&self.file, e))?;
                }
                DecodeResult::Data(batch) => {
                    let at = *first;
                    *first += batch.num_rows() as u64;
                    let (columns, rows) = (batch.columns(), batch.num_rows());
                    let batch = adapt::batch(&self.schema, &self.fields, columns, rows, &self.fill);
                    return Ok(Some((
                        at,
                        batch.map_err(|e| e.at(Place::file(&self.file.location)))?,
                    )));
                }
                DecodeResult::Finished => self.open = None,
            }
        }
    }

    fn decoder(&self, group: usize) -> Result<ParquetPushDecoder> {
        ParquetPushDecoderBuilder::new_with_metadata(self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(self.mask.clone())
            .with_batch_size(self.batch_rows)
            .build()
            .map_err(|source| damaged(&self.file, source))
    }
}

/// Which row groups may hold matching rows.
struct Judge<'a> {
    table: &'a Table,
    rows: &'a ParquetRows,
    marked: &'a Fields,
    predicate: &'a Predicate,
}

impl Judge<'_> {
    /// Per row group; in doubt it may.
    fn row_groups(&self, parsed: &ParquetMetaData) -> Vec<bool> {
        if self.predicate.is_always() {
            return Vec::new();
        }
        let mut columns: Vec<(i32, Bounds)> = Vec::new();
        let comparable = comparable_columns(self.table.metadata());
        self.predicate.for_each_column(&mut |column| {
            if let ColumnRef::Field(id) = column
                && comparable.contains(&id)
                && !columns.iter().any(|(known, _)| *known == id)
                && let Some(bounds) = self.bounds(parsed, id)
            {
                columns.push((id, bounds));
            }
        });
        let may = |group: usize| {
            let bounds = |column: ColumnRef| {
                let ColumnRef::Field(id) = column else { return FieldBounds::default() };
                let known = columns.iter().find(|(known, _)| *known == id);
                known.map_or_else(FieldBounds::default, |(_, bounds)| bounds.of(group))
            };
            may_match(self.predicate, &bounds)
        };
        (0..parsed.num_row_groups()).map(may).collect()
    }

    fn bounds(&self, parsed: &ParquetMetaData, id: i32) -> Option<Bounds> {
        let own = self.marked.iter().find(|field| id_of(field) == Some(id))?;
        let current = self.table.schema();
        let wanted = current.fields().iter().find(|field| id_of(field) == Some(id))?.clone();
        let metadata = &self.rows.metadata;
        let schema = metadata.parquet_schema();
        let converter = StatisticsConverter::try_new(own.name(), metadata.schema(), schema).ok()?;
        let column = converter.parquet_column_index()?;
        let groups = parsed.row_groups();
        // Old writers compared text and decimals as signed bytes.
        let compares = |group: &parquet::file::metadata::RowGroupMetaData| {
            let chunk = group.column(column);
            let is_number = matches!(
                chunk.column_type(),
                PhysicalType::BOOLEAN
                    | PhysicalType::INT32
                    | PhysicalType::INT64
                    | PhysicalType::FLOAT
                    | PhysicalType::DOUBLE
            );
            chunk.statistics().is_none_or(|known| is_number || !known.is_min_max_deprecated())
                && chunk.column_type() != PhysicalType::INT96
        };
        if !groups.iter().all(compares) {
            return None;
        }
        let literals = |array: ArrayRef| -> Option<Vec<Option<stoa_orc::Literal>>> {
            let names = [id_field(own, array.data_type())].into_iter().collect::<Fields>();
            let one: SchemaRef =
                Arc::new(Schema::new(vec![wanted.as_ref().clone().with_nullable(true)]));
            let rows = array.len();
            let batch = adapt::batch(&one, &names, &[array], rows, &Fill::default()).ok()?;
            Some((0..rows).map(|row| value::from_array(batch.column(0), row)).collect())
        };
        let nulls = converter.row_group_null_counts(groups.iter()).ok()?;
        let nulls = (0..groups.len())
            .map(|at| {
                let stated = groups[at].column(column).statistics()?.null_count_opt()?;
                (nulls.is_valid(at) && stated == nulls.value(at)).then_some(stated)
            })
            .collect();
        Some(Bounds {
            lower: literals(converter.row_group_mins(groups.iter()).ok()?)?,
            upper: literals(converter.row_group_maxes(groups.iter()).ok()?)?,
            nulls,
            rows: groups.iter().map(|g| u64::try_from(g.num_rows()).unwrap_or_default()).collect(),
        })
    }
}

/// Statistics of a column per row group.
struct Bounds {
    lower: Vec<Option<stoa_orc::Literal>>,
    upper: Vec<Option<stoa_orc::Literal>>,
    nulls: Vec<Option<u64>>,
    rows: Vec<u64>,
}

impl Bounds {
    fn of(&self, group: usize) -> FieldBounds<'_> {
        let nulls = self.nulls.get(group).copied().flatten();
        FieldBounds {
            lower: self.lower.get(group).and_then(Option::as_ref),
            upper: self.upper.get(group).and_then(Option::as_ref),
            has_null: nulls.map(|nulls| nulls > 0),
            has_value: nulls.zip(self.rows.get(group)).map(|(nulls, rows)| nulls < *rows),
            has_nan: None,
        }
    }
}

fn id_field(own: &FieldRef, data_type: &DataType) -> FieldRef {
    Arc::new(own.as_ref().clone().with_data_type(data_type.clone()))
}

/// Whether a top-level column of a file is one of those asked for.
fn is_wanted(own: &Field, wanted: &Fields) -> bool {
    let id = id_of(own);
    id.is_some() && wanted.iter().any(|field| id_of(field) == id)
}

/// A schema in which timestamps of 96 bits are read as microseconds: nanoseconds do not reach beyond
/// 2262. `None` if there are none.
fn without_int96(schema: &SchemaRef, parsed: &ParquetMetaData) -> Option<SchemaRef> {
    let leaves = parsed.file_metadata().schema_descr();
    let is_int96 = |leaf: usize| leaves.column(leaf).physical_type() == PhysicalType::INT96;
    if !(0..leaves.num_columns()).any(is_int96) {
        return None;
    }
    let mut leaf = 0;
    let fields = schema.fields().iter().map(|field| in_micros(field, &mut leaf, &is_int96));
    let fields: Fields = fields.collect();
    Some(Arc::new(Schema::new(fields)))
}

fn in_micros(field: &FieldRef, leaf: &mut usize, is_int96: &impl Fn(usize) -> bool) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|f| in_micros(f, leaf, is_int96)).collect())
        }
        DataType::List(item) => DataType::List(in_micros(item, leaf, is_int96)),
        DataType::Map(entries, sorted) => {
            DataType::Map(in_micros(entries, leaf, is_int96), *sorted)
        }
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

async fn read_footer(file: &ScanFile, reader: &RangeReader) -> Result<ParquetMetaData> {
    let failed = |source| damaged(file, source);
    let decoder = ParquetMetaDataPushDecoder::try_new(file.file_bytes).map_err(failed)?;
    let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Skip);
    let tail = file.file_bytes.saturating_sub(TAIL_BYTES)..file.file_bytes;
    let bytes = read_exactly(file, reader, std::slice::from_ref(&tail)).await?;
    decoder.push_ranges(vec![tail], bytes).map_err(failed)?;
    loop {
        match decoder.try_decode().map_err(failed)? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                let bytes = read_exactly(file, reader, &ranges).await?;
                decoder.push_ranges(ranges, bytes).map_err(failed)?;
            }
            DecodeResult::Finished => {
                return Err(
                    Error::corrupt("the file has no footer").at(Place::file(&file.location))
                );
            }
        }
    }
}

/// The bytes of each range.
async fn read_exactly(
    file: &ScanFile,
    reader: &RangeReader,
    ranges: &[std::ops::Range<u64>],
) -> Result<Vec<Bytes>> {
    if let Some(beyond) = ranges.iter().find(|range| range.end > file.file_bytes) {
        return Err(Error::corrupt("the file is cut off")
            .at(Place::file(&file.location))
            .with_detail(format!("bytes up to {} are needed of {}", beyond.end, file.file_bytes)));
    }
    let read = reader.read(&file.path, ranges).await.map_err(|error| file.failed(error))?;
    ranges
        .iter()
        .map(|range| {
            let holds =
                |at: u64, bytes: &Bytes| at <= range.start && range.end <= at + bytes.len() as u64;
            let found =
                read.iter().find(|(at, bytes)| holds(*at, bytes)).and_then(|(at, bytes)| {
                    let start = usize::try_from(range.start - at).ok()?;
                    let end = usize::try_from(range.end - at).ok()?;
                    Some(bytes.slice(start..end))
                });
            found.ok_or_else(|| {
                Error::corrupt("fewer bytes came than were asked for")
                    .at(Place::file(&file.location))
            })
        })
        .collect()
}

fn damaged(file: &ScanFile, source: ParquetError) -> Error {
    let what = match source {
        ParquetError::NYI(_) => {
            Error::unsupported("the Parquet file cannot be read").at(Place::file(&file.location))
        }
        _ => Error::corrupt("the Parquet file cannot be read").at(Place::file(&file.location)),
    };
    what.with_detail(source.to_string())
}

fn id_of(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}
