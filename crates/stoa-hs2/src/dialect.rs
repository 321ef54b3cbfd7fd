//! Makes of a text as Hive's clients write it one that the engine reads.
//!
//! - Identifiers in backquotes get double quotes.
//! - String literals may have backslashes, as in Hive: drivers put the values of a prepared statement into its text
//!   with them (`'it\'s'`). If they were taken literally, a value could end its literal and be read as SQL.
//! - The database `default` is the schema `public`, where a name is qualified by it.
//!
//! All else stays as it is: comments, `"identifiers"`, `E'…'`, `$$…$$`.
//!
//! **Invariant:** one pass; nothing that was written is looked at again.

use std::borrow::Cow;

use stoa_query::DEFAULT_NAMESPACE;

/// Hive's name of the database that a session begins in.
pub(crate) const DEFAULT_DATABASE: &str = "default";

/// The database that Hive's clients know by this name, as the engine calls it.
pub(crate) fn namespace_of(database: &str) -> &str {
    match database.eq_ignore_ascii_case(DEFAULT_DATABASE) {
        true => DEFAULT_NAMESPACE,
        false => database,
    }
}

/// The schema that the engine knows by this name, as Hive's clients call it.
pub(crate) fn database_of(namespace: &str) -> &str {
    if namespace == DEFAULT_NAMESPACE { DEFAULT_DATABASE } else { namespace }
}

/// `name` as an identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as a string literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The text as the engine reads it.
pub(crate) fn translate(sql: &str) -> Cow<'_, str> {
    let is_plain = !sql.contains(['`', '\\']) && !sql.to_ascii_lowercase().contains("default");
    if is_plain { Cow::Borrowed(sql) } else { Cow::Owned(Translation::of(sql)) }
}

/// A text as it is read, and what was written of it.
struct Translation<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Translation<'a> {
    fn of(sql: &'a str) -> String {
        let mut this = Self { rest: sql, out: String::with_capacity(sql.len() + 16) };
        while let Some(first) = this.rest.chars().next() {
            this.token(first);
        }
        this.out
    }

    /// Copies `length` bytes.
    fn copy(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.out.push_str(taken);
        self.rest = rest;
    }

    fn token(&mut self, first: char) {
        match first {
            '`' => self.backquoted(),
            '\'' => self.literal(),
            '"' => self.copy(end_of_quoted(self.rest, '"')),
            '-' if self.rest.starts_with("--") => {
                self.copy(self.rest.find('\n').unwrap_or(self.rest.len()));
            }
            '/' if self.rest.starts_with("/*") => self.copy(end_of_comment(self.rest)),
            '$' => self.dollar(),
            letter if letter.is_alphabetic() || letter == '_' => self.word(),
            digit if digit.is_ascii_digit() => {
                let is_part = |char: char| char.is_alphanumeric() || char == '_';
                self.copy(self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()));
            }
            other => self.copy(other.len_utf8()),
        }
    }

    /// A word, with the literal that it begins (`E'…'`), or the database `default`.
    fn word(&mut self) {
        let is_part = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
        let length = self.rest.find(|char| !is_part(char)).unwrap_or(self.rest.len());
        let (word, behind) = self.rest.split_at(length);
        if word.eq_ignore_ascii_case("e") && behind.starts_with('\'') {
            return self.copy(length + end_of_escaped(behind));
        }
        if word.eq_ignore_ascii_case(DEFAULT_DATABASE) && behind.trim_start().starts_with('.') {
            self.out.push_str(&quoted(DEFAULT_NAMESPACE));
            self.rest = behind;
            return;
        }
        self.copy(length);
    }

    fn backquoted(&mut self) {
        let end = end_of_quoted(self.rest, '`');
        let (token, behind) = self.rest.split_at(end);
        self.rest = behind;
        let inner = token.strip_prefix('`').unwrap_or(token);
        let Some(inner) = inner.strip_suffix('`') else {
            // Without an end: the engine says so.
            self.out.push_str(token);
            return;
        };
        let name = inner.replace("``", "`");
        let is_database = behind.trim_start().starts_with('.');
        let name = if is_database { namespace_of(&name) } else { &name };
        self.out.push_str(&quoted(name));
    }

    /// A string literal, with what its backslashes mean.
    fn literal(&mut self) {
        let end = end_of_escaped(self.rest);
        let (token, behind) = self.rest.split_at(end);
        self.rest = behind;
        if !token.contains('\\') || token.len() < 2 || !token.ends_with('\'') {
            self.out.push_str(token);
            return;
        }
        self.out.push('\'');
        let mut chars = token[1..token.len() - 1].chars();
        while let Some(char) = chars.next() {
            match char {
                '\\' => match unescaped(&mut chars) {
                    '\'' => self.out.push_str("''"),
                    char => self.out.push(char),
                },
                char => self.out.push(char),
            }
        }
        self.out.push('\'');
    }

    /// `$tag$ … $tag$`, or a parameter.
    fn dollar(&mut self) {
        let tag = self.rest[1..].find('$').map(|end| &self.rest[..end + 2]);
        let is_tag = |tag: &&str| {
            let inner = &tag[1..tag.len() - 1];
            !inner.starts_with(|c: char| c.is_ascii_digit())
                && inner.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let Some(tag) = tag.filter(is_tag) else { return self.copy(1) };
        let end = self.rest[tag.len()..].find(tag).map(|at| at + 2 * tag.len());
        self.copy(end.unwrap_or(self.rest.len()));
    }
}

