//! Paths as trees.

use std::borrow::Cow;

use datafusion::error::{DataFusionError, Result};
use regex::Regex;

use super::DEPTH_MAX;
use crate::call::{failure, unsupported};
use crate::json_text::value::{Item, Json};

/// A path that was read.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(super) is_strict: bool,
    pub(super) expr: Expr,
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    /// A value, and steps from it.
    From(Box<Start>, Vec<Step>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Arithmetic(char, Box<Expr>, Box<Expr>),
    Compare(Compare, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Exists(Box<Expr>),
    IsUnknown(Box<Expr>),
    StartsWith(Box<Expr>, Box<Expr>),
    LikeRegex(Box<Expr>, Regex),
}

#[derive(Clone, Debug)]
pub(super) enum Start {
    Root,
    Current,
    Last,
    Variable(String),
    Value(Item<'static>),
    Nested(Expr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Key(String),
    AnyKey,
    /// Places of an array, each from the first to the second.
    Places(Vec<(Expr, Option<Expr>)>),
    AnyPlace,
    /// Members and elements of all levels from the first to the second; `None` is the last.
    Levels(Option<u32>, Option<u32>),
    Filter(Expr),
    Method(Method),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Type,
    Size,
    Double,
    Ceiling,
    Floor,
    Abs,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Mark(&'static str),
    Word(String),
    Text(String),
    Number(String),
    Variable(String),
    End,
}

const MARKS: [&str; 30] = [
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "<", ">", "!", "$", "@", ".", "[", "]", "(",
    ")", "{", "}", "*", "+", "-", "/", "%", "?", ",", "&", "|", "=",
];

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// It is none (42601), nested too deeply (54001), or has parts that are not supported (0A000).
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut parser =
            Parser { tokens: tokens(text)?, at: 0, depth: 0, in_filter: 0, in_places: 0 };
        let is_strict = parser.takes_word("strict");
        if !is_strict {
            parser.takes_word("lax");
        }
        if *parser.peek() == Token::End && parser.at == 0 {
            return Err(failure(
                "22P02",
                format!("invalid input syntax for type jsonpath: \"{text}\""),
            ));
        }
        let expr = parser.either()?;
        match parser.peek() {
            Token::End => Ok(Self { is_strict, expr }),
            _ => Err(parser.unexpected()),
        }
    }

    /// Whether what is not as the path wants it is an error.
    pub(crate) fn is_strict(&self) -> bool {
        self.is_strict
    }
}

impl Expr {
    pub(super) fn is_predicate(&self) -> bool {
        match self {
            Self::From(start, steps) => match start.as_ref() {
                Start::Nested(expr) => steps.is_empty() && expr.is_predicate(),
                _ => false,
            },
            Self::Negative(_) | Self::Positive(_) | Self::Arithmetic(..) => false,
            _ => true,
        }
    }
}

fn syntax(near: Option<&str>) -> DataFusionError {
    failure(
        "42601",
        match near {
            Some(near) => format!("syntax error at or near \"{near}\" of jsonpath input"),
            None => "syntax error at end of jsonpath input".to_owned(),
        },
    )
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let Some(first) = rest.chars().next() else { break };
        if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").ok_or_else(|| {
                failure("42601", "unexpected end of comment at end of jsonpath input")
            })?;
            rest = &comment[end + 2..];
            continue;
        }
        let is_decimal = first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit());
        // Behind a value, a point leads to a key.
        let is_number = first.is_ascii_digit() || is_decimal;
        let (token, length) = if first == '"' {
            let (text, length) = quoted(rest)?;
            (Token::Text(text), length)
        } else if is_number {
            let length = number_length(rest);
            if rest[length..].starts_with(is_letter) {
                let message = "trailing junk after numeric literal at or near \"";
                let end = length + rest[length..].chars().next().map_or(0, char::len_utf8);
                let near = &rest[..end];
                return Err(failure("42601", format!("{message}{near}\" of jsonpath input")));
            }
            (Token::Number(rest[..length].to_owned()), length)
        } else if first == '$' && rest[1..].starts_with('"') {
            let (name, length) = quoted(&rest[1..])?;
            (Token::Variable(name), length + 1)
        } else if first == '$' && rest[1..].starts_with(is_letter) {
            let length = 1 + word_length(&rest[1..]);
            (Token::Variable(rest[1..length].to_owned()), length)
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            (Token::Mark(mark), mark.len())
        } else if is_letter(first) {
            let length = word_length(rest);
            (Token::Word(rest[..length].to_owned()), length)
        } else {
            return Err(syntax(Some(&first.to_string())));
        };
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens.push(Token::End);
    Ok(tokens)
}

