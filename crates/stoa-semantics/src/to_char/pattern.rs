//! Template patterns for numbers, as `to_char` writes and `to_number` reads by them.
//!
//! In: a format such as `FM9G999D00`. Out: its parts in their order, and what they say together. **Invariant:**
//! formats that PostgreSQL refuses are refused here, with its SQLSTATE.
//!
//! Source: chapter 9.8 of PostgreSQL's manual, and its answers where that says nothing.

use datafusion::error::{DataFusionError, Result};

use super::super::call::{failure, unsupported};

/// What one pattern writes or reads. The sign of `S` and `PR` is part of the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `9`
    Nine,
    /// `0`
    Zero,
    /// `.` and `D`
    Point,
    /// `,` and `G`
    Group,
    /// `L`: a blank, there is no currency.
    Currency,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Sign,
    /// `TH`, `th`
    Ordinal {
        is_upper: bool,
    },
    /// `RN`, `rn`
    Roman {
        is_upper: bool,
    },
    Literal(char),
}

/// Where the sign of `S` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Before,
    Behind,
}

/// A format as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    pub(super) parts: Vec<Part>,
    /// Digits before and after the point.
    pub(super) whole: usize,
    pub(super) fraction: usize,
    /// Digits behind `V`, by which the number is shifted.
    pub(super) shift: usize,
    /// Digits in front of the first `0`; `None` without one before the point.
    pub(super) first_zero: Option<usize>,
    /// Digits up to the last `0`.
    pub(super) zeros_end: usize,
    pub(super) has_point: bool,
    /// `FM`: nothing is filled with blanks.
    pub(super) is_tight: bool,
    pub(super) anchor: Option<Anchor>,
    /// Digits in front of `S`.
    pub(super) before_anchor: usize,
    pub(super) has_brackets: bool,
    pub(super) has_minus: bool,
    pub(super) has_plus: bool,
    pub(super) is_roman: bool,
    pub(super) is_scientific: bool,
    has_shift: bool,
    is_blank: bool,
}

/// Digits behind `V`, at most.
const SHIFT_MAX: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Part(Part),
    Signed,
    Brackets,
    Shift,
    Tight,
    Scientific,
    Blank,
    /// `C`, `SP`: known to PostgreSQL, and without effect.
    Idle,
}

const WORDS: [(&str, Word); 18] = [
    ("EEEE", Word::Scientific),
    ("FM", Word::Tight),
    ("MI", Word::Part(Part::Minus)),
    ("PL", Word::Part(Part::Plus)),
    ("PR", Word::Brackets),
    ("RN", Word::Part(Part::Roman { is_upper: true })),
    ("SG", Word::Part(Part::Sign)),
    ("SP", Word::Idle),
    ("TH", Word::Part(Part::Ordinal { is_upper: true })),
    ("B", Word::Blank),
    ("C", Word::Idle),
    ("D", Word::Part(Part::Point)),
    ("G", Word::Part(Part::Group)),
    ("L", Word::Part(Part::Currency)),
    ("S", Word::Signed),
    ("V", Word::Shift),
    ("0", Word::Part(Part::Zero)),
    ("9", Word::Part(Part::Nine)),
];

fn wrong(message: &str) -> DataFusionError {
    failure("42601", message)
}

/// The word that a text begins with, in capitals only or in small letters only, and its length.
fn word_of(text: &str) -> Option<(Word, usize)> {
    match text.as_bytes().first()? {
        b'.' => return Some((Word::Part(Part::Point), 1)),
        b',' => return Some((Word::Part(Part::Group), 1)),
        _ => {}
    }
    WORDS.iter().find_map(|(name, word)| {
        let start = text.get(..name.len())?;
        if start == *name {
            return Some((*word, name.len()));
        }
        let is_small = start.bytes().all(|letter| !letter.is_ascii_uppercase());
        (is_small && start.eq_ignore_ascii_case(name)).then(|| (small(*word), name.len()))
    })
}

fn small(word: Word) -> Word {
    match word {
        Word::Part(Part::Roman { .. }) => Word::Part(Part::Roman { is_upper: false }),
        Word::Part(Part::Ordinal { .. }) => Word::Part(Part::Ordinal { is_upper: false }),
        other => other,
    }
}

