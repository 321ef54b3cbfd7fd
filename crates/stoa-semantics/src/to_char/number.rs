//! Numbers by template patterns: `9`, `0`, `.`, `D`, `,`, `G`, `S`, `MI`, `PL`, `SG`, `PR`, `FM`.

use arrow::datatypes::i256;
use datafusion::error::{DataFusionError, Result};

use super::super::call::{failure, unsupported};
use super::super::numeric::Decimal;

#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// A digit; whether zeros in front of the number are written.
    Digit {
        zero: bool,
    },
    Point,
    Group,
    Literal(char),
    Minus,
    Plus,
    Sign,
}

/// Where the sign stands.
#[derive(Clone, Copy, PartialEq)]
enum SignPlace {
    /// In front of the first digit, where there is a place for it.
    Free,
    /// `S` in front, `S` behind.
    Lead,
    Trail,
    /// `PR`.
    Brackets,
    /// `MI`, `PL`, `SG`: among the parts.
    Within,
}

struct Format {
    parts: Vec<Part>,
    sign: SignPlace,
    fills: bool,
    /// Digits before and after the point.
    whole: usize,
    fraction: usize,
}

fn refused(pattern: &str) -> DataFusionError {
    unsupported(
        format!("the pattern {pattern} of to_char is not supported for numbers"),
        "docs/sql.md lists the patterns",
    )
}

fn parse(format: &str) -> Result<Format> {
    let mut of =
        Format { parts: Vec::new(), sign: SignPlace::Free, fills: true, whole: 0, fraction: 0 };
    let mut rest = format;
    let mut after_point = false;
    while let Some(c) = rest.chars().next() {
        let two: String = rest.chars().take(2).collect::<String>().to_ascii_uppercase();
        let mut length = c.len_utf8();
        match (two.as_str(), c.to_ascii_uppercase()) {
            ("FM", _) => (of.fills, length) = (false, 2),
            ("MI", _) => {
                (of.sign, length) = (SignPlace::Within, 2);
                of.parts.push(Part::Minus);
            }
            ("PL", _) => {
                (of.sign, length) = (SignPlace::Within, 2);
                of.parts.push(Part::Plus);
            }
            ("SG", _) => {
                (of.sign, length) = (SignPlace::Within, 2);
                of.parts.push(Part::Sign);
            }
            ("PR", _) => (of.sign, length) = (SignPlace::Brackets, 2),
            ("TH" | "RN" | "EE", _) => return Err(refused(&two)),
            (_, 'V' | 'L' | 'B' | 'C') => return Err(refused(&c.to_string())),
            (_, 'S') => {
                let leads = of.whole == 0;
                of.sign = if leads { SignPlace::Lead } else { SignPlace::Trail };
            }
            (_, digit @ ('9' | '0')) => {
                of.parts.push(Part::Digit { zero: digit == '0' });
                *(if after_point { &mut of.fraction } else { &mut of.whole }) += 1;
            }
            (_, '.' | 'D') => {
                if after_point {
                    return Err(failure("42601", "multiple decimal points"));
                }
                after_point = true;
                of.parts.push(Part::Point);
            }
            (_, ',' | 'G') => of.parts.push(Part::Group),
            (_, '"') => {
                let text = &rest[1..];
                let end = text.find('"').unwrap_or(text.len());
                of.parts.extend(text[..end].chars().map(Part::Literal));
                length = (end + 2).min(rest.len());
            }
            _ => of.parts.push(Part::Literal(c)),
        }
        rest = &rest[length..];
    }
    Ok(of)
}

pub(super) fn write_decimal(value: Decimal, format: &str) -> Result<String> {
    let format = parse(format)?;
    let digits = value
        .at_scale(format.fraction as i32)
        .ok_or_else(|| failure("22003", "numeric value out of range"))?;
    let text = digits.wrapping_abs().to_string();
    Ok(write(&format, value.digits < i256::ZERO && digits != i256::ZERO, &text))
}

pub(super) fn write_float(value: f64, format: &str) -> Result<String> {
    let format = parse(format)?;
    if !value.is_finite() {
        return Err(unsupported(
            "to_char of infinity and NaN is not supported",
            "leave them out with WHERE",
        ));
    }
    // No more digits than a float has.
    let whole = format!("{:.0}", value.abs()).len();
    let shown = 15_usize.saturating_sub(whole).min(format.fraction);
    let mut text = format!("{:.shown$}", value.abs());
    if shown == 0 {
        text.push('.');
    }
    text.extend(std::iter::repeat_n('0', format.fraction - shown));
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_negative = value < 0.0 && digits.bytes().any(|digit| digit != b'0');
    Ok(write(&format, is_negative, &digits))
}

