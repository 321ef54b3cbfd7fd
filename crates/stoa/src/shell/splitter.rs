//! Cuts typed or read lines into statements.
//!
//! In: lines, one after the other. Out: statements as soon as their semicolon is there. Knows `'…'`,
//! `E'…\'…'`, `"…"`, `` `…` ``, `$tag$…$tag$`, `-- …` and nested `/* … */`, over as many lines as
//! they take. Not here: what the statements mean (the server parses them).

/// Holds the statement that is being typed.
#[derive(Debug, Default)]
pub struct Splitter {
    text: String,
    /// Bytes of `text` that were looked at.
    scanned: usize,
    inside: Inside,
}

/// What the scan is in the middle of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// A statement, or before one.
    #[default]
    Plain,
    /// `'…'`; whether a backslash escapes.
    Text { escapes: bool },
    /// `"…"` or `` `…` ``.
    Name(u8),
    /// `/* … */`, with how many are open.
    Comment(usize),
    /// `$tag$…`, with the whole mark.
    Dollar(String),
}

impl Splitter {
    /// Takes a line, with or without its line end.
    pub(super) fn push_line(&mut self, line: &str) {
        self.text.push_str(line.trim_end_matches(['\n', '\r']));
        self.text.push('\n');
    }

    /// The next complete statement, without its semicolon; empty ones are left out.
    pub(super) fn next_statement(&mut self) -> Option<String> {
        loop {
            let end = self.semicolon()?;
            let rest = self.text.split_off(end + 1);
            let mut statement = std::mem::replace(&mut self.text, rest);
            self.scanned = 0;
            statement.truncate(end);
            if !is_blank(&statement) {
                return Some(statement.trim().to_owned());
            }
        }
    }

    /// What is left without a semicolon, if anything; the splitter is empty afterwards.
    pub(super) fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(self).text;
        (!is_blank(&rest)).then(|| rest.trim().to_owned())
    }

    /// Forgets what was typed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether no statement has begun.
    pub(super) fn is_blank(&self) -> bool {
        self.inside == Inside::Plain && self.text.trim().is_empty()
    }

    /// What the next line continues.
    pub(super) fn inside(&self) -> &Inside {
        &self.inside
    }

    /// Scans on; offset of the first semicolon that ends a statement.
    fn semicolon(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.scanned) {
            let at = self.scanned;
            let next = bytes.get(at + 1).copied();
            self.scanned += 1;
            match &mut self.inside {
                Inside::Plain => match (byte, next) {
                    (b';', _) => return Some(at),
                    (b'\'', _) => {
                        self.inside = Inside::Text { escapes: has_escape_mark(&bytes[..at]) };
                    }
                    (b'"' | b'`', _) => self.inside = Inside::Name(byte),
                    (b'-', Some(b'-')) => {
                        let line = bytes[at..].iter().position(|b| *b == b'\n');
                        self.scanned = line.map_or(bytes.len(), |n| at + n);
                    }
                    (b'/', Some(b'*')) => {
                        self.inside = Inside::Comment(1);
                        self.scanned += 1;
                    }
                    (b'$', _) if !bytes[..at].last().is_some_and(|b| is_word(*b)) => {
                        if let Some(mark) = dollar_mark(&self.text[at..]) {
                            self.scanned = at + mark.len();
                            self.inside = Inside::Dollar(mark.to_owned());
                        }
                    }
                    _ => {}
                },
                Inside::Text { escapes: true } if byte == b'\\' => self.scanned += 1,
                Inside::Text { .. } if byte == b'\'' => self.inside = Inside::Plain,
                Inside::Name(quote) if byte == *quote => self.inside = Inside::Plain,
                Inside::Comment(depth) => match (byte, next) {
                    (b'/', Some(b'*')) => {
                        *depth += 1;
                        self.scanned += 1;
                    }
                    (b'*', Some(b'/')) => {
                        self.scanned += 1;
                        *depth -= 1;
                        if *depth == 0 {
                            self.inside = Inside::Plain;
                        }
                    }
                    _ => {}
                },
                Inside::Dollar(mark) if bytes[at..].starts_with(mark.as_bytes()) => {
                    self.scanned = at + mark.len();
                    self.inside = Inside::Plain;
                }
                _ => {}
            }
        }
        None
    }
}

