//! JSON texts as trees.
//!
//! In: a text from anywhere. Out: a tree whose numbers are parts of the text, or 22P02. **Invariants:**
//! recursion is bounded by [`DEPTH_MAX`]; nothing is allocated that is not proportional to the text.
//!
//! Source: RFC 8259, and PostgreSQL's `jsonapi.c` for what is an error.

use std::borrow::Cow;

use datafusion::error::{DataFusionError, Result};

use crate::call::failure;

/// Arrays and objects within each other, at most.
pub(crate) const DEPTH_MAX: usize = 400;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    Array(Vec<Item<'a>>),
    /// Members in the order of the text; of `jsonb`, in its order.
    Object(Vec<(Cow<'a, str>, Item<'a>)>),
}

/// A value, and the text that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item<'a> {
    /// Without blanks around it; of a value that was made, empty.
    pub(crate) raw: &'a str,
    pub(crate) json: Json<'a>,
}

impl<'a> Item<'a> {
    pub(crate) fn made(json: Json<'a>) -> Self {
        Self { raw: "", json }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// It is no JSON (22P02), nested too deeply (54001), or has strings that cannot be texts (22P05).
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let item = reader.item(0)?;
        reader.blanks();
        if reader.at < text.len() {
            return Err(reader.invalid());
        }
        Ok(item)
    }

    /// The name of its type, as `json_typeof` says it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.json {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::Text(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// The value of a key of an object; of equal keys, the last.
    pub(crate) fn member(&self, key: &str) -> Option<&Item<'a>> {
        match &self.json {
            Json::Object(members) => {
                members.iter().rev().find(|(name, _)| name == key).map(|(_, item)| item)
            }
            _ => None,
        }
    }

    /// The element at a place of an array, from its end if the place is negative.
    pub(crate) fn element(&self, place: i64) -> Option<&Item<'a>> {
        match &self.json {
            Json::Array(items) => items.get(place_in(items.len(), place)?),
            _ => None,
        }
    }
}

/// A place counted from the end if it is negative, within `length`.
pub(crate) fn place_in(length: usize, place: i64) -> Option<usize> {
    let place = match place {
        0.. => place,
        _ => place.checked_add(i64::try_from(length).ok()?)?,
    };
    usize::try_from(place).ok().filter(|place| *place < length)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn invalid(&self) -> DataFusionError {
        failure("22P02", "invalid input syntax for type json")
    }

    fn item(&mut self, depth: usize) -> Result<Item<'a>> {
        if depth > DEPTH_MAX {
            let message = format!("JSON is nested more than {DEPTH_MAX} levels deep");
            return Err(failure("54001", message));
        }
        self.blanks();
        let start = self.at;
        let json = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Json::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Json::Number(Cow::Borrowed(self.number()?)),
            _ => self.word()?,
        };
        Ok(Item { raw: &self.text[start..self.at], json })
    }

    fn word(&mut self) -> Result<Json<'a>> {
        let rest = &self.text[self.at..];
        for (word, json) in
            [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
        {
            let follows = rest.as_bytes().get(word.len()).copied();
            let is_end = follows.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
            if rest.starts_with(word) && is_end {
                self.at += word.len();
                return Ok(json);
            }
        }
        Err(self.invalid())
    }

    fn number(&mut self) -> Result<&'a str> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.peek();
        let digits = self.digits();
        if digits == 0 || digits > 1 && first == Some(b'0') {
            return Err(self.invalid());
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.invalid());
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.invalid());
            }
        }
        if self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(self.invalid());
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        // Behind the quote.
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let text = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => break,
                Some(byte) if byte >= 0x20 => self.at += 1,
                _ => return Err(self.invalid()),
            }
        }
        let mut text = self.text[start..self.at].to_owned();
        loop {
            let plain = self.at;
            while self.peek().is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            text.push_str(&self.text[plain..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.invalid()),
            }
        }
    }

    /// A character behind a backslash.
    fn escape(&mut self) -> Result<char> {
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.unit()?;
                let code = match first {
                    0xD800..=0xDBFF => {
                        if !self.text[self.at..].starts_with("\\u") {
                            return Err(self.invalid());
                        }
                        self.at += 2;
                        match self.unit()? {
                            second @ 0xDC00..=0xDFFF => {
                                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                            }
                            _ => return Err(self.invalid()),
                        }
                    }
                    0 => {
                        return Err(failure("22P05", "unsupported Unicode escape sequence"));
                    }
                    other => other,
                };
                char::from_u32(code).ok_or_else(|| self.invalid())?
            }
            _ => return Err(self.invalid()),
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Result<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.invalid())?;
        self.at += 4;
        Ok(unit)
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.item(depth + 1)?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                _ => return Err(self.invalid()),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>> {
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.invalid());
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.invalid());
            }
            self.at += 1;
            members.push((key, self.item(depth + 1)?));
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Object(members));
                }
                _ => return Err(self.invalid()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\"}",
            "{a:1}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "nul",
            "truex",
            "\"a",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\u12\"",
            "[1] 2",
            "'a'",
            "-",
            "NaN",
            "[1 2]",
            "\\",
            "\"\\u00é0\"",
        ] {
            assert!(Item::parse(text).is_err(), "{text}");
        }
        for text in
            ["0", "-0.5e+3", "\"\\ud83d\\ude00\"", " [ ] ", "{\"a\":{}}", "true ", "\"\"", "1E5"]
        {
            assert!(Item::parse(text).is_ok(), "{text}");
        }
        let deep = "[".repeat(1_000_000);
        let error = Item::parse(&deep).unwrap_err().to_string();
        assert!(error.contains("levels deep"), "{error}");
        let deepest = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
        assert!(Item::parse(&deepest).is_ok());
    }

    #[test]
    fn places_count_from_either_end() {
        for (place, found) in [(0, Some(0)), (2, Some(2)), (3, None), (-1, Some(2)), (-4, None)] {
            assert_eq!(place_in(3, place), found);
        }
        assert_eq!(place_in(0, i64::MIN), None);
    }
}
