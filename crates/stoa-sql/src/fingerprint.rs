//! The text of a SELECT without its literals.
//!
//! In: a statement. Out: the same text with `$L0i`, `$L1s`, … in place of literals, by which texts
//! that differ only in literals are equal, and the literals. The letter tells the literal's kind.
//!
//! A list of literals of one kind, `IN (1, 2, 3)`, is one literal, however long it is. `= ANY (ARRAY[1, 2, 3])`,
//! which means the same where they are integers, is written like it.
//!
//! Only plain texts have one: a comment, an exponent, an escape string, a second statement and the
//! like make it `None`, and the statement takes the long way.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use crate::lexer::{Lexer, Token, TokenKind};

mod list;

pub use list::LIST_VALUES_MAX;

/// Longer texts are not looked at.
const TEXT_BYTES_MAX: usize = 512 << 10;

/// Longer texts without literals have no fingerprint.
const BARE_TEXT_BYTES_MAX: usize = 16 << 10;

/// Most literals in a text, each list counted as one.
const LITERALS_MAX: usize = 128;

/// What begins the name of a literal's place.
const PLACE: &str = "$L";

/// What a literal looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
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
    /// `1, -2`
    Integers,
    /// `'one', 'two'`
    Texts,
    /// `DATE '2026-01-31', DATE '2026-02-28'`
    Dates,
}

impl LiteralKind {
    fn letter(self) -> char {
        match self {
            Self::Integer => 'i',
            Self::Decimal => 'n',
            Self::Text => 's',
            Self::Date => 'd',
            Self::Timestamp => 't',
            Self::Integers => 'I',
            Self::Texts => 'S',
            Self::Dates => 'D',
        }
    }

    /// Whether it is a list, of any length.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Integers | Self::Texts | Self::Dates)
    }
}

/// A literal of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal<'a> {
    /// What it looks like.
    pub kind: LiteralKind,
    /// Digits, or the text without its quotes; a list as it stands in the statement.
    pub text: Cow<'a, str>,
}

/// A text without its literals.
#[derive(Clone, Debug, PartialEq)]
pub struct Fingerprint<'a> {
    /// The text, with places for the literals.
    pub text: String,
    /// The literals, in order.
    pub literals: Vec<Literal<'a>>,
}

/// A fingerprint that was taken once and goes along with its statement.
pub type SharedFingerprint = Arc<Fingerprint<'static>>;

/// The number of the literal whose place is called `name`.
pub fn literal_of_place(name: &str) -> Option<usize> {
    let digits = name.strip_prefix(PLACE)?.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().ok()
}

/// What the place of literal `number` is called.
pub fn place_of(number: usize, kind: LiteralKind) -> String {
    format!("{PLACE}{number}{}", kind.letter())
}

impl Fingerprint<'static> {
    /// That of a statement, to be passed on with it; `None` for what is no plain SELECT.
    pub fn shared(sql: &str) -> Option<SharedFingerprint> {
        Fingerprint::of(sql).map(|fingerprint| Arc::new(fingerprint.into_owned()))
    }
}

/// Words of statements that change rows.
const CHANGES: [&str; 4] = ["insert", "update", "delete", "merge"];

impl<'a> Fingerprint<'a> {
    /// `None` for what is no plain SELECT.
    pub fn of(sql: &'a str) -> Option<Self> {
        let sql = sql.trim();
        let begins_with = |word: &str| {
            sql.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        let has_names = begins_with("with");
        if !has_names && !begins_with("select") || sql.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut scan = Scan {
            text: String::with_capacity(sql.len() + 16),
            literals: Vec::new(),
            word_at: None,
            before: None,
            behind_literal: false,
        };
        let mut lexer = Lexer::new(sql);
        while let Some(token) = lexer.next() {
            if token.is_sign(';') {
                if !sql[token.end()..].trim().is_empty() {
                    return None;
                }
                break;
            }
            // What begins with WITH may change rows.
            if has_names && CHANGES.iter().any(|word| token.is_word(word)) {
                return None;
            }
            scan.take(token)?;
            scan.list(&mut lexer);
            if scan.text.len() > BARE_TEXT_BYTES_MAX {
                return None;
            }
        }
        if scan.before.is_some_and(|last| last.is_sign('$')) {
            return None;
        }
        scan.text.truncate(scan.text.trim_end().len());
        Some(Self { text: scan.text, literals: scan.literals })
    }

    /// The same, without the text that it was taken of.
    pub fn into_owned(self) -> Fingerprint<'static> {
        let own = |literal: Literal<'_>| Literal {
            kind: literal.kind,
            text: Cow::Owned(literal.text.into_owned()),
        };
        let literals = self.literals.into_iter().map(own).collect();
        Fingerprint { text: self.text, literals }
    }

    /// What templates of it are found by, among statements of the same `context`.
    pub fn key(&self, context: &str) -> String {
        // The length keeps texts apart whatever either part holds.
        format!("{}:{context}{}", context.len(), self.text)
    }

    /// Whether the literals that are part of a template are these.
    pub fn has(&self, pinned: &[(usize, String)]) -> bool {
        pinned.iter().all(|(number, text)| {
            self.literals.get(*number).is_some_and(|literal| literal.text == *text)
        })
    }
}

