//! `substring(text SIMILAR pattern ESCAPE c)`: what of a text the middle of a pattern matches.
//!
//! Two separators, the escape character and a double quote each, divide the pattern: `%#"o_a#"_`. The text has to match
//! the three parts one after the other, the first as little of it as possible, the second as much.

use std::cell::RefCell;

use arrow::array::ArrayRef;
use datafusion::error::{DataFusionError, Result};
use regex::{Regex, RegexBuilder};

use super::call::{failure, unsupported};
use super::declared::{Declared, Row, Type};
use super::regexes;
use super::similar::regex_of;
use Type::Text;

pub(super) const FUNCTIONS: &[Declared] = &[Declared {
    name: "similar_substring",
    called: "substring",
    takes: &[Text, Text, Text],
    needed: 3,
    makes: Text,
    json: None,
    compute: substring,
}];

/// Letters of a text that is divided: each place is tried.
const LETTERS_MAX: usize = 4096;

fn substring(row: &Row<'_>) -> Result<ArrayRef> {
    // Mostly, the pattern is that of the row before.
    let last: RefCell<Option<(String, String, Parts)>> = RefCell::new(None);
    row.each_text(|at| {
        let (Some(text), Some(pattern), Some(escape)) =
            (row.text(0, at), row.text(1, at), row.text(2, at))
        else {
            return Ok(None);
        };
        let mut last = last.borrow_mut();
        let (_, _, parts) = match last.take() {
            Some(same) if same.0 == pattern && same.1 == escape => last.insert(same),
            _ => {
                let parts = Parts::of(pattern, escape)?;
                last.insert((pattern.to_owned(), escape.to_owned(), parts))
            }
        };
        Ok(parts.middle_of(text)?.map(str::to_owned))
    })
}

struct Parts {
    before: Option<Regex>,
    middle: Regex,
    behind: Option<Regex>,
    /// What follows the first part: the second, and the third.
    rest: Regex,
}

impl Parts {
    fn of(pattern: &str, escape: &str) -> Result<Self> {
        let mut letters = escape.chars();
        let escape = match (letters.next(), letters.next()) {
            (escape, None) => escape,
            _ => return Err(failure("22025", "invalid escape string")),
        };
        let texts = divided(pattern, escape)?;
        // A text has no such letter: nothing is escaped.
        let escape = Some(escape.unwrap_or('\0'));
        let texts = texts.iter().map(|text| regex_of(text, escape));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let (before, middle, behind) = match texts.as_slice() {
            [all] => (None, all, None),
            [before, middle] => (Some(before), middle, None),
            [before, middle, behind, ..] => (Some(before), middle, Some(behind)),
            [] => return Err(DataFusionError::Internal("a pattern without parts".to_owned())),
        };
        let rest = match behind {
            Some(behind) => format!("{START}{}{}{END}", within(middle), within(behind)),
            None => middle.clone(),
        };
        let compiled = |text: &String| regexes::built(&mut RegexBuilder::new(text));
        Ok(Self {
            before: before.map(compiled).transpose()?,
            middle: compiled(middle)?,
            behind: behind.map(compiled).transpose()?,
            rest: compiled(&rest)?,
        })
    }

    fn middle_of<'a>(&self, text: &'a str) -> Result<Option<&'a str>> {
        let Some(before) = &self.before else {
            return Ok(self.middle.is_match(text).then_some(text));
        };
        if text.len() > LETTERS_MAX {
            let message =
                format!("substring(… SIMILAR …) of more than {LETTERS_MAX} bytes is not supported");
            return Err(unsupported(message, "use substring(text FROM pattern)"));
        }
        let places = || text.char_indices().map(|(place, _)| place).chain([text.len()]);
        let first = places().find(|place| {
            let (head, tail) = text.split_at(*place);
            self.rest.is_match(tail) && before.is_match(head)
        });
        let Some(tail) = first.and_then(|first| text.get(first..)) else { return Ok(None) };
        let Some(behind) = &self.behind else { return Ok(Some(tail)) };
        let ends: Vec<usize> =
            tail.char_indices().map(|(place, _)| place).chain([tail.len()]).collect();
        let last = ends
            .into_iter()
            .rev()
            .map(|place| tail.split_at(place))
            .find(|(middle, end)| self.middle.is_match(middle) && behind.is_match(end));
        Ok(last.map(|(middle, _)| middle))
    }
}

/// What [`regex_of`] has around a pattern.
const START: &str = "(?s)^";
const END: &str = "$";

fn within(regex: &str) -> &str {
    let inner = regex.strip_prefix(START).and_then(|inner| inner.strip_suffix(END));
    inner.unwrap_or(regex)
}

/// The parts between separators, at most three.
fn divided(pattern: &str, escape: Option<char>) -> Result<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut within_class = false;
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let is_escaped = escape == Some(letter);
        let next = if is_escaped { letters.next() } else { None };
        if next == Some('"') && !within_class {
            if parts.len() == 3 {
                let message = "SQL regular expression may not contain more than two escape-double-quote separators";
                return Err(failure("2200C", message));
            }
            parts.push(String::new());
            continue;
        }
        match letter {
            '[' if !is_escaped => within_class = true,
            ']' if !is_escaped => within_class = false,
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
            part.extend(next);
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_pattern_is_found() {
        let check = |text: &str, pattern: &str, expected: Option<&str>| {
            let parts = Parts::of(pattern, "#").unwrap();
            assert_eq!(parts.middle_of(text).unwrap(), expected, "{text} {pattern}");
        };
        check("Thomas", "%#\"o_a#\"_", Some("oma"));
        check("abcdefg", "a#\"%#\"g", Some("bcdef"));
        check("abcdefg", "#\"(b_d)#\"%", None);
        check("aaa", "%#\"a%#\"a", Some("aa"));
        check("abc", "a%", Some("abc"));
        check("abc", "a#\"%", Some("bc"));
        check("xabx", "%#\"(a|ab)#\"%", Some("ab"));
        assert!(Parts::of("#\"#\"#\"", "#").is_err());
        assert!(Parts::of("a", "##").is_err());
    }
}