/// Whether the quote after `before` is one of `E'…'`.
fn has_escape_mark(before: &[u8]) -> bool {
    match before {
        [.., previous, b'e' | b'E'] => !is_word(*previous),
        [b'e' | b'E'] => true,
        _ => false,
    }
}

/// The mark `$…$` that `text` starts with; `$1` is a parameter and none.
fn dollar_mark(text: &str) -> Option<&str> {
    let tag = text.get(1..)?;
    let end = tag.bytes().position(|b| !is_word(b))?;
    let is_mark = tag.as_bytes()[end] == b'$' && !tag.as_bytes()[0].is_ascii_digit();
    is_mark.then(|| &text[..end + 2])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether a text without semicolons is nothing but blanks and comments.
fn is_blank(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if rest.starts_with("/*") {
            let Some(end) = comment_end(rest) else { return true };
            rest = rest[end..].trim_start();
        } else {
            return rest.is_empty();
        }
    }
}

/// Length of the nested comment that `text` starts with.
fn comment_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, statements: &[&str], rest: Option<&str>) {
        let mut splitter = Splitter::default();
        let mut found = Vec::new();
        for line in text.lines() {
            splitter.push_line(line);
            while let Some(statement) = splitter.next_statement() {
                found.push(statement);
            }
        }
        assert_eq!(found, statements, "{text:?}");
        assert_eq!(splitter.take_rest().as_deref(), rest, "{text:?}");
    }

    #[test]
    fn semicolons_end_statements_outside_of_quotes_and_comments() {
        check("SELECT 1; SELECT 2;", &["SELECT 1", "SELECT 2"], None);
        check("SELECT\n1\n;\nSELECT 2", &["SELECT\n1"], Some("SELECT 2"));
        check("SELECT 'a;b', \"c;d\", `e;f`;", &["SELECT 'a;b', \"c;d\", `e;f`"], None);
        check("SELECT 'it''s; fine';", &["SELECT 'it''s; fine'"], None);
        check("SELECT 'back\\'; SELECT 2;", &["SELECT 'back\\'", "SELECT 2"], None);
        check("SELECT E'quote\\';';", &["SELECT E'quote\\';'"], None);
        check("SELECT E'a\\\\'; SELECT 2;", &["SELECT E'a\\\\'", "SELECT 2"], None);
        check("SELECT type'a\\';", &["SELECT type'a\\'"], None);
        check("SELECT 1 -- no; end\n;", &["SELECT 1 -- no; end"], None);
        check("SELECT /* a; /* b; */ c; */ 1;", &["SELECT /* a; /* b; */ c; */ 1"], None);
        check("SELECT 1 - -1; SELECT 6 / 2;", &["SELECT 1 - -1", "SELECT 6 / 2"], None);
    }

    #[test]
    fn dollar_quotes_hold_anything_and_parameters_do_not() {
        check("SELECT $$a;'b$$;", &["SELECT $$a;'b$$"], None);
        check("SELECT $t$a;\n$$;$t$ ; x", &["SELECT $t$a;\n$$;$t$"], Some("x"));
        check("SELECT $1; SELECT $2;", &["SELECT $1", "SELECT $2"], None);
        check("SELECT a$b$; SELECT c$b$;", &["SELECT a$b$", "SELECT c$b$"], None);
    }

    #[test]
    fn quotes_run_over_lines() {
        check("SELECT 'a\n;\nb';", &["SELECT 'a\n;\nb'"], None);
        check("SELECT 'never\n;", &[], Some("SELECT 'never\n;"));
    }

    #[test]
    fn what_is_only_blank_or_comment_is_no_statement() {
        check(";;  ; -- hello\n /* a */ ;", &[], None);
        check("-- hello\nSELECT 1;", &["-- hello\nSELECT 1"], None);
        check("/* open", &[], None);
    }

    #[test]
    fn text_of_other_scripts_is_left_alone() {
        check(
            "SELECT '日本;語' AS 地域; SELECT $ü$;$ü$;",
            &["SELECT '日本;語' AS 地域", "SELECT $ü$;$ü$"],
            None,
        );
    }

    #[test]
    fn the_prompt_knows_what_is_open() {
        let mut splitter = Splitter::default();
        assert!(splitter.is_blank());
        splitter.push_line("SELECT 'a");
        assert_eq!(splitter.next_statement(), None);
        assert_eq!(splitter.inside(), &Inside::Text { escapes: false });
        assert!(!splitter.is_blank());
        splitter.clear();
        assert!(splitter.is_blank());
    }
}
