//! The records of a delimited file, one after the other, with their lines.

use std::io::Read;

use stoa_error::{Error, Place, RecordNumber, Result};

use super::dialect::Dialect;
use super::scan::{self, Defect, Form, Record, Span, scan};
use crate::bad_value::BadValue;
use crate::input::cannot_read;
use crate::line_buffer::LineBuffer;
use crate::{Format, LoadOptions};

/// Reads records; passes over skipped lines, comments and blank lines.
pub(crate) struct Records {
    pub name: String,
    pub dialect: Dialect,
    buffer: LineBuffer,
    spans: Vec<Span>,
    scratch: Vec<u8>,
    /// Bytes of the record last returned, to be consumed before the next.
    pending: usize,
    /// Line of the record last returned; the next one is `lines` further.
    line: u64,
    lines: u64,
    comment: Option<Vec<u8>>,
    skip_empty_rows: bool,
    max_line_bytes: usize,
    at_end: bool,
}

/// One record: its fields and its place.
pub(crate) struct Row<'a> {
    /// The file it is in.
    pub name: &'a str,
    /// Physical line it starts on, from 1.
    pub line: u64,
    /// All its bytes with the line end.
    pub raw: &'a [u8],
    /// What is wrong with its form.
    pub defect: Option<Box<BadValue>>,
    dialect: &'a Dialect,
    spans: &'a [Span],
    scratch: &'a mut Vec<u8>,
}

impl Records {
    /// Opens the text of `reader`: takes off a byte order mark and the skipped lines.
    pub fn new(
        name: String,
        reader: Box<dyn Read + Send>,
        options: &LoadOptions,
        format: Format,
    ) -> Result<Self> {
        let mut buffer = LineBuffer::new(reader);
        strip_mark(&mut buffer, &name)?;
        let mut records = Self {
            name,
            dialect: Dialect::new(options, format),
            buffer,
            spans: Vec::new(),
            scratch: Vec::new(),
            pending: 0,
            line: 1,
            lines: 0,
            comment: options.comment.clone().map(String::into_bytes),
            skip_empty_rows: options.skip_empty_rows,
            // Spans count in 32 bits.
            max_line_bytes: options.max_line_bytes.min(1 << 30),
            at_end: false,
        };
        for _ in 0..options.skip_lines {
            records.skip_line()?;
        }
        Ok(records)
    }

    /// The next record, or `None` at the end.
    ///
    /// # Errors
    /// The stream cannot be read; a line is longer than the limit. What is wrong with the form
    /// of a record is in the record.
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        let record = loop {
            let Some(record) = self.advance()? else {
                return Ok(None);
            };
            let content = &self.buffer.rest()[..record.content];
            if self.dialect.backslash && content == b"\\." {
                self.at_end = true;
                return Ok(None);
            }
            if !self.is_passed_over(content) {
                break record;
            }
        };
        Ok(Some(Row {
            name: &self.name,
            line: self.line,
            raw: &self.buffer.rest()[..record.len],
            defect: record.defect.map(|defect| defect_of(defect, &self.dialect)),
            dialect: &self.dialect,
            spans: &self.spans,
            scratch: &mut self.scratch,
        }))
    }

    /// Moves to the next record, whatever it holds.
    fn advance(&mut self) -> Result<Option<Record>> {
        self.buffer.consume(std::mem::take(&mut self.pending));
        self.line += std::mem::take(&mut self.lines);
        loop {
            let (data, at_end) = (self.buffer.rest(), self.buffer.at_end());
            if self.at_end || (data.is_empty() && at_end) {
                return Ok(None);
            }
            match scan(&self.dialect, data, at_end, &mut self.spans) {
                Some(record) => return self.found(record),
                None if data.len() < self.max_line_bytes => {
                    self.buffer.grow().map_err(|e| cannot_read(&self.name, e))?;
                }
                // A quote that is not closed within the limit spoils one physical line only.
                None => match scan(&self.dialect, data, true, &mut self.spans) {
                    Some(record) if record.defect.is_some() => return self.found(record),
                    _ => return Err(self.line_too_long()),
                },
            }
        }
    }

    fn found(&mut self, record: Record) -> Result<Option<Record>> {
        if record.len > self.max_line_bytes {
            return Err(self.line_too_long());
        }
        self.pending = record.len;
        self.lines = record.lines;
        Ok(Some(record))
    }

    fn skip_line(&mut self) -> Result<()> {
        loop {
            let (data, at_end) = (self.buffer.rest(), self.buffer.at_end());
            match self.dialect.physical_line(data, at_end) {
                Some((_, len)) => {
                    self.buffer.consume(len);
                    self.line += 1;
                    return Ok(());
                }
                None if data.len() >= self.max_line_bytes => return Err(self.line_too_long()),
                None => self.buffer.grow().map_err(|e| cannot_read(&self.name, e))?,
            }
        }
    }

    fn is_passed_over(&self, content: &[u8]) -> bool {
        if self.comment.as_ref().is_some_and(|comment| content.starts_with(comment)) {
            return true;
        }
        self.skip_empty_rows
            && self.spans.iter().all(|span| {
                let field = content.get(span.start as usize..span.end as usize);
                span.form == Form::Plain && field.is_some_and(|f| f.trim_ascii().is_empty())
            })
    }

    fn line_too_long(&self) -> Error {
        Error::new(
            stoa_error::ErrorKind::Exhausted,
            format!(
                "{} line {} is longer than {} bytes",
                self.name, self.line, self.max_line_bytes
            ),
        )
        .with_sqlstate("54000")
        .with_hint(
            "check the options format, line_ending and quote; a longer line needs the option \
             max_line_bytes, and of more than 64 MiB must be in a file",
        )
    }
}

