//! Regular expressions in functions: `regexp_match` and its relatives.
//!
//! PostgreSQL's classes and escapes are those of the `regex` crate but for a few names; of alternatives, the crate takes
//! the first that matches where PostgreSQL takes the longest. Back references and look-around are refused (0A000).

use std::cell::RefCell;

use arrow::array::{ArrayRef, BooleanArray, Int32Array};
#[cfg(test)]
use datafusion::error::DataFusionError;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Operator, lit, not};
use regex::{Captures, Match, Regex, RegexBuilder};

use super::call::{call, failure, unsupported};
use super::declared::{Call, Declared, Row, Type, invalid_parameter};
use super::made_texts::{VALUE_BYTES_MAX, too_large};
use Type::{Boolean, Groups, Integer, Text, Texts};

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 2 << 20;

const fn declared(
    name: &'static str,
    takes: &'static [Type],
    needed: usize,
    makes: Type,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called: name, takes, needed, makes, json: None, compute }
}

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("regexp_count", &[Text, Text, Integer, Text], 2, Integer, count),
    declared(
        "regexp_instr",
        &[Text, Text, Integer, Integer, Integer, Text, Integer],
        2,
        Integer,
        place,
    ),
    declared("regexp_like", &[Text, Text, Text], 2, Boolean, like),
    declared("regexp_match", &[Text, Text, Text], 2, Texts, first_match),
    Declared {
        called: "regexp_matches",
        ..declared("regexp_groups", &[Text, Text, Text], 2, Groups, matches)
    },
    declared("regexp_replace", &[Text, Text, Text, Text], 3, Text, replace),
    declared("regexp_replace", &[Text, Text, Text, Integer, Integer, Text], 4, Text, replace_nth),
    declared("regexp_split_to_array", &[Text, Text, Text], 2, Texts, split),
    declared("regexp_substr", &[Text, Text, Integer, Integer, Text, Integer], 2, Text, substring),
    declared("regexp_substring", &[Text, Text], 2, Text, substring_group),
];

/// `text ~ pattern` with a pattern that the engine takes otherwise: points that are to match ends of lines, escapes and
/// classes under other names.
pub(super) fn operator(text: &Expr, op: Operator, pattern: &Expr) -> Option<Expr> {
    let (is_negated, flags) = match op {
        Operator::RegexMatch => (false, ""),
        Operator::RegexIMatch => (false, "i"),
        Operator::RegexNotMatch => (true, ""),
        Operator::RegexNotIMatch => (true, "i"),
        _ => return None,
    };
    let Expr::Literal(value, _) = pattern else { return None };
    let written = value.try_as_str().flatten()?;
    // What SIMILAR TO became is the engine's already.
    let is_same = written.starts_with("(?s)") || !written.contains(['.', '\\', '[']);
    if is_same {
        return None;
    }
    let like = super::declared::named("regexp_like")?;
    let args = vec![text.clone(), pattern.clone(), lit(flags)];
    let found = call(Call(like), args);
    Some(if is_negated { not(found) } else { found })
}

/// The pattern of the row before, compiled: mostly it is a constant.
#[derive(Default)]
struct Patterns(RefCell<Option<(String, String, Regex)>>);

impl Patterns {
    /// The pattern with flags, of which `g` is the caller's.
    fn with<T>(
        &self,
        pattern: &str,
        flags: &str,
        of: impl FnOnce(&Regex) -> Result<T>,
    ) -> Result<T> {
        let mut last = self.0.borrow_mut();
        match last.as_ref() {
            Some((known, own, regex)) if known == pattern && own == flags => of(regex),
            _ => {
                let regex = compiled(pattern, flags)?;
                let result = of(&regex);
                *last = Some((pattern.to_owned(), flags.to_owned(), regex));
                result
            }
        }
    }
}

pub(super) fn compiled(pattern: &str, flags: &str) -> Result<Regex> {
    let (mut insensitive, mut lines, mut dot_all, mut extended) = (false, false, true, false);
    let mut literal = false;
    for flag in flags.chars() {
        match flag {
            'g' | 't' | 'e' => {}
            'i' => insensitive = true,
            'c' => insensitive = false,
            'm' | 'n' => (lines, dot_all) = (true, false),
            'p' => (lines, dot_all) = (false, false),
            'w' => (lines, dot_all) = (true, true),
            's' => (lines, dot_all) = (false, true),
            'x' => extended = true,
            'q' => literal = true,
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(failure("22023", message));
            }
        }
    }
    let written = if literal { regex::escape(pattern) } else { translated(pattern)? };
    let mut builder = RegexBuilder::new(&written);
    builder
        .case_insensitive(insensitive)
        .multi_line(lines)
        .dot_matches_new_line(dot_all)
        .ignore_whitespace(extended);
    built(&mut builder)
}

