//! Arrow IPC stream.
//!
//! View types are sent as the plain ones, which every Arrow implementation reads. The stream ends
//! with its end-of-stream mark only if the query did not fail.

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use stoa_error::{Error, Result};
use stoa_query::{plain_batch, plain_schema};

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
        let schema = plain_schema(schema);
        let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(cannot_encode)?;
        let (_, writer) = self.stream.insert((schema, writer));
        out.append(writer.get_mut());
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let (schema, writer) = self.stream()?;
        let schema = SchemaRef::clone(schema);
        let batch = plain_batch(batch, &schema)?;
        writer.write(&batch).map_err(cannot_encode)?;
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
