//! Batches to the bytes of a file.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use stoa_error::{Error, Result};
use stoa_orc::{Writer, WriterOptions};

use super::sequence::SequenceEncoder;
use crate::text::write_rows;
use crate::{Definition, FileFormat, TextFormat};

/// Encoded bytes of a row group of Parquet, about.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// A file on its way to bytes.
pub(super) enum Encoder {
    Orc(Box<Writer>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    Text(TextFormat, Vec<u8>),
    Sequence(TextFormat, SequenceEncoder),
}

/// How names of files end: as Hive's readers want it, who take nothing behind a point for a compression.
pub(super) fn ending(definition: &Definition) -> &'static str {
    match definition.format {
        FileFormat::Orc => ".orc",
        FileFormat::Parquet => ".parquet",
        FileFormat::Text | FileFormat::Sequence => "",
    }
}

impl Encoder {
    pub(super) fn new(definition: &Definition, schema: &SchemaRef) -> Result<Self> {
        Ok(match definition.format {
            FileFormat::Orc => Self::Orc(Box::new(Writer::new(schema, WriterOptions::default())?)),
            FileFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
                    .build();
                let options = parquet::arrow::arrow_writer::ArrowWriterOptions::new()
                    .with_properties(properties)
                    // What others do not know is left out.
                    .with_skip_arrow_metadata(true);
                let writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options);
                Self::Parquet(Box::new(writer.map_err(cannot)?))
            }
            FileFormat::Text => Self::Text(TextFormat::of(definition)?, Vec::new()),
            FileFormat::Sequence => {
                Self::Sequence(TextFormat::of(definition)?, SequenceEncoder::new())
            }
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Orc(writer) => writer.write(batch),
            Self::Parquet(writer) => writer.write(batch).map_err(cannot),
            Self::Text(format, text) => write_rows(batch, format, |line| {
                text.extend_from_slice(line);
                text.push(b'\n');
                Ok(())
            }),
            Self::Sequence(format, encoder) => {
                write_rows(batch, format, |line| encoder.write(line))
            }
        }
    }

    /// What is encoded and was not taken yet.
    pub(super) fn take_output(&mut self) -> Bytes {
        match self {
            Self::Orc(writer) => writer.take_output(),
            Self::Parquet(writer) => std::mem::take(writer.inner_mut()).into(),
            Self::Text(_, text) => std::mem::take(text).into(),
            Self::Sequence(_, encoder) => encoder.take_output(),
        }
    }

    /// Bytes of memory that it holds, about, but for what [`Self::take_output`] would give.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Orc(writer) => writer.memory_bytes(),
            Self::Parquet(writer) => writer.memory_size(),
            Self::Text(..) | Self::Sequence(..) => 0,
        }
    }

    /// The rest of the file.
    pub(super) fn finish(mut self) -> Result<Bytes> {
        match &mut self {
            Self::Orc(writer) => drop(writer.finish()?),
            Self::Parquet(writer) => drop(writer.finish().map_err(cannot)?),
            Self::Text(..) | Self::Sequence(..) => {}
        }
        Ok(self.take_output())
    }
}

fn cannot(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(_) => Error::unsupported("these columns cannot be written as Parquet"),
        _ => Error::internal("a Parquet file cannot be written"),
    }
    .with_source(error)
}
