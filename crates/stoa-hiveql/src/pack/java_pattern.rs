//! Java's patterns for dates and times (`yyyy-MM-dd HH:mm:ss`): the letters that mean the same in `SimpleDateFormat`
//! and `DateTimeFormatter`. Others are refused, as Hive takes the one or the other (`hive.datetime.formatter`).

use std::fmt::Write;

use chrono::{Datelike, NaiveDate, NaiveDateTime, Timelike};
use stoa_error::{Error, Result};

/// One part of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// A letter, so many times.
    Field(char, usize),
    Literal(String),
}

fn parts(pattern: &str) -> Result<Vec<Part>> {
    let mut all = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\'' => all.push(Part::Literal(quoted(&mut chars, pattern)?)),
            letter if letter.is_ascii_alphabetic() => {
                let mut count = 1;
                while chars.next_if_eq(&letter).is_some() {
                    count += 1;
                }
                check(letter, count, pattern)?;
                all.push(Part::Field(letter, count));
            }
            other => all.push(Part::Literal(other.to_string())),
        }
    }
    Ok(all)
}

fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, pattern: &str) -> Result<String> {
    let mut text = String::new();
    while let Some(char) = chars.next() {
        match char {
            '\'' if chars.next_if_eq(&'\'').is_some() => text.push('\''),
            // Two quotes outside of a text are one.
            '\'' if text.is_empty() => return Ok("'".to_owned()),
            '\'' => return Ok(text),
            other => text.push(other),
        }
    }
    Err(wrong(pattern, "a quote has no end"))
}

fn check(letter: char, count: usize, pattern: &str) -> Result<()> {
    let is_known = match letter {
        'y' => matches!(count, 1 | 2 | 4),
        'M' | 'E' => count <= 4,
        'd' | 'H' | 'h' | 'k' | 'm' | 's' => count <= 2,
        'D' => count <= 3,
        'S' => count == 3,
        'a' => count == 1,
        _ => false,
    };
    if is_known {
        return Ok(());
    }
    let field = letter.to_string().repeat(count);
    Err(Error::unsupported(format!(
        "the pattern letters {field} in \"{pattern}\" are not supported"
    ))
    .with_detail(
        "supported: y, yy, yyyy, M to MMMM, d, D, E to EEEE, H, h, k, m, s, SSS, a, 'text'",
    )
    .with_hint("use year(), quarter(), weekofyear() and the like for other parts"))
}

