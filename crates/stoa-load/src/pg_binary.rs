//! Rows in the binary format of PostgreSQL's COPY to batches.
//!
//! ```text
//!  "PGCOPY\n\xff\r\n\0"  flags: u32  length of the extension: u32  extension
//!  per row:  number of fields: i16  { length: i32 (-1 = NULL)  value }…
//!  at the end:  -1: i16
//! ```
//!
//! All numbers are big-endian. **Invariant:** memory grows with the bytes that are there, at most
//! [`LoadOptions::max_line_bytes`] for a row, not with the lengths they announce.

use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::{Error, ErrorKind, Place, RecordNumber, Result};

use crate::bad_value::BadValue;
use crate::batches::{BATCH_BYTES, FileBatches, finish_batch};
use crate::column::Column;
use crate::convert::Conversions;
use crate::input::cannot_read;
use crate::line_buffer::LineBuffer;
use crate::rejects::Rejects;
use crate::{Format, LoadOptions};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Flags that a reader must know, of which this one knows none.
const CRITICAL_FLAGS: u32 = 0xFFFF_0000;
/// The flag of rows that begin with an OID, which PostgreSQL wrote before version 12.
const WITH_OIDS: u32 = 1 << 16;
/// What stands for the number of fields after the last row.
const TRAILER: i16 = -1;

const HEADER_CUT: &str = "invalid COPY file header: it is cut off";

/// One file or stream being read.
pub(crate) struct PgBinaryReader {
    name: String,
    buffer: LineBuffer,
    target: SchemaRef,
    columns: Vec<Column>,
    conversions: Conversions,
    options: Arc<LoadOptions>,
    /// Number of the row that is read, from 1.
    row: u64,
    ended: bool,
}

impl PgBinaryReader {
    /// Reads the header.
    pub fn new(
        name: String,
        reader: Box<dyn Read + Send>,
        target: SchemaRef,
        options: Arc<LoadOptions>,
    ) -> Result<Self> {
        options.check_binary()?;
        let columns = target
            .fields()
            .iter()
            .map(|field| Column::new(field, options.batch_rows))
            .collect::<Result<Vec<_>>>()?;
        let mut file = Self {
            name,
            buffer: LineBuffer::new(reader),
            conversions: Conversions::new(&options, Format::Binary)?,
            target,
            columns,
            options,
            row: 0,
            ended: false,
        };
        file.read_header()?;
        Ok(file)
    }

    fn read_header(&mut self) -> Result<()> {
        if !self.fill(SIGNATURE.len())? || !self.buffer.rest().starts_with(SIGNATURE) {
            return Err(self.wrong("COPY file signature not recognized", None).with_hint(
                "these bytes are not in PostgreSQL's binary format; set the option format",
            ));
        }
        self.buffer.consume(SIGNATURE.len());
        let (Some(flags), Some(extension)) = (self.word()?, self.word()?) else {
            return Err(self.wrong(HEADER_CUT, None));
        };
        let flags = u32::from_be_bytes(flags);
        if flags & WITH_OIDS != 0 {
            return Err(self.wrong("invalid COPY file header (WITH OIDS)", None));
        }
        if flags & CRITICAL_FLAGS != 0 {
            let what = format!("unrecognized critical flags in COPY file header: {flags:#010x}");
            return Err(self.wrong(&what, None));
        }
        let Ok(mut left) = usize::try_from(i32::from_be_bytes(extension)) else {
            return Err(self.wrong("invalid COPY file header (wrong length)", None));
        };
        while left > 0 {
            if !self.fill(1)? {
                return Err(self.wrong(HEADER_CUT, None));
            }
            let skipped = left.min(self.buffer.rest().len());
            self.buffer.consume(skipped);
            left -= skipped;
        }
        Ok(())
    }

