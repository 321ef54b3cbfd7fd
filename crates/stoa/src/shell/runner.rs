//! Runs what sources give, one statement after the other.

use std::io::{BufWriter, Stdout, Write};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use stoa_env::clock::monotonic;
use stoa_error::{Error, ErrorKind, Place, Result};
use stoa_query::CopyIn;

use super::backend::{Backend, Reply};
use super::complete::Names;
use super::format::{Format, Style, output_error, row_writer};
use super::meta::{self, Meta};
use super::source::{Line, LineSource, TextSource};
use super::splitter::Splitter;
use crate::failure::print_error;

/// How the shell starts.
#[derive(Clone, Copy, Debug)]
pub struct ShellOptions {
    /// How rows are shown.
    pub format: Format,
    /// Whether column names come first.
    pub header: bool,
    /// One line per value.
    pub expanded: bool,
    /// Show how long statements take.
    pub timing: bool,
    /// Leave at the first error.
    pub stop_on_error: bool,
    /// Show nothing but rows.
    pub quiet: bool,
}

/// A shell on a backend.
pub struct Shell {
    backend: Backend,
    options: ShellOptions,
    names: Arc<Names>,
    out: BufWriter<Stdout>,
    failed: bool,
}

/// What to do after a line or statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Continue,
    /// Leave.
    Stop,
}

/// Files that include files, at most so deep.
const INCLUDES_MAX: usize = 16;

impl Shell {
    /// A shell that has run nothing yet.
    pub fn new(backend: Backend, options: ShellOptions) -> Self {
        let out = BufWriter::new(std::io::stdout());
        Self { backend, options, names: Arc::default(), out, failed: false }
    }

    /// The names that completion offers, kept current by this shell.
    pub fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names)
    }

    /// Whether any statement failed.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Brings what was written without a server into files; nothing runs afterwards.
    pub async fn close(&self) {
        self.backend.close().await;
    }

    /// Where statements run, for people.
    pub fn place(&self) -> String {
        self.backend.place()
    }

    /// Runs all that `source` gives.
    ///
    /// # Errors
    /// The source cannot be read, or stdout not written. Errors of statements are shown and counted.
    pub async fn run(&mut self, source: &mut dyn LineSource) -> Result<Next> {
        if source.is_interactive() {
            self.refresh_names().await;
        }
        self.run_nested(source, 0).await
    }

    async fn run_nested(&mut self, source: &mut dyn LineSource, depth: usize) -> Result<Next> {
        let mut splitter = Splitter::default();
        loop {
            let line = match source.next_line(&splitter)? {
                Line::Text(line) => line,
                Line::Interrupted => {
                    splitter.clear();
                    continue;
                }
                Line::End => break,
            };
            let next = if splitter.is_blank() && line.trim_start().starts_with('\\') {
                source.remember(line.trim());
                self.run_meta(&line, depth).await?
            } else {
                splitter.push_line(&line);
                self.run_complete(&mut splitter, source).await?
            };
            if next == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        match splitter.take_rest() {
            Some(rest) if !source.is_interactive() => self.run_statement(&rest, source).await,
            _ => Ok(Next::Continue),
        }
    }

    async fn run_complete(
        &mut self,
        splitter: &mut Splitter,
        source: &mut dyn LineSource,
    ) -> Result<Next> {
        while let Some(statement) = splitter.next_statement() {
            source.remember(&format!("{statement};"));
            if self.run_statement(&statement, source).await? == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Continue)
    }

    /// Runs one statement and shows what it gives; Ctrl-C cancels it.
    async fn run_statement(
        &mut self,
        statement: &str,
        source: &mut dyn LineSource,
    ) -> Result<Next> {
        let begin = monotonic();
        let result = tokio::select! {
            biased;
            signal = tokio::signal::ctrl_c() => {
                signal.map_err(|e| Error::internal("cannot wait for Ctrl-C").with_source(e))?;
                Err(Error::new(ErrorKind::Cancelled, "statement cancelled"))
            }
            result = execute(&self.backend, statement, self.style(), &mut self.out, source) => result,
        };
        let flushed = self.out.flush().map_err(output_error);
        match result {
            Ok(done) => self.show_done(done)?,
            Err(error) if is_of_output(&error) => return Err(error),
            Err(error) => {
                flushed?;
                return Ok(self.show_error(&error, statement, source.is_interactive()));
            }
        }
        flushed?;
        self.show_timing(begin.elapsed())?;
        if source.is_interactive() && changes_names(statement) {
            self.refresh_names().await;
        }
        Ok(Next::Continue)
    }

    fn style(&self) -> Style {
        let ShellOptions { format, header, expanded, .. } = self.options;
        Style { format, header, expanded }
    }

    fn show_done(&mut self, done: Option<(String, Vec<String>)>) -> Result<()> {
        let Some((tag, notices)) = done else { return Ok(()) };
        for notice in notices {
            eprintln!("notice: {notice}");
        }
        if self.options.quiet || tag.is_empty() {
            return Ok(());
        }
        // Among rows for a machine a tag would be taken for one of them.
        if self.options.format == Format::Table {
            writeln!(self.out, "{tag}").and_then(|()| self.out.flush()).map_err(output_error)?;
        } else {
            eprintln!("{tag}");
        }
        Ok(())
    }

    fn show_error(&mut self, error: &Error, statement: &str, interactive: bool) -> Next {
        self.backend.cancel();
        self.failed = true;
        print_error(error, Some(statement));
        let cancelled = error.kind() == ErrorKind::Cancelled;
        let stop = !interactive && (self.options.stop_on_error || cancelled);
        if stop { Next::Stop } else { Next::Continue }
    }

    fn show_timing(&mut self, elapsed: Duration) -> Result<()> {
        if !self.options.timing {
            return Ok(());
        }
        let ms = elapsed.as_secs_f64() * 1000.0;
        if self.options.format == Format::Table {
            writeln!(self.out, "Time: {ms:.3} ms").and_then(|()| self.out.flush())
        } else {
            writeln!(std::io::stderr(), "Time: {ms:.3} ms")
        }
        .map_err(output_error)
    }

    async fn run_meta(&mut self, line: &str, depth: usize) -> Result<Next> {
        let parsed = meta::parse(line);
        let command = match parsed {
            Ok(command) => command,
            Err(error) => return Ok(self.show_error(&error, line, false)),
        };
        match command {
            Meta::Run(statement) => {
                let mut no_lines = TextSource::new("command", std::io::empty());
                return self.run_statement(&statement, &mut no_lines).await;
            }
            Meta::Include(path) => return self.include(&path, depth).await,
            Meta::Quit => return Ok(Next::Stop),
            Meta::Timing(on) => {
                self.options.timing = on.unwrap_or(!self.options.timing);
                self.say(&format!("Timing is {}.", on_off(self.options.timing)))?;
            }
            Meta::Expanded(on) => {
                self.options.expanded = on.unwrap_or(!self.options.expanded);
                self.say(&format!("Expanded display is {}.", on_off(self.options.expanded)))?;
            }
            Meta::Format(format) => self.options.format = format,
            Meta::Echo(text) => {
                writeln!(self.out, "{text}")
                    .and_then(|()| self.out.flush())
                    .map_err(output_error)?;
            }
            Meta::Place => self.say(&format!("Statements run on {}.", self.backend.place()))?,
            Meta::Help => self.say(meta::HELP.trim_end())?,
        }
        Ok(Next::Continue)
    }

    async fn include(&mut self, path: &str, depth: usize) -> Result<Next> {
        let opened = match depth < INCLUDES_MAX {
            true => TextSource::open(path),
            false => Err(Error::invalid(format!("{path}: files include each other too deep"))),
        };
        match opened {
            Ok(mut file) => Box::pin(self.run_nested(&mut file, depth + 1)).await,
            Err(error) => Ok(self.show_error(&error, "", false)),
        }
    }

    fn say(&mut self, text: &str) -> Result<()> {
        if self.options.quiet {
            return Ok(());
        }
        writeln!(self.out, "{text}").and_then(|()| self.out.flush()).map_err(output_error)
    }

    async fn refresh_names(&mut self) {
        // Completion is a help, not a need: what cannot be had is not offered.
        if let Ok(Reply::Rows { mut batches, .. }) = self.backend.run(Names::QUERY).await {
            let mut names = Vec::new();
            while let Some(Ok(batch)) = batches.next().await {
                names.extend(Names::of_batch(&batch));
            }
            self.names.replace(names);
        }
    }
}

