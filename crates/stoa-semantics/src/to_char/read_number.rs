//! `to_number(text, format)`: a text as a number, by a [`Pattern`].
//!
//! Each part of the format reads what it would have written; what the text has too much is not looked at.

use datafusion::error::Result;

use super::super::call::failure;
use super::super::numeric::Decimal;
use super::pattern::{Part, Pattern};
use Read::{Next, Stay};

/// Digits of a number that is read, at most.
const DIGITS_MAX: usize = 76;

/// The number that a text is; `None` of an empty format.
///
/// # Errors
/// A text without a number (22P02), with more digits than the format (22003); formats that only write (0A000).
pub(crate) fn read(text: &str, format: &str) -> Result<Option<Decimal>> {
    if format.is_empty() {
        return Ok(None);
    }
    let pattern = Pattern::of(format)?;
    for (is_there, name) in [(pattern.is_scientific, "EEEE"), (pattern.is_roman, "RN")] {
        if is_there {
            return Err(failure("0A000", format!("\"{name}\" not supported for input")));
        }
    }
    let mut reader = Reader {
        pattern: &pattern,
        text: text.as_bytes(),
        at: 0,
        sign: None,
        whole: Vec::new(),
        fraction: Vec::new(),
        has_point: false,
    };
    for part in &pattern.parts {
        if reader.at >= reader.text.len() {
            break;
        }
        if reader.part(*part) == Next {
            reader.at += 1;
        }
    }
    reader.number().map(Some)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// One more byte is taken.
    Next,
    Stay,
}

struct Reader<'a> {
    pattern: &'a Pattern,
    text: &'a [u8],
    at: usize,
    sign: Option<u8>,
    whole: Vec<u8>,
    fraction: Vec<u8>,
    has_point: bool,
}

impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn part(&mut self, part: Part) -> Read {
        match part {
            Part::Nine | Part::Zero => {
                self.digit(true);
                Next
            }
            Part::Point => {
                self.digit(false);
                Next
            }
            Part::Group => match self.next() {
                Some(b',') if !self.pattern.is_tight => Next,
                _ => Stay,
            },
            Part::Minus => self.sign_of(b"-"),
            Part::Plus => self.sign_of(b"+"),
            Part::Sign => self.sign_of(b"-+"),
            Part::Currency => self.skip(1),
            Part::Ordinal { .. } if self.pattern.has_point => Stay,
            Part::Ordinal { .. } => self.skip(2),
            Part::Roman { .. } => Stay,
            // Whatever stands there.
            Part::Literal(_) => {
                self.at += self.letter();
                Stay
            }
        }
    }

    /// Bytes of the letter that comes next.
    fn letter(&self) -> usize {
        match self.next() {
            Some(0xC0..=0xDF) => 2,
            Some(0xE0..=0xEF) => 3,
            Some(0xF0..=0xF7) => 4,
            _ => 1,
        }
    }

    fn sign_of(&mut self, signs: &[u8]) -> Read {
        match self.next() {
            Some(sign) if signs.contains(&sign) => {
                self.sign = Some(sign);
                Next
            }
            _ => self.skip(1),
        }
    }

    /// Passes letters that no number has.
    fn skip(&mut self, letters: usize) -> Read {
        for _ in 0..letters {
            match self.next() {
                None | Some(b'0'..=b'9' | b'.' | b',' | b'+' | b'-') => break,
                Some(_) => self.at += self.letter(),
            }
        }
        Stay
    }

    fn has_digits(&self) -> bool {
        !self.whole.is_empty() || !self.fraction.is_empty()
    }

    /// A digit, the point, and a sign in front of the first or behind the last.
    fn digit(&mut self, is_digit: bool) {
        if self.next() == Some(b' ') {
            self.at += 1;
        }
        if is_digit && self.sign.is_none() && !self.has_digits() {
            self.sign_in_front();
        }
        let Some(next) = self.next() else { return };
        let mut is_read = false;
        if next.is_ascii_digit() {
            if self.has_point && self.fraction.len() == self.pattern.fraction {
                return;
            }
            let digits = if self.has_point { &mut self.fraction } else { &mut self.whole };
            digits.push(next);
            is_read = true;
        } else if self.pattern.has_point && !self.has_point && next == b'.' {
            self.has_point = true;
            is_read = true;
        }
        if self.sign.is_none() && self.has_digits() {
            self.sign_behind(is_read);
        }
    }

    fn sign_in_front(&mut self) {
        let sign = match self.next() {
            Some(b'<') if self.pattern.has_brackets => b'-',
            Some(sign @ (b'-' | b'+')) => sign,
            _ => return,
        };
        self.sign = Some(sign);
        self.at += 1;
    }

    fn sign_behind(&mut self, is_read: bool) {
        let is_sign = |byte: Option<u8>| byte.filter(|byte| matches!(byte, b'-' | b'+'));
        if self.pattern.anchor.is_some() && is_read {
            let behind = self.text.get(self.at + 1).copied();
            if let Some(sign) = is_sign(behind) {
                self.sign = Some(sign);
                self.at += 1;
            }
        } else if !is_read
            && self.pattern.anchor.is_none()
            && (self.pattern.has_plus || self.pattern.has_minus)
        {
            self.sign = is_sign(self.next());
        }
    }

    fn number(&self) -> Result<Decimal> {
        let room = self.pattern.whole + self.pattern.shift;
        let whole: Vec<u8> =
            self.whole.iter().copied().skip_while(|digit| *digit == b'0').collect();
        if !self.has_digits() {
            return Err(failure("22P02", "invalid input syntax for type numeric: \" \""));
        }
        let digits = || whole.iter().chain(&self.fraction);
        if whole.len() > room {
            return Err(failure("22003", "numeric field overflow"));
        }
        if digits().count() > DIGITS_MAX {
            return Err(failure("22003", "numeric value out of range: it has too many digits"));
        }
        let text: String = digits().map(|digit| char::from(*digit)).collect();
        let text = if text.is_empty() { "0" } else { &text };
        let number = arrow::datatypes::i256::from_string(text)
            .ok_or_else(|| failure("22003", "numeric value out of range"))?;
        let digits = if self.sign == Some(b'-') { number.wrapping_neg() } else { number };
        let scale = self.fraction.len() + self.pattern.shift;
        Ok(Decimal { digits, scale: i32::try_from(scale).unwrap_or(i32::MAX) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_are_written() {
        for (text, format, digits, scale) in [
            ("12,454.8-", "99G999D9S", -124_548, 1),
            ("-34,338,492", "99G999G999", -34_338_492, 0),
            ("$12", "L99", 12, 0),
            ("<564646.654564>", "999999.999999PR", -564_646_654_564_i64, 6),
            ("0.00001-", "9.999999S", -1, 5),
            ("5.01-", "FM9.999999MI", -501, 2),
            (" 4 4 4 .0", "9 9 9 9.99", 4440, 1),
            ("2nd", "9th", 2, 0),
            ("123", "9V9", 12, 1),
        ] {
            let read = read(text, format).unwrap().unwrap();
            assert_eq!(
                (read.digits.to_string(), read.scale),
                (digits.to_string(), scale),
                "{text}"
            );
        }
        assert!(read("", "99").is_err());
        assert!(read("abc", "99").is_err());
        assert!(read("1", "").unwrap().is_none());
    }
}
