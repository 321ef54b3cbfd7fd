//! The words, signs, texts and comments that a statement is made of.
//!
//! In: any text, be it SQL or not, and cut off anywhere. Out: tokens. **Invariants:** all tokens together are
//! the text; a quote or comment that does not end runs to the end of the text, so that nothing behind an open
//! quote is taken for SQL.
//!
//! Knows `'…'` and `E'…\'…'`, `"…"`, `` `…` ``, `$tag$…$tag$`, `-- …` and nested `/* … */`. Everybody who looks
//! at texts without parsing them uses this: cutting at semicolons, measuring, fingerprints, hiding passwords,
//! command tags.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Blanks and ends of lines.
    Blank,
    /// `-- …` without the end of its line, or `/* … */`.
    Comment,
    /// A keyword or a name without quotes: letters, digits, `_`, and `$` behind the first of them.
    Word,
    /// Digits, or digits with a point between or behind them. An exponent is a word of its own.
    Number,
    /// `'…'`; `escapes` behind an `E`. Two in a row are one text with a quote in it.
    Text {
        /// Whether a backslash takes the next sign's meaning away.
        escapes: bool,
    },
    /// `$tag$…$tag$`
    DollarText,
    /// `"…"` or `` `…` ``.
    Name,
    /// Any other sign.
    Sign,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// Its text, quotes included.
    pub text: &'a str,
    /// Where it begins, bytes from the start of the whole.
    pub at: usize,
    /// Whether its end is there: a quote or comment that does not end runs to the end of the text.
    pub is_closed: bool,
}

impl Token<'_> {
    /// Whether it means something: no blank, no comment.
    pub fn is_significant(&self) -> bool {
        !matches!(self.kind, TokenKind::Blank | TokenKind::Comment)
    }

    /// Whether it is the keyword `word`, in any case, and without quotes.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this sign.
    pub fn is_sign(&self, sign: char) -> bool {
        self.kind == TokenKind::Sign && self.text.starts_with(sign)
    }

    /// Where it begins in `text`, of which it is a token: characters from 1, as PostgreSQL counts.
    pub fn position_in(&self, text: &str) -> usize {
        text.get(..self.at).unwrap_or(text).chars().count() + 1
    }

    /// Where it ends, bytes from the start of the whole.
    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// Cuts a text into [`Token`]s.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Whether the token before is an `E` that a text follows at once.
    behind_e: bool,
}

impl<'a> Lexer<'a> {
    /// The tokens of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, behind_e: false }
    }

    /// Bytes of the text that were cut into tokens.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The text that was not cut into tokens yet.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The tokens behind the next `bytes`, which must end where a token does.
    pub(crate) fn behind(&self, bytes: usize) -> Self {
        let at = self.text.floor_char_boundary(self.at.saturating_add(bytes));
        Self { text: self.text, at, behind_e: false }
    }

    /// The next token that is neither blank nor comment.
    pub fn next_significant(&mut self) -> Option<Token<'a>> {
        self.find(Token::is_significant)
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let first = *bytes.first()?;
        let second = bytes.get(1).copied().unwrap_or(0);
        let behind_e = std::mem::take(&mut self.behind_e);
        let (kind, length) = match first {
            b'\'' => {
                let kind = TokenKind::Text { escapes: behind_e };
                (kind, quoted_length(bytes, b'\'', behind_e))
            }
            b'"' | b'`' => (TokenKind::Name, quoted_length(bytes, first, false)),
            b'-' if second == b'-' => (TokenKind::Comment, Some(line_length(bytes))),
            b'/' if second == b'*' => (TokenKind::Comment, comment_length(bytes)),
            b'$' => match dollar_mark(rest) {
                Some(mark) => (TokenKind::DollarText, dollar_length(rest, mark)),
                None => (TokenKind::Sign, Some(1)),
            },
            b'0'..=b'9' => (TokenKind::Number, Some(number_length(bytes))),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => (TokenKind::Word, Some(word_length(rest))),
            0x80.. => match rest.chars().next() {
                Some(blank) if blank.is_whitespace() => (TokenKind::Blank, Some(blank.len_utf8())),
                _ => (TokenKind::Word, Some(word_length(rest))),
            },
            _ if first.is_ascii_whitespace() || first == b'\x0b' => (TokenKind::Blank, Some(1)),
            _ => (TokenKind::Sign, Some(1)),
        };
        let is_closed = length.is_some();
        let length = length.unwrap_or(rest.len());
        let token = Token { kind, text: &rest[..length], at: self.at, is_closed };
        self.behind_e = token.is_word("e");
        self.at += length;
        Some(token)
    }
}