/// `digits` are those of the number, as many after the point as the format has.
fn write(format: &Format, is_negative: bool, digits: &str) -> String {
    let digits = format!("{:0>width$}", digits, width = format.fraction + 1);
    let (whole, fraction) = digits.split_at(digits.len() - format.fraction);
    let whole = whole.trim_start_matches('0');
    let overflows = whole.len() > format.whole;
    // The first place at which something is written.
    let zero_from = format
        .parts
        .iter()
        .take_while(|part| **part != Part::Point)
        .filter_map(|part| match part {
            Part::Digit { zero } => Some(*zero),
            _ => None,
        })
        .position(|zero| zero)
        .unwrap_or(format.whole);
    let mut first = zero_from.min(format.whole - whole.len().min(format.whole));
    if first == format.whole && format.fraction == 0 && format.whole > 0 {
        first = format.whole - 1;
    }
    if overflows {
        first = 0;
    }
    let body = Body { format, is_negative, whole, fraction, overflows, first };
    let text = body.write();
    match format.sign {
        SignPlace::Trail => format!("{text}{}", if is_negative { '-' } else { '+' }),
        SignPlace::Brackets if !is_negative && !format.fills => text.trim_start().to_owned(),
        _ => text,
    }
}

struct Body<'a> {
    format: &'a Format,
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    overflows: bool,
    first: usize,
}

impl Body<'_> {
    fn write(&self) -> String {
        let (format, mut out) = (self.format, String::new());
        let (mut place, mut after_point, mut at) = (0, false, 0);
        let mut is_signed = false;
        let shown_fraction = self.shown_fraction();
        for part in &format.parts {
            match part {
                Part::Digit { .. } if after_point => {
                    if at < shown_fraction {
                        out.push(self.digit_after(at));
                    }
                    at += 1;
                }
                Part::Digit { .. } => {
                    if place == self.first && !is_signed {
                        self.sign(&mut out);
                        is_signed = true;
                    }
                    match place < self.first {
                        true if format.fills => out.push(' '),
                        true => {}
                        false => out.push(self.digit_before(place)),
                    }
                    place += 1;
                }
                Part::Point => {
                    if !is_signed {
                        self.sign(&mut out);
                        is_signed = true;
                    }
                    after_point = true;
                    out.push('.');
                }
                Part::Group => match place > self.first {
                    true => out.push(','),
                    false if format.fills => out.push(' '),
                    false => {}
                },
                Part::Literal(c) => out.push(*c),
                Part::Minus => self.mark(self.is_negative, '-', &mut out),
                Part::Plus => self.mark(!self.is_negative, '+', &mut out),
                Part::Sign => out.push(if self.is_negative { '-' } else { '+' }),
            }
        }
        if format.sign == SignPlace::Brackets {
            match (self.is_negative, format.fills) {
                (true, _) => out.push('>'),
                (false, true) => out.push(' '),
                _ => {}
            }
        }
        out
    }

    fn mark(&self, is_set: bool, mark: char, out: &mut String) {
        match is_set {
            true => out.push(mark),
            false if self.format.fills => out.push(' '),
            false => {}
        }
    }

    /// The sign in front of the first digit.
    fn sign(&self, out: &mut String) {
        let sign = match (self.format.sign, self.is_negative) {
            (SignPlace::Free, true) => '-',
            (SignPlace::Lead, true) => '-',
            (SignPlace::Lead, false) => '+',
            (SignPlace::Brackets, true) => '<',
            (SignPlace::Free | SignPlace::Brackets, false) if self.format.fills => ' ',
            _ => return,
        };
        out.push(sign);
    }

    fn digit_before(&self, place: usize) -> char {
        if self.overflows {
            return '#';
        }
        let from_end = self.format.whole - place;
        match self.whole.len() >= from_end {
            true => char::from(self.whole.as_bytes()[self.whole.len() - from_end]),
            false => '0',
        }
    }

    fn digit_after(&self, at: usize) -> char {
        if self.overflows {
            return '#';
        }
        self.fraction.as_bytes().get(at).map_or('0', |digit| char::from(*digit))
    }

    /// Digits after the point that are written: without zeros at the end where nothing is filled up.
    fn shown_fraction(&self) -> usize {
        if self.format.fills || self.overflows {
            return self.format.fraction;
        }
        let wanted = self
            .format
            .parts
            .iter()
            .skip_while(|part| **part != Part::Point)
            .filter_map(|part| match part {
                Part::Digit { zero } => Some(*zero),
                _ => None,
            })
            .collect::<Vec<_>>();
        let least = wanted.iter().rposition(|zero| *zero).map_or(0, |last| last + 1);
        self.fraction.trim_end_matches('0').len().max(least)
    }
}
