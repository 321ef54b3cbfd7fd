//! `EXPLAIN` as PostgreSQL has it: its options, and the statement behind them.
//!
//! ```text
//! EXPLAIN [ANALYZE] [VERBOSE] statement
//! EXPLAIN ( option [ value ] , … ) statement
//! ```

use stoa_error::{Error, Result};

use crate::lexer::{Lexer, Token, TokenKind};

/// How a plan is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    /// One row per operator.
    Text,
    /// One row: a document as PostgreSQL's.
    Json,
}

/// What an `EXPLAIN` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explain<'a> {
    /// Whether the statement is executed.
    pub analyzes: bool,
    /// How the plan is written.
    pub format: ExplainFormat,
    /// Where the word stands, in bytes.
    at: usize,
    /// The statement that is explained.
    pub statement: &'a str,
}

/// Options of PostgreSQL that are taken and change nothing: what they show is always shown, or there is none.
const WITHOUT_EFFECT: [&str; 9] = [
    "verbose",
    "costs",
    "settings",
    "generic_plan",
    "buffers",
    "serialize",
    "wal",
    "timing",
    "summary",
];

/// Reads the head of an `EXPLAIN`; `None` for other statements.
///
/// # Errors
/// An option that there is not (42601), a value that it does not take (22023), and formats other than TEXT and
/// JSON (0A000).
pub fn read(text: &str) -> Result<Option<Explain<'_>>> {
    let mut tokens = Lexer::new(text).filter(Token::is_significant).peekable();
    let Some(head) = tokens.next_if(|token| token.is_word("explain")) else { return Ok(None) };
    let mut explain =
        Explain { analyzes: false, format: ExplainFormat::Text, at: head.at, statement: "" };
    let mut ahead = tokens.clone();
    let opens = ahead.next().is_some_and(|token| token.is_sign('('));
    let is_list = opens && ahead.next().is_some_and(|token| is_option(&token));
    if is_list {
        tokens.next();
        loop {
            let Some(name) = tokens.next() else { return Ok(None) };
            let is_end = |token: &Token<'_>| token.is_sign(',') || token.is_sign(')');
            let value = tokens.next_if(|token| !is_end(token));
            explain.set(text, &name, value.as_ref())?;
            match tokens.next() {
                Some(token) if token.is_sign(',') => {}
                Some(token) if token.is_sign(')') => break,
                _ => return Ok(None),
            }
        }
    } else {
        let analyzes = |token: &Token<'_>| token.is_word("analyze") || token.is_word("analyse");
        explain.analyzes = tokens.next_if(analyzes).is_some();
        tokens.next_if(|token| token.is_word("verbose"));
    }
    let Some(first) = tokens.next() else { return Ok(None) };
    explain.statement = &text[first.at..];
    Ok(Some(explain))
}

/// Whether a list of options begins here, and no query in parentheses.
fn is_option(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Word
        && !["select", "with", "values", "table"].iter().any(|word| token.is_word(word))
}

impl Explain<'_> {
    fn set(&mut self, text: &str, name: &Token<'_>, value: Option<&Token<'_>>) -> Result<()> {
        let option = name.text.to_lowercase();
        let value = value.map(|value| value.text.trim_matches('\'').to_lowercase());
        let switch = || match value.as_deref() {
            None | Some("true" | "on" | "1") => Ok(true),
            Some("false" | "off" | "0") => Ok(false),
            Some(_) => Err(Error::invalid(format!("{option} requires a Boolean value"))
                .with_sqlstate("42601")
                .with_position(name.position_in(text))),
        };
        match option.as_str() {
            "analyze" | "analyse" => self.analyzes = switch()?,
            "format" => {
                self.format =
                    format_named(value.as_deref().unwrap_or_default(), name.position_in(text))?
            }
            // Its values are none, text and binary.
            "serialize" => {}
            _ if WITHOUT_EFFECT.contains(&option.as_str()) => {
                switch()?;
            }
            _ => {
                let said = format!("unrecognized EXPLAIN option \"{option}\"");
                return Err(Error::invalid(said)
                    .with_sqlstate("42601")
                    .with_position(name.position_in(text))
                    .with_hint("the options are ANALYZE and FORMAT TEXT or JSON; those of PostgreSQL that have no effect here are taken, too"));
            }
        }
        Ok(())
    }

    /// The text with a head that the engine knows, of the same length and with the same lines.
    pub(super) fn for_engine(&self, text: &str) -> String {
        let begins = text.len() - self.statement.len();
        let word = if self.analyzes { "EXPLAIN ANALYZE" } else { "EXPLAIN" };
        let mut out = text[..self.at].to_owned();
        out.push_str(word);
        let rest = text[self.at..begins].chars().skip(word.len());
        out.extend(rest.map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        if !out.ends_with([' ', '\n']) {
            out.push(' ');
        }
        out.push_str(self.statement);
        out
    }
}

fn format_named(value: &str, position: usize) -> Result<ExplainFormat> {
    match value {
        "text" => Ok(ExplainFormat::Text),
        "json" => Ok(ExplainFormat::Json),
        "xml" | "yaml" => {
            let said = format!("EXPLAIN in the format {} is not supported", value.to_uppercase());
            Err(Error::unsupported(said).with_hint("use FORMAT TEXT or FORMAT JSON"))
        }
        _ => Err(Error::invalid(format!(
            "unrecognized value for EXPLAIN option \"format\": \"{value}\""
        ))
        .with_sqlstate("22023")
        .with_position(position)
        .with_hint("use FORMAT TEXT or FORMAT JSON")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        for (text, analyzes, format, statement) in [
            ("EXPLAIN SELECT 1", false, ExplainFormat::Text, "SELECT 1"),
            (" explain\n analyze select 1", true, ExplainFormat::Text, "select 1"),
            ("EXPLAIN ANALYZE VERBOSE SELECT 1", true, ExplainFormat::Text, "SELECT 1"),
            ("EXPLAIN (SELECT 1)", false, ExplainFormat::Text, "(SELECT 1)"),
            ("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1", true, ExplainFormat::Json, "SELECT 1"),
            (
                "EXPLAIN(analyze off, costs off, format 'json')\n(SELECT 1)",
                false,
                ExplainFormat::Json,
                "(SELECT 1)",
            ),
        ] {
            let read = read(text).unwrap().unwrap();
            assert_eq!(
                (read.analyzes, read.format, read.statement),
                (analyzes, format, statement),
                "{text}"
            );
            let other = read.for_engine(text);
            assert!(other.trim_start().starts_with("EXPLAIN") && other.ends_with(statement));
            assert_eq!(other.find(statement), text.find(statement), "{other}");
        }
        for other in ["SELECT 1", "EXPLAIN", "EXPLAIN (ANALYZE", "explained"] {
            assert_eq!(read(other).unwrap(), None, "{other}");
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        for (text, sqlstate) in [
            ("EXPLAIN (FORMAT XML) SELECT 1", "0A000"),
            ("EXPLAIN (FORMAT poem) SELECT 1", "22023"),
            ("EXPLAIN (COST off) SELECT 1", "42601"),
            ("EXPLAIN (ANALYZE maybe) SELECT 1", "42601"),
        ] {
            assert_eq!(read(text).unwrap_err().sqlstate(), sqlstate, "{text}");
        }
    }
}