impl Row<'_> {
    /// Where it is, for messages: `data.csv line 17`.
    pub fn place(&self) -> Place {
        self.place_at(self.line, None)
    }

    /// Where a field is that is for the column `column`: `data.csv line 17, column "trips"`.
    pub fn place_of(&self, field: usize, column: &str) -> Place {
        self.place_at(self.line_of(field), Some(column.to_owned()))
    }

    fn place_at(&self, line: u64, column: Option<String>) -> Place {
        Place::Record { file: self.name.to_owned(), number: RecordNumber::Line(line), column }
    }

    /// How many fields it has.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether nothing is on its line.
    pub fn is_blank(&self) -> bool {
        self.spans.len() == 1 && self.raw.trim_ascii().is_empty()
    }

    /// The text of field `at` and whether NULL texts do not apply to it; `at` < `len()`.
    pub fn field(&mut self, at: usize) -> (&[u8], bool) {
        let Some(&span) = self.spans.get(at) else {
            return (&[], false);
        };
        let quoted = matches!(span.form, Form::Quoted | Form::QuotedEscaped);
        (scan::text(self.dialect, span, self.raw, self.scratch), quoted)
    }

    /// The bytes of field `at` before escapes are taken out: PostgreSQL looks for `\N` there.
    pub fn raw_field(&self, at: usize) -> &[u8] {
        self.spans
            .get(at)
            .and_then(|span| self.raw.get(span.start as usize..span.end as usize))
            .unwrap_or_default()
    }

    /// All fields as text, for headers.
    pub fn texts(&mut self) -> Vec<String> {
        (0..self.len())
            .map(|at| String::from_utf8_lossy(self.field(at).0).trim().to_owned())
            .collect()
    }

    /// Physical line that field `at` starts on.
    pub fn line_of(&self, at: usize) -> u64 {
        let start = self.spans.get(at).map_or(0, |span| span.start as usize);
        self.line + self.raw.get(..start).map_or(0, |before| self.dialect.line_ends(before))
    }

    /// The error of a record that does not have `expected` fields.
    pub fn wrong_count(&self, expected: usize) -> Box<BadValue> {
        let count = self.len();
        let bad = BadValue::line(format!(
            "{count} {}, expected {expected}",
            if count == 1 { "field" } else { "fields" }
        ));
        let line = self.raw.trim_ascii();
        let other = [b',', b';', b'\t', b'|'].into_iter().find(|&byte| {
            byte != self.dialect.delimiter
                && memchr::memchr_iter(byte, line).count() + 1 == expected
        });
        match other {
            Some(b'\t') if count == 1 => bad.hint("set the option delimiter to tab"),
            Some(byte) if count == 1 => {
                bad.hint(format!("set the option delimiter to '{}'", byte as char))
            }
            _ if count > expected => bad.hint(
                "a field that holds the delimiter must stand in quotes; see the options quote \
                 and delimiter",
            ),
            _ => bad,
        }
    }
}

fn defect_of(defect: Defect, dialect: &Dialect) -> Box<BadValue> {
    let quote = dialect.quote.unwrap_or(b'"') as char;
    match defect {
        Defect::UnclosedQuote(at) => BadValue::line(format!(
            "the quoted field that opens at byte {} of the line is never closed",
            at + 1
        ))
        .hint(format!(
            "if {quote} is data in this file, set the option quote to none; if it is escaped \
             otherwise than by doubling, set the option escape"
        )),
        Defect::TextAfterQuote(at) => BadValue::line(format!(
            "text after the closing quote, at byte {} of the record",
            at + 1
        ))
        .hint(format!(
            "a {quote} inside a quoted field must be doubled, or escaped as the option escape says"
        )),
    }
}

/// Takes off a UTF-8 byte order mark; refuses the other encodings that announce themselves.
fn strip_mark(buffer: &mut LineBuffer, name: &str) -> Result<()> {
    while buffer.rest().len() < 4 && !buffer.at_end() {
        buffer.grow().map_err(|e| cannot_read(name, e))?;
    }
    match buffer.rest() {
        [0xef, 0xbb, 0xbf, ..] => buffer.consume(3),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            return Err(Error::unsupported(format!("{name} is UTF-16"))
                .with_hint("convert it, for instance with iconv -f UTF-16 -t UTF-8"));
        }
        head if head.starts_with(b"PAR1") || head.starts_with(&[0x1f, 0x8b]) => {
            return Err(Error::invalid(format!("{name} is not text"))
                .with_hint("check the options format and compression"));
        }
        _ => {}
    }
    Ok(())
}
