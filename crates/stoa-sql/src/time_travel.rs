//! Earlier versions of tables: `t FOR VERSION AS OF 3`, `t FOR TIMESTAMP AS OF '2026-01-31'`, `t@3`, `t@'tag'`.
//!
//! In: a text. Out: the same with one name for table and version, such as `"t@version 3"`, and, once it is parsed, the
//! table's own name as its alias. The catalog of the engine knows such names. A name of this kind can be written
//! directly, too: `"t@3"`.

use std::borrow::Cow;
use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor, VisitorMut,
};

use crate::adapt::parsed;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::walk::WalkMut;

/// What stands between the name of a table and its version.
const SIGN: char = '@';

const VERSION: &str = "version ";
const TIMESTAMP: &str = "timestamp ";

/// How a version is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedVersion<'a> {
    /// The id of a snapshot, or the name of a tag or branch.
    Version(&'a str),
    /// A time, as it was written.
    Timestamp(&'a str),
}

/// The table and the version that a name means; `None` for names without a version.
pub fn split_name(name: &str) -> Option<(&str, NamedVersion<'_>)> {
    let (table, version) = name.split_once(SIGN)?;
    if table.is_empty() || version.is_empty() {
        return None;
    }
    let version = match (version.strip_prefix(VERSION), version.strip_prefix(TIMESTAMP)) {
        (Some(version), _) => NamedVersion::Version(version),
        (_, Some(time)) => NamedVersion::Timestamp(time),
        _ => NamedVersion::Version(version),
    };
    Some((table, version))
}

/// Whether a text may name earlier versions: a look at its bytes, as all statements are asked.
pub fn may_be_in(text: &str) -> bool {
    let is_of = |window: &[u8]| match window {
        [before, o, f, behind] => {
            before.is_ascii_whitespace()
                && o.eq_ignore_ascii_case(&b'o')
                && f.eq_ignore_ascii_case(&b'f')
                && !behind.is_ascii_alphanumeric()
        }
        _ => false,
    };
    text.contains(SIGN) || text.as_bytes().windows(4).any(is_of)
}

/// Writes the versions of tables as parts of their names; texts without any stay as they are.
pub(super) fn written_as_names(text: &str) -> Cow<'_, str> {
    if !may_be_in(text) {
        return text.into();
    }
    let tokens: Vec<Token<'_>> = Lexer::new(text).collect();
    let significant: Vec<usize> =
        (0..tokens.len()).filter(|&at| tokens[at].is_significant()).collect();
    let mut written = String::with_capacity(text.len());
    let mut copied = 0;
    for (place, &at) in significant.iter().enumerate() {
        let name = tokens[at];
        let Some(table) = name_of(&name).filter(|_| name.at >= copied) else { continue };
        let behind = &significant[place + 1..];
        let found = behind_sign(&tokens, at).or_else(|| behind_as_of(&tokens, behind));
        let Some((version, end)) = found else { continue };
        written.push_str(&text[copied..name.at]);
        let named = format!("{table}{SIGN}{version}").replace('"', "\"\"");
        written.push_str(&format!("\"{named}\""));
        copied = end;
    }
    if copied == 0 {
        return text.into();
    }
    written.push_str(&text[copied..]);
    written.into()
}

/// The name that a token is.
fn name_of(token: &Token<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Word => Some(token.text.to_lowercase()),
        TokenKind::Name if token.is_closed && token.text.starts_with('"') => {
            Some(unquoted(token.text, '"'))
        }
        _ => None,
    }
}

/// `@3` or `@'name'` behind the token at `at`, without blanks; and where it ends.
fn behind_sign(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let (sign, version) = (tokens.get(at + 1)?, tokens.get(at + 2)?);
    if !sign.is_sign(SIGN) || sign.text.len() != 1 {
        return None;
    }
    Some((format!("{VERSION}{}", value_of(version)?), version.end()))
}

