//! Rows as CSV or TSV.
//!
//! CSV follows RFC 4180, with PostgreSQL's way to tell NULL (nothing) from an empty text (`""`).
//! TSV has no quotes: `\t`, `\n`, `\r` and `\\` are escaped and NULL is `\N`, as in COPY's text format.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::Result;

use super::values::Values;
use super::{RowWriter, output_error};

pub(super) struct Delimited {
    names: Vec<String>,
    header: bool,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Csv,
    Tsv,
}

impl Delimited {
    pub(super) fn csv(schema: &SchemaRef, header: bool) -> Self {
        Self::new(schema, header, Kind::Csv)
    }

    pub(super) fn tsv(schema: &SchemaRef, header: bool) -> Self {
        Self::new(schema, header, Kind::Tsv)
    }

    fn new(schema: &SchemaRef, header: bool, kind: Kind) -> Self {
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Self { names, header, kind }
    }
}

impl Kind {
    fn delimiter(self) -> char {
        match self {
            Self::Csv => ',',
            Self::Tsv => '\t',
        }
    }

    fn append(self, value: Option<&str>, line: &mut String) {
        match (self, value) {
            (Self::Csv, None) => {}
            (Self::Csv, Some(value)) => append_csv(value, line),
            (Self::Tsv, None) => line.push_str("\\N"),
            (Self::Tsv, Some(value)) => append_tsv(value, line),
        }
    }
}

impl RowWriter for Delimited {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        if !self.header {
            return Ok(());
        }
        let mut line = String::new();
        for (column, name) in self.names.iter().enumerate() {
            if column > 0 {
                line.push(self.kind.delimiter());
            }
            self.kind.append(Some(name), &mut line);
        }
        line.push('\n');
        out.write_all(line.as_bytes()).map_err(output_error)
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let values = Values::new(batch)?;
        let (mut line, mut value) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for column in 0..values.columns() {
                if column > 0 {
                    line.push(self.kind.delimiter());
                }
                value.clear();
                let present = values.append(column, row, &mut value)?;
                self.kind.append(present.then_some(value.as_str()), &mut line);
            }
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(output_error)?;
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

fn append_csv(value: &str, line: &mut String) {
    let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || c == '\t');
    let quoted = value.is_empty()
        || value.contains([',', '"', '\n', '\r'])
        || edge(value.chars().next())
        || edge(value.chars().next_back());
    if !quoted {
        line.push_str(value);
        return;
    }
    line.push('"');
    line.push_str(&value.replace('"', "\"\""));
    line.push('"');
}

fn append_tsv(value: &str, line: &mut String) {
    for c in value.chars() {
        match c {
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\\' => line.push_str("\\\\"),
            c => line.push(c),
        }
    }
}
