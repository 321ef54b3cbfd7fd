//! Text on its way out: one reused buffer in front of a sink.
//!
//! **Invariant:** the buffer holds little more than [`FULL_BYTES`] as long as those who fill it call
//! [`Output::relieve`] after each row or line.

use std::fmt;
use std::io::Write;

use stoa_error::{Error, Result};

/// From this many bytes on the buffer is written out.
const FULL_BYTES: usize = 128 << 10;

/// A buffered sink.
pub(crate) struct Output<'a> {
    sink: &'a mut dyn Write,
    pub(crate) buffer: Vec<u8>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(sink: &'a mut dyn Write) -> Self {
        Self { sink, buffer: Vec::with_capacity(FULL_BYTES + FULL_BYTES / 8) }
    }

    /// Writes the buffer out if it is full.
    #[inline]
    pub(crate) fn relieve(&mut self) -> Result<()> {
        if self.buffer.len() >= FULL_BYTES { self.write_out() } else { Ok(()) }
    }

    /// Appends a line.
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) -> Result<()> {
        self.buffer.write_fmt(line).map_err(output_error)?;
        self.buffer.push(b'\n');
        self.relieve()
    }

    /// Writes out what is left, and flushes the sink.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.write_out()?;
        self.sink.flush().map_err(output_error)
    }

    fn write_out(&mut self) -> Result<()> {
        self.sink.write_all(&self.buffer).map_err(output_error)?;
        self.buffer.clear();
        Ok(())
    }
}

/// An error of the sink; its source says whether nobody reads it any more.
fn output_error(error: std::io::Error) -> Error {
    Error::unavailable("cannot write output").with_source(error)
}
