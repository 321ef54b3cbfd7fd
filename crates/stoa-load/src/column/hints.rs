//! What to do about a value that its column does not take.

use crate::bad_value::BadValue;

pub(super) fn not_a_number(text: &[u8], type_name: &str) -> Box<BadValue> {
    let bad = BadValue::not_a(text, type_name);
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        let shown = String::from_utf8_lossy(text);
        return if matches!(text, b"-" | b"--" | b"?" | b"." | b"\\N")
            || [&b"na"[..], b"n/a", b"null", b"nil", b"none", b"nan", b"missing"]
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word))
        {
            bad.hint(format!(
                "if it stands for a missing value, set the option null_text to '{shown}'"
            ))
        } else {
            bad
        };
    }
    let marks: Vec<char> = String::from_utf8_lossy(text)
        .trim_start_matches(['-', '+'])
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .collect();
    match marks.as_slice() {
        [mark, rest @ ..] if rest.iter().all(|c| c == mark) && looks_grouped(text, *mark) => bad
            .hint(format!(
                "if \"{mark}\" separates thousands, set the option thousands_separator to '{mark}'"
            )),
        [','] => bad.hint("if \",\" is the decimal point, set the option decimal_point to ','"),
        _ => bad,
    }
}

/// Whether groups of three digits follow each `mark`.
fn looks_grouped(text: &[u8], mark: char) -> bool {
    let text = String::from_utf8_lossy(text);
    !mark.is_alphabetic() && mark != '.' && text.split(mark).skip(1).all(|group| group.len() == 3)
}

pub(super) fn not_a_date(text: &[u8], type_name: &str, iso: bool) -> Box<BadValue> {
    let bad = BadValue::not_a(text, type_name);
    match (iso, text.iter().any(u8::is_ascii_digit)) {
        (true, true) => bad.hint(
            "dates are read as YYYY-MM-DD; for another form set the option date_format, \
             for instance to '%m/%d/%Y'",
        ),
        (false, true) => bad.hint("it does not match the option date_format"),
        _ => bad,
    }
}

pub(super) fn not_a_moment(text: &[u8], type_name: &str, iso: bool) -> Box<BadValue> {
    let bad = BadValue::not_a(text, type_name);
    match (iso, text.iter().any(u8::is_ascii_digit)) {
        (true, true) => bad.hint(
            "timestamps are read as YYYY-MM-DD HH:MM:SS; for another form set the option \
             timestamp_format, for instance to '%d/%m/%Y %H:%M' or epoch_ms",
        ),
        (false, true) => bad.hint("it does not match the option timestamp_format"),
        _ => bad,
    }
}

pub(super) fn not_hex(text: &[u8], type_name: &str) -> Box<BadValue> {
    BadValue::not_a(text, type_name)
        .hint("binary values are written as \\x and pairs of hex digits")
}