/// A regular expression of the crate's, within the bounds of memory.
pub(super) fn built(builder: &mut RegexBuilder) -> Result<Regex> {
    builder.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build().map_err(
        |error| match error {
            regex::Error::CompiledTooBig(_) => {
                failure("54000", "the regular expression is too large")
            }
            _ => failure("2201B", "invalid regular expression"),
        },
    )
}

/// PostgreSQL's escapes under the names that the crate has for them.
fn translated(pattern: &str) -> Result<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars().peekable();
    // Within brackets, escapes that stand for places do not exist.
    let mut is_in_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let Some(escaped) = letters.next() else {
                    return Err(failure(
                        "2201B",
                        "invalid regular expression: invalid escape \\ sequence",
                    ));
                };
                match escaped {
                    'y' if !is_in_class => out.push_str("\\b"),
                    'Y' if !is_in_class => out.push_str("\\B"),
                    'm' if !is_in_class => out.push_str("\\b{start}"),
                    'M' if !is_in_class => out.push_str("\\b{end}"),
                    'Z' if !is_in_class => out.push_str("\\z"),
                    'b' => out.push_str("\\x08"),
                    'e' => out.push_str("\\x1B"),
                    'B' => out.push_str("\\\\"),
                    '1'..='9' => {
                        return Err(unsupported(
                            "back references in regular expressions are not supported",
                            "compare the groups of regexp_match",
                        ));
                    }
                    letter if letter.is_ascii_alphanumeric() => {
                        out.push('\\');
                        out.push(letter);
                    }
                    other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
                }
            }
            '[' if !is_in_class => {
                is_in_class = true;
                out.push('[');
                if letters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if letters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            '[' => match letters.peek() {
                // A class with a name, such as [:alpha:].
                Some(':') => {
                    out.push('[');
                    for letter in letters.by_ref() {
                        out.push(letter);
                        if letter == ']' {
                            break;
                        }
                    }
                }
                Some('.' | '=') => {
                    return Err(unsupported(
                        "collating elements in regular expressions are not supported",
                        "write the characters themselves",
                    ));
                }
                _ => out.push_str("\\["),
            },
            ']' if is_in_class => {
                is_in_class = false;
                out.push(']');
            }
            '&' | '~' if is_in_class => {
                out.push('\\');
                out.push(letter);
            }
            '(' if !is_in_class && letters.peek() == Some(&'?') => {
                letters.next();
                match letters.peek() {
                    Some(':') => out.push_str("(?"),
                    _ => {
                        return Err(unsupported(
                            "look-around in regular expressions is not supported",
                            "match a longer part, and take a group of it",
                        ));
                    }
                }
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

fn flags<'a>(row: &'a Row<'_>, operand: usize, at: usize) -> &'a str {
    row.text(operand, at).unwrap_or("")
}

/// Refuses `g` where one match is wanted.
fn not_global(flags: &str, function: &str, instead: &'static str) -> Result<()> {
    if !flags.contains('g') {
        return Ok(());
    }
    let message = format!("{function} does not support the \"global\" option");
    Err(super::refused::refusal("22023", message, instead))
}

/// The place in bytes where the character `start`, from 1, begins; behind the text, `None`.
fn start_of(text: &str, start: i64) -> Result<Option<usize>> {
    if start < 1 {
        return Err(invalid_parameter("start", start));
    }
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    if skipped == 0 {
        return Ok(Some(0));
    }
    let places = text.char_indices().map(|(place, _)| place).chain([text.len()]);
    Ok(places.skip(skipped).step_by(1).next())
}

/// The matches behind the character `start`. An empty one at the end of another one counts, as PostgreSQL has it.
fn found<'r, 't>(
    regex: &'r Regex,
    text: &'t str,
    start: i64,
) -> Result<impl Iterator<Item = Captures<'t>> + use<'r, 't>> {
    let start = start_of(text, start)?;
    let mut next = start;
    Ok(std::iter::from_fn(move || {
        let from = next?;
        let captures = regex.captures_at(text, from)?;
        let whole = captures.get(0)?;
        next = match whole.is_empty() {
            false => Some(whole.end()),
            true => text[whole.end()..].chars().next().map(|c| whole.end() + c.len_utf8()),
        };
        Some(captures)
    }))
}

fn count(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each::<i32, Int32Array>(|at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let flags = flags(row, 3, at);
        not_global(flags, "regexp_count()", "It counts all matches.")?;
        let start = row.integer(2, at).unwrap_or(1);
        patterns.with(pattern, flags, |regex| {
            Ok(i32::try_from(found(regex, text, start)?.count()).ok())
        })
    })
}

