//! Arrow IPC stream.
//!
//! View types are sent as the plain ones, which every Arrow implementation reads. The stream ends
//! with its end-of-stream mark only if the query did not fail.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use stoa_error::{Error, Result};

use super::{Ending, ResultEncoder, Summary, cannot_encode};

#[derive(Default)]
pub(super) struct ArrowEncoder {
    stream: Option<(SchemaRef, StreamWriter<Vec<u8>>)>,
}

impl ArrowEncoder {
    fn stream(&mut self) -> Result<&mut (SchemaRef, StreamWriter<Vec<u8>>)> {
        self.stream.as_mut().ok_or_else(|| Error::internal("rows before the schema"))
    }
}

impl ResultEncoder for ArrowEncoder {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<()> {
        let schema = Arc::new(plain_schema(schema));
        let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(cannot_encode)?;
        let (_, writer) = self.stream.insert((schema, writer));
        out.append(writer.get_mut());
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let (schema, writer) = self.stream()?;
        let schema = SchemaRef::clone(schema);
        let columns = batch
            .columns()
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| match column.data_type() == field.data_type() {
                true => Ok(Arc::clone(column)),
                false => cast(column, field.data_type()),
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(cannot_encode)?;
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(schema, columns, &rows);
        writer.write(&batch.map_err(cannot_encode)?).map_err(cannot_encode)?;
        out.append(writer.get_mut());
        Ok(())
    }

    fn finish(&mut self, _summary: &Summary, out: &mut Vec<u8>) -> Result<()> {
        let (_, writer) = self.stream()?;
        writer.finish().map_err(cannot_encode)?;
        out.append(writer.get_mut());
        Ok(())
    }

    fn fail(&mut self, _error: &Error, _out: &mut Vec<u8>) -> Ending {
        Ending::BreakOff
    }
}

fn plain_schema(schema: &SchemaRef) -> Schema {
    let fields: Vec<_> = schema.fields().iter().map(plain_field).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn plain_field(field: &FieldRef) -> Field {
    field.as_ref().clone().with_data_type(plain_type(field.data_type()))
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(Arc::new(plain_field(item))),
        DataType::LargeList(item) => DataType::LargeList(Arc::new(plain_field(item))),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        other => other.clone(),
    }
}
