//! Rows as records: one line per value.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::Result;
use unicode_width::UnicodeWidthStr;

use super::table::one_line;
use super::values::Values;
use super::{RowWriter, output_error};

pub(super) struct Expanded {
    names: Vec<String>,
    width: usize,
    rows: u64,
}

impl Expanded {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        let names: Vec<_> = schema.fields().iter().map(|f| one_line(f.name())).collect();
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        Self { names, width, rows: 0 }
    }
}

impl RowWriter for Expanded {
    fn begin(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let values = Values::new(batch)?;
        for row in 0..batch.num_rows() {
            self.rows += 1;
            writeln!(out, "-[ RECORD {} ]-", self.rows).map_err(output_error)?;
            for (column, name) in self.names.iter().enumerate() {
                let mut text = String::new();
                values.append(column, row, &mut text)?;
                let space = self.width - name.width();
                let line = format!("{name}{:space$} | {}", "", one_line(&text));
                writeln!(out, "{}", line.trim_end()).map_err(output_error)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.rows == 0 {
            writeln!(out, "(0 rows)").map_err(output_error)?;
        }
        Ok(())
    }
}