/// The match of a number, from 1, and of it the group.
fn nth<'t>(
    regex: &Regex,
    text: &'t str,
    (start, number, group): (i64, i64, i64),
) -> Result<Option<Match<'t>>> {
    if number < 1 {
        return Err(invalid_parameter("n", number));
    }
    if group < 0 {
        return Err(invalid_parameter("subexpr", group));
    }
    let (Ok(skipped), Ok(group)) = (usize::try_from(number - 1), usize::try_from(group)) else {
        return Ok(None);
    };
    Ok(found(regex, text, start)?.nth(skipped).and_then(|captures| captures.get(group)))
}

fn place(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each::<i32, Int32Array>(|at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let integer = |operand, other| row.integer(operand, at).unwrap_or(other);
        let end = integer(4, 0);
        if !(0..=1).contains(&end) {
            return Err(invalid_parameter("endoption", end));
        }
        let flags = flags(row, 5, at);
        not_global(flags, "regexp_instr()", "It finds one match.")?;
        let wanted = (integer(2, 1), integer(3, 1), integer(6, 0));
        patterns.with(pattern, flags, |regex| {
            let Some(found) = nth(regex, text, wanted)? else { return Ok(Some(0)) };
            let place = if end == 1 { found.end() } else { found.start() };
            Ok(i32::try_from(text[..place].chars().count() + 1).ok())
        })
    })
}

fn substring(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each_text(|at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let integer = |operand, other| row.integer(operand, at).unwrap_or(other);
        let flags = flags(row, 4, at);
        not_global(flags, "regexp_substr()", "It finds one match.")?;
        let wanted = (integer(2, 1), integer(3, 1), integer(5, 0));
        patterns.with(pattern, flags, |regex| {
            Ok(nth(regex, text, wanted)?.map(|found| found.as_str().to_owned()))
        })
    })
}

/// `substring(text FROM pattern)`: the first group, or the whole match.
fn substring_group(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each_text(|at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        patterns.with(pattern, "", |regex| {
            let Some(captures) = regex.captures(text) else { return Ok(None) };
            let group = usize::from(captures.len() > 1);
            Ok(captures.get(group).map(|found| found.as_str().to_owned()))
        })
    })
}

fn like(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each::<bool, BooleanArray>(|at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let flags = flags(row, 2, at);
        not_global(flags, "regexp_like()", "It looks for any match.")?;
        patterns.with(pattern, flags, |regex| Ok(Some(regex.is_match(text))))
    })
}

/// The groups of a match, or all of it where there are none.
fn groups(captures: &Captures<'_>) -> Vec<Option<String>> {
    let first = usize::from(captures.len() > 1);
    let groups = captures.iter().skip(first);
    groups.map(|group| group.map(|group| group.as_str().to_owned())).collect()
}

fn first_match(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each_list(true, |at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let flags = flags(row, 2, at);
        not_global(flags, "regexp_match()", "Use the regexp_matches function instead.")?;
        patterns.with(pattern, flags, |regex| Ok(regex.captures(text).as_ref().map(groups)))
    })
}

fn matches(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each_groups(|at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let flags = flags(row, 2, at);
        let most = if flags.contains('g') { usize::MAX } else { 1 };
        patterns.with(pattern, flags, |regex| {
            let mut bytes = 0;
            let mut all = Vec::new();
            for captures in found(regex, text, 1)?.take(most) {
                let groups = groups(&captures);
                bytes +=
                    groups.iter().map(|of| 32 + of.as_ref().map_or(0, String::len)).sum::<usize>();
                check(bytes, "regexp_matches")?;
                all.push(groups);
            }
            Ok(Some(all))
        })
    })
}

fn check(bytes: usize, function: &str) -> Result<()> {
    if bytes > VALUE_BYTES_MAX {
        return Err(too_large(function));
    }
    Ok(())
}

fn split(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each_list(true, |at| {
        let (Some(text), Some(pattern)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let flags = flags(row, 2, at);
        not_global(flags, "regexp_split_to_array()", "It splits at all matches.")?;
        patterns.with(pattern, flags, |regex| {
            let (mut parts, mut from) = (Vec::new(), 0);
            for captures in found(regex, text, 1)? {
                let Some(whole) = captures.get(0) else { break };
                // Nothing is split off at the ends, nor right behind another match, by an empty one.
                if whole.is_empty() && (whole.start() == from || whole.end() == text.len()) {
                    continue;
                }
                parts.push(Some(text[from..whole.start()].to_owned()));
                from = whole.end();
            }
            parts.push(Some(text[from..].to_owned()));
            Ok(Some(parts))
        })
    })
}

/// A replacement: parts of text, and groups between them.
fn parts_of(replacement: &str) -> Vec<Part> {
    let mut parts = vec![];
    let mut plain = String::new();
    let mut letters = replacement.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            Some(digit @ '1'..='9') => {
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::Group(digit as usize - '0' as usize));
            }
            Some('&') => {
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::Group(0));
            }
            Some('\\') | None => plain.push('\\'),
            Some(other) => plain.extend(['\\', other]),
        }
    }
    parts.push(Part::Text(plain));
    parts
}

