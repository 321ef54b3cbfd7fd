//! What statements print: cells as lines, statistics, progress; and where it goes.
//!
//! [`Output`] has three ways out: results (standard output of a shell), notices (standard error),
//! and the display of a load's progress. The forms are Hypertable's (reference §1.3, §1.4).
//!
//! Not here: what is printed when (`session`), prompts (`shell`).

mod file;
mod format;
mod progress;
mod statistics;
mod terminal;

use std::io::Write;

use stoa_error::{Error, Result};

pub(crate) use file::OutputFile;
pub use format::CellFormat;
pub(crate) use progress::ProgressDisplay;
pub(crate) use statistics::Statistics;
use terminal::{TerminalText, readable};

/// Where a session writes.
pub trait Output: Send {
    /// A part of the result.
    ///
    /// # Errors
    /// [`Unavailable`](stoa_error::ErrorKind::Unavailable) if nobody takes it; the statement ends
    /// then.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Something about the statement that is not its result: warnings, statistics, hints; with its
    /// line ends.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn notice(&mut self, text: &str) -> Result<()>;

    /// A part of the display of progress.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn progress(&mut self, text: &str) -> Result<()>;

    /// Hands on what is still held back: somebody may wait for it before the next statement is
    /// written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Results and progress to one writer, notices to another: a shell's standard output and error.
///
/// Both get bytes as they are, unless they are terminals ([`with_terminals`](Self::with_terminals)).
pub struct ConsoleOutput<W, E> {
    results: W,
    notices: E,
    /// What a terminal shows of results.
    terminal: Option<TerminalText>,
    notices_on_terminal: bool,
}

impl<W: Write + Send, E: Write + Send> ConsoleOutput<W, E> {
    /// Writes to these two.
    pub fn new(results: W, notices: E) -> Self {
        Self { results, notices, terminal: None, notices_on_terminal: false }
    }

    /// Says which of them are terminals: what cells hold must not move their cursor or name their
    /// window, so control characters are written as `\x1b`, all but line feed and TAB.
    #[must_use]
    pub fn with_terminals(mut self, results: bool, notices: bool) -> Self {
        self.terminal = results.then(TerminalText::default);
        self.notices_on_terminal = notices;
        self
    }

    /// Writes what of a character is held back, as nothing more of it will come.
    fn end_text(&mut self) -> Result<()> {
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        let rest = terminal.finish();
        self.results.write_all(rest.as_bytes()).map_err(cannot_write)
    }
}

impl<W: Write + Send, E: Write + Send> Output for ConsoleOutput<W, E> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(terminal) = &mut self.terminal else {
            return self.results.write_all(bytes).map_err(cannot_write);
        };
        let shown = terminal.push(bytes);
        self.results.write_all(shown.as_bytes()).map_err(cannot_write)
    }

    fn notice(&mut self, text: &str) -> Result<()> {
        // What was printed before stands before it on a terminal.
        self.flush()?;
        let written = match self.notices_on_terminal {
            true => self.notices.write_all(readable(text.as_bytes()).as_bytes()),
            false => self.notices.write_all(text.as_bytes()),
        };
        written.map_err(cannot_write)
    }

    fn progress(&mut self, text: &str) -> Result<()> {
        self.write(text.as_bytes())?;
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        self.end_text()?;
        self.results.flush().map_err(cannot_write)
    }
}

/// Keeps everything in memory.
#[derive(Debug, Default)]
pub struct BufferOutput {
    /// Results.
    pub results: Vec<u8>,
    /// Notices.
    pub notices: String,
    /// Progress.
    pub progress: String,
}

impl Output for BufferOutput {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.results.extend_from_slice(bytes);
        Ok(())
    }

    fn notice(&mut self, text: &str) -> Result<()> {
        self.notices.push_str(text);
        Ok(())
    }

    fn progress(&mut self, text: &str) -> Result<()> {
        self.progress.push_str(text);
        Ok(())
    }
}

fn cannot_write(error: std::io::Error) -> Error {
    Error::unavailable("cannot write the result").with_sqlstate("58030").with_source(error)
}

#[cfg(test)]
mod tests;
