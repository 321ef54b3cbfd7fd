//! `normalize(text, form)`, `text IS NORMALIZED`, `unistr(text)`.

use arrow::array::{ArrayRef, BooleanArray};
use datafusion::error::{DataFusionError, Result};
use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfd, is_nfkc, is_nfkd};

use super::call::failure;
use super::declared::{Declared, Row, Type};
use super::made_texts::{VALUE_BYTES_MAX, too_large};
use Type::{Boolean, Text};

const fn declared(
    name: &'static str,
    takes: &'static [Type],
    makes: Type,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called: name, takes, needed: 1, makes, json: None, compute }
}

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("normalize", &[Text, Text], Text, normalize),
    declared("is_normalized", &[Text, Text], Boolean, is_normalized),
    declared("unistr", &[Text], Text, |row| {
        row.each_text(|at| row.text(0, at).map(unescaped).transpose())
    }),
];

#[derive(Clone, Copy)]
enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl Form {
    fn named(name: &str) -> Result<Self> {
        match name.to_ascii_uppercase().as_str() {
            "NFC" => Ok(Self::Nfc),
            "NFD" => Ok(Self::Nfd),
            "NFKC" => Ok(Self::Nfkc),
            "NFKD" => Ok(Self::Nfkd),
            _ => Err(failure("22023", format!("invalid normalization form: {name}"))),
        }
    }

    fn of(self, text: &str) -> Result<String> {
        match self {
            Self::Nfc => collected(text.nfc()),
            Self::Nfd => collected(text.nfd()),
            Self::Nfkc => collected(text.nfkc()),
            Self::Nfkd => collected(text.nfkd()),
        }
    }

    fn is_of(self, text: &str) -> bool {
        match self {
            Self::Nfc => is_nfc(text),
            Self::Nfd => is_nfd(text),
            Self::Nfkc => is_nfkc(text),
            Self::Nfkd => is_nfkd(text),
        }
    }
}

/// The letters, of which one may have become many.
fn collected(letters: impl Iterator<Item = char>) -> Result<String> {
    let mut text = String::new();
    for letter in letters {
        text.push(letter);
        if text.len() > VALUE_BYTES_MAX {
            return Err(too_large("normalize"));
        }
    }
    Ok(text)
}

fn normalize(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(text) = row.text(0, at) else { return Ok(None) };
        Form::named(row.text(1, at).unwrap_or("NFC"))?.of(text).map(Some)
    })
}

fn is_normalized(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<bool, BooleanArray>(|at| {
        let Some(text) = row.text(0, at) else { return Ok(None) };
        Ok(Some(Form::named(row.text(1, at).unwrap_or("NFC"))?.is_of(text)))
    })
}

fn invalid(message: &str) -> DataFusionError {
    failure("42601", message)
}

/// The letter of so many hexadecimal digits, and what is behind them.
fn code_of(text: &str, digits: usize) -> Result<(u32, &str)> {
    let wrong = || invalid("invalid Unicode escape");
    let code = text.get(..digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let code = u32::from_str_radix(code.ok_or_else(wrong)?, 16).map_err(|_| wrong())?;
    Ok((code, text.get(digits..).unwrap_or_default()))
}

/// A text with `\0041`, `\+000041`, `\u0041` and `\U00000041` as letters.
fn unescaped(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut first_half = None;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let behind = rest.get(letter.len_utf8()..).unwrap_or_default();
        let code = match (letter, behind.bytes().next()) {
            ('\\', Some(b'\\')) => {
                rest = behind.get(1..).unwrap_or_default();
                None
            }
            ('\\', marker) => {
                let (skipped, digits) = match marker {
                    Some(b'u') => (1, 4),
                    Some(b'U') => (1, 8),
                    Some(b'+') => (1, 6),
                    _ => (0, 4),
                };
                let (code, behind) = code_of(behind.get(skipped..).unwrap_or_default(), digits)?;
                rest = behind;
                Some(code)
            }
            _ => {
                rest = behind;
                None
            }
        };
        let pair = || invalid("invalid Unicode surrogate pair");
        match (first_half.take(), code) {
            (None, Some(code @ 0xD800..=0xDBFF)) => first_half = Some(code),
            (Some(first), Some(second @ 0xDC00..=0xDFFF)) => {
                let code = 0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF);
                out.push(char::from_u32(code).ok_or_else(pair)?);
            }
            (Some(_), _) | (None, Some(0xDC00..=0xDFFF)) => return Err(pair()),
            (None, Some(code)) => match char::from_u32(code) {
                Some(letter) if letter != '\0' => out.push(letter),
                _ => {
                    let message = format!("invalid Unicode code point: {code:04X}");
                    return Err(failure("22023", message));
                }
            },
            (None, None) => out.push(letter),
        }
    }
    match first_half {
        Some(_) => Err(invalid("invalid Unicode surrogate pair")),
        None => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_letters() {
        for (text, expected) in
            [(r"d\0061t\+000061", "data"), (r"\u0061\U00000062\\", "ab\\"), (r"\D83D\DE00ñ", "😀ñ")]
        {
            assert_eq!(unescaped(text).unwrap(), expected);
        }
        for text in [r"\", r"\12", r"\D83D", r"\D83Dx", r"\DE00", r"\0000", r"\+110000", r"\00ñ1"]
        {
            assert!(unescaped(text).is_err(), "{text}");
        }
    }
}