    /// Appends the next row; returns its bytes, `None` at the end.
    fn read_row(&mut self) -> Result<Option<usize>> {
        self.row += 1;
        if !self.fill(2)? {
            // PostgreSQL takes rows without a trailer as well, and drivers send such.
            return match self.buffer.rest() {
                [] => Ok(None),
                _ => Err(self.cut(None)),
            };
        }
        let count = self.buffer.rest().first_chunk().map_or(0, |count| i16::from_be_bytes(*count));
        self.buffer.consume(2);
        if count == TRAILER {
            return match self.fill(1)? {
                false => Ok(None),
                true => Err(self.wrong("received copy data after EOF marker", None)),
            };
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            let expected = self.columns.len();
            let what = format!("row field count is {count}, expected {expected}");
            return Err(self.wrong(&what, None));
        }
        let mut bytes = 2;
        for index in 0..self.columns.len() {
            bytes += self.read_field(index, bytes)?;
        }
        Ok(Some(bytes))
    }

    /// Appends the next field of a row of which `before` bytes were read; returns its bytes.
    fn read_field(&mut self, index: usize, before: usize) -> Result<usize> {
        let Some(length) = self.word()? else {
            return Err(self.cut(Some(index)));
        };
        let length = i32::from_be_bytes(length);
        let length = match length {
            -1 => None,
            _ => match usize::try_from(length) {
                Ok(length) => Some(length),
                Err(_) => return Err(self.wrong("invalid field size", Some(index))),
            },
        };
        if let Some(length) = length {
            if before.saturating_add(length) > self.options.max_line_bytes {
                return Err(self.too_long());
            }
            if !self.fill(length)? {
                return Err(self.cut(Some(index)));
            }
        }
        let Some(column) = self.columns.get_mut(index) else { return Ok(0) };
        let value = length.and_then(|length| self.buffer.rest().get(..length));
        let appended = match value {
            Some(value) => column.append_binary(value, &self.conversions),
            None => column.append_null(),
        };
        appended.map_err(|bad| bad.into_error(self.place(Some(index))))?;
        self.buffer.consume(length.unwrap_or(0));
        Ok(4 + length.unwrap_or(0))
    }

    /// Waits for so many bytes to be read ahead; whether they are there.
    fn fill(&mut self, bytes: usize) -> Result<bool> {
        while self.buffer.rest().len() < bytes {
            if self.buffer.at_end() {
                return Ok(false);
            }
            self.buffer.grow().map_err(|e| cannot_read(&self.name, e))?;
        }
        Ok(true)
    }

    /// The next four bytes, if they are there.
    fn word(&mut self) -> Result<Option<[u8; 4]>> {
        if !self.fill(4)? {
            return Ok(None);
        }
        let word = self.buffer.rest().first_chunk().copied();
        self.buffer.consume(4);
        Ok(word)
    }

    /// The row that is read, and the column of a field.
    fn place(&self, field: Option<usize>) -> Place {
        let column = field.and_then(|index| self.target.fields().get(index));
        Place::Record {
            file: self.name.clone(),
            number: RecordNumber::Row(self.row),
            column: column.map(|field| field.name().clone()),
        }
    }

    /// An error of form (22P04), in the header or a row.
    fn wrong(&self, what: &str, field: Option<usize>) -> Error {
        let place = if self.row == 0 { Place::file(&self.name) } else { self.place(field) };
        BadValue::line(what).into_error(place)
    }

    fn cut(&self, field: Option<usize>) -> Error {
        self.wrong("unexpected EOF in COPY data: the row is cut off", field)
    }

    fn too_long(&self) -> Error {
        let bytes_max = self.options.max_line_bytes;
        let what = format!("the row is longer than {bytes_max} bytes");
        Error::new(ErrorKind::Exhausted, what)
            .at(self.place(None))
            .with_sqlstate("54000")
            .with_hint(
                "a longer row needs the option max_line_bytes, and of more than 64 MiB must be \
                 in a file",
            )
    }
}

impl FileBatches for PgBinaryReader {
    fn next_batch(&mut self, _: &mut Rejects) -> Result<Option<RecordBatch>> {
        let (mut rows, mut bytes) = (0, 0);
        while !self.ended && rows < self.options.batch_rows && bytes < BATCH_BYTES {
            match self.read_row()? {
                Some(row_bytes) => {
                    rows += 1;
                    bytes += row_bytes;
                }
                None => self.ended = true,
            }
        }
        finish_batch(&self.target, &mut self.columns, rows)
    }
}