struct Scan<'a> {
    text: String,
    literals: Vec<Literal<'a>>,
    /// Where the last word begins in `text`, if nothing but blanks came after it.
    word_at: Option<usize>,
    /// The token right before.
    before: Option<Token<'a>>,
    /// Whether nothing but blanks came behind a text: two in a row may be one.
    behind_literal: bool,
}

impl<'a> Scan<'a> {
    fn take(&mut self, token: Token<'a>) -> Option<()> {
        let before = self.before.replace(token);
        let is_behind = |kind: TokenKind| before.is_some_and(|before| before.kind == kind);
        let is_behind_sign = |sign: char| before.is_some_and(|before| before.is_sign(sign));
        if is_behind_sign('$') && token.kind != TokenKind::Number {
            return None;
        }
        match token.kind {
            TokenKind::Blank if token.text.is_ascii() => self.text.push_str(token.text),
            // 1e3, 1x
            TokenKind::Word if is_behind(TokenKind::Number) => return None,
            // A value behind `AS OF` or `@` tells which version of a table is meant: it is no literal.
            TokenKind::Word if token.is_word("of") => return None,
            TokenKind::Word => self.word(token.text),
            TokenKind::Number if is_behind_sign('$') => self.parameter(token.text)?,
            TokenKind::Number if is_behind_sign('.') => return None,
            TokenKind::Number => self.number(token.text)?,
            // E'…', N'…', X'…', U&'…' and the like are other kinds of literals.
            TokenKind::Text { .. } if is_behind(TokenKind::Word) || is_behind_sign('&') => {
                return None;
            }
            TokenKind::Text { .. } => self.string(token.text)?,
            TokenKind::Name if is_behind(TokenKind::Word) || is_behind_sign('&') => return None,
            TokenKind::Name => self.quoted_name(token.text)?,
            TokenKind::Sign => {
                let is_number = is_behind(TokenKind::Number);
                self.sign(token.text, is_number)?;
            }
            TokenKind::Blank | TokenKind::Comment | TokenKind::DollarText => return None,
        }
        Some(())
    }

    fn word(&mut self, text: &str) {
        self.word_at = Some(self.text.len());
        self.text.push_str(text);
        self.behind_literal = false;
    }

    fn sign(&mut self, text: &str, is_behind_number: bool) -> Option<()> {
        match text.as_bytes() {
            [b'.' | b'$'] if is_behind_number => return None,
            [b'\\' | b'{' | b'}' | b'@'] => return None,
            // Its number comes next.
            [b'$'] => {}
            _ => self.text.push_str(text),
        }
        (self.word_at, self.behind_literal) = (None, false);
        Some(())
    }

    /// Takes the list whose first bracket was just taken, if it is one of literals.
    fn list(&mut self, lexer: &mut Lexer<'a>) {
        let (close, any_at) = match self.before {
            Some(open) if open.is_sign('(') && list::is_behind_in(&self.text) => (b')', None),
            Some(open) if open.is_sign('[') => match list::is_behind_any(&self.text) {
                Some(any_at) => (b']', Some(any_at)),
                None => return,
            },
            _ => return,
        };
        if self.literals.len() == LITERALS_MAX {
            return;
        }
        let Some((kind, text)) = list::read(lexer.rest(), close) else { return };
        let mut end = text.len();
        if let Some(any_at) = any_at {
            let Some(blanks) = list::bracket_behind(&lexer.rest()[end + 1..]) else { return };
            if kind == LiteralKind::Integers {
                self.text.truncate(any_at);
                self.text.push_str(" IN (");
                end += 1 + blanks;
            }
        }
        // There is room for it.
        let _ = self.place(Literal { kind, text: Cow::Borrowed(text.trim_ascii()) });
        // The bracket that ends it comes next.
        *lexer = lexer.behind(end);
    }