/// What a backslash and the characters behind it mean (Hive's `BaseSemanticAnalyzer.unescapeSQLString`). `%` and `_`
/// keep their backslash, for LIKE: it is given back as the character before them.
fn unescaped(chars: &mut std::str::Chars<'_>) -> char {
    let behind = chars.as_str();
    if behind.starts_with(['%', '_']) || behind.is_empty() {
        return '\\';
    }
    if let Some(code) = code(behind, 1, 4, 16, "u").or_else(|| code(behind, 0, 3, 8, "")) {
        let (char, length) = code;
        chars.nth(length - 1);
        return char;
    }
    match chars.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('b') => '\u{8}',
        Some('Z') => '\u{1a}',
        // PostgreSQL's texts have no zero bytes; the engine refuses it.
        Some('0') => '\0',
        Some(other) => other,
        None => '\\',
    }
}

/// The character whose number is written in so many digits behind a prefix, and how many characters that takes.
fn code(
    text: &str,
    before: usize,
    digits: usize,
    radix: u32,
    prefix: &str,
) -> Option<(char, usize)> {
    let digits = text.strip_prefix(prefix)?.get(..digits)?;
    if !digits.chars().all(|char| char.is_digit(radix)) {
        return None;
    }
    let char = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    Some((char, before + digits.len()))
}

/// Where a quoted token ends; two quotes are one within it.
fn end_of_quoted(text: &str, quote: char) -> usize {
    let mut at = quote.len_utf8();
    while let Some(found) = text[at..].find(quote) {
        at += found + quote.len_utf8();
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += quote.len_utf8();
    }
    text.len()
}

/// Where a string literal with backslashes ends.
fn end_of_escaped(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '\'' if text[at + 1..].starts_with('\'') => drop(chars.next()),
            '\'' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Where a comment ends; comments nest.
fn end_of_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hive: &str, stoa: &str) {
        assert_eq!(translate(hive), stoa, "{hive}");
    }

    #[test]
    fn identifiers_in_backquotes_get_double_quotes() {
        check("SELECT `a` FROM `t`", "SELECT \"a\" FROM \"t\"");
        check("SELECT `a``b\"c`", "SELECT \"a`b\"\"c\"");
        check("SELECT '`a`', \"`b`\" -- `c`\n, `d`", "SELECT '`a`', \"`b`\" -- `c`\n, \"d\"");
        check("/* `a` /* */ `b` */ `c`", "/* `a` /* */ `b` */ \"c\"");
        check("SELECT $$`a`$$, $x$ ` $ $x$, `b`", "SELECT $$`a`$$, $x$ ` $ $x$, \"b\"");
        check("SELECT `a", "SELECT `a");
    }

    #[test]
    fn the_database_default_is_public() {
        check("SELECT * FROM default.t", "SELECT * FROM \"public\".t");
        check("SELECT * FROM `default`.`t`", "SELECT * FROM \"public\".\"t\"");
        check("SELECT * FROM `DEFAULT` . t", "SELECT * FROM \"public\" . t");
        check(
            "INSERT INTO t VALUES (DEFAULT, 'default.')",
            "INSERT INTO t VALUES (DEFAULT, 'default.')",
        );
    }

    /// Literals as Hive's JDBC driver and PyHive write them.
    #[test]
    fn values_of_drivers_stay_within_their_literals() {
        check(r"SELECT 'it\'s'", "SELECT 'it''s'");
        check(r"WHERE a = 'x\' OR 1=1 --'", "WHERE a = 'x'' OR 1=1 --'");
        check(r"SELECT 'a\\', `b`", r#"SELECT 'a\', "b""#);
        check(r"SELECT 'a\nb\tA\101\%\_'", "SELECT 'a\nb\tAA\\%\\_'");
        check("SELECT 'a''b', `c`", "SELECT 'a''b', \"c\"");
        check(r"SELECT E'a\'b', `c`", r#"SELECT E'a\'b', "c""#);
        check(r"SELECT 'a\", r"SELECT 'a\");
        check(r"SELECT '\u00e4\u12'", "SELECT 'äu12'");
    }

    #[test]
    fn names_are_those_of_both_sides() {
        assert_eq!((namespace_of("Default"), namespace_of("sales")), ("public", "sales"));
        assert_eq!((database_of("public"), database_of("sales")), ("default", "sales"));
        assert_eq!((quoted("a\"b").as_str(), literal("it's").as_str()), ("\"a\"\"b\"", "'it''s'"));
    }
}
