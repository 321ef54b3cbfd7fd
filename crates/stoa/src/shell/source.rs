//! Where lines come from.

use std::io::{BufRead, BufReader, Read};

use stoa_error::{Error, Result};

use super::splitter::Splitter;

/// What a source gave.
pub enum Line {
    /// One line, without its end.
    Text(String),
    /// The user pressed Ctrl-C: what was typed is dropped.
    Interrupted,
    /// There is no more.
    End,
}

/// Gives lines, one after the other.
pub trait LineSource {
    /// The next line; `pending` is the statement it continues, for the prompt.
    ///
    /// # Errors
    /// The source cannot be read or is not UTF-8.
    fn next_line(&mut self, pending: &Splitter) -> Result<Line>;

    /// Keeps a statement for the next time, where the source is a person.
    fn remember(&mut self, _statement: &str) {}

    /// Whether a person types the lines.
    fn is_interactive(&self) -> bool {
        false
    }
}

/// Lines of a text, a file or a pipe.
pub struct TextSource {
    name: String,
    reader: Box<dyn BufRead>,
    number: u64,
}

impl TextSource {
    /// Lines of `reader`; errors call it `name`.
    pub fn new(name: impl Into<String>, reader: impl Read + 'static) -> Self {
        Self { name: name.into(), reader: Box::new(BufReader::new(reader)), number: 0 }
    }

    /// Lines of a file.
    ///
    /// # Errors
    /// Not found: the file cannot be opened.
    pub fn open(path: &str) -> Result<Self> {
        let file = std::fs::File::open(path)
            .map_err(|e| Error::not_found(format!("cannot read {path}")).with_source(e))?;
        Ok(Self::new(path, file))
    }
}

impl LineSource for TextSource {
    fn next_line(&mut self, _pending: &Splitter) -> Result<Line> {
        let mut bytes = Vec::new();
        self.number += 1;
        let place = format!("{}:{}", self.name, self.number);
        let read = self.reader.read_until(b'\n', &mut bytes);
        if read.map_err(|e| Error::unavailable(format!("cannot read {place}")).with_source(e))? == 0
        {
            return Ok(Line::End);
        }
        let mut line = String::from_utf8(bytes)
            .map_err(|e| Error::invalid(format!("{place}: not UTF-8")).with_source(e))?;
        if line.ends_with('\n') {
            line.pop();
        }
        if line.ends_with('\r') {
            line.pop();
        }
        Ok(Line::Text(line))
    }
}
