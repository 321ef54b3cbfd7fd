//! Rows as lines of text and back, as Hive's `LazySimpleSerDe` writes and reads them.
//!
//! Fields that are missing at the end of a line are NULL, and those beyond the columns are dropped. Bytes that are no UTF-8
//! become U+FFFD.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result as EngineResult;
use futures::{Stream, stream};
use stoa_error::{Error, Result};
use stoa_script::{Format, Script, Spec};
use stoa_semantics::errors::to_datafusion;

/// Writes rows.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    format: Format,
    /// Columns that are written; those behind them are keys.
    columns: usize,
}

impl Writer {
    pub(super) fn new(format: Format, columns: usize) -> Self {
        Self { format, columns }
    }

    /// The lines of a batch.
    pub(super) fn bytes(&self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let wrong = |e| Error::internal("a value has no text").with_source(e);
        let texts = batch.columns().iter().take(self.columns);
        let texts = texts.map(|column| cast(column, &DataType::Utf8).map_err(wrong));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let texts: Vec<&StringArray> = texts.iter().map(|text| text.as_string::<i32>()).collect();
        let mut bytes = Vec::with_capacity(batch.num_rows() * 16 * texts.len());
        for row in 0..batch.num_rows() {
            for (at, text) in texts.iter().enumerate() {
                if at > 0 {
                    bytes.push(self.format.field);
                }
                match text.is_null(row) {
                    true => bytes.extend_from_slice(self.format.null.as_bytes()),
                    false => self.value(text.value(row), &mut bytes),
                }
            }
            bytes.push(b'\n');
        }
        Ok(bytes)
    }

    fn value(&self, text: &str, bytes: &mut Vec<u8>) {
        let Some(escape) = self.format.escape else {
            return bytes.extend_from_slice(text.as_bytes());
        };
        for byte in text.bytes() {
            if byte == escape || byte == self.format.field {
                bytes.push(escape);
            }
            bytes.push(byte);
        }
    }
}

/// Reads lines.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    schema: SchemaRef,
    format: Format,
    takes_rest: bool,
    rows_max: usize,
}

impl Reader {
    pub(super) fn new(schema: SchemaRef, spec: &Spec, rows_max: usize) -> Self {
        let (format, takes_rest) = (spec.output.clone(), spec.takes_rest);
        Self { schema, format, takes_rest, rows_max: rows_max.max(1) }
    }

    /// The rows of what a program writes.
    pub(super) fn batches(self, script: Script) -> impl Stream<Item = EngineResult<RecordBatch>> {
        stream::unfold((self, Some(script), VecDeque::new()), |(reader, script, mut read)| async {
            let mut script = script;
            while read.is_empty() {
                match script.as_mut()?.lines().await {
                    None => script = None,
                    Some(lines) => match lines.and_then(|lines| reader.read(&lines)) {
                        Ok(batches) => read = batches,
                        // The program ends with it.
                        Err(error) => {
                            return Some((Err(to_datafusion(error)), (reader, None, read)));
                        }
                    },
                }
            }
            read.pop_front().map(|batch| (Ok(batch), (reader, script, read)))
        })
    }

    fn read(&self, lines: &[u8]) -> Result<VecDeque<RecordBatch>> {
        let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
        let mut batches = VecDeque::new();
        let mut lines = lines.split(|byte| *byte == b'\n').peekable();
        while lines.peek().is_some() {
            batches.push_back(self.batch(lines.by_ref().take(self.rows_max))?);
        }
        Ok(batches)
    }

