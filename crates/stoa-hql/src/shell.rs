//! The shell: lines in, statements run, exit code out.
//!
//! In: lines from a [`LineSource`] (standard input, an editor with a history, a file). Statements
//! end with `;` and may span lines; commands of the shell itself (`quit`, `source f`, …) need
//! none. Whoever pastes gives several lines at once. Out: through [`Output`], and the exit code: 0; 2 after the first error in batch mode, or
//! where the last statement failed; or what `exit` says. What was printed is handed on before the next
//! line is waited for.
//!
//! Not here: what statements do (`session`), reading flags and terminals (the binary).

mod command;

use std::io::{BufRead, Read};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use stoa_error::{Error, Result};

use crate::files::Files;
use crate::lang::Splitter;
use crate::output::Output;
use crate::session::{Session, help};
use command::Command;

/// Exit code of a batch that met an error, and of any input whose last statement failed.
pub const EXIT_ERROR: i32 = 2;

/// Bytes that a statement, a line of one, or a file of `source` may have.
const STATEMENT_BYTES_MAX: usize = 256 << 20;

/// Files that `source` may nest.
const SOURCE_DEPTH_MAX: usize = 16;

/// Where lines come from.
pub trait LineSource: Send {
    /// The next line, with or without its line end, or several lines that were given at once (pasted);
    /// none at the end. `prompt` is what a terminal shows before it, empty if nothing.
    ///
    /// # Errors
    /// The lines cannot be read, or are not UTF-8.
    fn next_line(&mut self, prompt: &str) -> Result<Option<String>>;
}

/// Lines of a text.
pub struct TextLines<'a>(std::str::Lines<'a>);

impl<'a> TextLines<'a> {
    /// The lines of `text`.
    pub fn new(text: &'a str) -> Self {
        Self(text.lines())
    }
}

impl LineSource for TextLines<'_> {
    fn next_line(&mut self, _prompt: &str) -> Result<Option<String>> {
        Ok(self.0.next().map(str::to_owned))
    }
}

/// Lines of a reader. Prompts are not shown.
pub struct ReaderLines<R>(R);

impl<R: BufRead + Send> ReaderLines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self(reader)
    }
}

impl<R: BufRead + Send> LineSource for ReaderLines<R> {
    fn next_line(&mut self, _prompt: &str) -> Result<Option<String>> {
        read_line(&mut self.0)
    }
}

/// Lines of standard input. Prompts are not shown.
///
/// No line is read ahead: a statement that loads `-` gets what comes behind it.
pub struct StdinLines;

impl LineSource for StdinLines {
    fn next_line(&mut self, _prompt: &str) -> Result<Option<String>> {
        read_line(&mut std::io::stdin().lock())
    }
}

fn read_line(reader: &mut impl BufRead) -> Result<Option<String>> {
    let mut line = String::new();
    match reader.take(STATEMENT_BYTES_MAX as u64 + 1).read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(length) if length > STATEMENT_BYTES_MAX => Err(too_long("a line of the input")),
        Ok(_) => Ok(Some(line)),
        Err(e) => Err(Error::invalid("the statements are not UTF-8 text").with_source(e)),
    }
}

fn too_long(what: &str) -> Error {
    Error::invalid(format!("{what} is longer than {STATEMENT_BYTES_MAX} bytes"))
        .with_sqlstate("54000")
        .with_hint("LOAD DATA INFILE loads large data")
}

/// How a shell behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShellOptions {
    /// `--batch`: no prompts; the first error ends it with [`EXIT_ERROR`].
    pub batch: bool,
    /// `--no-prompt`: no prompts.
    pub no_prompt: bool,
    /// `--test-mode`: echo lines, go on after errors. Give the session the option `silent`, too.
    pub test_mode: bool,
    /// Whether `system` may run commands of the operating system.
    pub allow_system: bool,
}

/// Who runs the statements of a shell: a [`Session`] here, or a server.
#[async_trait]
pub trait Statements: Send {
    /// Parses one statement and runs it.
    ///
    /// # Errors
    /// As [`Session::run_text`].
    async fn run_text(&mut self, text: &str, out: &mut dyn Output) -> Result<()>;

    /// The files that `source` may read.
    fn files(&self) -> &Arc<dyn Files>;

    /// Waits.
    async fn pause(&mut self, time: Duration);
}

#[async_trait]
impl Statements for Session {
    async fn run_text(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        Session::run_text(self, text, out).await
    }

    fn files(&self) -> &Arc<dyn Files> {
        Session::files(self)
    }

    async fn pause(&mut self, time: Duration) {
        self.store().timestamps().pause(time).await;
    }
}

/// Runs what comes in lines.
pub struct Shell {
    statements: Box<dyn Statements>,
    options: ShellOptions,
    /// Whether the latest statement failed.
    failed: bool,
}

/// How a line ended.
enum Flow {
    Continue,
    Exit(i32),
}

impl Shell {
    /// A shell over a session, or whatever else runs statements.
    pub fn new(statements: impl Statements + 'static, options: ShellOptions) -> Self {
        Self { statements: Box::new(statements), options, failed: false }
    }

    /// Runs everything that `lines` gives; the exit code. A last statement without semicolon is
    /// run, too.
    ///
    /// # Errors
    /// Only what `out` and `lines` return; errors of statements are printed.
    pub async fn run(&mut self, lines: &mut dyn LineSource, out: &mut dyn Output) -> Result<i32> {
        match self.run_lines(lines, out, 0).await? {
            Flow::Exit(code) => Ok(code),
            Flow::Continue if self.failed && !self.options.test_mode => Ok(EXIT_ERROR),
            Flow::Continue => Ok(0),
        }
    }