enum Part {
    Text(String),
    Group(usize),
}

/// The text with its matches from the `first` on replaced, `most` of them.
fn replaced(
    regex: &Regex,
    text: &str,
    parts: &[Part],
    (start, first, most): (i64, usize, usize),
) -> Result<String> {
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for captures in found(regex, text, start)?.skip(first).take(most) {
        let Some(whole) = captures.get(0) else { break };
        out.push_str(&text[from..whole.start()]);
        for part in parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => {
                    out.push_str(captures.get(*group).map_or("", |group| group.as_str()));
                }
            }
        }
        check(out.len(), "regexp_replace")?;
        from = whole.end();
    }
    out.push_str(&text[from..]);
    Ok(out)
}

fn replace(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each_text(|at| {
        let (Some(text), Some(pattern), Some(by)) =
            (row.text(0, at), row.text(1, at), row.text(2, at))
        else {
            return Ok(None);
        };
        let flags = flags(row, 3, at);
        if let Some(digit) = flags.chars().next().filter(char::is_ascii_digit) {
            let message = format!("invalid regular expression option: \"{digit}\"");
            let hint = "If you meant to use regexp_replace() with a start parameter, \
                cast the fourth argument to integer explicitly.";
            return Err(super::refused::refusal("22023", message, hint));
        }
        let most = if flags.contains('g') { usize::MAX } else { 1 };
        patterns.with(pattern, flags, |regex| {
            replaced(regex, text, &parts_of(by), (1, 0, most)).map(Some)
        })
    })
}

fn replace_nth(row: &Row<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::default();
    row.each_text(|at| {
        let (Some(text), Some(pattern), Some(by)) =
            (row.text(0, at), row.text(1, at), row.text(2, at))
        else {
            return Ok(None);
        };
        let flags = flags(row, 5, at);
        let start = row.integer(3, at).unwrap_or(1);
        // Without a number, the flags say how many.
        let number = match row.integer(4, at) {
            Some(number) if number < 0 => return Err(invalid_parameter("n", number)),
            Some(number) => number,
            None => i64::from(!flags.contains('g')),
        };
        let (first, most) = match usize::try_from(number) {
            Ok(0) | Err(_) => (0, usize::MAX),
            Ok(number) => (number - 1, 1),
        };
        patterns.with(pattern, flags, |regex| {
            replaced(regex, text, &parts_of(by), (start, first, most)).map(Some)
        })
    })
}

/// The error of a pattern, for those who compile nothing.
#[cfg(test)]
fn error_of(pattern: &str) -> Option<DataFusionError> {
    compiled(pattern, "").err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_postgresql() {
        let check = |pattern: &str, text: &str, expected: Option<&str>| {
            let regex = compiled(pattern, "").unwrap();
            assert_eq!(regex.find(text).map(|found| found.as_str()), expected, "{pattern}");
        };
        check(r"\yb\y", "a b c", Some("b"));
        check(r"\mab", "cab ab", Some("ab"));
        check("[]a]+", "x]a", Some("]a"));
        check("[^]a]", "]ax", Some("x"));
        check("[[:digit:]]+", "a12", Some("12"));
        check("a.b", "a\nb", Some("a\nb"));
        check(r"\.", "a.b", Some("."));
        check("[&&~]", "a&", Some("&"));
        check("(?:ab)+", "xabab", Some("abab"));
        for refused in [r"(a)\1", "(?=a)", "(?<!a)b", "(", "[", "a{2", "\\", "[[.a.]]", "(?i)a"] {
            assert!(error_of(refused).is_some(), "{refused}");
        }
        let large = "(a{1000}){1000}";
        assert!(error_of(large).is_some());
    }

    #[test]
    fn matches_are_found_one_after_another() {
        let regex = compiled("b*", "").unwrap();
        let all =
            |text| found(&regex, text, 1).unwrap().map(|of| of[0].to_owned()).collect::<Vec<_>>();
        assert_eq!(all("abb"), ["", "bb", ""]);
        assert_eq!(start_of("äb", 2).unwrap(), Some(2));
        assert_eq!(start_of("äb", 3).unwrap(), Some(3));
        assert_eq!(start_of("äb", 4).unwrap(), None);
        assert!(start_of("", 0).is_err());
    }
}
