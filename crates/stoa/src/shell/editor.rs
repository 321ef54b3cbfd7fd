//! A person at a terminal: line editing, history, completion, prompts.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};
use stoa_error::{Error, Result};
use stoa_sql::lexer::TokenKind;

use super::complete::Names;
use super::source::{Line, LineSource};
use super::splitter::Splitter;

/// Lines that a person types.
pub struct Editor {
    inner: rustyline::Editor<NameHelper, FileHistory>,
    history: Option<PathBuf>,
}

/// Statements that are remembered.
const HISTORY_MAX: usize = 5000;

impl Editor {
    /// Starts on this process's terminal; history is kept in `.stoa_history` of the home directory.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn new(names: Arc<Names>) -> Result<Self> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .auto_add_history(false)
            .max_history_size(HISTORY_MAX)
            .map_err(terminal_error)?
            .build();
        let mut inner = rustyline::Editor::with_config(config).map_err(terminal_error)?;
        inner.set_helper(Some(NameHelper(names)));
        let history = std::env::home_dir().map(|home| home.join(".stoa_history"));
        if let Some(file) = &history {
            // The first time there is none.
            let _ = inner.load_history(file);
        }
        Ok(Self { inner, history })
    }
}

impl LineSource for Editor {
    fn next_line(&mut self, pending: &Splitter) -> Result<Line> {
        match self.inner.readline(prompt(pending)) {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(terminal_error(error)),
        }
    }

    fn remember(&mut self, statement: &str) {
        if !may_be_kept(statement) {
            return;
        }
        // History is a help, not a need: a home that cannot be written is no error.
        let added = self.inner.add_history_entry(statement);
        if let (Ok(true), Some(file)) = (added, &self.history) {
            let _ = self.inner.append_history(file);
        }
    }

    fn is_interactive(&self) -> bool {
        true
    }
}

/// Whether a statement may stay in a file: not with a password.
fn may_be_kept(statement: &str) -> bool {
    matches!(stoa_query::without_secrets(statement), Cow::Borrowed(_))
}

fn prompt(pending: &Splitter) -> &'static str {
    match pending.inside() {
        None if pending.is_blank() => "stoa=> ",
        Some(TokenKind::Text { .. }) => "stoa'> ",
        Some(TokenKind::Name) => "stoa\"> ",
        Some(TokenKind::Comment) => "stoa*> ",
        Some(TokenKind::DollarText) => "stoa$> ",
        _ => "stoa-> ",
    }
}

fn terminal_error(error: ReadlineError) -> Error {
    Error::unavailable("cannot use the terminal").with_source(error)
}

struct NameHelper(Arc<Names>);

impl Completer for NameHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.0.complete(line, position))
    }
}

impl Hinter for NameHelper {
    type Hint = String;
}
impl Highlighter for NameHelper {}
impl Validator for NameHelper {}
impl Helper for NameHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_a_password_are_not_kept() {
        for kept in ["SELECT 1;", "CREATE ROLE team;", "SELECT password FROM users;"] {
            assert!(may_be_kept(kept), "{kept}");
        }
        for secret in [
            "ALTER ROLE ann PASSWORD 'brush';",
            "EXPLAIN ALTER ROLE ann PASSWORD $$brush$$;",
            "CREATE USER ann IDENTIFIED BY brush;",
        ] {
            assert!(!may_be_kept(secret), "{secret}");
        }
    }
}
