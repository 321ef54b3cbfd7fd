//! Runs what sources give, one statement after the other.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use stoa_env::clock::monotonic;
use stoa_error::{Error, ErrorKind, Place, Result};
use stoa_query::CopyIn;

use super::backend::{Backend, Reply};
use super::complete::Names;
use super::format::{Format, Style, output_error, row_writer};
use super::meta;
use super::output::{Output, Paged, Screen};
use super::source::{Line, LineSource};
use super::splitter::{Piece, Splitter};
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
    pub(super) backend: Backend,
    pub(super) options: ShellOptions,
    names: Arc<Names>,
    pub(super) out: Output,
    /// Whether long results go through a pager, where a person reads them.
    pub(super) pager: bool,
    /// The newest statement, for `\g`, `\watch` and `\e`.
    pub(super) last: Option<String>,
    /// Statements and commands that failed.
    pub(super) failures: u64,
}

/// What to do after a line or statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Continue,
    /// Leave.
    Stop,
}

impl Shell {
    /// A shell that has run nothing yet.
    pub fn new(backend: Backend, options: ShellOptions) -> Self {
        Self {
            backend,
            options,
            names: Arc::default(),
            out: Output::stdout(),
            pager: true,
            last: None,
            failures: 0,
        }
    }

    /// The names that completion offers, kept current by this shell.
    pub fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names)
    }

    /// Whether any statement failed.
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Brings what was written without a server into files; nothing runs afterwards.
    ///
    /// # Errors
    /// The file or command of `\o` did not take all rows.
    pub async fn close(&mut self) -> Result<()> {
        self.backend.close().await;
        self.end_output()
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

    pub(super) async fn run_nested(
        &mut self,
        source: &mut dyn LineSource,
        depth: usize,
    ) -> Result<Next> {
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
            if splitter.is_blank() && source.is_interactive() {
                match line.trim().trim_end_matches(';').to_ascii_lowercase().as_str() {
                    "exit" | "quit" => return Ok(Next::Stop),
                    "help" => {
                        self.say(meta::HELP.trim_end())?;
                        continue;
                    }
                    _ => {}
                }
            }
            splitter.push_line(&line);
            if self.run_pieces(&mut splitter, source, depth).await? == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        match splitter.take_rest() {
            Some(rest) if !source.is_interactive() => self.run_statement(&rest, source).await,
            _ => Ok(Next::Continue),
        }
    }

    /// Runs what the newest line has completed.
    async fn run_pieces(
        &mut self,
        splitter: &mut Splitter,
        source: &mut dyn LineSource,
        depth: usize,
    ) -> Result<Next> {
        while let Some(piece) = splitter.next_piece() {
            let next = match piece {
                Piece::Statement(statement) => {
                    source.remember(&format!("{statement};"));
                    self.run_statement(&statement, source).await?
                }
                Piece::Command(command) => {
                    source.remember(format!("{} {command}", splitter.pending()).trim());
                    self.run_command(&command, splitter, source, depth).await?
                }
            };
            if next == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Continue)
    }

    /// Runs one statement and shows what it gives; Ctrl-C cancels it.
    pub(super) async fn run_statement(
        &mut self,
        statement: &str,
        source: &mut dyn LineSource,
    ) -> Result<Next> {
        self.last = Some(statement.to_owned());
        let screen = match self.pager && source.is_interactive() && self.out.is_stdout() {
            true => Screen::here(),
            false => None,
        };
        let style = self.style();
        let begin = monotonic();
        let result = tokio::select! {
            biased;
            signal = tokio::signal::ctrl_c() => {
                signal.map_err(|e| Error::internal("cannot wait for Ctrl-C").with_source(e))?;
                Err(Error::new(ErrorKind::Cancelled, "statement cancelled"))
            }
            result = execute(&self.backend, statement, style, &mut self.out, screen, source) => result,
        };
        let flushed = self.out.flush().map_err(output_error);
        match result {
            Ok(done) => self.show_done(done)?,
            Err(error) if is_of_output(&error) && self.out.is_stdout() => return Err(error),
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
            return print_line(&tag);
        }
        eprintln!("{tag}");
        Ok(())
    }

    pub(super) fn show_error(&mut self, error: &Error, statement: &str, interactive: bool) -> Next {
        self.backend.cancel();
        self.failures += 1;
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
        let time = format!("Time: {ms:.3} ms");
        match self.options.format {
            Format::Table => print_line(&time),
            _ => writeln!(std::io::stderr(), "{time}").map_err(output_error),
        }
    }

    /// Shows a text for people, whatever takes the rows.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        if self.options.quiet { Ok(()) } else { print_line(text) }
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

/// Prints a line to stdout.
fn print_line(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(output_error)
}

/// Runs a statement; None if it gave rows, else its tag and notices.
async fn execute(
    backend: &Backend,
    statement: &str,
    style: Style,
    out: &mut Output,
    screen: Option<Screen>,
    source: &mut dyn LineSource,
) -> Result<Option<(String, Vec<String>)>> {
    match backend.run(statement).await? {
        Reply::Done { tag, notices } => Ok(Some((tag, notices))),
        Reply::CopyIn(copy) => copy_in(*copy, source).await.map(Some),
        Reply::Rows { schema, mut batches } => {
            let mut writer = row_writer(style, &schema);
            let mut paged = Paged::new(out, screen);
            writer.begin(&mut paged)?;
            while let Some(batch) = batches.next().await {
                writer.batch(&batch?, &mut paged)?;
                paged.flush().map_err(output_error)?;
                if paged.is_closed() {
                    return Ok(None);
                }
            }
            writer.end(&mut paged)?;
            paged.finish().map_err(output_error)?;
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

fn is_of_output(error: &Error) -> bool {
    error.places().first() == Some(&Place::Output)
}

/// Whether tables or columns may be others after this statement.
fn changes_names(statement: &str) -> bool {
    let word = stoa_sql::first_word(statement).to_ascii_uppercase();
    ["CREATE", "DROP", "ALTER", "SET"].contains(&word.as_str())
}