/// Bytes of the word that a text begins with.
fn word_length(text: &str) -> usize {
    let is_part = |c: char| match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || c == '_' || c == '$',
        false => !c.is_whitespace(),
    };
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
    };
    let whole = digits(0);
    match bytes.get(whole) {
        Some(b'.') => whole + 1 + digits(whole + 1),
        _ => whole,
    }
}

fn line_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())
}

/// Bytes up to and with the end of a nested comment; `None` where that is missing, here and below.
fn comment_length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => (at, depth) = (at + 2, depth.saturating_sub(1)),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Bytes up to and with the quote that ends a text; two in a row are one of its characters.
fn quoted_length(bytes: &[u8], quote: u8, escapes: bool) -> Option<usize> {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte == b'\\' && escapes {
            at += 1;
        } else if *byte == quote {
            match bytes.get(at) == Some(&quote) {
                true => at += 1,
                false => return Some(at),
            }
        }
    }
    None
}

/// The `$tag$` that a text begins with; `None` for another `$`, such as that of a parameter.
fn dollar_mark(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    let mark = &text[..end];
    let tag = &mark[1..end - 1];
    let is_tag = word_length(tag) == tag.len() && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then_some(mark)
}

/// Bytes up to and with the second `mark`.
fn dollar_length(text: &str, mark: &str) -> Option<usize> {
    text[mark.len()..].find(mark).map(|at| at + 2 * mark.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        Lexer::new(text).filter(Token::is_significant).map(|t| (t.kind, t.text)).collect()
    }

    #[test]
    fn each_kind_is_told_from_the_others() {
        use TokenKind::{DollarText, Name, Number, Sign, Text, Word};
        let plain = Text { escapes: false };
        assert_eq!(
            kinds("SELECT a$b, \"c\"\"d\", 'it''s', E'\\'', $1, 1.5e3 /* /* x */ */ -- y\n;"),
            [
                (Word, "SELECT"),
                (Word, "a$b"),
                (Sign, ","),
                (Name, "\"c\"\"d\""),
                (Sign, ","),
                (plain, "'it''s'"),
                (Sign, ","),
                (Word, "E"),
                (Text { escapes: true }, "'\\''"),
                (Sign, ","),
                (Sign, "$"),
                (Number, "1"),
                (Sign, ","),
                (Number, "1.5"),
                (Word, "e3"),
                (Sign, ";"),
            ]
        );
        assert_eq!(
            kinds("$$a;b$$$t$ $$ $t$"),
            [(DollarText, "$$a;b$$"), (DollarText, "$t$ $$ $t$")]
        );
        assert_eq!(kinds("größe\u{a0}x"), [(Word, "größe"), (Word, "x")]);
    }

    #[test]
    fn what_is_open_runs_to_the_end() {
        for open in ["'a; b", "\"a; b", "$t$ a; b", "/* a; b", "E'a\\", "-- a; b"] {
            let mut tokens = Lexer::new(open).filter(|token| token.text != "E");
            let token = tokens.next().unwrap();
            let is_line = open.starts_with("--");
            assert_eq!((token.end(), token.is_closed), (open.len(), is_line), "{open}");
        }
    }

    proptest! {
        #[test]
        fn tokens_are_the_text(text in "(SELECT |'|\"|`|\\$|\\$a\\$|a|E|1|\\.|\\\\|--|/\\*|\\*/|\n|ä|…|\u{a0}|;| ){0,40}") {
            let mut end = 0;
            for token in Lexer::new(&text) {
                prop_assert_eq!(token.at, end);
                prop_assert!(!token.text.is_empty());
                end = token.end();
            }
            prop_assert_eq!(end, text.len());
        }
    }
}
