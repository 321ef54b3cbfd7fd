//! One JSON object per line and row; NULLs are written.
//!
//! Of columns of the same name, those after the first get their place behind it: `sum`, `sum_2`.

use std::collections::HashSet;

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
        let name = |name: &String| {
            let mut out = Vec::new();
            append_string(name, &mut out);
            out.push(b':');
            out
        };
        self.names = unique_names(schema).iter().map(name).collect();
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

/// The columns' names, each once.
fn unique_names(schema: &SchemaRef) -> Vec<String> {
    let all: HashSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut names: Vec<String> = Vec::with_capacity(schema.fields().len());
    let mut given = HashSet::new();
    for (index, field) in schema.fields().iter().enumerate() {
        let mut name = field.name().clone();
        let mut number = index + 1;
        while given.contains(&name) || (name != *field.name() && all.contains(name.as_str())) {
            name = format!("{}_{number}", field.name());
            number += 1;
        }
        given.insert(name.clone());
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn members_have_names_of_their_own() {
        let fields =
            ["sum", "sum", "sum_2", "n", "sum"].map(|n| Field::new(n, DataType::Int64, true));
        let names = unique_names(&SchemaRef::new(Schema::new(fields.to_vec())));
        assert_eq!(names, ["sum", "sum_3", "sum_2", "n", "sum_5"]);
    }
}
