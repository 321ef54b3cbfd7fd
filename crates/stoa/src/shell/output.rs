//! Where rows go: stdout, a file, a command, or a pager if they do not fit on the screen.
//!
//! **Invariants:** a pager that is left early is no error and ends the statement. A file or command gets rows
//! and nothing else; what it could not take is an error.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Stdout, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use console::Term;
use stoa_error::{Error, Result};

/// What takes rows.
pub(super) enum Output {
    /// The shell's own.
    Stdout(BufWriter<Stdout>),
    /// `\o FILE`, `\g FILE`.
    File(BufWriter<File>),
    /// `\o |COMMAND`, `\g |COMMAND`.
    Pipe(Pipe),
}

impl Output {
    /// Stdout.
    pub(super) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(std::io::stdout()))
    }

    /// What `\o` and `\g` name: a file, which is created or emptied, or `|` and a command for `sh`.
    ///
    /// # Errors
    /// Unavailable: the file cannot be created, the command not started.
    pub(super) fn named(target: &str) -> Result<Self> {
        match target.strip_prefix('|') {
            Some(command) => Pipe::start(command.trim()).map(Self::Pipe),
            None => {
                File::create(target).map(|file| Self::File(BufWriter::new(file))).map_err(|e| {
                    Error::unavailable(format!("cannot write to {target}")).with_source(e)
                })
            }
        }
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout(_))
    }

    /// Flushes, and waits for the command to end.
    ///
    /// # Errors
    /// Unavailable: not all could be written.
    pub(super) fn finish(mut self) -> Result<()> {
        let flushed = self.flush();
        if let Self::Pipe(pipe) = self {
            pipe.end();
        }
        flushed.map_err(|e| Error::unavailable("cannot write all rows").with_source(e))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(out) => out.write(bytes),
            Self::Pipe(out) => out.stdin.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(out) => out.flush(),
            Self::Pipe(out) => out.stdin.flush(),
        }
    }
}

/// A running command that reads what is written.
pub(super) struct Pipe {
    child: Child,
    stdin: BufWriter<ChildStdin>,
}

impl Pipe {
    fn start(command: &str) -> Result<Self> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // For `less`: leave if all fits, keep colours, cut long lines, leave the rows on the screen.
            shell.env("LESS", "FRSX");
        }
        let cannot = || Error::unavailable(format!("cannot start {command:?}"));
        let mut child = shell.spawn().map_err(|e| cannot().with_source(e))?;
        let stdin = child.stdin.take().ok_or_else(cannot)?;
        Ok(Self { child, stdin: BufWriter::new(stdin) })
    }

    /// Closes its input and waits; its exit code is for its own messages.
    fn end(self) {
        let Self { mut child, stdin } = self;
        drop(stdin);
        let _ = child.wait();
    }
}

/// More than any screen holds, whatever its lines are.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Rows on their way to a terminal: held back until it is known whether they fit on it.
pub(super) struct Paged<'a> {
    out: &'a mut Output,
    /// `None` where nothing is paged.
    screen: Option<Screen>,
    held: Vec<u8>,
    /// Lines of the screen that complete lines of `held` take, and where the line after them begins.
    lines: usize,
    line_at: usize,
    pager: Option<Pipe>,
    is_closed: bool,
}

/// A terminal and what shows what does not fit on it.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    rows: usize,
    columns: usize,
    pager: String,
}

impl Screen {
    /// The terminal at stdout, if there is one and a pager: `$PAGER`, or `less` where it is installed.
    pub(super) fn here() -> Option<Self> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        let (rows, columns) = Term::stdout().size_checked()?;
        Some(Self { rows: rows.into(), columns: columns.into(), pager: pager()? })
    }

    /// How many lines of the screen a line takes.
    fn lines(&self, line: &[u8]) -> usize {
        let width = console::measure_text_width(&String::from_utf8_lossy(line));
        width.max(1).div_ceil(self.columns.max(1))
    }
}

#[expect(clippy::disallowed_methods, reason = "other programs' variable, not a setting")]
fn pager() -> Option<String> {
    match std::env::var("PAGER") {
        Ok(pager) if pager.trim().is_empty() => None,
        Ok(pager) => Some(pager),
        Err(_) => {
            let path = std::env::var_os("PATH")?;
            let is_there = std::env::split_paths(&path).any(|dir| dir.join("less").is_file());
            is_there.then(|| "less".to_owned())
        }
    }
}

