//! Numbers as texts, by a [`Pattern`].
//!
//! In: a number and a format. Out: its digits, rounded to what the format has, written part by part. A number that has
//! no room is `#`s.

use datafusion::error::Result;

use super::super::call::{failure, unsupported};
use super::super::numeric::Decimal;
use super::pattern::{Anchor, Part, Pattern};

/// Digits of a number that a text shows: those before the point, and where there is one, the point and those behind.
struct Digits {
    is_negative: bool,
    text: String,
}

pub(super) fn write_decimal(value: Decimal, pattern: &Pattern) -> Result<String> {
    let is_negative = value.digits.is_negative();
    let digits = value.digits.wrapping_abs().to_string();
    let number = Plain { digits, scale: i64::from(value.scale) };
    if pattern.is_roman {
        let whole = number.rounded(0);
        let whole = match is_negative {
            true => format!("-{}", whole.text()),
            false => whole.text(),
        };
        let whole: i32 = whole.parse().map_err(|_| failure("22003", "integer out of range"))?;
        return Ok(write_roman(pattern, whole));
    }
    if pattern.is_scientific {
        let sign = if is_negative { '-' } else { ' ' };
        return Ok(format!("{sign}{}", number.scientific(pattern.fraction)));
    }
    let shifted = Plain { scale: number.scale - pattern.shift as i64, ..number };
    let text = shifted.rounded(pattern.fraction).text();
    let is_negative = is_negative && text.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    write(pattern, Digits { is_negative, text }, pattern.fraction)
}

/// Whole numbers, whose product with a power of ten has to be one of their type.
pub(super) fn write_integer(value: i64, is_wide: bool, pattern: &Pattern) -> Result<String> {
    if pattern.is_roman {
        let value = i32::try_from(value).map_err(|_| failure("22003", "integer out of range"))?;
        return Ok(write_roman(pattern, value));
    }
    if pattern.is_scientific && !is_wide {
        return Ok(float_with_exponent(value as f64, pattern));
    }
    if pattern.is_scientific || pattern.shift == 0 {
        return write_decimal(Decimal::new(value, 0), pattern);
    }
    let is_of_type = |number: &i64| is_wide || i32::try_from(*number).is_ok();
    let power = u32::try_from(pattern.shift).ok().and_then(|shift| 10_i64.checked_pow(shift));
    let shifted = match value {
        0 => Some(0),
        _ => power.filter(is_of_type).and_then(|power| value.checked_mul(power)),
    };
    // Of an integer, PostgreSQL writes what is left of the product in 32 bits.
    let shifted = shifted.filter(is_of_type).ok_or_else(|| match is_wide {
        true => failure("22003", "bigint out of range"),
        false => unsupported("V of so large an integer is not supported", "cast it to bigint"),
    })?;
    let mut text = shifted.unsigned_abs().to_string();
    if pattern.fraction > 0 {
        text.push('.');
        text.extend(std::iter::repeat_n('0', pattern.fraction));
    }
    write(pattern, Digits { is_negative: shifted < 0, text }, pattern.fraction)
}

/// A float; of a `real`, six digits are known.
pub(super) fn write_float(value: f64, is_real: bool, pattern: &Pattern) -> Result<String> {
    if pattern.is_roman {
        let rounded = value.round_ties_even();
        let is_small = (1.0..=3999.0).contains(&rounded);
        return Ok(write_roman(pattern, if is_small { rounded as i32 } else { 0 }));
    }
    if pattern.is_scientific {
        return Ok(float_with_exponent(value, pattern));
    }
    let factor = 10_f64.powi(i32::try_from(pattern.shift).unwrap_or(i32::MAX));
    let value = match (pattern.shift, is_real) {
        (0, _) => value,
        (_, true) => f64::from(value as f32 * factor as f32),
        (_, false) => value * factor,
    };
    let known: usize = if is_real { 6 } else { 15 };
    let whole = float_text(value.abs(), 0).len();
    let fraction = pattern.fraction.min(known.saturating_sub(whole));
    let text = float_text(value.abs(), fraction);
    let is_negative = value.is_sign_negative() && !value.is_nan();
    write(pattern, Digits { is_negative, text }, fraction)
}

fn float_text(value: f64, fraction: usize) -> String {
    match value.is_infinite() {
        true => "Infinity".to_owned(),
        false => format!("{value:.fraction$}"),
    }
}

