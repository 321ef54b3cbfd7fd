//! The text of a SELECT without its literals.
//!
//! In: a statement. Out: the same text with `$L0i`, `$L1s`, … in place of literals, by which texts
//! that differ only in literals are equal, and the literals. The letter tells the literal's kind.
//!
//! Only plain texts have one: a comment, an exponent, an escape string, a second statement and the
//! like make it `None`, and the statement takes the long way.

use std::borrow::Cow;
use std::fmt::Write;

/// Longer texts are not looked at.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Most literals in a text.
const LITERALS_MAX: usize = 128;

/// What begins the name of a literal's place.
const PLACE: &str = "$L";

/// What a literal looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiteralKind {
    /// `12`
    Integer,
    /// `1.5`
    Decimal,
    /// `'text'`
    Text,
    /// `DATE '2026-01-31'`
    Date,
    /// `TIMESTAMP '2026-01-31 12:00:00'`
    Timestamp,
}

impl LiteralKind {
    fn letter(self) -> char {
        match self {
            Self::Integer => 'i',
            Self::Decimal => 'n',
            Self::Text => 's',
            Self::Date => 'd',
            Self::Timestamp => 't',
        }
    }
}

/// A literal of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Literal<'a> {
    pub(crate) kind: LiteralKind,
    /// Digits, or the text without its quotes.
    pub(crate) text: Cow<'a, str>,
}

/// A text without its literals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fingerprint<'a> {
    /// The text, with places for the literals.
    pub(crate) text: String,
    pub(crate) literals: Vec<Literal<'a>>,
}

/// The number of the literal whose place is called `name`.
pub(crate) fn literal_of_place(name: &str) -> Option<usize> {
    let digits = name.strip_prefix(PLACE)?.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().ok()
}

/// What the place of literal `number` is called.
pub(crate) fn place_of(number: usize, kind: LiteralKind) -> String {
    format!("{PLACE}{number}{}", kind.letter())
}

/// The text of a plain SELECT without its literals.
pub(crate) fn fingerprint_text(sql: &str) -> Option<String> {
    Fingerprint::of(sql).map(|fingerprint| fingerprint.text)
}

impl<'a> Fingerprint<'a> {
    /// `None` for what is no plain SELECT.
    pub(crate) fn of(sql: &'a str) -> Option<Self> {
        let sql = sql.trim();
        let is_select = sql.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
        if !is_select || sql.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut scan = Scan {
            sql,
            at: 0,
            text: String::with_capacity(sql.len() + 16),
            literals: Vec::new(),
            word_at: None,
        };
        scan.run()?;
        scan.text.truncate(scan.text.trim_end().len());
        Some(Self { text: scan.text, literals: scan.literals })
    }

    /// What templates of it are found by, among statements of the same `context`.
    pub(crate) fn key(&self, context: &str) -> String {
        // The length keeps texts apart whatever either part holds.
        format!("{}:{context}{}", context.len(), self.text)
    }

    /// Whether the literals that are part of a template are these.
    pub(crate) fn has(&self, pinned: &[(usize, String)]) -> bool {
        pinned.iter().all(|(number, text)| {
            self.literals.get(*number).is_some_and(|literal| literal.text == *text)
        })
    }
}

struct Scan<'a> {
    sql: &'a str,
    at: usize,
    text: String,
    literals: Vec<Literal<'a>>,
    /// Where the last word begins in `text`, if nothing but blanks came after it.
    word_at: Option<usize>,
}

