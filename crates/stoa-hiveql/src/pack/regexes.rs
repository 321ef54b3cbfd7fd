//! Functions of regular expressions, in Java's spelling as far as it is that of the crate `regex`.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::Regex;
use stoa_error::{Error, Result};

use super::value::{Type, Value};
use super::{
    Function, TEXT_BYTES_MAX, makes_boolean, makes_text, no_function, strict, text, too_long, whole,
};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_rlike", (2, 2), makes_boolean, |v| {
        let pattern = text(v, 1)?;
        if pattern.is_empty() {
            return Ok(Value::Boolean(false));
        }
        Ok(Value::Boolean(compiled(&pattern)?.is_match(&text(v, 0)?)))
    }),
    strict("hive_regexp_extract", (2, 3), makes_text, extract),
    strict("hive_regexp_replace", (3, 3), makes_text, replace),
    strict("hive_split", (2, 2), texts_type, split),
];

/// Patterns that a thread keeps.
const KEPT_MAX: usize = 64;

thread_local! {
    static KEPT: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// A pattern.
///
/// # Errors
/// 2201B: it is none; 0A000: it needs backtracking, which would take any time.
fn compiled(pattern: &str) -> Result<Regex> {
    if let Some(known) = KEPT.with_borrow(|kept| kept.get(pattern).cloned()) {
        return Ok(known);
    }
    let has_looking = ["(?=", "(?!", "(?<=", "(?<!", "(?>", "*+", "++", "?+"];
    if has_looking.iter().any(|part| pattern.contains(part)) || refers_back(pattern) {
        return Err(Error::unsupported(format!(
            "the regular expression {pattern} is not supported"
        ))
        .with_detail("look-around, possessive quantifiers and back references need backtracking")
        .with_hint("use groups and regexp_extract(text, pattern, group)"));
    }
    let regex = regex::RegexBuilder::new(&translated(pattern)?)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| {
            Error::invalid(format!("invalid regular expression: {pattern}"))
                .with_sqlstate("2201B")
                .with_detail(error.to_string())
        })?;
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(pattern.to_owned(), regex.clone());
    });
    Ok(regex)
}

/// The pattern with Java's classes: `\\d`, `\\w` and `\\s` are of ASCII, and a point is no line break of any kind.
fn translated(pattern: &str) -> Result<String> {
    // With flags, such as `(?s)`, a point is what they say.
    let is_flag = |(at, _): (usize, &str)| {
        pattern[at + 2..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '-')
    };
    let has_flags = pattern.match_indices("(?").any(is_flag);
    let (mut all, mut depth) = (String::with_capacity(pattern.len() + 16), 0_usize);
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('d') => all.push_str("[0-9]"),
                Some('D') => all.push_str("[^0-9]"),
                Some('w') => all.push_str("[a-zA-Z0-9_]"),
                Some('W') => all.push_str("[^a-zA-Z0-9_]"),
                Some('s') => all.push_str("[ \\t\\n\\x0B\\x0C\\r]"),
                Some('S') => all.push_str("[^ \\t\\n\\x0B\\x0C\\r]"),
                Some('p' | 'P') => {
                    return Err(Error::unsupported(format!(
                        "classes by name in the regular expression {pattern} are not supported"
                    ))
                    .with_hint("write [a-zA-Z] in place of \\p{Alpha}"));
                }
                Some(other) => all.extend(['\\', other]),
                None => all.push('\\'),
            },
            '[' => {
                depth += 1;
                all.push('[');
            }
            ']' => {
                depth = depth.saturating_sub(1);
                all.push(']');
            }
            '.' if depth == 0 && !has_flags => {
                all.push_str("[^\\n\\r\\x{85}\\x{2028}\\x{2029}]");
            }
            other => all.push(other),
        }
    }
    Ok(all)
}

fn refers_back(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        if char == '\\' && chars.next().is_some_and(|next| matches!(next, '1'..='9' | 'k')) {
            return true;
        }
    }
    false
}

/// The group of the first match; `''` where there is none.
fn extract(v: &[Value]) -> Result<Value> {
    let group = if v.len() > 2 { whole(v, 2)?.unwrap_or_default() } else { 1 };
    let pattern = compiled(&text(v, 1)?)?;
    let group = usize::try_from(group).ok().filter(|group| *group < pattern.captures_len());
    let Some(group) = group else {
        return Err(
            Error::invalid("the regular expression has no such group").with_sqlstate("22023")
        );
    };
    let of = text(v, 0)?;
    Ok(match pattern.captures(&of) {
        None => Value::Text(String::new()),
        Some(found) => {
            found.get(group).map_or(Value::Null, |part| Value::Text(part.as_str().into()))
        }
    })
}

fn replace(v: &[Value]) -> Result<Value> {
    let (of, pattern, by) = (text(v, 0)?, compiled(&text(v, 1)?)?, text(v, 2)?);
    let by = replacement(&by)?;
    let changed = pattern.replace_all(&of, by.as_str());
    if changed.len() > TEXT_BYTES_MAX {
        Err(too_long())
    } else {
        Ok(Value::Text(changed.into_owned()))
    }
}

/// Java's replacement (`$1`, `\$`) in the spelling of the crate (`${1}`, `$$`).
fn replacement(java: &str) -> Result<String> {
    let mut all = String::with_capacity(java.len());
    let mut chars = java.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('$') => all.push_str("$$"),
                Some(other) => all.push(other),
                None => return Err(no_group(java)),
            },
            '$' => match chars.next_if(char::is_ascii_digit) {
                Some(digit) => all.push_str(&format!("${{{digit}}}")),
                None => return Err(no_group(java)),
            },
            other => all.push(other),
        }
    }
    Ok(all)
}

fn no_group(java: &str) -> Error {
    Error::invalid(format!("invalid replacement of regexp_replace: {java}"))
        .with_sqlstate("22023")
        .with_hint("$1 is the first group, \\\\$ a dollar sign")
}

fn texts_type(types: &[Type]) -> Result<Type> {
    match types.iter().all(|of| matches!(of, Type::Text | Type::Null)) {
        true => Ok(Type::List(Box::new(Type::Text))),
        false => Err(no_function("split", types)),
    }
}

/// As `String.split(pattern, -1)` of Java: empty parts stay, but none before a match of nothing at the beginning.
fn split(v: &[Value]) -> Result<Value> {
    let (of, pattern) = (text(v, 0)?, compiled(&text(v, 1)?)?);
    let (mut parts, mut begin) = (Vec::new(), 0);
    for found in pattern.find_iter(&of) {
        if found.end() == 0 {
            continue;
        }
        parts.push(Value::Text(of[begin..found.start()].to_owned()));
        begin = found.end();
    }
    parts.push(Value::Text(of[begin..].to_owned()));
    Ok(Value::List(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_java() {
        for (pattern, text, matches) in [
            ("^\\w+$", "abc_1", true),
            ("^\\w+$", "\u{e4}", false),
            ("^[\\w.]+$", "a.b", true),
            ("^\\d$", "\u{663}", false),
            ("^a.c$", "abc", true),
            ("^a.c$", "a\rc", false),
            ("(?i)ABC", "abc", true),
            ("a\\.c", "abc", false),
        ] {
            let found = compiled(pattern).unwrap().is_match(text);
            assert_eq!(found, matches, "{pattern} {text:?}");
        }
        for refused in ["(a)\\1", "(?=a)", "a++", "\\p{Alpha}"] {
            assert_eq!(compiled(refused).unwrap_err().sqlstate(), "0A000", "{refused}");
        }
        assert_eq!(compiled("(").unwrap_err().sqlstate(), "2201B");
    }
}