fn wrong(pattern: &str, why: &str) -> Error {
    Error::invalid(format!("invalid pattern \"{pattern}\": {why}")).with_sqlstate("22023")
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A time in a pattern.
///
/// # Errors
/// 0A000: a letter that is not supported; 22023: a quote without an end.
pub(super) fn format(time: NaiveDateTime, pattern: &str) -> Result<String> {
    let mut all = String::new();
    for part in parts(pattern)? {
        let _ = match part {
            Part::Literal(text) => write!(all, "{text}"),
            Part::Field(letter, count) => field(&mut all, time, letter, count),
        };
    }
    Ok(all)
}

fn field(all: &mut String, time: NaiveDateTime, letter: char, count: usize) -> std::fmt::Result {
    let name = |names: &[&str], at: u32| {
        let name = names.get(usize::try_from(at).unwrap_or_default()).copied().unwrap_or_default();
        if count == 4 { name.to_owned() } else { name.chars().take(3).collect() }
    };
    let number = match letter {
        'y' if count == 2 => return write!(all, "{:02}", time.year().rem_euclid(100)),
        'y' => return write!(all, "{:0count$}", time.year()),
        'M' if count > 2 => return write!(all, "{}", name(&MONTHS, time.month0())),
        'E' => return write!(all, "{}", name(&DAYS, time.weekday().num_days_from_monday())),
        'a' => return write!(all, "{}", if time.hour() < 12 { "AM" } else { "PM" }),
        'M' => time.month(),
        'd' => time.day(),
        'D' => time.ordinal(),
        'H' => time.hour(),
        'h' => (time.hour() + 11) % 12 + 1,
        'k' => (time.hour() + 23) % 24 + 1,
        'm' => time.minute(),
        's' => time.second(),
        _ => time.nanosecond() / 1_000_000 % 1000,
    };
    write!(all, "{number:0count$}")
}

/// The time that a text is in a pattern; `None` where it is none.
///
/// # Errors
/// As [`format`].
pub(super) fn parse(text: &str, pattern: &str) -> Result<Option<NaiveDateTime>> {
    let parts = parts(pattern)?;
    let mut read = Read { rest: text.trim(), found: Found::default() };
    for (at, part) in parts.iter().enumerate() {
        // Digits that follow each other without anything between are of fixed width.
        let is_followed = matches!(parts.get(at + 1), Some(Part::Field(..)));
        let is_read = match part {
            Part::Literal(text) => read.literal(text),
            Part::Field(letter, count) => read.field(*letter, *count, is_followed),
        };
        if is_read.is_none() {
            return Ok(None);
        }
    }
    Ok(if read.rest.is_empty() { read.found.time() } else { None })
}

#[derive(Default)]
struct Found {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    ordinal: Option<u32>,
    hour: u32,
    half: Option<u32>,
    is_afternoon: Option<bool>,
    minute: u32,
    second: u32,
    milli: u32,
}

impl Found {
    fn time(&self) -> Option<NaiveDateTime> {
        let year = self.year.unwrap_or(1970);
        let date = match self.ordinal {
            Some(ordinal) => NaiveDate::from_yo_opt(year, ordinal)?,
            None => NaiveDate::from_ymd_opt(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match (self.half, self.is_afternoon) {
            (Some(half), afternoon) => half % 12 + if afternoon == Some(true) { 12 } else { 0 },
            (None, _) => self.hour,
        };
        date.and_hms_milli_opt(hour, self.minute, self.second, self.milli)
    }
}

struct Read<'a> {
    rest: &'a str,
    found: Found,
}

impl Read<'_> {
    fn literal(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    fn number(&mut self, most: usize) -> Option<u32> {
        let length = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        digits.parse().ok()
    }

    fn name(&mut self, names: &[&str], is_long: bool) -> Option<u32> {
        let found = names.iter().position(|name| {
            let length = if is_long { name.len() } else { 3 };
            self.rest.get(..length).is_some_and(|text| text.eq_ignore_ascii_case(&name[..length]))
        })?;
        let length = if is_long { names[found].len() } else { 3 };
        self.rest = &self.rest[length..];
        u32::try_from(found).ok()
    }

    fn field(&mut self, letter: char, count: usize, is_followed: bool) -> Option<()> {
        let width = |most: usize| if is_followed { count } else { most };
        let range = |value: u32, min: u32, max: u32| (min..=max).contains(&value).then_some(value);
        match letter {
            'y' if count == 2 => {
                let year = i32::try_from(self.number(2)?).ok()?;
                self.found.year = Some(2000 + year);
            }
            'y' => self.found.year = Some(i32::try_from(self.number(width(4).max(4))?).ok()?),
            'M' if count > 2 => self.found.month = Some(self.name(&MONTHS, count == 4)? + 1),
            'E' => drop(self.name(&DAYS, count == 4)?),
            'a' => {
                let half = self.rest.get(..2)?.to_ascii_uppercase();
                self.found.is_afternoon = Some(match half.as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                self.rest = &self.rest[2..];
            }
            'M' => self.found.month = Some(range(self.number(width(2))?, 1, 12)?),
            'd' => self.found.day = Some(range(self.number(width(2))?, 1, 31)?),
            'D' => self.found.ordinal = Some(range(self.number(width(3))?, 1, 366)?),
            'H' => self.found.hour = range(self.number(width(2))?, 0, 23)?,
            'k' => self.found.hour = range(self.number(width(2))?, 1, 24)? % 24,
            'h' => self.found.half = Some(range(self.number(width(2))?, 1, 12)?),
            'm' => self.found.minute = range(self.number(width(2))?, 0, 59)?,
            's' => self.found.second = range(self.number(width(2))?, 0, 59)?,
            _ => self.found.milli = self.number(3)?,
        }
        Some(())
    }
}