    fn number(&mut self, text: &'a str) -> Option<()> {
        let kind = match text.contains('.') {
            true => LiteralKind::Decimal,
            false => LiteralKind::Integer,
        };
        self.place(Literal { kind, text: Cow::Borrowed(text) })
    }

    fn string(&mut self, quoted: &'a str) -> Option<()> {
        if self.behind_literal {
            return None;
        }
        let inner = inner(quoted, '\'')?;
        let text = match inner.contains("''") {
            true => Cow::Owned(inner.replace("''", "'")),
            false => Cow::Borrowed(inner),
        };
        let kind = self.typed();
        self.place(Literal { kind, text })?;
        self.behind_literal = true;
        Some(())
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

    fn quoted_name(&mut self, quoted: &str) -> Option<()> {
        inner(quoted, '"')?;
        self.text.push_str(quoted);
        (self.word_at, self.behind_literal) = (None, false);
        Some(())
    }

    fn parameter(&mut self, number: &str) -> Option<()> {
        if number.contains('.') {
            return None;
        }
        self.text.push('$');
        self.text.push_str(number);
        (self.word_at, self.behind_literal) = (None, false);
        Some(())
    }

    fn place(&mut self, literal: Literal<'a>) -> Option<()> {
        if self.literals.len() == LITERALS_MAX {
            return None;
        }
        let number = self.literals.len();
        write!(self.text, "{PLACE}{number}{}", literal.kind.letter()).ok()?;
        self.literals.push(literal);
        (self.word_at, self.behind_literal) = (None, false);
        Some(())
    }
}

/// What stands between quotes; `None` where the last one is missing, or where they are others.
fn inner(quoted: &str, quote: char) -> Option<&str> {
    let inner = quoted.strip_prefix(quote)?;
    // Those within are doubled.
    let is_whole = quoted.matches(quote).count().is_multiple_of(2);
    inner.strip_suffix(quote).filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_has_no_fingerprint() {
        for text in [
            "SELECT 1e3",
            "SELECT 1x",
            "SELECT .5",
            "SELECT 1.2.3",
            "SELECT E'a'",
            "SELECT U&'a'",
            "SELECT 'a' 'b'",
            "SELECT 'a'\n'b'",
            "SELECT 'a",
            "SELECT 'a''",
            "SELECT \"a",
            "SELECT $",
            "SELECT $a",
            "SELECT $ 1",
            "SELECT $1.5",
            "SELECT $1a",
            "SELECT $$a$$",
            "SELECT `a`",
            "SELECT 1 -- a",
            "SELECT 1 /* a */",
            "SELECT 1; SELECT 2",
            "SELECT {1}",
            "SELECT a FROM t@3",
            "SELECT a FROM t FOR VERSION AS OF 3",
            "SELECT a FROM t FOR TIMESTAMP AS OF '2026-01-31'",
            "UPDATE t SET a = 1",
        ] {
            assert_eq!(Fingerprint::of(text), None, "{text}");
        }
    }

    #[test]
    fn literals_are_taken_out_with_their_kinds() {
        let text =
            "SELECT a.b, \"C\", $1 FROM t WHERE d = DATE '2026-01-31' AND e='it''s' AND f>-1.5 ; ";
        let found = Fingerprint::of(text).unwrap();
        assert_eq!(
            found.text,
            "SELECT a.b, \"C\", $1 FROM t WHERE d = $L0d AND e=$L1s AND f>-$L2n"
        );
        let texts: Vec<&str> = found.literals.iter().map(|literal| &*literal.text).collect();
        assert_eq!(texts, ["2026-01-31", "it's", "1.5"]);
        assert_eq!(Fingerprint::shared(text).as_deref(), Some(&found));
    }
}
