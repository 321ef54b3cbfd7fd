//! A window on a byte stream that grows until one whole line or value is in it.

use std::io::{ErrorKind, Read, Result};

/// Bytes that are read ahead at once: few at first, as streams often have no more, then twice as many each time.
const READ_BYTES_FIRST: usize = 32 << 10;
const READ_BYTES: usize = 256 << 10;

/// What is left to parse is [`LineBuffer::rest`]; [`LineBuffer::consume`] moves on,
/// [`LineBuffer::grow`] reads more.
pub(crate) struct LineBuffer {
    reader: Box<dyn Read + Send>,
    data: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    /// Bytes that the next read makes room for.
    ahead: usize,
}

impl LineBuffer {
    pub fn new(reader: Box<dyn Read + Send>) -> Self {
        Self { reader, data: Vec::new(), start: 0, end: 0, at_end: false, ahead: READ_BYTES_FIRST }
    }

    /// The bytes that were read and not consumed.
    pub fn rest(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    /// Whether the stream has ended: there is nothing after [`Self::rest`].
    pub fn at_end(&self) -> bool {
        self.at_end
    }

    /// Moves on by `bytes` of [`Self::rest`].
    pub fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Reads more behind the rest: at least as much as is there already, so that scanning a long
    /// line again costs no more than a constant factor.
    pub fn grow(&mut self) -> Result<()> {
        if self.start > 0 {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let wanted = (self.end * 2).max(self.ahead);
        self.ahead = (self.ahead * 2).min(READ_BYTES);
        if self.data.len() < wanted {
            self.data.resize(wanted, 0);
        } else if self.data.len() > 4 * wanted {
            // One long line must not hold its memory for the rest of the file.
            self.data.truncate(wanted);
            self.data.shrink_to_fit();
        }
        let enough = (self.end * 2).max(1);
        while self.end < enough {
            match self.reader.read(&mut self.data[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(bytes) => self.end += bytes,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