impl<'a> Paged<'a> {
    /// Writes to `out`, through a pager if `screen` is there and too small.
    pub(super) fn new(out: &'a mut Output, screen: Option<Screen>) -> Self {
        Self { out, screen, held: Vec::new(), lines: 0, line_at: 0, pager: None, is_closed: false }
    }

    /// Whether the pager was left: nobody reads on.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Shows what is held back, or waits until the pager is left.
    ///
    /// # Errors
    /// The output's.
    pub(super) fn finish(mut self) -> std::io::Result<()> {
        self.release()
    }

    fn release(&mut self) -> std::io::Result<()> {
        if let Some(mut pager) = self.pager.take() {
            let _ = pager.stdin.flush();
            pager.end();
        }
        let held = std::mem::take(&mut self.held);
        self.out.write_all(&held)
    }

    fn page(&mut self, bytes: &[u8]) {
        if let Some(pager) = &mut self.pager
            && pager.stdin.write_all(bytes).is_err()
        {
            self.is_closed = true;
        }
    }
}

impl Write for Paged<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let Some(screen) = &self.screen else { return self.out.write(bytes) };
        if self.pager.is_some() {
            self.page(bytes);
            return Ok(bytes.len());
        }
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            let end = self.held.len() + at;
            let begin = std::mem::replace(&mut self.line_at, end + 1);
            let before = self.held.get(begin..).unwrap_or_default();
            let here = &bytes[begin.saturating_sub(self.held.len())..at];
            self.lines += screen.lines(&[before, here].concat());
        }
        self.held.extend_from_slice(bytes);
        // The prompt takes a line, too.
        if self.lines >= screen.rows || self.held.len() > HELD_BYTES_MAX {
            let started = Pipe::start(&screen.pager);
            self.pager = started.map_err(std::io::Error::other)?.into();
            let held = std::mem::take(&mut self.held);
            self.page(&held);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.pager {
            Some(pager) => self.is_closed |= pager.stdin.flush().is_err(),
            None if self.screen.is_none() => self.out.flush()?,
            None => {}
        }
        Ok(())
    }
}

impl Drop for Paged<'_> {
    /// A statement that failed or was cancelled has shown what it could; the pager is waited for, or it and the
    /// prompt would read the same keys.
    fn drop(&mut self) {
        let _ = self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_screen_are_counted() {
        let screen = Screen { rows: 3, columns: 10, pager: "cat".into() };
        for (line, lines) in
            [("", 1), ("a", 1), ("0123456789", 1), ("01234567890", 2), ("日本語日本語", 2)]
        {
            assert_eq!(screen.lines(line.as_bytes()), lines, "{line}");
        }
    }

    #[test]
    fn what_fits_is_not_paged() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("paged");
        let pager = format!("cat > {}", file.display());
        let screen = Some(Screen { rows: 3, columns: 10, pager });
        let mut out = Output::named(dir.path().join("out").to_str().unwrap()).unwrap();
        let mut paged = Paged::new(&mut out, screen.clone());
        for part in ["a", "\n", "b", "\n", "c"] {
            paged.write_all(part.as_bytes()).unwrap();
        }
        paged.finish().unwrap();
        assert!(!file.exists());
        let mut paged = Paged::new(&mut out, screen);
        paged.write_all(b"a\nb\n").unwrap();
        paged.write_all(b"c\nd\n").unwrap();
        paged.finish().unwrap();
        out.finish().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "a\nb\nc\nd\n");
        assert_eq!(std::fs::read_to_string(dir.path().join("out")).unwrap(), "a\nb\nc");
    }

    #[test]
    fn a_pager_that_is_left_ends_the_rows() {
        let mut out = Output::named("|cat >/dev/null").unwrap();
        let screen = Screen { rows: 1, columns: 10, pager: "true".into() };
        let mut paged = Paged::new(&mut out, Some(screen));
        // Larger than a pipe holds, so that the writer learns that nobody reads.
        for _ in 0..10_000 {
            paged.write_all(&[b'x'; 1000]).unwrap();
            // As after each batch.
            paged.flush().unwrap();
        }
        assert!(paged.is_closed());
        drop(paged);
        out.finish().unwrap();
    }
}
