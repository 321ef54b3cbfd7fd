//! One JSON object per line and row; NULLs are written.
//!
//! Two columns of the same name give two members of the same name; give them aliases.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde_json::json;
use stoa_error::{Error, Result};

use super::value::{append, append_string, make_encoder, options};
use super::{Ending, ResultEncoder, Summary, cannot_encode};
use crate::problem;

#[derive(Default)]
pub(super) struct NdjsonEncoder {
    /// `"name":` of each column.
    names: Vec<Vec<u8>>,
}

impl ResultEncoder for NdjsonEncoder {
    fn begin(&mut self, schema: &SchemaRef, _out: &mut Vec<u8>) -> Result<()> {
        let name = |field: &arrow_schema::FieldRef| {
            let mut name = Vec::new();
            append_string(field.name(), &mut name);
            name.push(b':');
            name
        };
        self.names = schema.fields().iter().map(name).collect();
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let options = options();
        let schema = batch.schema();
        let mut encoders = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| make_encoder(field, column.as_ref(), &options))
            .collect::<Result<Vec<_>, _>>()
            .map_err(cannot_encode)?;
        for row in 0..batch.num_rows() {
            out.push(b'{');
            for (column, (encoder, name)) in encoders.iter_mut().zip(&self.names).enumerate() {
                if column > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(name);
                append(encoder, row, out);
            }
            out.extend_from_slice(b"}\n");
        }
        Ok(())
    }

    fn finish(&mut self, _summary: &Summary, _out: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, error: &Error, out: &mut Vec<u8>) -> Ending {
        let line = json!({ "error": problem::to_json(error) });
        // Writing a value to memory cannot fail.
        let _ = serde_json::to_writer(&mut *out, &line);
        out.push(b'\n');
        Ending::BreakOff
    }
}