    async fn run_lines(
        &mut self,
        lines: &mut dyn LineSource,
        out: &mut dyn Output,
        depth: usize,
    ) -> Result<Flow> {
        let mut splitter = Splitter::new();
        let mut is_first = true;
        loop {
            let prompt = self.prompt(&splitter);
            out.flush()?;
            let Some(text) = lines.next_line(prompt)? else { break };
            let mut text = text.strip_suffix('\n').unwrap_or(&text);
            if std::mem::take(&mut is_first) {
                // Editors of some systems begin a text with a byte order mark.
                text = text.trim_start_matches('\u{feff}');
            }
            for line in text.split('\n') {
                let line = line.trim_end_matches('\r');
                if self.options.test_mode {
                    out.write(format!("{}\n", line.trim()).as_bytes())?;
                }
                if let Flow::Exit(code) = self.line(line, &mut splitter, out, depth).await? {
                    return Ok(Flow::Exit(code));
                }
            }
        }
        match splitter.take_rest() {
            Some(statement) => self.statement(&statement, out, depth).await,
            None => Ok(Flow::Continue),
        }
    }

    async fn line(
        &mut self,
        line: &str,
        splitter: &mut Splitter,
        out: &mut dyn Output,
        depth: usize,
    ) -> Result<Flow> {
        match Command::of_line(line, splitter.is_within_statement()) {
            Some(Command::Print) => {
                out.write(format!("{}\n", splitter.pending().trim()).as_bytes())?
            }
            Some(Command::Clear) => *splitter = Splitter::new(),
            Some(command) => return self.command(command, out, depth).await,
            None if splitter.pending().len() + line.len() > STATEMENT_BYTES_MAX => {
                return Err(too_long("a statement"));
            }
            None => {
                splitter.push(line);
                splitter.push("\n");
            }
        }
        while let Some(statement) = splitter.next_statement() {
            if let Flow::Exit(code) = self.statement(&statement, out, depth).await? {
                return Ok(Flow::Exit(code));
            }
        }
        // A command behind the last statement of the line ends with the line.
        match Command::of_line(splitter.pending(), false).filter(|_| line.contains(';')) {
            Some(command) => {
                *splitter = Splitter::new();
                self.command(command, out, depth).await
            }
            None => Ok(Flow::Continue),
        }
    }

    async fn statement(&mut self, text: &str, out: &mut dyn Output, depth: usize) -> Result<Flow> {
        if let Some(command) = Command::of_statement(text) {
            return self.command(command, out, depth).await;
        }
        let done = self.statements.run_text(text, out).await;
        self.outcome(done, out)
    }

    async fn command(
        &mut self,
        command: Command,
        out: &mut dyn Output,
        depth: usize,
    ) -> Result<Flow> {
        match command {
            Command::Exit(code) => return Ok(Flow::Exit(code)),
            Command::Source(file) => match self.read_source(&file, depth) {
                Ok(text) => {
                    let mut lines = TextLines::new(&text);
                    return Box::pin(self.run_lines(&mut lines, out, depth + 1)).await;
                }
                Err(error) => return self.outcome(Err(error), out),
            },
            Command::System(command) => {
                let done = self.system(&command, out);
                return self.outcome(done, out);
            }
            Command::Help(topic) => {
                out.write(help::text(&topic).as_bytes())?;
            }
            Command::Pause(time) => self.statements.pause(time).await,
            Command::Print | Command::Clear => {}
        }
        Ok(Flow::Continue)
    }

    /// Prints an error, and ends a batch with it.
    fn outcome(&mut self, done: Result<()>, out: &mut dyn Output) -> Result<Flow> {
        self.failed = done.is_err();
        let Err(error) = done else { return Ok(Flow::Continue) };
        out.write(error_text(&error).as_bytes())?;
        if let Some(hint) = error.hint() {
            out.notice(&format!("hint: {hint}\n"))?;
        }
        let ends = self.options.batch && !self.options.test_mode;
        Ok(if ends { Flow::Exit(EXIT_ERROR) } else { Flow::Continue })
    }

    fn prompt(&self, splitter: &Splitter) -> &'static str {
        let Self { options, .. } = self;
        match splitter.is_within_statement() {
            _ if options.batch || options.no_prompt || options.test_mode => "",
            true => "         -> ",
            false => "hypertable> ",
        }
    }

    fn read_source(&self, file: &str, depth: usize) -> Result<String> {
        if depth >= SOURCE_DEPTH_MAX {
            let text = format!("{file}: files that source others are nested deeper than {depth}");
            return Err(Error::invalid(text).with_hint("does a file source itself?"));
        }
        let mut text = String::new();
        let bytes = self.statements.files().open(file)?.bytes;
        let read = bytes.take(STATEMENT_BYTES_MAX as u64 + 1).read_to_string(&mut text);
        read.map_err(|e| Error::invalid(format!("{file} is not UTF-8 text")).with_source(e))?;
        match text.len() > STATEMENT_BYTES_MAX {
            true => Err(too_long(file)),
            false => Ok(text),
        }
    }

    fn system(&self, command: &str, out: &mut dyn Output) -> Result<()> {
        if !self.options.allow_system {
            return Err(Error::unsupported("this shell runs no commands of the operating system"));
        }
        let run = std::process::Command::new("sh").arg("-c").arg(command).output();
        let run = run.map_err(|e| Error::unavailable("cannot run sh").with_source(e))?;
        out.write(&run.stdout)?;
        out.notice(&String::from_utf8_lossy(&run.stderr))
    }
}

/// An error as Hypertable's shell prints it, on one line (reference §1.3).
pub fn error_text(error: &Error) -> String {
    let detail = error.detail().map_or(String::new(), |detail| format!(" ({detail})"));
    let text = format!("{}{detail}", error.message_with_sources());
    format!("Hypertable CRITICAL - {}\n", text.replace('\n', " "))
}