impl<'a> Scan<'a> {
    fn run(&mut self) -> Option<()> {
        let bytes = self.sql.as_bytes();
        while let Some(byte) = bytes.get(self.at).copied() {
            let next = bytes.get(self.at + 1).copied().unwrap_or(0);
            match byte {
                b'\'' => self.string()?,
                b'"' => self.quoted_name()?,
                b'0'..=b'9' => self.number()?,
                b'$' if next.is_ascii_digit() => self.parameter()?,
                b'A'..=b'Z' | b'a'..=b'z' | b'_' | 0x80.. => self.word()?,
                b'-' if next == b'-' => return None,
                b'/' if next == b'*' => return None,
                b'.' if next.is_ascii_digit() => return None,
                b'$' | b'\\' | b'`' | b'{' | b'}' => return None,
                b';' => {
                    let is_last = self.sql[self.at + 1..].trim().is_empty();
                    return is_last.then_some(());
                }
                b' ' | b'\t' | b'\n' | b'\r' => {
                    self.text.push(char::from(byte));
                    self.at += 1;
                }
                _ => {
                    self.text.push(char::from(byte));
                    self.at += 1;
                    self.word_at = None;
                }
            }
        }
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let rest = &self.sql[self.at..];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        // E'…', N'…', X'…', U&'…' and the like are other kinds of literals.
        if length == 0
            || rest[length..].starts_with(['\'', '"'])
            || rest[length..].starts_with("&'")
        {
            return None;
        }
        self.word_at = Some(self.text.len());
        self.text.push_str(&rest[..length]);
        self.at += length;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let rest = &self.sql[self.at..];
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let mut length = digits(rest);
        let mut kind = LiteralKind::Integer;
        if rest[length..].starts_with('.') {
            kind = LiteralKind::Decimal;
            length += 1;
            length += digits(&rest[length..]);
        }
        let follows = rest[length..].chars().next().unwrap_or(' ');
        if follows.is_alphanumeric() || matches!(follows, '_' | '.' | '$') {
            return None;
        }
        self.at += length;
        self.place(Literal { kind, text: Cow::Borrowed(&rest[..length]) })
    }

    fn string(&mut self) -> Option<()> {
        let rest = &self.sql[self.at + 1..];
        let end = quoted_end(rest, '\'')?;
        let text = match rest[..end].contains("''") {
            true => Cow::Owned(rest[..end].replace("''", "'")),
            false => Cow::Borrowed(&rest[..end]),
        };
        self.at += end + 2;
        // Two strings in a row may be one.
        if self.sql[self.at..].trim_start().starts_with('\'') {
            return None;
        }
        let kind = self.typed();
        self.place(Literal { kind, text })
    }

    /// The kind of the string that comes now; the word before it that names a type is taken away.
    fn typed(&mut self) -> LiteralKind {
        let Some(word_at) = self.word_at else { return LiteralKind::Text };
        let word = self.text[word_at..].trim_end();
        let kind = match word {
            _ if word.eq_ignore_ascii_case("date") => LiteralKind::Date,
            _ if word.eq_ignore_ascii_case("timestamp") => LiteralKind::Timestamp,
            _ => return LiteralKind::Text,
        };
        self.text.truncate(word_at);
        kind
    }

    fn quoted_name(&mut self) -> Option<()> {
        let rest = &self.sql[self.at + 1..];
        let end = quoted_end(rest, '"')?;
        self.text.push_str(&self.sql[self.at..self.at + end + 2]);
        self.at += end + 2;
        self.word_at = None;
        Some(())
    }

    fn parameter(&mut self) -> Option<()> {
        let rest = &self.sql[self.at + 1..];
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if rest[length..].starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$') {
            return None;
        }
        self.text.push_str(&self.sql[self.at..self.at + 1 + length]);
        self.at += 1 + length;
        self.word_at = None;
        Some(())
    }

    fn place(&mut self, literal: Literal<'a>) -> Option<()> {
        if self.literals.len() == LITERALS_MAX {
            return None;
        }
        let number = self.literals.len();
        write!(self.text, "{PLACE}{number}{}", literal.kind.letter()).ok()?;
        self.literals.push(literal);
        self.word_at = None;
        Some(())
    }
}

/// Where the quote is that ends a text; two in a row are one of its characters.
fn quoted_end(text: &str, quote: char) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += text[at..].find(quote)?;
        if bytes.get(at + 1) != Some(&(quote as u8)) {
            return Some(at);
        }
        at += 2;
    }
}
