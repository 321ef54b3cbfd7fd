//! Columns of a batch, filled with rows of chunks.
//!
//! In: chunks of a row group, and which of its rows. Out: arrays of the columns' own types. Not here: which rows.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use stoa_error::{Error, Result};

use crate::chunk::{Chunk, Values, copy};
use crate::rows::ChunkRows;

/// Bytes of texts after which a batch ends.
const TEXT_BYTES_MAX: usize = 32 << 20;

/// A batch that is being filled.
#[derive(Debug)]
pub(crate) struct BatchColumns {
    schema: SchemaRef,
    columns: Vec<BatchColumn>,
    rows: usize,
    rows_max: usize,
}

#[derive(Debug)]
struct BatchColumn {
    values: Filled,
    /// Where any row is NULL.
    valid: Option<BooleanBufferBuilder>,
}

#[derive(Debug)]
enum Filled {
    Bits(BooleanBufferBuilder),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Decimal(Vec<i128>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Text { ends: Vec<i32>, bytes: Vec<u8> },
}

impl BatchColumns {
    /// An empty batch of at most `rows_max` rows.
    ///
    /// # Errors
    /// `Internal` for types that chunks do not have.
    pub(crate) fn new(schema: SchemaRef, rows_max: usize) -> Result<Self> {
        let rows_max = rows_max.max(1);
        let column = |field: &Arc<arrow_schema::Field>| {
            let values = Filled::new(field.data_type(), rows_max)?;
            Ok(BatchColumn { values, valid: None })
        };
        let columns = schema.fields().iter().map(column).collect::<Result<_>>()?;
        Ok(Self { schema, columns, rows: 0, rows_max })
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there is no room for more.
    pub(crate) fn is_full(&self) -> bool {
        let text_bytes = |column: &BatchColumn| match &column.values {
            Filled::Text { bytes, .. } => bytes.len(),
            _ => 0,
        };
        self.rows >= self.rows_max
            || self.columns.iter().any(|column| text_bytes(column) >= TEXT_BYTES_MAX)
    }

    /// Adds the first of `rows` of a row group; how many there was room for, at least one unless it is full.
    ///
    /// # Errors
    /// `Internal` where a chunk is of another kind than its column.
    pub(crate) fn add(&mut self, chunks: &[Arc<Chunk>], rows: &ChunkRows<'_>) -> Result<usize> {
        let mut count = rows.len().min(self.rows_max - self.rows);
        while count > 1 && chunks.iter().any(|chunk| text_bytes_max(chunk, count) > TEXT_BYTES_MAX)
        {
            count /= 2;
        }
        let part = rows.part(0..count);
        for (column, chunk) in self.columns.iter_mut().zip(chunks) {
            column.add(chunk, &part, self.rows)?;
        }
        self.rows += count;
        Ok(count)
    }

    /// Adds rows of a row group in any order, for which there is room.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(crate) fn add_each(&mut self, chunks: &[Arc<Chunk>], rows: &[u32]) -> Result<()> {
        for (column, chunk) in self.columns.iter_mut().zip(chunks) {
            column.add(chunk, &ChunkRows::List(rows), self.rows)?;
        }
        self.rows += rows.len();
        Ok(())
    }

    /// The batch, and an empty one in its place.
    ///
    /// # Errors
    /// `Corrupt` for a NULL in a column that has none.
    pub(crate) fn take(&mut self) -> Result<RecordBatch> {
        let fresh = Self::new(Arc::clone(&self.schema), self.rows_max)?;
        let full = std::mem::replace(self, fresh);
        let arrays = full.columns.into_iter().zip(full.schema.fields());
        let arrays = arrays.map(|(column, field)| column.array(field.data_type(), full.rows));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(full.rows));
        RecordBatch::try_new_with_options(full.schema, arrays, &options)
            .map_err(|e| Error::corrupt("rows are not as the table says").with_source(e))
    }
}

/// Bytes of the texts of `count` rows, at most.
fn text_bytes_max(chunk: &Chunk, count: usize) -> usize {
    match &chunk.values {
        Values::Text(texts) => texts.value_data().len(),
        Values::Codes(codes) => codes.texts.value_data().len().saturating_mul(count),
        _ => 0,
    }
}

impl Filled {
    fn new(data_type: &DataType, rows: usize) -> Result<Self> {
        Ok(match data_type {
            DataType::Boolean => Self::Bits(BooleanBufferBuilder::new(rows)),
            DataType::Int8 => Self::Int8(Vec::with_capacity(rows)),
            DataType::Int16 => Self::Int16(Vec::with_capacity(rows)),
            DataType::Int32 | DataType::Date32 => Self::Int32(Vec::with_capacity(rows)),
            DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Self::Int64(Vec::with_capacity(rows))
            }
            DataType::Decimal128(..) => Self::Decimal(Vec::with_capacity(rows)),
            DataType::Float32 => Self::Float32(Vec::with_capacity(rows)),
            DataType::Float64 => Self::Float64(Vec::with_capacity(rows)),
            DataType::Utf8 => {
                let mut ends = Vec::with_capacity(rows + 1);
                ends.push(0);
                Self::Text { ends, bytes: Vec::new() }
            }
            other => return Err(Error::internal(format!("a scan of chunks of type {other}"))),
        })
    }
}