    fn batch<'a>(&self, lines: impl Iterator<Item = &'a [u8]>) -> Result<RecordBatch> {
        let mut columns: Vec<StringBuilder> =
            self.schema.fields().iter().map(|_| StringBuilder::new()).collect();
        for line in lines {
            self.line(line.strip_suffix(b"\r").unwrap_or(line), &mut columns);
        }
        let columns = columns.iter_mut().map(|column| Arc::new(column.finish()) as _).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|e| Error::internal("lines became no batch").with_source(e))
    }

    fn line(&self, line: &[u8], columns: &mut [StringBuilder]) {
        let count = columns.len();
        let mut rest = Some(line);
        for (at, column) in columns.iter_mut().enumerate() {
            let field = match rest {
                Some(all) if self.takes_rest && at + 1 == count => {
                    rest = None;
                    Some(all)
                }
                Some(all) => {
                    let end = self.end_of_field(all);
                    rest = all.get(end + 1..).filter(|_| end < all.len());
                    Some(&all[..end])
                }
                None => None,
            };
            match field {
                Some(field) if field != self.format.null.as_bytes() => {
                    column.append_value(String::from_utf8_lossy(&self.unescaped(field)));
                }
                _ => column.append_null(),
            }
        }
    }

    fn end_of_field(&self, line: &[u8]) -> usize {
        let mut is_escaped = false;
        let is_end = |byte: &u8| {
            let is_end = !is_escaped && *byte == self.format.field;
            is_escaped = !is_escaped && self.format.escape == Some(*byte);
            is_end
        };
        line.iter().position(is_end).unwrap_or(line.len())
    }

    fn unescaped<'a>(&self, field: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(escape) = self.format.escape.filter(|escape| field.contains(escape)) else {
            return Cow::Borrowed(field);
        };
        let mut plain = Vec::with_capacity(field.len());
        let mut bytes = field.iter();
        while let Some(byte) = bytes.next() {
            // An escape at the end stands for itself.
            let byte = if *byte == escape { bytes.next().unwrap_or(byte) } else { byte };
            plain.push(*byte);
        }
        Cow::Owned(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::node::schema_of;

    fn spec(columns: usize, takes_rest: bool, output: Format) -> Spec {
        Spec { columns, takes_rest, output, ..Spec::default() }
    }

    fn read(spec: &Spec, lines: &str) -> Vec<Vec<Option<String>>> {
        let reader = Reader::new(schema_of(spec), spec, 2);
        let mut rows = Vec::new();
        for batch in reader.read(lines.as_bytes()).unwrap() {
            for row in 0..batch.num_rows() {
                let cell = |column: &Arc<dyn Array>| {
                    let column = column.as_string::<i32>();
                    column.is_valid(row).then(|| column.value(row).to_owned())
                };
                rows.push(batch.columns().iter().map(cell).collect());
            }
        }
        rows
    }

    fn row(cells: &[Option<&str>]) -> Vec<Option<String>> {
        cells.iter().map(|cell| cell.map(str::to_owned)).collect()
    }

    #[test]
    fn lines_are_rows() {
        let plain = spec(2, false, Format::default());
        assert_eq!(read(&plain, "a\tb\tc\n"), [row(&[Some("a"), Some("b")])]);
        assert_eq!(read(&plain, "a"), [row(&[Some("a"), None])]);
        assert_eq!(read(&plain, "\n"), [row(&[Some(""), None])]);
        assert_eq!(
            read(&plain, "\\N\t\r\nx\t\\N"),
            [row(&[None, Some("")]), row(&[Some("x"), None])]
        );
        assert_eq!(read(&plain, "1\n2\n3\n").len(), 3);
        let rest = spec(2, true, Format::default());
        assert_eq!(read(&rest, "a\tb\tc\n"), [row(&[Some("a"), Some("b\tc")])]);
        assert_eq!(read(&rest, "a\t\\N\n"), [row(&[Some("a"), None])]);
        let escaped = Format { field: b',', escape: Some(b'\\'), null: "nix".to_owned() };
        let escaped = spec(2, false, escaped);
        assert_eq!(read(&escaped, "a\\,b,c\\\\\n"), [row(&[Some("a,b"), Some("c\\")])]);
        assert_eq!(read(&escaped, "nix,\\\n"), [row(&[None, Some("\\")])]);
    }

    #[test]
    fn rows_are_lines() {
        let spec = spec(2, false, Format::default());
        let schema = schema_of(&spec);
        let first = StringArray::from(vec![Some("a,b"), None]);
        let second = StringArray::from(vec![Some("\\"), Some("")]);
        let columns = vec![Arc::new(first) as _, Arc::new(second) as _];
        let batch = RecordBatch::try_new(schema, columns).unwrap();
        let bytes = |writer: Writer| String::from_utf8(writer.bytes(&batch).unwrap()).unwrap();
        assert_eq!(bytes(Writer::new(Format::default(), 2)), "a,b\t\\\n\\N\t\n");
        assert_eq!(bytes(Writer::new(Format::default(), 1)), "a,b\n\\N\n");
        let format = Format { field: b',', escape: Some(b'\\'), null: String::new() };
        assert_eq!(bytes(Writer::new(format, 2)), "a\\,b,\\\\\n,\n");
    }
}