impl Pattern {
    /// # Errors
    /// Patterns that do not go together (42601).
    pub(super) fn of(format: &str) -> Result<Self> {
        let mut pattern = Self::default();
        let mut rest = format;
        while let Some(first) = rest.chars().next() {
            if let Some((word, length)) = word_of(rest) {
                pattern.add(word)?;
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            match first {
                '"' => rest = pattern.add_quoted(rest),
                '\\' if rest.starts_with('"') => {
                    pattern.parts.push(Part::Literal('"'));
                    rest = rest.get(1..).unwrap_or_default();
                }
                _ => pattern.parts.push(Part::Literal(first)),
            }
        }
        if pattern.shift > SHIFT_MAX {
            let message = format!("more than {SHIFT_MAX} digits behind V are not supported");
            return Err(unsupported(message, "multiply the number instead"));
        }
        Ok(pattern)
    }

    /// The same for a Roman number, which has no digits and no sign.
    pub(super) fn as_roman(&self) -> Self {
        let (parts, is_tight) = (self.parts.clone(), self.is_tight);
        Self { parts, is_tight, is_roman: true, ..Self::default() }
    }

    /// A text in double quotes, of which `\` takes the next letter as it is; what is behind it.
    fn add_quoted<'a>(&mut self, text: &'a str) -> &'a str {
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => break,
                '\\' => self.parts.extend(letters.next().map(Part::Literal)),
                _ => self.parts.push(Part::Literal(letter)),
            }
        }
        letters.as_str()
    }

    fn add(&mut self, word: Word) -> Result<()> {
        if self.is_scientific && word != Word::Scientific {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match word {
            Word::Part(part) => {
                self.add_part(part)?;
                self.parts.push(part);
            }
            Word::Signed => self.add_anchor()?,
            Word::Brackets => {
                if self.anchor.is_some() || self.has_plus || self.has_minus {
                    return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.has_brackets = true;
            }
            Word::Shift => {
                if self.has_point {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.has_shift = true;
            }
            Word::Tight => self.is_tight = true,
            Word::Blank => {
                self.is_blank |= self.whole == 0 && self.fraction == 0 && self.first_zero.is_none();
            }
            Word::Idle => {}
            Word::Scientific => self.add_exponent()?,
        }
        Ok(())
    }

    fn add_part(&mut self, part: Part) -> Result<()> {
        match part {
            Part::Nine | Part::Zero => self.add_digit(part == Part::Zero)?,
            Part::Point => {
                if self.has_point {
                    return Err(wrong("multiple decimal points"));
                }
                if self.has_shift {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
            }
            Part::Minus | Part::Plus | Part::Sign if self.anchor.is_some() => {
                let name = match part {
                    Part::Minus => "MI",
                    Part::Plus => "PL",
                    _ => "SG",
                };
                return Err(wrong(&format!("cannot use \"S\" and \"{name}\" together")));
            }
            Part::Minus => self.has_minus = true,
            Part::Plus => self.has_plus = true,
            Part::Sign => (self.has_minus, self.has_plus) = (true, true),
            Part::Roman { .. } => self.is_roman = true,
            Part::Group | Part::Currency | Part::Ordinal { .. } | Part::Literal(_) => {}
        }
        Ok(())
    }

    fn add_digit(&mut self, is_zero: bool) -> Result<()> {
        if self.has_brackets {
            let digit = if is_zero { '0' } else { '9' };
            return Err(wrong(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if !is_zero && self.has_shift {
            self.shift += 1;
            return Ok(());
        }
        if is_zero && !self.has_point && self.first_zero.is_none() {
            self.first_zero = Some(self.whole);
        }
        *(if self.has_point { &mut self.fraction } else { &mut self.whole }) += 1;
        if is_zero {
            self.zeros_end = self.whole + self.fraction;
        }
        Ok(())
    }

    fn add_anchor(&mut self) -> Result<()> {
        if self.anchor.is_some() {
            return Err(wrong("cannot use \"S\" twice"));
        }
        if self.has_plus || self.has_minus || self.has_brackets {
            return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
        }
        self.anchor = Some(match self.has_point {
            false => Anchor::Before,
            true => Anchor::Behind,
        });
        self.before_anchor = self.whole;
        Ok(())
    }

    fn add_exponent(&mut self) -> Result<()> {
        if self.is_scientific {
            return Err(wrong("cannot use \"EEEE\" twice"));
        }
        let has_others = self.is_blank
            || self.is_tight
            || self.anchor.is_some()
            || self.has_brackets
            || self.has_minus
            || self.has_plus
            || self.is_roman
            || self.has_shift;
        if has_others {
            return Err(wrong("\"EEEE\" is incompatible with other formats"));
        }
        self.is_scientific = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_told_from_letters() {
        let pattern = Pattern::of("fm9\"9x\\\"\"Sp\\\"ñV99th").unwrap();
        assert_eq!((pattern.whole, pattern.shift, pattern.is_tight), (1, 2, true));
        let letters: String = pattern
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Literal(letter) => Some(*letter),
                _ => None,
            })
            .collect();
        assert_eq!(letters, "9x\"p\"ñ");
        for format in ["9.9.9", "S9S", "9PR9", "SMI", "9V.9", "9.V", "EEEE9", "FM9EEEE"] {
            assert!(Pattern::of(format).is_err(), "{format}");
        }
    }
}
