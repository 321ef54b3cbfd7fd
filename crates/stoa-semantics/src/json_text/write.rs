//! JSON values as texts: `jsonb`'s normal form, and what functions of `json` write.

use std::borrow::Cow;
use std::fmt::Write;

use datafusion::error::Result;

use super::value::{Item, Json};
use crate::call::failure;
use crate::made_texts::{VALUE_BYTES_MAX, too_large};

/// Digits before and after the point of a number that is written with an exponent, at most: those of a double. A short text
/// is not to become a long one.
const WHOLE_DIGITS_MAX: i64 = 310;
const SCALE_MAX: i64 = 400;

/// The text of `jsonb`: sorted keys, the last of equal ones, one blank behind `:` and `,`.
///
/// # Errors
/// Numbers out of range (22003); more than a value may have (54000).
pub(crate) fn normal(item: &Item<'_>) -> Result<String> {
    let mut out = String::with_capacity(item.raw.len());
    write_normal(item, &mut out)?;
    Ok(out)
}

fn write_normal(item: &Item<'_>, out: &mut String) -> Result<()> {
    match &item.json {
        Json::Number(digits) => number(digits, out)?,
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_normal(item, out)?;
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (key, item)) in sorted(members).into_iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                quoted(key, out);
                out.push_str(": ");
                write_normal(item, out)?;
            }
            out.push('}');
        }
        other => plain(other, out),
    }
    check(out)
}

fn check(out: &str) -> Result<()> {
    if out.len() > VALUE_BYTES_MAX {
        return Err(too_large("jsonb"));
    }
    Ok(())
}

fn plain(json: &Json<'_>, out: &mut String) {
    match json {
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Text(text) => quoted(text, out),
        Json::Number(digits) => out.push_str(digits),
        _ => out.push_str("null"),
    }
}

/// Members in the order of `jsonb`: by length of the key, then by its bytes; of equal keys the last.
pub(crate) fn sorted<'a, 'b>(
    members: &'b [(Cow<'a, str>, Item<'a>)],
) -> Vec<(&'b str, &'b Item<'a>)> {
    let mut sorted: Vec<_> = members.iter().map(|(key, item)| (key.as_ref(), item)).collect();
    // Stable: equal keys stay in the order of the text.
    sorted.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut kept: Vec<(&str, &Item<'_>)> = Vec::with_capacity(sorted.len());
    for member in sorted {
        match kept.last_mut() {
            Some(last) if last.0 == member.0 => *last = member,
            _ => kept.push(member),
        }
    }
    kept
}

/// A text in quotes.
pub(crate) fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                // Writing into a text cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A number as `numeric` writes it: without an exponent.
pub(crate) fn number(written: &str, out: &mut String) -> Result<()> {
    let (mantissa, exponent) = match written.split_once(['e', 'E']) {
        None => {
            let is_zero = || written.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
            // There is no negative zero.
            out.push_str(if written.starts_with('-') && is_zero() {
                &written[1..]
            } else {
                written
            });
            return Ok(());
        }
        Some(parts) => parts,
    };
    let out_of_range = || failure("22003", "value overflows numeric format");
    let exponent: i64 = exponent.parse().map_err(|_| out_of_range())?;
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    let scale = fraction.len() as i64 - exponent.clamp(-1_000_000, 1_000_000);
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let whole_digits = digits.len() as i64 - leading as i64 - scale;
    if !is_zero && whole_digits > WHOLE_DIGITS_MAX || scale > SCALE_MAX {
        return Err(out_of_range());
    }
    // A scale below zero stands for zeros before the point.
    let zeros = scale.min(0).unsigned_abs() as usize;
    let scale = scale.max(0) as usize;
    let mut digits = digits.trim_start_matches('0').to_owned();
    if !is_zero {
        out.push_str(sign);
        digits.push_str(&"0".repeat(zeros));
    } else {
        digits = "0".repeat(scale);
    }
    while digits.len() <= scale {
        digits.insert_str(0, &"0".repeat(scale + 1 - digits.len()));
    }
    let point = digits.len() - scale;
    out.push_str(&digits[..point]);
    if scale > 0 {
        out.push('.');
        out.push_str(&digits[point..]);
    }
    Ok(())
}

/// The text of a value as `->>` gives it: a string without quotes; NULL of null.
pub(crate) fn text_of(item: &Item<'_>, normalised: bool) -> Result<Option<String>> {
    Ok(match &item.json {
        Json::Null => None,
        Json::Text(text) => Some(text.to_string()),
        _ => Some(shown(item, normalised)?),
    })
}

/// The text of a value: as it was written, or in normal form.
pub(crate) fn shown(item: &Item<'_>, normalised: bool) -> Result<String> {
    match normalised || item.raw.is_empty() {
        true => normal(item),
        false => Ok(item.raw.to_owned()),
    }
}

/// Without blanks, in the order of the text: what `json_strip_nulls` writes.
pub(crate) fn compact(item: &Item<'_>, out: &mut String) -> Result<()> {
    match &item.json {
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                compact(item, out)?;
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (key, item)) in members.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                quoted(key, out);
                out.push(':');
                compact(item, out)?;
            }
            out.push('}');
        }
        other => plain(other, out),
    }
    check(out)
}

/// With line breaks, four blanks for each level.
pub(crate) fn pretty(item: &Item<'_>, level: usize, out: &mut String) -> Result<()> {
    let line = |level: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', level * 4));
    };
    match &item.json {
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                line(level + 1, out);
                pretty(item, level + 1, out)?;
            }
            line(level, out);
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (key, item)) in sorted(members).into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                line(level + 1, out);
                quoted(key, out);
                out.push_str(": ");
                pretty(item, level + 1, out)?;
            }
            line(level, out);
            out.push('}');
        }
        Json::Number(digits) => number(digits, out)?,
        other => plain(other, out),
    }
    check(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jsonb_is_in_normal_form() {
        // From PostgreSQL 15.
        for (text, expected) in [
            (
                r#"{"bb": 1, "a":  [1, 2.50, "x"], "bb": null}"#,
                r#"{"a": [1, 2.50, "x"], "bb": null}"#,
            ),
            ("1e2", "100"),
            ("1.50e1", "15.0"),
            ("-1E-3", "-0.001"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("0e5", "0"),
            ("12.5e-3", "0.0125"),
            ("1.5e3", "1500"),
            (r#""a\u00e9\/\b""#, "\"aé/\\b\""),
            ("[ ]", "[]"),
            ("{}", "{}"),
        ] {
            let item = Item::parse(text).unwrap();
            assert_eq!(normal(&item).unwrap(), expected, "{text}");
            assert_eq!(normal(&Item::parse(expected).unwrap()).unwrap(), expected);
        }
        for text in ["1e200000", "1e-20000", "1e99999999999999999999"] {
            assert!(normal(&Item::parse(text).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_that_grow_are_bounded() {
        let length = |text: &str| normal(&Item::parse(text).unwrap()).map(|of| of.len()).ok();
        assert_eq!(length("1e309"), Some(310));
        assert_eq!(length("1e131000"), None);
        assert_eq!(length("1e-400"), Some(402));
    }
}