impl BatchColumn {
    fn add(&mut self, chunk: &Chunk, rows: &ChunkRows<'_>, before: usize) -> Result<()> {
        if chunk.has_nulls() || self.valid.is_some() {
            let valid = self.valid.get_or_insert_with(|| {
                let mut valid = BooleanBufferBuilder::new(before + rows.len());
                valid.append_n(before, true);
                valid
            });
            match chunk.has_nulls() {
                true => rows.iter().for_each(|row| valid.append(!chunk.is_null(row))),
                false => valid.append_n(rows.len(), true),
            }
        }
        match (&mut self.values, &chunk.values) {
            (Filled::Int8(out), Values::Ints(ints)) => ints.copy(rows, out, |v| v as i8),
            (Filled::Int16(out), Values::Ints(ints)) => ints.copy(rows, out, |v| v as i16),
            (Filled::Int32(out), Values::Ints(ints)) => ints.copy(rows, out, |v| v as i32),
            (Filled::Int64(out), Values::Ints(ints)) => ints.copy(rows, out, |v| v),
            (Filled::Decimal(out), Values::Ints(ints)) => ints.copy(rows, out, i128::from),
            (Filled::Decimal(out), Values::Wide(values)) => copy(values, rows, out, |v| v),
            (Filled::Float64(out), Values::Floats(values)) => copy(values, rows, out, |v| v),
            (Filled::Float32(out), Values::Floats(values)) => {
                copy(values, rows, out, |v| v as f32);
            }
            (Filled::Bits(out), Values::Ints(ints)) => {
                rows.iter().for_each(|row| out.append(ints.get(row) != 0));
            }
            (Filled::Text { ends, bytes }, Values::Text(texts)) => {
                add_texts(ends, bytes, texts, rows);
            }
            (Filled::Text { ends, bytes }, Values::Codes(codes)) => {
                let places = codes.texts.value_offsets();
                let data = codes.texts.value_data();
                for row in rows.iter() {
                    let code = usize::from(codes.codes[row]);
                    bytes
                        .extend_from_slice(&data[places[code] as usize..places[code + 1] as usize]);
                    ends.push(bytes.len() as i32);
                }
            }
            _ => return Err(Error::internal("a chunk is of another kind than its column")),
        }
        Ok(())
    }

    fn array(self, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
        let nulls = self.valid.map(|mut valid| NullBuffer::new(valid.finish()));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let mismatch = |e: arrow_schema::ArrowError| {
            Error::internal(format!("{rows} rows of chunks make no column")).with_source(e)
        };
        Ok(match (self.values, data_type) {
            (Filled::Bits(mut bits), _) => Arc::new(BooleanArray::new(bits.finish(), nulls)),
            (Filled::Int8(v), _) => Arc::new(Int8Array::new(v.into(), nulls)),
            (Filled::Int16(v), _) => Arc::new(Int16Array::new(v.into(), nulls)),
            (Filled::Int32(v), DataType::Date32) => Arc::new(Date32Array::new(v.into(), nulls)),
            (Filled::Int32(v), _) => Arc::new(Int32Array::new(v.into(), nulls)),
            (Filled::Int64(v), DataType::Timestamp(_, zone)) => {
                let times = TimestampMicrosecondArray::new(v.into(), nulls);
                Arc::new(times.with_timezone_opt(zone.clone()))
            }
            (Filled::Int64(v), _) => Arc::new(Int64Array::new(v.into(), nulls)),
            (Filled::Decimal(v), data_type) => {
                Arc::new(Decimal128Array::new(v.into(), nulls).with_data_type(data_type.clone()))
            }
            (Filled::Float32(v), _) => Arc::new(Float32Array::new(v.into(), nulls)),
            (Filled::Float64(v), _) => Arc::new(Float64Array::new(v.into(), nulls)),
            (Filled::Text { ends, bytes }, _) => {
                let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
                let texts = StringArray::try_new(ends, Buffer::from_vec(bytes), nulls);
                Arc::new(texts.map_err(mismatch)?)
            }
        })
    }
}

fn add_texts(ends: &mut Vec<i32>, bytes: &mut Vec<u8>, texts: &StringArray, rows: &ChunkRows<'_>) {
    let (places, data) = (texts.value_offsets(), texts.value_data());
    match rows {
        ChunkRows::Range(range) if !range.is_empty() => {
            let first = places[range.start];
            let shift = bytes.len() as i32 - first;
            bytes.extend_from_slice(&data[first as usize..places[range.end] as usize]);
            ends.extend(places[range.start + 1..=range.end].iter().map(|end| end + shift));
        }
        ChunkRows::Range(_) => {}
        ChunkRows::List(list) => {
            for row in list.iter().map(|row| *row as usize) {
                bytes.extend_from_slice(&data[places[row] as usize..places[row + 1] as usize]);
                ends.push(bytes.len() as i32);
            }
        }
    }
}
