//! Bytes to lines.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use stoa_error::{Error, Place, Result};

use super::LINE_BYTES_MAX;
use crate::budget::{MemoryBudget, TakenMemory};

/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 20;

const LONG_LINE_HINT: &str = "are line feeds what ends the lines? If so, raise memory_limit";

/// Reads lines from a stream, block by block. Errors have the number of the line, not the file.
pub(super) struct Lines {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    memory: TakenMemory,
    /// What of the buffer is read and not yet handed out.
    start: usize,
    end: usize,
    at_end: bool,
    number: u64,
}

impl Lines {
    /// The lines of `input`, held in memory of `budget`.
    pub(super) fn new(input: Box<dyn Read + Send>, budget: Arc<dyn MemoryBudget>) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            memory: TakenMemory::new(budget),
            start: 0,
            end: 0,
            at_end: false,
            number: 0,
        }
    }

    /// The number of the last line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line, without its line feed; none at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let line = self.start..searched + at;
                self.start = line.end + 1;
                self.number += 1;
                return Ok(Some(&self.buffer[line]));
            }
            if self.at_end {
                return Ok(self.take_last());
            }
            let kept = self.end - self.start;
            self.fill().map_err(|e| e.at(Place::Line(self.number + 1)))?;
            searched = self.start + kept;
        }
    }

    /// What stands behind the last line feed, if anything does.
    fn take_last(&mut self) -> Option<&[u8]> {
        let line = self.start..self.end;
        self.start = self.end;
        if line.is_empty() {
            return None;
        }
        self.number += 1;
        Some(&self.buffer[line])
    }

    /// Moves what is left to the front and reads more behind it.
    fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > LINE_BYTES_MAX {
            let text = format!("the line is longer than {LINE_BYTES_MAX} bytes");
            return Err(Error::invalid(text).with_sqlstate("54000").with_hint(LONG_LINE_HINT));
        }
        if self.buffer.len() < self.end + BLOCK_BYTES {
            let length = (2 * self.buffer.len()).max(self.end + BLOCK_BYTES);
            // Once as it was read, once as cells.
            self.memory.grow_to(2 * length).map_err(|e| e.with_hint(LONG_LINE_HINT))?;
            self.buffer.resize(length, 0);
        }
        let read = self.input.read(&mut self.buffer[self.end..]);
        let read = match read {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other.map_err(read_error)?,
        };
        self.end += read;
        self.at_end = read == 0;
        Ok(())
    }
}

fn read_error(error: std::io::Error) -> Error {
    let told = match error.kind() {
        // What a decompressor says about bytes that are not its own, or that end too early.
        ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
            Error::invalid("the file is damaged, cut off or not compressed with gzip")
        }
        _ => Error::unavailable("the file cannot be read"),
    };
    told.with_sqlstate("58030").with_source(error)
}
