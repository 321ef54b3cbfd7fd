//! Tokens of HiveQL, as the parser takes them.
//!
//! - Literals in single and double quotes are strings, with backslashes as escapes; adjacent ones are one.
//! - Names in backquotes, and words, are in lower case: Hive's names have no case.
//! - `3L`, `1S`, `1Y`, `1.5BD`, `1.5D` are casts of numbers; `==` is `=`.
//! - The database `default` is the schema `public`.
//!
//! **Invariant:** each token knows where it begins in the text.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};
use stoa_error::{Error, Result};

/// What Stoa calls the database that Hive calls `default`.
pub(crate) const DEFAULT_NAMESPACE: &str = "public";
/// Hive's name of the database that a session begins in.
pub const DEFAULT_DATABASE: &str = "default";

/// The tokens of a text.
///
/// # Errors
/// 42601: a quote or a comment has no end, or a character begins no token.
pub(crate) fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let mut lexer = Lexer { sql, at: 0, line: 1, column: 1, tokens: Vec::new() };
    while let Some(char) = lexer.peek() {
        lexer.token(char)?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    sql: &'a str,
    at: usize,
    line: u64,
    column: u64,
    tokens: Vec<TokenWithSpan>,
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<char> {
        self.sql[self.at..].chars().next()
    }

    fn rest(&self) -> &'a str {
        &self.sql[self.at..]
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let taken = &self.sql[self.at..self.at + bytes];
        for char in taken.chars() {
            match char {
                '\n' => (self.line, self.column) = (self.line + 1, 1),
                _ => self.column += 1,
            }
        }
        self.at += bytes;
        taken
    }

    fn skip_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.skip(length)
    }

    fn here(&self) -> Location {
        Location { line: self.line, column: self.column }
    }

    fn push(&mut self, token: Token, start: Location) {
        self.tokens.push(TokenWithSpan { token, span: Span { start, end: self.here() } });
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::invalid(what)
            .with_sqlstate("42601")
            .with_position(self.sql[..self.at].chars().count() + 1)
    }

    fn token(&mut self, char: char) -> Result<()> {
        let start = self.here();
        match char {
            char if char.is_whitespace() => {
                self.skip_while(char::is_whitespace);
            }
            '-' if self.rest().starts_with("--") => {
                self.skip_while(|char| char != '\n');
            }
            '/' if self.rest().starts_with("/*") => self.comment()?,
            '\'' | '"' => self.string(char, start)?,
            '`' => self.quoted(start)?,
            digit if digit.is_ascii_digit() => self.number(start),
            '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit())
                && !self.follows_name() =>
            {
                self.number(start);
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let word = self.skip_while(|c| c.is_alphanumeric() || c == '_');
                self.word(word, start);
            }
            '$' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.skip(1);
                let number = self.skip_while(|c| c.is_ascii_digit());
                self.push(Token::Placeholder(format!("${number}")), start);
            }
            _ => self.operator(start)?,
        }
        Ok(())
    }

    /// Whether a point here belongs to the name before it: `t.1`.
    fn follows_name(&self) -> bool {
        matches!(self.tokens.last(), Some(TokenWithSpan { token: Token::Word(_), .. }))
    }

    fn comment(&mut self) -> Result<()> {
        // Hints are comments.
        match self.rest().find("*/") {
            Some(end) => {
                self.skip(end + 2);
                Ok(())
            }
            None => Err(self.wrong("a comment has no end")),
        }
    }

    fn string(&mut self, quote: char, start: Location) -> Result<()> {
        let begin = self.wrong("a string literal has no end");
        self.skip(1);
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let mut chars = rest.chars();
            match chars.next() {
                None => return Err(begin),
                Some('\\') => {
                    let char = unescaped(&mut chars, &mut text);
                    text.extend(char);
                    self.skip(rest.len() - chars.as_str().len());
                }
                Some(char) => {
                    self.skip(char.len_utf8());
                    if char == quote {
                        break;
                    }
                    text.push(char);
                }
            }
        }
        // Strings that follow each other are one.
        if let Some(TokenWithSpan { token: Token::SingleQuotedString(before), .. }) =
            self.tokens.last_mut()
        {
            before.push_str(&text);
            return Ok(());
        }
        self.push(Token::SingleQuotedString(text), start);
        Ok(())
    }

    fn quoted(&mut self, start: Location) -> Result<()> {
        let begin = self.wrong("a name in backquotes has no end");
        self.skip(1);
        let mut name = String::new();
        loop {
            let part = self.skip_while(|char| char != '`');
            name.push_str(part);
            if self.rest().is_empty() {
                return Err(begin);
            }
            self.skip(1);
            if !self.rest().starts_with('`') {
                break;
            }
            name.push('`');
            self.skip(1);
        }
        let name = self.namespace(name.to_lowercase());
        let word = Word { value: name, quote_style: Some('"'), keyword: Keyword::NoKeyword };
        self.push(Token::Word(word), start);
        Ok(())
    }

    fn namespace(&self, name: String) -> String {
        let is_database = name == DEFAULT_DATABASE && self.rest().trim_start().starts_with('.');
        if is_database { DEFAULT_NAMESPACE.to_owned() } else { name }
    }

    fn word(&mut self, word: &str, start: Location) {
        let name = self.namespace(word.to_lowercase());
        self.push(Token::make_word(&name, None), start);
    }

    fn number(&mut self, start: Location) {
        let begin = self.at;
        self.skip_while(|c| c.is_ascii_digit());
        let is_point = self.rest().starts_with('.') && !self.rest().starts_with("..");
        if is_point {
            self.skip(1);
            self.skip_while(|c| c.is_ascii_digit());
        }
        let mut exponent = self.rest().chars();
        if matches!(exponent.next(), Some('e' | 'E')) {
            let behind = exponent.as_str();
            let unsigned = behind.strip_prefix(['+', '-']).unwrap_or(behind);
            if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
                self.skip(1 + behind.len() - unsigned.len());
                self.skip_while(|c| c.is_ascii_digit());
            }
        }
        let digits = self.sql[begin..self.at].to_owned();
        let suffix = self.skip_while(|c| c.is_alphanumeric() || c == '_');
        let of = match suffix.to_ascii_uppercase().as_str() {
            "" => return self.push(Token::Number(digits, false), start),
            "L" => "bigint",
            "S" => "smallint",
            "Y" => "tinyint",
            "D" => "double",
            "BD" => "decimal",
            _ => {
                // Names may begin with digits.
                let word = format!("{digits}{suffix}");
                return self.push(quoted_word(word.to_lowercase()), start);
            }
        };
        let number = Token::Number(digits.clone(), false);
        if of == "decimal" {
            return self.push(number, start);
        }
        for token in [
            Token::make_word("cast", None),
            Token::LParen,
            number,
            Token::make_word("as", None),
            Token::make_word(of, None),
            Token::RParen,
        ] {
            self.push(token, start);
        }
    }

    fn operator(&mut self, start: Location) -> Result<()> {
        const OPERATORS: &[(&str, Token)] = &[
            ("<=>", Token::Spaceship),
            ("==", Token::Eq),
            ("<>", Token::Neq),
            ("!=", Token::Neq),
            ("<=", Token::LtEq),
            (">=", Token::GtEq),
            ("||", Token::StringConcat),
            ("=", Token::Eq),
            ("<", Token::Lt),
            (">", Token::Gt),
            ("!", Token::ExclamationMark),
            ("+", Token::Plus),
            ("-", Token::Minus),
            ("*", Token::Mul),
            ("/", Token::Div),
            ("%", Token::Mod),
            ("&", Token::Ampersand),
            ("|", Token::Pipe),
            ("^", Token::Caret),
            ("~", Token::Tilde),
            ("(", Token::LParen),
            (")", Token::RParen),
            ("[", Token::LBracket),
            ("]", Token::RBracket),
            ("{", Token::LBrace),
            ("}", Token::RBrace),
            (",", Token::Comma),
            (".", Token::Period),
            (":", Token::Colon),
            (";", Token::SemiColon),
        ];
        let rest = self.rest();
        if let Some((text, token)) = OPERATORS.iter().find(|(text, _)| rest.starts_with(text)) {
            self.skip(text.len());
            self.push(token.clone(), start);
            return Ok(());
        }
        let char = self.peek().unwrap_or(' ');
        Err(self.wrong(format!("syntax error at or near \"{char}\"")).with_hint(match char {
            '$' => "variables are written ${hiveconf:name}; SET name=value sets one",
            '?' => "parameters are filled in by the driver",
            _ => "quote it, if it is part of a name or a string",
        }))
    }
}

