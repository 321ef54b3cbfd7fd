//! `INSERT ALL (INSERT …) (INSERT …) …`: rows of one source into several tables.
//!
//! ```text
//! INSERT ALL (INSERT INTO a SELECT … FROM source WHERE …) (INSERT OVERWRITE TABLE b SELECT … FROM source …)
//! ```
//! All of it takes effect, or nothing. What the queries have in common is read once. Hive writes it as
//! `FROM source INSERT … INSERT …`, which `stoa-hiveql` translates.

use stoa_error::{Error, Result};

use crate::lexer::Lexer;
use crate::{Rewrite, Statement, StatementKind, first_word, parse_kind};

/// Whether a text that begins with `INSERT` is such a statement.
pub(super) fn is_in(text: &str) -> bool {
    Lexer::new(text)
        .filter(|token| token.is_significant())
        .nth(1)
        .is_some_and(|second| second.is_word("all"))
}

/// Parses the statement.
///
/// # Errors
/// 42601, and those of its parts.
pub(super) fn parse(text: &str, others: Rewrite) -> Result<StatementKind> {
    let mut inserts = Vec::new();
    for part in parts(text)? {
        let is_insert = first_word(part).eq_ignore_ascii_case("insert");
        match parse_kind(part, others)? {
            kind @ StatementKind::Plan(_) if is_insert => {
                inserts.push(Statement { text: part.to_owned(), kind });
            }
            _ => return Err(wrong("INSERT INTO or INSERT OVERWRITE")),
        }
    }
    Ok(StatementKind::InsertAll(inserts))
}

/// The texts within the outer parentheses.
fn parts(text: &str) -> Result<Vec<&str>> {
    let (mut all, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for token in Lexer::new(text).filter(|token| token.is_significant()).skip(2) {
        if token.is_sign('(') {
            depth += 1;
            if depth == 1 {
                begin = token.end();
            }
        } else if depth == 0 {
            return Err(wrong("( and INSERT"));
        } else if token.is_sign(')') {
            depth -= 1;
            if depth == 0 {
                all.push(text[begin..token.at].trim());
            }
        }
    }
    match depth {
        0 if all.len() > 1 => Ok(all),
        0 => Err(wrong("at least two INSERTs, each in parentheses")),
        _ => Err(wrong(")")),
    }
}

fn wrong(wanted: &str) -> Error {
    Error::invalid("syntax error in INSERT ALL")
        .with_sqlstate("42601")
        .with_hint(format!("expected {wanted}: INSERT ALL (INSERT INTO a SELECT …) (INSERT …)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>> {
        assert!(is_in(text), "{text}");
        match parse(text, |_| Ok(None))? {
            StatementKind::InsertAll(all) => Ok(all.into_iter().map(|one| one.text).collect()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn inserts_stand_in_parentheses() {
        let text = "INSERT ALL (INSERT INTO a SELECT (1), ')' FROM t)\n (INSERT INTO b VALUES (2))";
        let expected = ["INSERT INTO a SELECT (1), ')' FROM t", "INSERT INTO b VALUES (2)"];
        assert_eq!(parsed(text).unwrap(), expected);
        assert!(!is_in("INSERT INTO a SELECT 1"));
        for wrong in [
            "INSERT ALL",
            "INSERT ALL (INSERT INTO a SELECT 1)",
            "INSERT ALL INTO a SELECT 1",
            "INSERT ALL (INSERT INTO a SELECT 1) (SELECT 1)",
            "INSERT ALL (INSERT INTO a SELECT 1) (DELETE FROM a)",
            "INSERT ALL (INSERT INTO a SELECT 1) (INSERT INTO b SELECT 2",
        ] {
            assert_eq!(parsed(wrong).unwrap_err().sqlstate(), "42601", "{wrong}");
        }
    }
}
