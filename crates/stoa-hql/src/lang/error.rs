//! Where a statement stops being HQL.

use std::fmt;

use stoa_error::Error;

/// What is wrong with a statement, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What was expected and what was found, or what is wrong.
    pub message: String,
    /// Line in the statement, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Character in the statement, from 1.
    pub position: usize,
    /// What to write instead.
    pub hint: Option<String>,
}

impl ParseError {
    pub(super) fn at(text: &str, offset: usize, message: String, hint: Option<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            message,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            position: before.chars().count() + 1,
            hint,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, message, .. } = self;
        write!(f, "HQL parse error at line {line}, column {column}: {message}")
    }
}

impl std::error::Error for ParseError {}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        let whole =
            Error::invalid(error.to_string()).with_sqlstate("42601").with_position(error.position);
        match error.hint {
            Some(hint) => whole.with_hint(hint),
            None => whole,
        }
    }
}
