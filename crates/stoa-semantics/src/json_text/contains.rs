//! `@>` and equality of `jsonb`.

use super::value::{Item, Json};
use super::write::{number, quoted, sorted};

/// Whether a value contains another: objects by their members, arrays by their elements.
pub(crate) fn contains(of: &Item<'_>, part: &Item<'_>) -> bool {
    match (&of.json, &part.json) {
        // An array contains a scalar that is one of its elements.
        (Json::Array(items), scalar) if is_scalar(part) => {
            items.iter().any(|item| same_scalar(&item.json, scalar))
        }
        _ => within(of, part),
    }
}

fn within(of: &Item<'_>, part: &Item<'_>) -> bool {
    match (&of.json, &part.json) {
        (Json::Object(_), Json::Object(members)) => members
            .iter()
            .all(|(key, item)| of.member(key).is_some_and(|found| within(found, item))),
        (Json::Array(items), Json::Array(parts)) => parts.iter().all(|part| {
            items.iter().any(|item| match is_scalar(part) {
                true => same_scalar(&item.json, &part.json),
                false => within(item, part),
            })
        }),
        (left, right) => same_scalar(left, right),
    }
}

fn is_scalar(item: &Item<'_>) -> bool {
    !matches!(item.json, Json::Array(_) | Json::Object(_))
}

fn same_scalar(left: &Json<'_>, right: &Json<'_>) -> bool {
    match (left, right) {
        (Json::Null, Json::Null) => true,
        (Json::Bool(left), Json::Bool(right)) => left == right,
        (Json::Text(left), Json::Text(right)) => left == right,
        (Json::Number(left), Json::Number(right)) => left == right || digits(left) == digits(right),
        _ => false,
    }
}

/// A number without zeros behind its point.
fn digits(written: &str) -> String {
    let mut out = String::new();
    // One that is out of range is equal to itself only.
    if number(written, &mut out).is_err() {
        return written.to_owned();
    }
    if out.contains('.') {
        out.truncate(out.trim_end_matches('0').trim_end_matches('.').len());
    }
    match out.as_str() {
        "-0" => "0".to_owned(),
        _ => out,
    }
}

/// A text that equal values have in common, and others not.
pub(crate) fn comparable_text(item: &Item<'_>) -> String {
    let mut out = String::with_capacity(item.raw.len());
    comparable(item, &mut out);
    out
}

/// Writes what equal values have in common.
pub(crate) fn comparable(item: &Item<'_>, out: &mut String) {
    match &item.json {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(written) => out.push_str(&digits(written)),
        Json::Text(text) => quoted(text, out),
        Json::Array(items) => {
            out.push('[');
            for item in items {
                comparable(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (key, item) in sorted(members) {
                quoted(key, out);
                out.push(':');
                comparable(item, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containment_is_that_of_postgresql() {
        let check = |of: &str, part: &str, expected: bool| {
            let (of, part) = (Item::parse(of).unwrap(), Item::parse(part).unwrap());
            assert_eq!(contains(&of, &part), expected, "{of:?} @> {part:?}");
        };
        check(r#"{"a":1,"b":2}"#, r#"{"b":2.0}"#, true);
        check("[1,2,3]", "[3,1,1]", true);
        check("[1,[2,3]]", "[[2]]", true);
        check("[1,[2,3]]", "[2]", false);
        check(r#"["a"]"#, r#""a""#, true);
        check(r#"[["a"]]"#, r#"["a"]"#, false);
        check(r#""a""#, r#"["a"]"#, false);
        check("[]", "{}", false);
        check("{}", "{}", true);
        check(r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":1}}"#, true);
        check(r#"{"a":[1]}"#, r#"{"a":1}"#, false);
        assert_eq!(digits("1.50"), "1.5");
        assert_eq!(digits("100"), "100");
        assert_eq!(digits("10.0e1"), "100");
    }
}
