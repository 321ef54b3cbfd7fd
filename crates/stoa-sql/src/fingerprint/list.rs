//! Lists of literals of one kind.
//!
//! In: what follows the bracket that opens a list. Out: the list as it stands, and its literals one by one. Anything
//! else among them (NULL, a cast, a literal of another kind, a comment) makes it no such list.

use std::borrow::Cow;

use super::{Literal, LiteralKind};

/// Most values of a list; a longer one has no fingerprint.
pub const LIST_VALUES_MAX: usize = 16 << 10;

/// The list up to its closing bracket, with the kind of all of its values.
pub(super) fn read(text: &str, close: u8) -> Option<(LiteralKind, &str)> {
    let (mut kind, mut at, mut values) = (None, 0, 0);
    loop {
        let value = Value::at(text.as_bytes(), at)?;
        values += 1;
        if *kind.get_or_insert(value.kind) != value.kind || values > LIST_VALUES_MAX {
            return None;
        }
        at = behind_blanks(text.as_bytes(), value.end);
        match text.as_bytes().get(at)? {
            b',' => at += 1,
            byte if *byte == close => return Some((kind?, &text[..at])),
            _ => return None,
        }
    }
}

impl<'a> Literal<'a> {
    /// The literals of a list, each with its sign; just itself where it is none.
    pub fn values(&'a self) -> impl Iterator<Item = Literal<'a>> {
        let one = (!self.kind.is_list())
            .then(|| Literal { kind: self.kind, text: Cow::Borrowed(&*self.text) });
        let mut at = if self.kind.is_list() { 0 } else { self.text.len() };
        let listed = std::iter::from_fn(move || {
            let value = Value::at(self.text.as_bytes(), at)?;
            // What comes behind it is a comma, or nothing.
            at = behind_blanks(self.text.as_bytes(), value.end) + 1;
            value.literal(&self.text)
        });
        one.into_iter().chain(listed)
    }
}

/// Where a value of a list is.
struct Value {
    /// The kind of a list of such values.
    kind: LiteralKind,
    start: usize,
    end: usize,
}

impl Value {
    /// The value that begins at `at`, or behind blanks there.
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let at = behind_blanks(bytes, at);
        match bytes.get(at)? {
            b'\'' => {
                Some(Self { kind: LiteralKind::Texts, start: at, end: behind_text(bytes, at)? })
            }
            b'-' | b'0'..=b'9' => {
                let digits = at + usize::from(bytes[at] == b'-');
                let is_digit = |byte: &u8| byte.is_ascii_digit();
                let count = bytes[digits..].iter().take_while(|byte| is_digit(byte)).count();
                let end = digits + count;
                (count > 0).then_some(Self { kind: LiteralKind::Integers, start: at, end })
            }
            b'd' | b'D' => {
                let word = bytes.get(at..at + 4)?;
                let quote = behind_blanks(bytes, at + 4);
                let is_date =
                    word.eq_ignore_ascii_case(b"date") && bytes.get(quote) == Some(&b'\'');
                is_date.then_some(())?;
                let end = behind_text(bytes, quote)?;
                Some(Self { kind: LiteralKind::Dates, start: quote, end })
            }
            _ => None,
        }
    }

    fn literal<'a>(&self, list: &'a str) -> Option<Literal<'a>> {
        let text = list.get(self.start..self.end)?;
        let quoted = || {
            let inner = text.get(1..text.len().checked_sub(1)?)?;
            Some(match inner.contains('\'') {
                true => Cow::Owned(inner.replace("''", "'")),
                false => Cow::Borrowed(inner),
            })
        };
        Some(match self.kind {
            LiteralKind::Texts => Literal { kind: LiteralKind::Text, text: quoted()? },
            LiteralKind::Dates => Literal { kind: LiteralKind::Date, text: quoted()? },
            _ => Literal { kind: LiteralKind::Integer, text: Cow::Borrowed(text) },
        })
    }
}

fn behind_blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Where the text ends whose first quote is at `at`; two quotes in a row are one of its characters.
fn behind_text(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    loop {
        end += bytes.get(end..)?.iter().position(|byte| *byte == b'\'')? + 1;
        match bytes.get(end) {
            Some(b'\'') => end += 1,
            _ => return Some(end),
        }
    }
}

/// Whether a text ends with `IN (`.
pub(super) fn is_behind_in(text: &str) -> bool {
    text.strip_suffix('(').is_some_and(|text| without_word(text, "in").is_some())
}

/// Where `= ANY (ARRAY [` begins, if a text ends with it.
pub(super) fn is_behind_any(text: &str) -> Option<usize> {
    let before = without_word(text.strip_suffix('[')?, "array")?.trim_end().strip_suffix('(')?;
    let before = without_word(before, "any").or_else(|| without_word(before, "some"))?;
    let before = before.trim_end().strip_suffix('=')?;
    // It may be the end of a longer operator.
    let is_whole = !before.ends_with(|c: char| c.is_ascii_punctuation() && !")]\"_".contains(c));
    is_whole.then_some(before.len())
}

