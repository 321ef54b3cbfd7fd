//! `ADD FILES 'path', …`, `DELETE FILES ['path', …]`, `LIST FILES`: files of a session that scripts find where they run.

use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::show::ShowStatement;
use crate::statement::StatementKind;
use crate::{Parsed, first_word, parse_word};

/// A change of a session's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptFilesStatement {
    /// Adds the files at these paths.
    Add(Vec<String>),
    /// Takes these out; all of them if there is none.
    Delete(Vec<String>),
}

/// Whether a text that begins with `word` (upper case) is one of these statements, and not one that changes rows.
pub(super) fn is_in(text: &str, word: &str) -> bool {
    let is_verb = ["ADD", "DELETE", "LIST"].contains(&word);
    let behind = || text.trim_start().get(word.len()..).unwrap_or_default();
    is_verb && ["FILE", "FILES"].iter().any(|of| first_word(behind()).eq_ignore_ascii_case(of))
}

/// Parses what follows `ADD`, `DELETE` or `LIST`.
pub(super) fn parse(parser: &mut Parser<'_>, word: &str) -> Parsed<StatementKind> {
    if !parse_word(parser, "FILE") && !parse_word(parser, "FILES") {
        let found = parser.peek_token();
        return parser.expected("FILES", found);
    }
    if word == "LIST" {
        return Ok(StatementKind::Show(ShowStatement::ScriptFiles));
    }
    let mut paths = Vec::new();
    let may_be_none = word == "DELETE";
    if !may_be_none || matches!(parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
        paths = parser.parse_comma_separated(path)?;
    }
    Ok(StatementKind::ScriptFiles(match may_be_none {
        true => ScriptFilesStatement::Delete(paths),
        false => ScriptFilesStatement::Add(paths),
    }))
}

/// A name without quotes is no path.
fn path(parser: &mut Parser<'_>) -> Parsed<String> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(path) => Ok(path),
        _ => parser.expected("a path in quotes", token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse as parse_all;

    fn kind(sql: &str) -> StatementKind {
        parse_all(sql, |_| Ok(None)).unwrap().remove(0).kind
    }

    #[test]
    fn files_are_added_listed_and_taken_out() {
        let check = |sql: &str, expected: ScriptFilesStatement| {
            let StatementKind::ScriptFiles(found) = kind(sql) else { panic!("{sql}") };
            assert_eq!(found, expected, "{sql}");
        };
        let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        check("ADD FILES '/a', '/b'", ScriptFilesStatement::Add(paths(&["/a", "/b"])));
        check("add file '/a'", ScriptFilesStatement::Add(paths(&["/a"])));
        check("DELETE FILE 'a';", ScriptFilesStatement::Delete(paths(&["a"])));
        check("DELETE FILES", ScriptFilesStatement::Delete(Vec::new()));
        assert!(matches!(kind("LIST FILES"), StatementKind::Show(ShowStatement::ScriptFiles)));
        assert!(matches!(kind("DELETE FROM files"), StatementKind::Plan(_)));
        for wrong in ["ADD FILE", "ADD FILE a", "ADD", "LIST FILES 'a'", "LIST"] {
            assert_eq!(parse_all(wrong, |_| Ok(None)).unwrap_err().sqlstate(), "42601", "{wrong}");
        }
    }
}
