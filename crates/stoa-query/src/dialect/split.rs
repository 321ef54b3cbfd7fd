//! Cuts a text into statements at its semicolons, quotes and comments respected.

use std::borrow::Cow;

/// The statements of `sql`, without their semicolons; those of blanks and comments alone are left
/// out. Knows `'…'`, `E'…\'…'`, `"…"`, `` `…` ``, `$tag$…$tag$`, `-- …` and nested `/* … */`.
///
/// An unterminated quote runs to the end; the parser then says so.
pub fn split_statements(sql: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let mut start = 0;
    let mut scanner = Scanner { bytes: sql.as_bytes(), at: 0 };
    loop {
        let end = scanner.statement_end();
        let text = sql[start..end.min(sql.len())].trim();
        if !first_word_or_sign(text).is_empty() {
            statements.push(text);
        }
        if end >= sql.len() {
            return statements;
        }
        start = end + 1;
        scanner.at = start;
    }
}

/// A statement whose parameters are written `?`, as JDBC and ADBC do, with `$1`, `$2`, … in their
/// places. A statement that numbers its parameters itself is left as it is.
pub fn number_parameters(sql: &str) -> Cow<'_, str> {
    let mut scanner = Scanner { bytes: sql.as_bytes(), at: 0 };
    let mut marks = Vec::new();
    while let Some(byte) = scanner.peek() {
        let at = scanner.at;
        scanner.step(byte);
        match byte {
            b'?' => marks.push(at),
            b'$' if scanner.peek().is_some_and(|next| next.is_ascii_digit()) => return sql.into(),
            _ => {}
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

/// The first word of a statement, comments skipped; empty if it starts otherwise.
pub(crate) fn first_word(text: &str) -> &str {
    let rest = first_word_or_sign(text);
    let end = rest.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_'));
    &rest[..end.unwrap_or(rest.len())]
}

/// Byte-independent place in a text: characters from 1, as PostgreSQL counts.
pub(crate) fn offset_of(text: &str, line: u64, column: u64) -> usize {
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

/// The text from its first character that is neither blank nor comment.
fn first_word_or_sign(text: &str) -> &str {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    loop {
        match scanner.peek() {
            Some(b) if b.is_ascii_whitespace() => scanner.at += 1,
            Some(b'-') if scanner.looking_at(b"--") => scanner.skip_line(),
            Some(b'/') if scanner.looking_at(b"/*") => scanner.skip_comment(),
            _ => return text.get(scanner.at..).unwrap_or(""),
        }
    }
}

/// Walks over a text, over quotes and comments in one step.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn looking_at(&self, text: &[u8]) -> bool {
        self.bytes[self.at.min(self.bytes.len())..].starts_with(text)
    }

    /// Offset of the semicolon that ends the statement at `self.at`, or the text's length.
    fn statement_end(&mut self) -> usize {
        while let Some(byte) = self.peek() {
            if byte == b';' {
                return self.at;
            }
            self.step(byte);
        }
        self.bytes.len()
    }

    /// Goes behind the quoted text, the comment or else the one `byte` at `self.at`.
    pub(super) fn step(&mut self, byte: u8) {
        match byte {
            b'\'' => {
                let escapes = self.at > 0
                    && matches!(self.bytes[self.at - 1], b'e' | b'E')
                    && !(self.at > 1 && is_word(self.bytes[self.at - 2]));
                self.skip_quoted(b'\'', escapes);
            }
            b'"' | b'`' => self.skip_quoted(byte, false),
            b'-' if self.looking_at(b"--") => self.skip_line(),
            b'/' if self.looking_at(b"/*") => self.skip_comment(),
            b'$' if self.at == 0 || !is_word(self.bytes[self.at - 1]) => self.skip_dollar(),
            _ => self.at += 1,
        }
    }

    fn skip_quoted(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                return;
            }
        }
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|b| b != b'\n') {
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) {
        let mut depth = 0usize;
        while self.at < self.bytes.len() {
            if self.looking_at(b"/*") {
                depth += 1;
                self.at += 2;
            } else if self.looking_at(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }

    /// Skips `$tag$ … $tag$`; a `$` that starts no such quote (a parameter) is one byte.
    fn skip_dollar(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let tag_len = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
        let is_tag =
            rest.get(tag_len) == Some(&b'$') && !rest.first().is_some_and(u8::is_ascii_digit);
        if !is_tag {
            self.at += 1;
            return;
        }
        let tag = &self.bytes[self.at..self.at + tag_len + 2];
        let body = self.at + tag.len();
        let found = self.bytes[body..].windows(tag.len()).position(|window| window == tag);
        self.at = found.map_or(self.bytes.len(), |offset| body + offset + tag.len());
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