/// `[FOR] VERSION | TIMESTAMP AS OF value`, and where it ends. `SYSTEM_VERSION` and `SYSTEM_TIME` mean the same.
fn behind_as_of(tokens: &[Token<'_>], behind: &[usize]) -> Option<(String, usize)> {
    let mut words = behind.iter().map(|&at| tokens[at]);
    let mut next = words.next()?;
    if next.is_word("for") {
        next = words.next()?;
    }
    let is_version = next.is_word("version") || next.is_word("system_version");
    if !is_version && !next.is_word("timestamp") && !next.is_word("system_time") {
        return None;
    }
    if !words.next()?.is_word("as") || !words.next()?.is_word("of") {
        return None;
    }
    let mut value = words.next()?;
    // TIMESTAMP '…', DATE '…': the text is read as a time anyway.
    let is_typed =
        value.is_word("timestamp") || value.is_word("timestamptz") || value.is_word("date");
    if !is_version && is_typed {
        value = words.next()?;
    }
    let text = match (is_version, value.kind) {
        (false, TokenKind::Number) => return None,
        _ => value_of(&value)?,
    };
    let kind = if is_version { VERSION } else { TIMESTAMP };
    Some((format!("{kind}{text}"), value.end()))
}

/// A whole number, or a text without escapes.
fn value_of(token: &Token<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Number if token.text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(token.text.to_owned())
        }
        TokenKind::Text { escapes: false } if token.is_closed => Some(unquoted(token.text, '\'')),
        _ => None,
    }
}

fn unquoted(text: &str, quote: char) -> String {
    let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    let doubled: String = [quote, quote].iter().collect();
    inner.unwrap_or(text).replace(&doubled, &quote.to_string())
}

/// Has tables with a version be called by their own names, unless the statement gives them others.
pub(super) fn name_tables(statement: &mut EngineStatement) {
    if let Some(statement) = parsed(statement) {
        let _ = statement.walk_mut(&mut Naming);
    }
}

struct Naming;

impl VisitorMut for Naming {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: alias @ None, args: None, .. } = factor
            && let Some(ObjectNamePart::Identifier(last)) = name.0.last()
            && let Some((table, _)) = split_name(&last.value)
        {
            let name = Ident::with_quote('"', table);
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}

/// Has `read` replace the times in the names of a statement by what it gives; whether there are any.
///
/// # Errors
/// Those of `read`.
pub fn replace_times<E>(
    statement: &mut EngineStatement,
    read: &dyn Fn(&str) -> Result<String, E>,
) -> Result<bool, E> {
    let Some(statement) = parsed(statement) else { return Ok(false) };
    let mut replacing = Replacing { read, any: false };
    match statement.walk_mut(&mut replacing) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(replacing.any),
    }
}

struct Replacing<'a, E> {
    read: &'a dyn Fn(&str) -> Result<String, E>,
    any: bool,
}

impl<E> VisitorMut for Replacing<'_, E> {
    type Break = E;

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<E> {
        let Some(ObjectNamePart::Identifier(last)) = name.0.last_mut() else {
            return ControlFlow::Continue(());
        };
        let Some((table, NamedVersion::Timestamp(time))) = split_name(&last.value) else {
            return ControlFlow::Continue(());
        };
        match (self.read)(time) {
            Ok(read) if read == time => ControlFlow::Continue(()),
            Ok(read) => {
                last.value = format!("{table}{SIGN}{TIMESTAMP}{read}");
                self.any = true;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_parts_of_names() {
        let check =
            |sql: &str, expected: &str| assert_eq!(written_as_names(sql), expected, "{sql}");
        check(
            "SELECT * FROM t FOR VERSION AS OF 3 WHERE a = 1",
            "SELECT * FROM \"t@version 3\" WHERE a = 1",
        );
        check("SELECT * FROM s.T VERSION AS OF 'eoy' x", "SELECT * FROM s.\"t@version eoy\" x");
        check(
            "SELECT * FROM \"T\" FOR TIMESTAMP AS OF '2026-01-31 10:00' AS x",
            "SELECT * FROM \"T@timestamp 2026-01-31 10:00\" AS x",
        );
        check(
            "SELECT 1 FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-31', u@7, v@'a''b'",
            "SELECT 1 FROM \"t@timestamp 2026-01-31\", \"u@version 7\", \"v@version a'b\"",
        );
        // Operators, texts and comments.
        for sql in [
            "SELECT a @> b, c <@ d, 'x@3', t @ 3 FROM t -- t@3",
            "SELECT * FROM t FOR VERSION AS OF $1",
            "SELECT * FROM t FOR TIMESTAMP AS OF now()",
            "SELECT array_agg(of) FROM t",
        ] {
            check(sql, sql);
        }
    }

    #[test]
    fn names_have_versions() {
        assert_eq!(split_name("t@version 3"), Some(("t", NamedVersion::Version("3"))));
        assert_eq!(split_name("t@eoy"), Some(("t", NamedVersion::Version("eoy"))));
        assert_eq!(split_name("t@timestamp 2026"), Some(("t", NamedVersion::Timestamp("2026"))));
        for name in ["t", "@t", "t@", ""] {
            assert_eq!(split_name(name), None, "{name}");
        }
    }
}
