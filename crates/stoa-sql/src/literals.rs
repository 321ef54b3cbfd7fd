//! Literals of PostgreSQL that the engine's parser reads as something else, written as it reads them.
//!
//! | written | meant | the parser's reading |
//! |---|---|---|
//! | `'a'`, a line break, `'b'` | `'ab'` | the column `b` |
//! | `0x1F`, `0o17`, `0b101` | integers | bytes, and columns `o17` and `b101` |
//! | `b'101'` | a bit string, which Stoa does not have | bytes |
//! | `SELECT 1 'b'` | a syntax error | the column `b` |

use std::borrow::Cow;
use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Query, SelectItem, SetExpr, Statement, Visitor};
use stoa_error::{Error, Result};

use crate::lexer::{Lexer, Token, TokenKind};
use crate::walk::Walk;

/// The text with such literals written out. Lines stay lines, and what is behind a literal mostly stays where it is.
///
/// # Errors
/// Bit strings (0A000); integers of no digits, or with others than their base has (42601).
pub(super) fn written_out(text: &str) -> Result<Cow<'_, str>> {
    if !may_be_in(text.as_bytes()) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut tokens = Lexer::new(text).peekable();
    while let Some(token) = tokens.next() {
        match token.kind {
            TokenKind::Number if token.text == "0" => {
                match tokens.next_if(|next| radix_of(next).is_some()) {
                    Some(digits) => out.push_str(&integer(text, &token, &digits)?),
                    None => out.push('0'),
                }
            }
            TokenKind::Number => match based(text, &token)? {
                Some(decimal) => out.push_str(&decimal),
                None => out.push_str(token.text),
            },
            TokenKind::Word if token.is_word("b") => {
                if tokens.peek().is_some_and(|next| matches!(next.kind, TokenKind::Text { .. })) {
                    return Err(Error::unsupported("bit strings are not supported")
                        .with_position(token.position_in(text))
                        .with_hint("write integers as 0b101, and bytes as '\\x1f'::bytea"));
                }
                out.push_str(token.text);
            }
            TokenKind::Text { .. } => {
                out.push_str(token.text);
                continue_text(&mut tokens, &mut out);
            }
            _ => out.push_str(token.text),
        }
    }
    Ok(Cow::Owned(out))
}

/// Whether a look at each token may find something: a quick look at bytes, which finds too much.
fn may_be_in(bytes: &[u8]) -> bool {
    let has_lines = bytes.contains(&b'\n');
    bytes.windows(2).any(|pair| {
        matches!(pair, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B'] | [b'b' | b'B', b'\''])
            || has_lines && matches!(pair, [b'\'', b'\n' | b'\r' | b' ' | b'\t'])
    })
}

fn radix_of(token: &Token<'_>) -> Option<u32> {
    (token.kind == TokenKind::Word).then_some(())?;
    match token.text.as_bytes().first()?.to_ascii_lowercase() {
        b'x' => Some(16),
        b'o' => Some(8),
        b'b' => Some(2),
        _ => None,
    }
}

/// A number that the lexer took as one token.
fn based(text: &str, token: &Token<'_>) -> Result<Option<String>> {
    let Some(rest) = token.text.strip_prefix('0') else { return Ok(None) };
    let digits = Token { kind: TokenKind::Word, text: rest, at: token.at + 1, is_closed: true };
    match radix_of(&digits) {
        Some(_) => integer(text, token, &digits).map(Some),
        None => Ok(None),
    }
}

/// `0`, and `x1F` behind it, as a decimal number, filled up with blanks.
fn integer(text: &str, zero: &Token<'_>, digits: &Token<'_>) -> Result<String> {
    let radix = radix_of(digits).unwrap_or(10);
    let plain: String = digits.text[1..].chars().filter(|letter| *letter != '_').collect();
    let value = u128::from_str_radix(&plain, radix).map_err(|_| {
        Error::invalid(format!(
            "trailing junk after numeric literal at or near \"0{}\"",
            digits.text
        ))
        .with_sqlstate("42601")
        .with_position(zero.position_in(text))
    })?;
    let width = digits.text.len() + 1;
    Ok(format!("{value:<width$}"))
}

