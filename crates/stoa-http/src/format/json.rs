//! One JSON document.
//!
//! ```json
//! {"columns":[{"name":"day","type":"date","nullable":false}],
//!  "rows":[["2026-01-01"],…],
//!  "row_count":1,"truncated":false,"elapsed_ms":1.25,"bytes_read":4096,"query_id":7}
//! ```
//! After an error in mid-stream the document ends `…],"error":{…}}` instead, without `row_count`.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde_json::{Map, Value, json};
use stoa_error::{Error, Result};
use stoa_query::sql_type;

use super::value::{append, make_encoder, options};
use super::{Ending, ResultEncoder, Summary, cannot_encode};
use crate::problem;

#[derive(Default)]
pub(super) struct JsonEncoder {
    begun: bool,
    any_row: bool,
}

impl ResultEncoder for JsonEncoder {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"{\"columns\":");
        append_value(&columns(schema), out);
        out.extend_from_slice(b",\"rows\":[");
        self.begun = true;
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
            out.extend_from_slice(if self.any_row { b",\n[" } else { b"\n[" });
            self.any_row = true;
            for (column, encoder) in encoders.iter_mut().enumerate() {
                if column > 0 {
                    out.push(b',');
                }
                append(encoder, row, out);
            }
            out.push(b']');
        }
        Ok(())
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"],");
        append_members(&summary_members(summary), out);
        out.push(b'}');
        Ok(())
    }

    fn fail(&mut self, error: &Error, out: &mut Vec<u8>) -> Ending {
        if !self.begun {
            return Ending::BreakOff;
        }
        out.extend_from_slice(b"],\"error\":");
        append_value(&problem::to_json(error), out);
        out.push(b'}');
        Ending::Complete
    }
}

fn columns(schema: &SchemaRef) -> Value {
    let column = |field: &arrow_schema::FieldRef| {
        json!({
            "name": field.name(),
            "type": sql_type(field.data_type()),
            "nullable": field.is_nullable(),
        })
    };
    schema.fields().iter().map(column).collect()
}

fn summary_members(summary: &Summary) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("row_count".into(), summary.row_count.into());
    members.insert("truncated".into(), summary.truncated.into());
    if let Some(command) = &summary.command {
        members.insert("command".into(), command.as_str().into());
    }
    if let Some(rows) = summary.rows_affected {
        members.insert("rows_affected".into(), rows.into());
    }
    if !summary.notices.is_empty() {
        members.insert("notices".into(), summary.notices.clone().into());
    }
    members.insert("elapsed_ms".into(), json!(summary.elapsed_ms));
    members.insert("bytes_read".into(), summary.bytes_read.into());
    members.insert("query_id".into(), json!(summary.query_id));
    if let Some(result) = &summary.result {
        members.insert("result".into(), result.clone());
    }
    members
}

fn append_value(value: &Value, out: &mut Vec<u8>) {
    // Writing a value to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

fn append_members(members: &Map<String, Value>, out: &mut Vec<u8>) {
    for (number, (name, value)) in members.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        super::value::append_string(name, out);
        out.push(b':');
        append_value(value, out);
    }
}