/// A name as it is.
pub(crate) fn quoted_word(value: String) -> Token {
    Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

/// What a backslash and the characters behind it mean (Hive's `BaseSemanticAnalyzer.unescapeSQLString`). `%` and `_`
/// keep their backslash, for LIKE.
fn unescaped(chars: &mut std::str::Chars<'_>, text: &mut String) -> Option<char> {
    let behind = chars.as_str();
    let coded = |digits: Option<&str>, radix: u32| -> Option<char> {
        let digits = digits.filter(|digits| digits.chars().all(|c| c.is_digit(radix)))?;
        char::from_u32(u32::from_str_radix(digits, radix).ok()?)
    };
    if let Some(char) = behind.strip_prefix('u').and_then(|hex| coded(hex.get(..4), 16)) {
        chars.nth(4);
        return Some(char);
    }
    if behind.starts_with(['0', '1'])
        && let Some(char) = coded(behind.get(..3), 8)
    {
        chars.nth(2);
        return Some(char);
    }
    let char = chars.next()?;
    Some(match char {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'Z' => '\u{1a}',
        '0' => '\0',
        '%' | '_' => {
            text.push('\\');
            char
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, expected: &str) {
        let shown: Vec<String> =
            tokens(sql).unwrap().iter().map(|token| token.token.to_string()).collect();
        assert_eq!(shown.join(" "), expected, "{sql}");
    }

    #[test]
    fn strings() {
        check(r"'it\'s'", "'it's'");
        check(r#""x""#, "'x'");
        check(r#""it's""#, "'it's'");
        check("'a' 'b'", "'ab'");
        check("'it''s'", "'its'");
        check(r"'\u00e4\101\n\%\\'", "'äA\n\\%\\'");
    }

    #[test]
    fn names_and_numbers() {
        check("SELECT `A``b`, X.Y", "select \"a`b\" , x . y");
        check(
            "3L 1.5BD 1Y 2024_sales 1e3 .5 1.",
            "cast ( 3 as bigint ) 1.5 cast ( 1 as tinyint ) \"2024_sales\" 1e3 .5 1.",
        );
        check("default.t `default`.t 'default.'", "public . t \"public\" . t 'default.'");
        check("a==b <=> c -- d\n/*+ hint */ e", "a = b <=> c e");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        for sql in ["'a", "\"a", "`a", "/* a", r"'a\'", "${x}", "?"] {
            assert_eq!(tokens(sql).unwrap_err().sqlstate(), "42601", "{sql}");
        }
    }
}