/// Puts the texts that go on in the next lines into the one that `out` ends with.
fn continue_text<'a>(tokens: &mut std::iter::Peekable<Lexer<'a>>, out: &mut String) {
    loop {
        let mut ahead = tokens.clone();
        let mut between = String::new();
        while let Some(blank) = ahead.next_if(|token| !token.is_significant()) {
            between.push_str(blank.text);
        }
        let next = ahead.next();
        let goes_on = between.contains('\n') && !between.contains("/*");
        let text = next.filter(|token| goes_on && token.kind == TokenKind::Text { escapes: false });
        let Some(more) = text.and_then(|token| token.text.strip_prefix('\'')) else { return };
        out.pop();
        out.push_str(more);
        // The blanks come later, so that lines stay lines.
        out.extend(between.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        out.push_str("  ");
        *tokens = ahead;
        // What follows is put before those blanks.
        if !next_is_text(tokens) {
            return;
        }
        let blanks = out.len() - out.trim_end_matches([' ', '\n']).len();
        out.truncate(out.len() - blanks);
    }
}

fn next_is_text(tokens: &std::iter::Peekable<Lexer<'_>>) -> bool {
    let mut ahead = tokens.clone();
    let next = ahead.find(Token::is_significant);
    next.is_some_and(|token| token.kind == TokenKind::Text { escapes: false })
}

/// Refuses texts as names: `SELECT 1 'b'` lacks an operator or a comma.
///
/// # Errors
/// 42601, at the text.
pub(super) fn refuse_as_names(statement: &Statement, text: &str) -> Result<()> {
    if !text.contains('\'') {
        return Ok(());
    }
    match statement.walk(&mut TextsAsNames) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => {
            let written = format!("'{}'", name.replace('\'', "''"));
            let error = Error::invalid(format!("syntax error at or near \"{written}\""))
                .with_sqlstate("42601")
                .with_hint("names stand in double quotes; is an operator or a comma missing?");
            Err(match text.rfind(&written) {
                Some(at) => error.with_position(text[..at].chars().count() + 1),
                None => error,
            })
        }
    }
}

struct TextsAsNames;

impl Visitor for TextsAsNames {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        // There may be thousands of parts.
        let mut bodies = vec![query.body.as_ref()];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::Select(select) => in_items(&select.projection)?,
                SetExpr::SetOperation { left, right, .. } => bodies.extend([&**right, &**left]),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

fn in_items(items: &[SelectItem]) -> ControlFlow<String> {
    for item in items {
        if let SelectItem::ExprWithAlias { alias, .. } = item
            && alias.quote_style == Some('\'')
        {
            return ControlFlow::Break(alias.value.clone());
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_written_out() {
        for (text, out) in [
            ("SELECT 'a'\n'b', c", "SELECT 'ab'\n  , c"),
            ("SELECT 'a' -- one\n  'b'\n'c'", "SELECT 'abc'"),
            ("SELECT 'it''s'\n'''b'", "SELECT 'it''s''b'"),
            ("SELECT 'a' 'b'", "SELECT 'a' 'b'"),
            ("SELECT 'a',\n'b'", "SELECT 'a',\n'b'"),
            ("SELECT 0x1F + 0o17, 0b1_01", "SELECT 31   + 15  , 5     "),
            ("SELECT 0xFFFFFFFFFFFFFFFF", "SELECT 18446744073709551615"),
            ("SELECT a.x, '0x1F', \"0b1\", 10", "SELECT a.x, '0x1F', \"0b1\", 10"),
        ] {
            let written = written_out(text).unwrap();
            assert_eq!(written.trim_end(), out.trim_end(), "{text}");
        }
        for (text, sqlstate) in
            [("SELECT b'01'", "0A000"), ("SELECT 0xZ", "42601"), ("SELECT 0b12", "42601")]
        {
            assert_eq!(written_out(text).unwrap_err().sqlstate(), sqlstate, "{text}");
        }
    }
}
