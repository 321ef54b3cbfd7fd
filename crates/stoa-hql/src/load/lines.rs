//! Bytes to lines.

use std::io::Read;

use stoa_error::{Error, Result};

use super::LINE_BYTES_MAX;

/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 20;

/// Reads lines from a stream, block by block.
pub(super) struct Lines {
    input: Box<dyn Read + Send>,
    name: String,
    buffer: Vec<u8>,
    /// What of the buffer is read and not yet handed out.
    start: usize,
    end: usize,
    at_end: bool,
    number: u64,
}

impl Lines {
    /// The lines of `input`, which errors call `name`.
    pub(super) fn new(input: Box<dyn Read + Send>, name: &str) -> Self {
        Self {
            input,
            name: name.to_owned(),
            buffer: Vec::new(),
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
            self.fill()?;
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
            let place = format!("{} line {}", self.name, self.number + 1);
            let text = format!("{place} is longer than {LINE_BYTES_MAX} bytes");
            return Err(Error::invalid(text).with_hint("are line feeds what ends the lines?"));
        }
        if self.buffer.len() < self.end + BLOCK_BYTES {
            let length = (2 * self.buffer.len()).max(self.end + BLOCK_BYTES);
            self.buffer.resize(length, 0);
        }
        let read = self.input.read(&mut self.buffer[self.end..]);
        let read = match read {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            other => other
                .map_err(|e| crate::files::cannot("read", std::path::Path::new(&self.name), e))?,
        };
        self.end += read;
        self.at_end = read == 0;
        Ok(())
    }
}