fn float_with_exponent(value: f64, pattern: &Pattern) -> String {
    if !value.is_finite() {
        return without_room(pattern);
    }
    let fraction = pattern.fraction;
    let text = format!("{:.fraction$e}", value.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if value.is_sign_negative() { '-' } else { ' ' };
    format!("{sign}{digits}{}", exponent_text(exponent.into()))
}

fn exponent_text(exponent: i64) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

/// What stands for infinity and NaN with an exponent.
fn without_room(pattern: &Pattern) -> String {
    let mut text = " ".to_owned();
    text.extend(std::iter::repeat_n('#', pattern.whole));
    text.push('.');
    text.extend(std::iter::repeat_n('#', pattern.fraction + 4));
    text
}

/// Decimal digits without a sign, and how many of them are behind the point.
struct Plain {
    digits: String,
    scale: i64,
}

impl Plain {
    /// With so many digits behind the point, rounded half away from zero.
    fn rounded(&self, fraction: usize) -> Self {
        let wanted = fraction as i64;
        let cut = self.scale - wanted;
        let mut digits = self.digits.clone();
        if cut <= 0 {
            if digits != "0" {
                digits.extend(std::iter::repeat_n('0', cut.unsigned_abs() as usize));
            }
            return Self { digits, scale: wanted };
        }
        let kept = digits.len().saturating_sub(cut as usize);
        let is_up = cut as usize <= digits.len()
            && digits.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5');
        digits.truncate(kept);
        if is_up {
            digits = incremented(digits);
        }
        if digits.is_empty() {
            digits.push('0');
        }
        Self { digits, scale: wanted }
    }

    /// As it is written, with one digit before the point at least.
    fn text(&self) -> String {
        let fraction = self.scale.max(0) as usize;
        let digits = format!("{:0>width$}", self.digits, width = fraction + 1);
        let (whole, behind) = digits.split_at(digits.len() - fraction);
        match behind.is_empty() {
            true => whole.to_owned(),
            false => format!("{whole}.{behind}"),
        }
    }

    /// One digit, so many behind the point, and an exponent; 9.99 may be rounded to 10.0.
    fn scientific(&self, fraction: usize) -> String {
        let exponent = match self.digits == "0" {
            true => 0,
            false => self.digits.len() as i64 - 1 - self.scale,
        };
        let one = Self { digits: self.digits.clone(), scale: self.scale + exponent };
        format!("{}{}", one.rounded(fraction).text(), exponent_text(exponent))
    }
}

/// The next number.
fn incremented(digits: String) -> String {
    let mut digits = digits.into_bytes();
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return digits.into_iter().map(char::from).collect();
        }
        *digit = b'0';
    }
    std::iter::once('1').chain(digits.into_iter().map(char::from)).collect()
}

const ROMAN: [(i32, &str); 13] = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// A Roman number; of digits and signs in the format nothing is written.
fn write_roman(pattern: &Pattern, value: i32) -> String {
    let mut text = String::new();
    match value {
        1..=3999 => {
            let mut rest = value;
            for (worth, letters) in ROMAN {
                while rest >= worth {
                    text.push_str(letters);
                    rest -= worth;
                }
            }
        }
        _ => text.extend(std::iter::repeat_n('#', 15)),
    }
    Writer::new(&pattern.as_roman(), Digits { is_negative: false, text }, 0, 0, None).write()
}

/// The number by the parts of the format. `fraction` are its digits behind the point.
fn write(pattern: &Pattern, number: Digits, fraction: usize) -> Result<String> {
    let Digits { is_negative, mut text } = number;
    let room = pattern.whole + pattern.shift;
    let whole = text.find('.').unwrap_or(text.len());
    if whole > room {
        text = std::iter::repeat_n('#', room).collect();
        text.push('.');
        text.extend(std::iter::repeat_n('#', fraction));
    }
    let blanks = room.saturating_sub(whole);
    let ordinal = match pattern.parts.iter().any(|part| matches!(part, Part::Ordinal { .. })) {
        true if !is_negative && !pattern.has_point && !text.starts_with('#') => {
            Some(ordinal_of(&text)?)
        }
        _ => None,
    };
    let number = Digits { is_negative, text };
    Ok(Writer::new(pattern, number, fraction, blanks, ordinal).write())
}

fn ordinal_of(number: &str) -> Result<&'static str> {
    let mut last = number.bytes().rev();
    let (last, before) = (last.next(), last.next());
    match (before, last) {
        (Some(b'1'), Some(b'0'..=b'9')) => Ok("th"),
        (_, Some(b'1')) => Ok("st"),
        (_, Some(b'2')) => Ok("nd"),
        (_, Some(b'3')) => Ok("rd"),
        (_, Some(b'0'..=b'9')) => Ok("th"),
        _ => Err(failure("22P02", format!("\"{number}\" is not a number"))),
    }
}