/// Runs a statement; None if it gave rows, else its tag and notices.
async fn execute(
    backend: &Backend,
    statement: &str,
    style: Style,
    out: &mut dyn Write,
    source: &mut dyn LineSource,
) -> Result<Option<(String, Vec<String>)>> {
    match backend.run(statement).await? {
        Reply::Done { tag, notices } => Ok(Some((tag, notices))),
        Reply::CopyIn(copy) => copy_in(*copy, source).await.map(Some),
        Reply::Rows { schema, mut batches } => {
            let mut writer = row_writer(style, &schema);
            writer.begin(out)?;
            while let Some(batch) = batches.next().await {
                writer.batch(&batch?, out)?;
            }
            writer.end(out)?;
            Ok(None)
        }
    }
}

/// Sends the lines that follow a `COPY … FROM STDIN`, up to `\.` or the end.
async fn copy_in(mut copy: CopyIn, source: &mut dyn LineSource) -> Result<(String, Vec<String>)> {
    if source.is_interactive() {
        eprintln!("Enter rows, one per line; end with \\. on a line of its own or Ctrl-D.");
    }
    let pending = Splitter::default();
    let mut chunk = Vec::new();
    loop {
        match source.next_line(&pending)? {
            Line::Text(line) if line == "\\." => break,
            Line::Text(line) => {
                chunk.extend_from_slice(line.as_bytes());
                chunk.push(b'\n');
            }
            Line::Interrupted => return Err(copy.abort("cancelled").await),
            Line::End => break,
        }
        if chunk.len() >= 64 << 10 {
            copy.send(std::mem::take(&mut chunk).into()).await?;
        }
    }
    if !chunk.is_empty() {
        copy.send(chunk.into()).await?;
    }
    let done = copy.finish().await?;
    Ok((done.tag, done.notices))
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn is_of_output(error: &Error) -> bool {
    error.places().first() == Some(&Place::Output)
}

/// Whether tables or columns may be others after this statement.
fn changes_names(statement: &str) -> bool {
    let word = stoa_sql::first_word(statement).to_ascii_uppercase();
    ["CREATE", "DROP", "ALTER", "SET"].contains(&word.as_str())
}
