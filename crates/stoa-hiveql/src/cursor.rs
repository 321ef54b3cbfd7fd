//! Reading tokens one by one, for statements whose grammar is Hive's own.

use sqlparser::ast::{DataType, Query, Statement};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::dialect::HiveQl;

/// Levels of parentheses and operators that a statement may have.
const DEPTH_MAX: usize = 128;

/// Tokens, and how far they are read.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) tokens: &'a [TokenWithSpan],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tokens: &'a [TokenWithSpan]) -> Self {
        Self { tokens, at: 0 }
    }

    pub(crate) fn peek(&self) -> &'a Token {
        self.nth(0)
    }

    pub(crate) fn nth(&self, ahead: usize) -> &'a Token {
        self.tokens.get(self.at + ahead).map_or(&Token::EOF, |token| &token.token)
    }

    pub(crate) fn rest(&self) -> &'a [TokenWithSpan] {
        &self.tokens[self.at.min(self.tokens.len())..]
    }

    pub(crate) fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Whether the next tokens are these words.
    pub(crate) fn looking_at(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(at, word)| is_word(self.nth(at), word))
    }

    /// Takes these words, if they are next.
    pub(crate) fn take(&mut self, words: &[&str]) -> bool {
        let is_next = self.looking_at(words);
        if is_next {
            self.at += words.len();
        }
        is_next
    }

    pub(crate) fn take_token(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == token;
        if is_next {
            self.at += 1;
        }
        is_next
    }

    pub(crate) fn expect(&mut self, words: &[&str]) -> Result<()> {
        if self.take(words) { Ok(()) } else { Err(self.wrong(&words.join(" ").to_uppercase())) }
    }

    pub(crate) fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.take_token(token) { Ok(()) } else { Err(self.wrong(&token.to_string())) }
    }

    pub(crate) fn expect_end(&self) -> Result<()> {
        if self.is_end() { Ok(()) } else { Err(self.wrong("the end of the statement")) }
    }

    /// A syntax error at the next token.
    pub(crate) fn wrong(&self, wanted: &str) -> Error {
        let at = self.tokens.get(self.at);
        let found = at.map_or_else(|| "the end".to_owned(), |token| format!("\"{}\"", token.token));
        let place = at.map(|token| token.span.start);
        syntax_error(format!("syntax error at or near {found}"), place)
            .with_hint(format!("expected {wanted}"))
    }

    /// A name, without case.
    pub(crate) fn name(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(word) => {
                self.at += 1;
                Ok(word.value.clone())
            }
            _ => Err(self.wrong("a name")),
        }
    }

    /// `[database.]name`, as Stoa reads it.
    pub(crate) fn table(&mut self) -> Result<String> {
        let mut name = quoted(&self.name()?);
        while self.take_token(&Token::Period) {
            name = format!("{name}.{}", quoted(&self.name()?));
        }
        Ok(name)
    }

    pub(crate) fn string(&mut self) -> Result<String> {
        match self.peek() {
            Token::SingleQuotedString(text) => {
                self.at += 1;
                Ok(text.clone())
            }
            _ => Err(self.wrong("a string")),
        }
    }

    /// The tokens between parentheses, which begin here.
    pub(crate) fn parenthesised(&mut self) -> Result<&'a [TokenWithSpan]> {
        self.expect_token(&Token::LParen)?;
        let begin = self.at;
        let mut depth = 1_usize;
        while !self.is_end() {
            match self.peek() {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(&self.tokens[begin..self.at - 1]);
            }
        }
        Err(self.wrong(")"))
    }

    /// Tokens up to one outside of parentheses that `ends` takes.
    pub(crate) fn until(&mut self, ends: impl Fn(&Cursor<'a>) -> bool) -> &'a [TokenWithSpan] {
        let (begin, mut depth) = (self.at, 0_usize);
        while !self.is_end() && (depth > 0 || !ends(self)) {
            match self.peek() {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
        &self.tokens[begin..self.at]
    }

    /// A type, as Hive writes it.
    pub(crate) fn data_type(&mut self) -> Result<DataType> {
        let mut parser = parser(self.rest().to_vec());
        let parsed = parser.parse_data_type().map_err(|error| from_parser(&error))?;
        self.at += parser.index();
        Ok(parsed)
    }

    /// Items between commas outside of parentheses.
    pub(crate) fn items(&mut self) -> Vec<&'a [TokenWithSpan]> {
        let mut all = Vec::new();
        while !self.is_end() {
            all.push(self.until(|cursor| *cursor.peek() == Token::Comma));
            if !self.take_token(&Token::Comma) {
                break;
            }
        }
        all
    }
}

/// Whether a token is a word (lower case), not in backquotes.
pub(crate) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value == word)
}

/// A name as Stoa reads it: quoted where it is no plain word.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string literal as Stoa reads it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&HiveQl).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens)
}

/// A query, and nothing behind it.
pub(crate) fn query_of(tokens: &[TokenWithSpan]) -> Result<Query> {
    let mut parser = parser(tokens.to_vec());
    let query = parser.parse_query().map_err(|error| from_parser(&error))?;
    must_be_at_end(&mut parser)?;
    Ok(*query)
}

/// A statement, and nothing behind it.
pub(crate) fn statement_of(tokens: &[TokenWithSpan]) -> Result<Statement> {
    let mut parser = parser(tokens.to_vec());
    let statement = parser.parse_statement().map_err(|error| from_parser(&error))?;
    must_be_at_end(&mut parser)?;
    Ok(statement)
}

/// An expression, and nothing behind it.
pub(crate) fn expr_of(tokens: &[TokenWithSpan]) -> Result<sqlparser::ast::Expr> {
    let mut parser = parser(tokens.to_vec());
    let expr = parser.parse_expr().map_err(|error| from_parser(&error))?;
    must_be_at_end(&mut parser)?;
    Ok(expr)
}

fn must_be_at_end(parser: &mut Parser<'_>) -> Result<()> {
    let found = parser.peek_token();
    if found.token == Token::EOF {
        return Ok(());
    }
    let said = format!("syntax error at or near \"{}\"", found.token);
    Err(syntax_error(said, Some(found.span.start)).with_hint("expected the end of the statement"))
}

fn syntax_error(message: String, place: Option<Location>) -> Error {
    let error = Error::invalid(message).with_sqlstate("42601");
    match place.filter(|place| place.line > 0) {
        Some(place) => error.with_detail(format!("line {}, column {}", place.line, place.column)),
        None => error,
    }
}

/// The parser's error as Stoa's.
fn from_parser(error: &ParserError) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => Error::invalid("the statement is nested too deep")
            .with_sqlstate("54001")
            .with_hint("split it, for instance with WITH"),
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => {
            Error::invalid(format!("syntax error: {text}")).with_sqlstate("42601")
        }
    }
}
