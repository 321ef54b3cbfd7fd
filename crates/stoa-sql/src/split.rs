//! Cuts a text into statements at its semicolons, and finds the places of parameters.

use std::borrow::Cow;

use crate::lexer::{Lexer, TokenKind};

/// The statements of `sql`, without their semicolons; those of blanks and comments alone are left
/// out.
///
/// An unterminated quote runs to the end; the parser then says so.
pub fn split_statements(sql: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let (mut start, mut is_empty) = (0, true);
    for token in Lexer::new(sql) {
        if token.is_sign(';') {
            if !is_empty {
                statements.push(sql[start..token.at].trim());
            }
            (start, is_empty) = (token.end(), true);
        } else {
            is_empty &= !token.is_significant();
        }
    }
    if !is_empty {
        statements.push(sql[start..].trim());
    }
    statements
}

/// A statement whose parameters are written `?`, as JDBC and ADBC do, with `$1`, `$2`, … in their
/// places. A statement that numbers its parameters itself is left as it is.
pub fn number_parameters(sql: &str) -> Cow<'_, str> {
    let mut marks = Vec::new();
    let mut behind_dollar = false;
    for token in Lexer::new(sql) {
        if behind_dollar && token.kind == TokenKind::Number {
            return sql.into();
        }
        behind_dollar = token.is_sign('$');
        if token.is_sign('?') {
            marks.push(token.at);
        }
    }
    if marks.is_empty() {
        return sql.into();
    }
    let mut numbered = String::with_capacity(sql.len() + marks.len() * 2);
    let mut start = 0;
    for (index, at) in marks.into_iter().enumerate() {
        numbered.push_str(&sql[start..at]);
        numbered.push_str(&format!("${}", index + 1));
        start = at + 1;
    }
    numbered.push_str(&sql[start..]);
    numbered.into()
}

/// The highest number of a parameter `$1`, `$2`, …; 0 where there is none.
pub fn last_parameter(sql: &str) -> usize {
    let mut last = 0;
    let mut dollar_at = None;
    for token in Lexer::new(sql) {
        if token.kind == TokenKind::Number && dollar_at == Some(token.at) {
            last = last.max(token.text.parse().unwrap_or(0));
        }
        dollar_at = token.is_sign('$').then(|| token.end());
    }
    last
}

/// The first word of a statement, comments skipped; empty if it starts otherwise.
pub fn first_word(text: &str) -> &str {
    match Lexer::new(text).next_significant() {
        Some(token) if token.kind == TokenKind::Word => token.text,
        _ => "",
    }
}

/// Byte-independent place in a text: characters from 1, as PostgreSQL counts.
pub fn offset_of(text: &str, line: u64, column: u64) -> usize {
    if line == 0 {
        return 1;
    }
    let before: usize = text
        .split_inclusive('\n')
        .take(usize::try_from(line - 1).unwrap_or(0))
        .map(|l| l.chars().count())
        .sum();
    before + usize::try_from(column).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_outside_of_texts() {
        for (sql, last) in [
            ("SELECT $1, $12::int, '$99', $$ $98 $$ -- $97", 12),
            ("SELECT 1", 0),
            ("SELECT a$3 FROM t WHERE b = $2", 2),
        ] {
            assert_eq!(last_parameter(sql), last, "{sql}");
        }
    }
}