fn without_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_end();
    let before = text.get(..text.len().checked_sub(word.len())?)?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '"' | '.');
    let is_word = text[before.len()..].eq_ignore_ascii_case(word) && !before.ends_with(is_part);
    is_word.then_some(before)
}

/// Blanks before the closing bracket that a text begins with.
pub(super) fn bracket_behind(text: &str) -> Option<usize> {
    let at = behind_blanks(text.as_bytes(), 0);
    (text.as_bytes().get(at) == Some(&b')')).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::super::Fingerprint;
    use super::*;

    fn check(sql: &str, expected: &str, values: &[&str]) {
        let found = Fingerprint::of(sql).unwrap_or_else(|| panic!("{sql} has a fingerprint"));
        assert_eq!(found.text, expected, "{sql}");
        let all: Vec<String> = found
            .literals
            .iter()
            .flat_map(|literal| literal.values().map(|value| value.text.to_string()))
            .collect();
        assert_eq!(all, values, "{sql}");
    }

    #[test]
    fn a_list_of_one_kind_is_one_literal() {
        let t = "SELECT a FROM t WHERE";
        check(&format!("{t} a IN (1)"), &format!("{t} a IN ($L0I)"), &["1"]);
        check(
            &format!("{t} a NOT in( -1,2 ,\n3 ) AND b = 7"),
            &format!("{t} a NOT in($L0I) AND b = $L1i"),
            &["-1", "2", "3", "7"],
        );
        check(
            &format!("{t} a IN ('it''s', ')', '')"),
            &format!("{t} a IN ($L0S)"),
            &["it's", ")", ""],
        );
        check(
            &format!("{t} a IN (DATE '2026-01-31',date'2026-02-01')"),
            &format!("{t} a IN ($L0D)"),
            &["2026-01-31", "2026-02-01"],
        );
        check(&format!("{t} a = ANY (ARRAY[1, 2])"), &format!("{t} a  IN ($L0I)"), &["1", "2"]);
        check(&format!("{t} a=any(array['x'] )"), &format!("{t} a=any(array[$L0S] )"), &["x"]);
    }

    #[test]
    fn other_lists_are_literals_one_by_one() {
        let t = "SELECT a FROM t WHERE";
        for (list, expected) in [
            ("a IN (1, '2')", "a IN ($L0i, $L1s)"),
            ("a IN (1, 2.5)", "a IN ($L0i, $L1n)"),
            ("a IN (1, NULL)", "a IN ($L0i, NULL)"),
            ("a IN (1::int8)", "a IN ($L0i::int8)"),
            ("a IN (1 + 2)", "a IN ($L0i + $L1i)"),
            ("a IN (- 1)", "a IN (- $L0i)"),
            ("(a, b) IN ((1, 2))", "(a, b) IN (($L0i, $L1i))"),
            ("f.in(1)", "f.in($L0i)"),
            ("\"in\"(1)", "\"in\"($L0i)"),
            ("begin(1)", "begin($L0i)"),
            ("a >= ANY (ARRAY[1])", "a >= ANY (ARRAY[$L0i])"),
            ("a <> ANY (ARRAY[1])", "a <> ANY (ARRAY[$L0i])"),
            ("a = ANY (ARRAY[1]::int8[])", "a = ANY (ARRAY[$L0i]::int8[])"),
            ("a = ALL (ARRAY[1])", "a = ALL (ARRAY[$L0i])"),
        ] {
            let found = Fingerprint::of(&format!("{t} {list}")).map(|found| found.text);
            assert_eq!(found, Some(format!("{t} {expected}")), "{list}");
        }
        for open in ["a IN (1", "a IN ('x)", "a IN (1e3)", "a IN (1 -- x\n)", "a IN ('a' 'b')"] {
            assert_eq!(
                Fingerprint::of(&format!("{t} {open}"))
                    .filter(|f| f.text.contains('I') && f.text.contains("$L0I")),
                None,
                "{open}"
            );
        }
    }

    #[test]
    fn lists_are_bounded() {
        let of = |values: usize| {
            let list: Vec<String> = (0..values).map(|value| value.to_string()).collect();
            Fingerprint::shared(&format!("SELECT a FROM t WHERE a IN ({})", list.join(",")))
        };
        let longest = of(LIST_VALUES_MAX).unwrap();
        assert_eq!(longest.literals[0].values().count(), LIST_VALUES_MAX);
        assert_eq!(of(LIST_VALUES_MAX + 1), None);
    }
}
