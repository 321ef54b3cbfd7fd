//! Goes through the text of a statement, token by token.

use std::str::FromStr;

use super::ParseError;

type Result<T> = std::result::Result<T, ParseError>;

/// A piece of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A letter and then letters, digits and `_`; a keyword or a name.
    Word(&'a str),
    /// What stands between quotes.
    Quoted(&'a str),
    /// Digits, as they are written.
    Number(&'a str),
    /// `<=`, `(` and the like.
    Symbol(&'a str),
    /// A quote that is not closed.
    OpenQuote,
    /// The end of the text.
    End,
}

const SYMBOLS: [&str; 4] = ["<=", ">=", "=^", "=~"];

/// The place in the text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut cursor = Self { text, at: 0 };
        cursor.skip_blanks();
        cursor
    }

    /// The token that comes next.
    pub(super) fn peek(&self) -> Token<'a> {
        self.token().0
    }

    /// The token after the next one.
    pub(super) fn peek_second(&self) -> Token<'a> {
        let mut ahead = Self { text: self.text, at: self.at };
        ahead.advance();
        ahead.peek()
    }

    pub(super) fn advance(&mut self) {
        self.at = self.token().1;
        self.skip_blanks();
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    pub(super) fn second_is_word(&self, word: &str) -> bool {
        matches!(self.peek_second(), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    /// Passes over the keyword if it comes next.
    pub(super) fn accept(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Passes over one of these keywords, if it comes next.
    pub(super) fn accept_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.accept(word))
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        if self.accept(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    /// Passes over these keywords, one after the other.
    pub(super) fn expect_all(&mut self, words: &[&str]) -> Result<()> {
        words.iter().try_for_each(|word| self.expect(word))
    }

    pub(super) fn at_symbol(&self, symbol: &str) -> bool {
        self.peek() == Token::Symbol(symbol)
    }

    pub(super) fn accept_symbol(&mut self, symbol: &str) -> bool {
        let found = self.at_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.accept_symbol(symbol) {
            Ok(())
        } else {
            Err(self.expected(&format!("\"{symbol}\"")))
        }
    }

    /// A name: a word, or text in quotes.
    pub(super) fn name(&mut self, what: &str) -> Result<String> {
        match self.peek() {
            Token::Word(text) | Token::Quoted(text) if !text.is_empty() => {
                self.advance();
                Ok(text.to_owned())
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Text in quotes, or digits.
    pub(super) fn literal(&mut self, what: &str) -> Result<String> {
        match self.peek() {
            Token::Quoted(text) | Token::Number(text) => {
                self.advance();
                Ok(text.to_owned())
            }
            Token::Word(word) => {
                let hint = format!("write it in quotes: \"{word}\"");
                Err(self.error(format!("expected {what}, found {word}"), Some(hint)))
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn number<T: FromStr>(&mut self, what: &str) -> Result<T> {
        let text = match self.peek() {
            Token::Number(text) | Token::Quoted(text) => text,
            _ => return Err(self.expected(what)),
        };
        let number = text
            .parse()
            .map_err(|_| self.error(format!("{text} is out of range for {what}"), None))?;
        self.advance();
        Ok(number)
    }

    /// `true` or `false` if one comes next.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        match () {
            () if self.accept("true") => Some(true),
            () if self.accept("false") => Some(false),
            () => None,
        }
    }

    /// Passes over an `=` that may be left out.
    pub(super) fn skip_equals(&mut self) {
        self.accept_symbol("=");
    }

    /// A regular expression between slashes, `\/` standing for a slash; or in quotes.
    pub(super) fn regexp(&mut self) -> Result<String> {
        if !self.at_symbol("/") {
            return self.literal("a regular expression, as in /^a.*z$/ or \"^a.*z$\"");
        }
        let start = self.at + 1;
        let body = self.text.get(start..).unwrap_or_default();
        let mut escaped = false;
        for (offset, c) in body.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '/' => {
                    self.at = start + offset + 1;
                    self.skip_blanks();
                    return Ok(body[..offset].replace("\\/", "/"));
                }
                _ => {}
            }
        }
        Err(self.error("the regular expression is not closed".into(), Some("end it with /".into())))
    }

    /// What follows without a blank, up to what cannot be part of a bare qualifier.
    pub(super) fn bare_text(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || "'\"(),;=<>#".contains(c);
        let bare = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += bare.len();
        self.skip_blanks();
        bare
    }

    /// Passes over a `:` that follows the last token at once, and stops right behind it.
    pub(super) fn accept_colon(&mut self) -> bool {
        let found = self.at_symbol(":");
        if found {
            self.at += 1;
        }
        found
    }

    /// Whether a blank comes next; only right behind [`accept_colon`](Self::accept_colon).
    pub(super) fn at_blank(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.starts_with(char::is_whitespace) || rest.is_empty()
    }

    pub(super) fn skip_to_token(&mut self) {
        self.skip_blanks();
    }

    /// The rest of the text.
    pub(super) fn take_rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let rest = rest.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
        self.at = self.text.len();
        rest
    }

    /// The end of the statement, with or without semicolon.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.accept_symbol(";");
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.expected("the end of the statement")),
        }
    }

    /// An error that says what should stand here.
    pub(super) fn expected(&self, what: &str) -> ParseError {
        self.expected_one_of(what, &[])
    }

    /// The same, with the nearest of `candidates` as hint.
    pub(super) fn expected_one_of(&self, what: &str, candidates: &[&str]) -> ParseError {
        let found = match self.peek() {
            Token::Word(text) | Token::Number(text) => text.to_owned(),
            Token::Quoted(text) => format!("\"{text}\""),
            Token::Symbol(text) => format!("\"{text}\""),
            Token::OpenQuote => {
                let hint = "a literal ends with the quote it starts with".to_owned();
                return self.error("the quote is not closed".to_owned(), Some(hint));
            }
            Token::End => "the end".to_owned(),
        };
        let hint = nearest(&found, candidates).map(|near| format!("did you mean {near}?"));
        self.error(format!("expected {what}, found {found}"), hint)
    }

    pub(super) fn error(&self, message: String, hint: Option<String>) -> ParseError {
        ParseError::at(self.text, self.at, message, hint)
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            self.at += rest.len() - rest.trim_start().len();
            let rest = self.text.get(self.at..).unwrap_or_default();
            if !rest.starts_with('#') {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// The next token and where it ends.
    fn token(&self) -> (Token<'a>, usize) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else {
            return (Token::End, self.at);
        };
        let span = |part: &'a str| self.at + part.len();
        if first == '\'' || first == '"' {
            let body = &rest[1..];
            return match body.find(first) {
                Some(end) => (Token::Quoted(&body[..end]), self.at + end + 2),
                None => (Token::OpenQuote, self.text.len()),
            };
        }
        if first.is_ascii_digit() {
            let digits = leading(rest, |c| c.is_ascii_digit());
            return (Token::Number(digits), span(digits));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let word = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_');
            return (Token::Word(word), span(word));
        }
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        let symbol = &rest[..symbol.map_or(first.len_utf8(), |symbol| symbol.len())];
        (Token::Symbol(symbol), span(symbol))
    }
}

fn leading(text: &str, part: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !part(c)).unwrap_or(text.len())]
}

fn nearest<'a>(found: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let found = found.to_ascii_uppercase();
    let score = |candidate: &str| strsim::jaro_winkler(candidate, &found);
    let best = candidates.iter().copied().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(best) > 0.8 && best != found).then_some(best)
}
