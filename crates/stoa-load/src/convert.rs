//! Text to values as the options say, and binary.

use std::borrow::Cow;

use chrono_tz::Tz;
use stoa_error::Result;

use crate::datetime::{Moments, Pattern};
use crate::{Format, LoadOptions};

/// The options that say what a value may look like, ready for use on each value.
pub(crate) struct Conversions {
    pub null_text: Vec<Vec<u8>>,
    /// Whether an empty field of a column that is not text is NULL whatever `null_text` says.
    pub empty_is_null: bool,
    pub trim: bool,
    pub latin1: bool,
    pub time_zone: Tz,
    pub dates: Pattern,
    pub timestamps: Moments,
    thousands: Option<Vec<u8>>,
    decimal_point: u8,
    true_text: Vec<Vec<u8>>,
    false_text: Vec<Vec<u8>>,
}

impl Conversions {
    pub fn new(options: &LoadOptions, format: Format) -> Result<Self> {
        let bytes = |texts: &[String]| texts.iter().map(|t| t.clone().into_bytes()).collect();
        Ok(Self {
            null_text: options.null_text_of(format),
            empty_is_null: matches!(format, Format::Csv | Format::Tsv),
            trim: options.trim,
            latin1: options.latin1,
            time_zone: options.time_zone,
            dates: Pattern::new(options.date_format.as_deref(), "date_format")?,
            timestamps: Moments::new(options.timestamp_format.as_deref())?,
            thousands: options.thousands_separator.map(|c| c.to_string().into_bytes()),
            decimal_point: options.decimal_point,
            true_text: bytes(&options.true_text),
            false_text: bytes(&options.false_text),
        })
    }

    pub fn is_null_text(&self, text: &[u8]) -> bool {
        self.null_text.iter().any(|null| null == text)
    }

    /// Whether numbers look other than in the programming languages.
    pub fn has_number_marks(&self) -> bool {
        self.thousands.is_some() || self.decimal_point != b'.'
    }

    /// A number with its separators dropped and its decimal point a full stop, or `None` if the
    /// separators stand where none may: each must be between digits, three digits apart.
    pub fn plain_number<'a>(&self, text: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if !self.has_number_marks() {
            return Some(Cow::Borrowed(text));
        }
        let mut plain = Vec::with_capacity(text.len());
        let mut rest = text;
        let mut digits_before = 0;
        let mut grouped = false;
        let mut in_fraction = false;
        while let Some((&byte, tail)) = rest.split_first() {
            match &self.thousands {
                Some(mark) if !in_fraction && rest.starts_with(mark) => {
                    let group_fits = if grouped { digits_before == 3 } else { digits_before > 0 };
                    if !group_fits {
                        return None;
                    }
                    (grouped, digits_before) = (true, 0);
                    rest = &rest[mark.len()..];
                    continue;
                }
                _ => {}
            }
            if byte == self.decimal_point && !in_fraction {
                if grouped && digits_before != 3 {
                    return None;
                }
                (in_fraction, grouped) = (true, false);
                plain.push(b'.');
            } else if byte == b'.' {
                return None;
            } else {
                if byte.is_ascii_digit() {
                    digits_before += 1;
                }
                plain.push(byte);
            }
            rest = tail;
        }
        (!grouped || digits_before == 3).then_some(Cow::Owned(plain))
    }

    pub fn boolean(&self, text: &[u8]) -> Option<bool> {
        let is = |texts: &[Vec<u8>]| texts.iter().any(|t| t.eq_ignore_ascii_case(text));
        if is(&self.true_text) {
            Some(true)
        } else if is(&self.false_text) {
            Some(false)
        } else {
            None
        }
    }
}

/// `\x` and pairs of hex digits. What was appended before an error stays.
pub(crate) fn hex(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    hex_digits(text.strip_prefix(b"\\x").or_else(|| text.strip_prefix(b"\\X"))?, out)
}

/// A UUID with its four dashes, in braces or not, or nothing at all.
pub(crate) fn uuid(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let text = text.strip_prefix(b"{").and_then(|t| t.strip_suffix(b"}")).unwrap_or(text);
    let dashes = [8, 13, 18, 23];
    if text.len() != 36 || !dashes.iter().all(|&at| text.get(at) == Some(&b'-')) {
        return None;
    }
    let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'-').collect();
    let is_uuid = digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit);
    is_uuid.then(|| hex_digits(&digits, out)).flatten()
}

fn hex_digits(digits: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let nibble = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    for pair in digits.chunks_exact(2) {
        out.push(nibble(pair[0])? << 4 | nibble(pair[1])?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_separators_stand_three_digits_apart() {
        let mut options = LoadOptions { thousands_separator: Some(','), ..LoadOptions::default() };
        let check = |options: &LoadOptions, text: &str, expected: Option<&str>| {
            let conversions = Conversions::new(options, Format::Csv).unwrap();
            let plain = conversions.plain_number(text.as_bytes());
            assert_eq!(plain.as_deref(), expected.map(str::as_bytes), "{text}");
        };
        check(&options, "1,137", Some("1137"));
        check(&options, "-12,345,678.25", Some("-12345678.25"));
        check(&options, "1137", Some("1137"));
        check(&options, "1,13", None);
        check(&options, "1,1377", None);
        check(&options, "1,13.5", None);
        check(&options, ",137", None);
        options.thousands_separator = Some('.');
        options.decimal_point = b',';
        check(&options, "1.137,5", Some("1137.5"));
        check(&options, "1,5.0", None);
        options.thousands_separator = Some('\u{202f}');
        check(&options, "1\u{202f}137", Some("1137"));
    }

    #[test]
    fn hex_is_strict() {
        let read = |text: &str| {
            let mut out = Vec::new();
            hex(text.as_bytes(), &mut out).map(|()| out)
        };
        assert_eq!(read("\\x00fF"), Some(vec![0, 255]));
        assert_eq!(read("\\x"), Some(vec![]));
        assert_eq!(read("\\x0"), None);
        assert_eq!(read("00"), None);
        assert_eq!(read("\\xzz"), None);
    }
}