fn is_letter(letter: char) -> bool {
    !letter.is_whitespace() && !"?%$.[]{}()|&!=<>@#,*:-+/\\\"'".contains(letter)
}

fn word_length(text: &str) -> usize {
    text.find(|letter| !is_letter(letter)).unwrap_or(text.len())
}

fn number_length(text: &str) -> usize {
    let digits = |from: usize| {
        let rest = &text[from..];
        from + rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len())
    };
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

/// A text in quotes, and how long it is with them.
fn quoted(text: &str) -> Result<(String, usize)> {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !is_escaped => {
                let length = at + 1;
                let item = Item::parse(&text[..length]).map_err(|_| {
                    unsupported(
                        "this escape in a text of a jsonpath is not supported",
                        "use the escapes of JSON",
                    )
                })?;
                let Json::Text(read) = item.json else { return Err(syntax(Some("\""))) };
                return Ok((read.into_owned(), length));
            }
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    Err(failure("42601", "unterminated quoted string at end of jsonpath input"))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    in_filter: usize,
    in_places: usize,
}

type Parsed = Result<Expr>;

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn takes(&mut self, mark: &'static str) -> bool {
        let is_there = *self.peek() == Token::Mark(mark);
        self.at += usize::from(is_there);
        is_there
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_there = matches!(self.peek(), Token::Word(found) if found == word);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, mark: &'static str) -> Result<()> {
        if self.takes(mark) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> DataFusionError {
        match self.peek() {
            Token::Mark(mark) => syntax(Some(mark)),
            Token::Word(near) | Token::Text(near) | Token::Number(near) => syntax(Some(near)),
            Token::Variable(name) => syntax(Some(&format!("${name}"))),
            Token::End => syntax(None),
        }
    }

    fn predicate(&self, expr: Expr) -> Parsed {
        if expr.is_predicate() { Ok(expr) } else { Err(self.unexpected()) }
    }

    fn value(&self, expr: Expr) -> Parsed {
        match expr {
            Expr::From(..) => Ok(expr),
            expr if expr.is_predicate() => Err(self.unexpected()),
            expr => Ok(expr),
        }
    }

    fn either(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("jsonpath is nested more than {DEPTH_MAX} levels deep");
            return Err(failure("54001", message));
        }
        let mut left = self.both()?;
        while self.takes("||") {
            left = self.predicate(left)?;
            let right = self.both()?;
            left = Expr::Or(Box::new(left), Box::new(self.predicate(right)?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn both(&mut self) -> Parsed {
        let mut left = self.compared()?;
        while self.takes("&&") {
            left = self.predicate(left)?;
            let right = self.compared()?;
            left = Expr::And(Box::new(left), Box::new(self.predicate(right)?));
        }
        Ok(left)
    }

    fn compared(&mut self) -> Parsed {
        if self.takes("!") {
            let is_delimited = match self.peek() {
                Token::Mark("(") => true,
                Token::Word(word) => word == "exists",
                _ => false,
            };
            if !is_delimited {
                return Err(self.unexpected());
            }
            let inner = self.unary()?;
            return Ok(Expr::Not(Box::new(self.predicate(inner)?)));
        }
        let left = self.sum()?;
        let compare = match self.peek() {
            Token::Mark("==" | "=") => Compare::Equal,
            Token::Mark("!=" | "<>") => Compare::NotEqual,
            Token::Mark("<") => Compare::Less,
            Token::Mark("<=") => Compare::LessOrEqual,
            Token::Mark(">") => Compare::Greater,
            Token::Mark(">=") => Compare::GreaterOrEqual,
            Token::Word(word) if word == "starts" => {
                self.at += 1;
                if !self.takes_word("with") {
                    return Err(self.unexpected());
                }
                let start = match self.next() {
                    Token::Text(text) => Start::Value(text_item(text)),
                    Token::Variable(name) => Start::Variable(name),
                    _ => {
                        self.at -= 1;
                        return Err(self.unexpected());
                    }
                };
                let (left, start) = (Box::new(left), Expr::From(Box::new(start), Vec::new()));
                return Ok(Expr::StartsWith(left, Box::new(start)));
            }
            Token::Word(word) if word == "like_regex" => {
                self.at += 1;
                return self.like_regex(left);
            }
            _ => return Ok(left),
        };
        self.at += 1;
        let left = self.value(left)?;
        let right = self.sum()?;
        Ok(Expr::Compare(compare, Box::new(left), Box::new(self.value(right)?)))
    }

    fn like_regex(&mut self, left: Expr) -> Parsed {
        let Token::Text(pattern) = self.next() else {
            self.at -= 1;
            return Err(self.unexpected());
        };
        let mut flags = String::new();
        if self.takes_word("flag") {
            let Token::Text(given) = self.next() else {
                self.at -= 1;
                return Err(self.unexpected());
            };
            flags = given;
        }
        let regex = pattern_of(&pattern, &flags)?;
        Ok(Expr::LikeRegex(Box::new(left), regex))
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let sign = match self.peek() {
                Token::Mark("+") => '+',
                Token::Mark("-") => '-',
                _ => return Ok(left),
            };
            self.at += 1;
            left = self.value(left)?;
            let right = self.product()?;
            left = Expr::Arithmetic(sign, Box::new(left), Box::new(self.value(right)?));
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        loop {
            let sign = match self.peek() {
                Token::Mark("*") => '*',
                Token::Mark("/") => '/',
                Token::Mark("%") => '%',
                _ => return Ok(left),
            };
            self.at += 1;
            left = self.value(left)?;
            let right = self.unary()?;
            left = Expr::Arithmetic(sign, Box::new(left), Box::new(self.value(right)?));
        }
    }

    fn unary(&mut self) -> Parsed {
        let is_negative = self.takes("-");
        if is_negative || self.takes("+") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                let message = format!("jsonpath is nested more than {DEPTH_MAX} levels deep");
                return Err(failure("54001", message));
            }
            let inner = self.unary()?;
            self.depth -= 1;
            let inner = Box::new(self.value(inner)?);
            return Ok(if is_negative { Expr::Negative(inner) } else { Expr::Positive(inner) });
        }
        if matches!(self.peek(), Token::Word(word) if word == "exists")
            && self.tokens.get(self.at + 1) == Some(&Token::Mark("("))
        {
            self.at += 2;
            let inner = self.either()?;
            let inner = self.value(inner)?;
            self.expect(")")?;
            return Ok(Expr::Exists(Box::new(inner)));
        }
        let start = match self.next() {
            Token::Mark("$") => Start::Root,
            Token::Mark("@") if self.in_filter > 0 => Start::Current,
            Token::Mark("@") => {
                return Err(failure("42601", "@ is not allowed in root expressions"));
            }
            Token::Mark("(") => {
                let inner = self.either()?;
                self.expect(")")?;
                if inner.is_predicate() && self.takes_word("is") {
                    if !self.takes_word("unknown") {
                        return Err(self.unexpected());
                    }
                    return Ok(Expr::IsUnknown(Box::new(inner)));
                }
                Start::Nested(inner)
            }
            Token::Variable(name) => Start::Variable(name),
            Token::Text(text) => Start::Value(text_item(text)),
            Token::Number(digits) => {
                let mut written = String::new();
                let digits = match digits.strip_prefix('.') {
                    Some(_) => format!("0{digits}"),
                    None => digits.trim_end_matches('.').to_owned(),
                };
                crate::json_text::write::number(&digits, &mut written)?;
                Start::Value(Item::made(Json::Number(Cow::Owned(written))))
            }
            Token::Word(word) => match word.as_str() {
                "true" => Start::Value(Item::made(Json::Bool(true))),
                "false" => Start::Value(Item::made(Json::Bool(false))),
                "null" => Start::Value(Item::made(Json::Null)),
                "last" if self.in_places > 0 => Start::Last,
                "last" => {
                    let message = "LAST is allowed only in array subscripts";
                    return Err(failure("42601", message));
                }
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected());
                }
            },
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        };
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
        }
        Ok(match start {
            // Parentheses only.
            Start::Nested(inner) if steps.is_empty() => inner,
            start => Expr::From(Box::new(start), steps),
        })
    }

    fn step(&mut self) -> Result<Option<Step>> {
        if self.takes("[") {
            if self.takes("*") {
                self.expect("]")?;
                return Ok(Some(Step::AnyPlace));
            }
            self.in_places += 1;
            let mut places = Vec::new();
            loop {
                let first = self.sum()?;
                let first = self.value(first)?;
                let last = match self.takes_word("to") {
                    true => {
                        let last = self.sum()?;
                        Some(self.value(last)?)
                    }
                    false => None,
                };
                places.push((first, last));
                if !self.takes(",") {
                    break;
                }
            }
            self.in_places -= 1;
            self.expect("]")?;
            return Ok(Some(Step::Places(places)));
        }
        if self.takes("?") {
            self.expect("(")?;
            self.in_filter += 1;
            let inner = self.either()?;
            let inner = self.predicate(inner)?;
            self.in_filter -= 1;
            self.expect(")")?;
            return Ok(Some(Step::Filter(inner)));
        }
        // `.1` is read as a number where a key may follow.
        if !self.takes(".") {
            return Ok(None);
        }
        if self.takes("**") {
            if !self.takes("{") {
                return Ok(Some(Step::Levels(Some(0), None)));
            }
            let first = self.level()?;
            let last = if self.takes_word("to") { self.level()? } else { first };
            self.expect("}")?;
            return Ok(Some(Step::Levels(first, last)));
        }
        if self.takes("*") {
            return Ok(Some(Step::AnyKey));
        }
        match self.next() {
            Token::Text(key) => Ok(Some(Step::Key(key))),
            Token::Word(word) if *self.peek() == Token::Mark("(") => {
                self.method(&word).map(|method| Some(Step::Method(method)))
            }
            Token::Word(word) => Ok(Some(Step::Key(word))),
            _ => {
                self.at -= 1;
                Err(self.unexpected())
            }
        }
    }

    fn method(&mut self, word: &str) -> Result<Method> {
        let method = match word {
            "type" => Method::Type,
            "size" => Method::Size,
            "double" => Method::Double,
            "ceiling" => Method::Ceiling,
            "floor" => Method::Floor,
            "abs" => Method::Abs,
            "keyvalue" | "datetime" => {
                return Err(unsupported(
                    format!("the method {word}() of a jsonpath is not supported"),
                    "use jsonb_each, or a cast of the text",
                ));
            }
            _ => return Err(self.unexpected()),
        };
        self.expect("(")?;
        self.expect(")")?;
        Ok(method)
    }

    /// `None` is the last.
    fn level(&mut self) -> Result<Option<u32>> {
        if self.takes_word("last") {
            return Ok(None);
        }
        match self.next() {
            Token::Number(digits) => {
                let out_of_range = |_| {
                    failure("22003", format!("value \"{digits}\" is out of range for type integer"))
                };
                digits.parse().map(Some).map_err(out_of_range)
            }
            _ => {
                self.at -= 1;
                Err(self.unexpected())
            }
        }
    }
}

fn text_item(text: String) -> Item<'static> {
    Item::made(Json::Text(Cow::Owned(text)))
}

/// The pattern of `like_regex`, with flags of XQuery.
fn pattern_of(pattern: &str, flags: &str) -> Result<Regex> {
    if let Some(other) = flags.chars().find(|flag| !"isqmx".contains(*flag)) {
        let message = format!(
            "invalid input syntax for type jsonpath: unrecognized flag character \"{other}\" in LIKE_REGEX predicate"
        );
        return Err(failure("42601", message));
    }
    let has = |flag: char| flags.contains(flag);
    if has('x') && !has('q') {
        let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
        return Err(unsupported(message, "write the pattern without blanks"));
    }
    let mut own = String::new();
    if has('i') {
        own.push('i');
    }
    own.push_str(match (has('q'), has('s'), has('m')) {
        (true, ..) => "q",
        // A point matches ends of lines with `s` only, `^` and `$` match at lines with `m` only.
        (_, true, false) => "s",
        (_, false, true) => "n",
        (_, true, true) => "w",
        (_, false, false) => "p",
    });
    crate::regexes::compiled(pattern, &own)
}