/// Writes the parts of a format one after the other.
struct Writer<'a> {
    pattern: &'a Pattern,
    number: Vec<u8>,
    /// `None` where nothing has one.
    sign: Option<u8>,
    ordinal: Option<&'static str>,
    anchor: Option<Anchor>,
    has_brackets: bool,
    /// Places in front of the number.
    blanks: usize,
    /// The last digit behind the point that is not left out, where zeros at the end are.
    last_kept: Option<usize>,
    /// Places of digits, but for the last.
    places: i64,
    is_signed: bool,
    is_in_number: bool,
    /// The next digit of the number, and the next place of the format.
    at: usize,
    place: usize,
    /// A byte 0 ends the text.
    out: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(
        pattern: &'a Pattern,
        number: Digits,
        fraction: usize,
        blanks: usize,
        ordinal: Option<&'static str>,
    ) -> Self {
        let sign = match (pattern.is_roman, number.is_negative) {
            (true, _) => None,
            (_, true) => Some(b'-'),
            (_, false) => Some(b'+'),
        };
        let is_plus = sign == Some(b'+');
        let whole = pattern.whole + pattern.shift;
        let has_own_sign = pattern.has_plus || pattern.has_minus;
        let is_signed = match has_own_sign {
            true => pattern.has_minus,
            false => is_plus && pattern.is_tight && pattern.anchor.is_none(),
        };
        let mut anchor = pattern.anchor;
        if !has_own_sign && anchor == Some(Anchor::Before) && whole == pattern.before_anchor {
            anchor = Some(Anchor::Behind);
        }
        let drops_brackets = !has_own_sign && pattern.is_tight && sign != Some(b'-');
        let mut places = (fraction + whole) as i64 - 1;
        if !is_signed && blanks == 0 {
            places += 1;
        }
        let number = number.text.into_bytes();
        let last_kept = match pattern.is_tight && pattern.has_point {
            true => last_kept(&number, pattern, blanks),
            false => None,
        };
        Self {
            pattern,
            number,
            sign,
            ordinal,
            anchor,
            has_brackets: pattern.has_brackets && !drops_brackets,
            blanks,
            last_kept,
            places,
            is_signed,
            is_in_number: false,
            at: 0,
            place: 0,
            out: Vec::with_capacity(pattern.parts.len() + 2),
        }
    }

    fn write(mut self) -> String {
        for place in 0..self.pattern.parts.len() {
            if let Some(part) = self.pattern.parts.get(place) {
                self.part(*part);
            }
        }
        if let Some(end) = self.out.iter().position(|byte| *byte == 0) {
            self.out.truncate(end);
        }
        String::from_utf8_lossy(&self.out).into_owned()
    }

    fn part(&mut self, part: Part) {
        let is_tight = self.pattern.is_tight;
        match part {
            Part::Nine | Part::Zero | Part::Point => self.digit(part),
            Part::Group if self.is_in_number => self.out.push(b','),
            Part::Group if !is_tight => self.out.push(b' '),
            Part::Group => {}
            Part::Currency => self.out.push(b' '),
            Part::Minus if self.sign == Some(b'-') => self.out.push(b'-'),
            Part::Plus if self.sign == Some(b'+') => self.out.push(b'+'),
            Part::Minus | Part::Plus if !is_tight => self.out.push(b' '),
            Part::Minus | Part::Plus => {}
            Part::Sign => self.out.push(self.sign.unwrap_or(0)),
            Part::Ordinal { is_upper } => {
                let ordinal = self.ordinal.unwrap_or_default();
                self.letters(ordinal, is_upper);
            }
            Part::Roman { is_upper } => {
                let text = String::from_utf8_lossy(&self.number).into_owned();
                let width = if is_tight { 0 } else { 15 };
                self.letters(&format!("{text:>width$}"), is_upper);
            }
            Part::Literal(letter) => {
                self.out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    fn letters(&mut self, text: &str, is_upper: bool) {
        match is_upper {
            true => self.out.extend(text.bytes().map(|letter| letter.to_ascii_uppercase())),
            false => self.out.extend(text.bytes().map(|letter| letter.to_ascii_lowercase())),
        }
    }

    /// Whether the 0 in front of the point is not written.
    fn is_blank_zero(&self) -> bool {
        self.pattern.first_zero.is_none()
            && self.at == 0
            && self.number.first() == Some(&b'0')
            && self.pattern.fraction > 0
    }

    /// Whether nothing is left behind the point.
    fn ends_with_point(&self) -> bool {
        self.last_kept.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn digit(&mut self, part: Part) {
        if self.pattern.is_roman {
            return;
        }
        let is_filled = self.place < self.blanks;
        let is_zero_here = self.pattern.first_zero.is_some_and(|first| first <= self.place);
        let begins = !is_filled || self.pattern.first_zero == Some(self.place);
        if !self.is_signed && begins && (!self.is_blank_zero() || self.ends_with_point()) {
            self.sign_before();
        }
        match (is_filled, is_zero_here) {
            (true, true) => {
                self.out.push(b'0');
                self.is_in_number = true;
            }
            (true, false) if !self.pattern.is_tight => self.out.push(b' '),
            (true, false) => {}
            (false, _) => {
                self.digit_of_number(part);
                self.at += usize::from(self.at < self.number.len());
            }
        }
        let end = self.places + i64::from(self.blanks > 0) + i64::from(self.pattern.has_point);
        // Behind the last digit that is kept, it was written already.
        if self.last_kept != Some(self.at) && self.place as i64 + 1 == end {
            self.sign_behind();
        }
        self.place += 1;
    }

    fn sign_before(&mut self) {
        let is_minus = self.sign == Some(b'-');
        let sign = match (self.anchor, self.has_brackets) {
            (Some(Anchor::Before), _) => Some(if is_minus { b'-' } else { b'+' }),
            (Some(Anchor::Behind), _) => return,
            (None, true) => Some(if is_minus { b'<' } else { b' ' }),
            (None, false) if is_minus => Some(b'-'),
            (None, false) => (!self.pattern.is_tight).then_some(b' '),
        };
        self.out.extend(sign);
        self.is_signed = true;
    }

    fn sign_behind(&mut self) {
        let is_minus = self.sign == Some(b'-');
        if self.is_signed && self.has_brackets {
            self.out.push(if is_minus { b'>' } else { b' ' });
        } else if self.anchor == Some(Anchor::Behind) {
            self.out.push(if is_minus { b'-' } else { b'+' });
        }
    }

    fn digit_of_number(&mut self, part: Part) {
        let digit = self.number.get(self.at).copied().unwrap_or(0);
        if digit == b'.' {
            self.out.push(b'.');
            self.is_in_number = false;
            return;
        }
        if self.last_kept.is_some_and(|last| self.at > last) && part != Part::Zero {
            self.is_in_number = false;
            return;
        }
        if self.is_blank_zero() {
            if !self.pattern.is_tight {
                self.out.push(b' ');
            } else if self.ends_with_point() {
                self.out.push(b'0');
            }
            return;
        }
        self.out.push(digit);
        self.is_in_number = true;
    }
}

/// The place of the last digit behind the point that is no zero at the end, or that the format asks for.
fn last_kept(number: &[u8], pattern: &Pattern, blanks: usize) -> Option<usize> {
    let point = number.iter().position(|byte| *byte == b'.')?;
    let last = number.iter().rposition(|byte| *byte != b'0').unwrap_or(point).max(point);
    if pattern.zeros_end <= blanks {
        return Some(last);
    }
    let wanted = number.len().saturating_sub(1).min(pattern.zeros_end - blanks);
    Some(last.max(wanted))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::i256;

    use super::*;

    #[test]
    fn numbers_are_written_by_patterns() {
        let decimal = |digits: i64, scale| Decimal::new(i256::from(digits), scale);
        for (value, format, expected) in [
            (decimal(12, 0), "99V9", " 120"),
            (decimal(482, 0), "999th", " 482nd"),
            (decimal(-482, 0), "PL999", " -482"),
            (decimal(4_859, 7), "9.99EEEE", " 4.86e-04"),
            (decimal(9_999, 3), "9.99EEEE", " 10.00e+00"),
            (decimal(485, 0), "RN", "        CDLXXXV"),
            (decimal(12_345, 0), "99G999", " 12,345"),
            (decimal(-1, 1), "99.99PR", "  <.10>"),
            (decimal(5, 1), "FM9.9", ".5"),
            (decimal(0, 0), "FM9.9", "0."),
            (decimal(1_234, 0), "999", " ###"),
        ] {
            let pattern = Pattern::of(format).unwrap();
            assert_eq!(write_decimal(value, &pattern).unwrap(), expected, "{format}");
        }
        let float = |value, is_real, format| {
            write_float(value, is_real, &Pattern::of(format).unwrap()).unwrap()
        };
        assert_eq!(float(f64::INFINITY, false, "999"), " ###");
        assert_eq!(float(0.1 + 0.2, true, "9.999999999"), "  .30000");
        assert!(write_integer(2_000_000_000, false, &Pattern::of("9V9").unwrap()).is_err());
    }
}
