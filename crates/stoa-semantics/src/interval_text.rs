//! Texts as intervals: PostgreSQL's own form, `Y-M D H:M:S` of the SQL standard, and ISO 8601 (`P1DT2H`).
//!
//! Source: PostgreSQL's `DecodeInterval` and `DecodeISO8601Interval`.

use arrow::datatypes::IntervalMonthDayNano;
use datafusion::error::{DataFusionError, Result};

use super::call::failure;

const SECOND_US: f64 = 1e6;
const DAY_US: f64 = 86_400e6;

/// What has been read so far.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
    /// Bits of the units that were named: none is named twice.
    seen: u16,
}

/// Bits of [`Sum::seen`].
const SECONDS: u16 = 0b111;
const TIME: u16 = 0b1_1111;
const DAY: u16 = 1 << 5;
const MONTH: u16 = 1 << 7;
const YEAR: u16 = 1 << 8;

/// Reads a text.
///
/// # Errors
/// It is no interval (22007), or too long (22008, 22015).
pub(super) fn read(text: &str) -> Result<IntervalMonthDayNano> {
    let trimmed = text.trim();
    let sum = match trimmed.strip_prefix('P') {
        Some(rest) => iso(rest),
        None => plain(trimmed),
    };
    let sum = sum.ok_or_else(|| wrong(text))?;
    let narrow = |of: i64| i32::try_from(of).ok();
    let nanos = sum.micros.checked_mul(1000);
    match (narrow(sum.months), narrow(sum.days), nanos) {
        (Some(months), Some(days), Some(nanos)) => {
            Ok(IntervalMonthDayNano::new(months, days, nanos))
        }
        _ => Err(failure("22015", format!("interval field value out of range: \"{text}\""))),
    }
}

fn wrong(text: &str) -> DataFusionError {
    failure("22007", format!("invalid input syntax for type interval: \"{text}\""))
}

impl Sum {
    /// Adds so many of a unit; `None` for what is no unit, or too many.
    fn add(&mut self, number: f64, unit: &str) -> Option<()> {
        let whole = number.trunc();
        if whole.abs() > 9e15 {
            // Read, and too large for any part.
            self.months = i64::MAX;
            return Some(());
        }
        let (count, rest) = (whole as i64, number - whole);
        self.see(match unit.trim_end_matches('s') {
            "microsecond" | "u" | "usec" | "usecond" => 1,
            "millisecond" | "m" if unit != "m" => 2,
            "msec" | "msecond" => 2,
            "second" | "sec" | "" if rest == 0.0 => 4,
            "second" | "sec" | "" => SECONDS,
            "minute" | "min" | "m" => 8,
            "hour" | "hr" | "h" => 16,
            "day" | "d" => DAY,
            "week" | "w" => 1 << 6,
            "month" | "mon" => MONTH,
            "year" | "yr" | "y" => YEAR,
            "decade" | "dec" => 1 << 9,
            "century" | "centurie" | "cent" | "c" => 1 << 10,
            _ => 1 << 11,
        })?;
        match unit {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "useconds" => {
                self.add_micros(number)
            }
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "mseconds" => {
                self.add_micros(number * 1e3)
            }
            "second" | "seconds" | "sec" | "secs" | "s" => self.add_micros(number * SECOND_US),
            "minute" | "minutes" | "min" | "mins" | "m" => self.add_micros(number * 60e6),
            "hour" | "hours" | "hr" | "hrs" | "h" => self.add_micros(number * 3600e6),
            "day" | "days" | "d" => self.add_days(count, rest),
            "week" | "weeks" | "w" => self.add_days(count.checked_mul(7)?, rest * 7.0),
            "month" | "months" | "mon" | "mons" => {
                self.months = self.months.checked_add(count)?;
                self.add_days(0, rest * 30.0)
            }
            "year" | "years" | "yr" | "yrs" | "y" => self.add_years(number, 1.0),
            "decade" | "decades" | "dec" | "decs" => self.add_years(number, 10.0),
            "century" | "centuries" | "cent" | "c" => self.add_years(number, 100.0),
            "millennium" | "millenniums" | "millennia" | "mil" | "mils" => {
                self.add_years(number, 1000.0)
            }
            _ => None,
        }
    }

    /// `None` where one of the units was named before.
    fn see(&mut self, units: u16) -> Option<()> {
        let is_new = self.seen & units == 0;
        self.seen |= units;
        is_new.then_some(())
    }

    fn add_years(&mut self, number: f64, years: f64) -> Option<()> {
        let months = (number * years * 12.0).round_ties_even();
        self.months = self.months.checked_add(months as i64)?;
        Some(())
    }

    fn add_days(&mut self, count: i64, rest: f64) -> Option<()> {
        let whole = rest.trunc();
        self.days = self.days.checked_add(count)?.checked_add(whole as i64)?;
        self.add_micros((rest - whole) * DAY_US)
    }

    fn add_micros(&mut self, micros: f64) -> Option<()> {
        self.micros = self.micros.saturating_add(micros.round_ties_even() as i64);
        Some(())
    }
}

/// A part of a text: a number, a word, a time of day, or years and months.
fn plain(text: &str) -> Option<Sum> {
    let mut sum = Sum::default();
    let mut parts = Parts { rest: text }.peekable();
    let mut is_empty = true;
    let mut is_ago = false;
    // A sign that stands before a word counts for it.
    while let Some(part) = parts.next() {
        match part? {
            Part::At => {}
            Part::Time(micros) => {
                sum.see(TIME)?;
                sum.add_micros(micros)?;
                is_empty = false;
            }
            Part::YearsAndMonths(months) => {
                sum.see(YEAR | MONTH)?;
                sum.months = sum.months.checked_add(months)?;
                is_empty = false;
            }
            Part::Number(number) => {
                is_empty = false;
                match parts.peek() {
                    Some(Some(Part::Word(_))) => {
                        if let Some(Some(Part::Word(unit))) = parts.next() {
                            match unit.as_str() {
                                "ago" if parts.peek().is_none() => {
                                    sum.add(number, "second")?;
                                    is_ago = true;
                                }
                                unit => sum.add(number, unit)?,
                            }
                        }
                    }
                    // A number before a time of day counts days.
                    Some(Some(Part::Time(_))) => sum.add(number, "day")?,
                    None => sum.add(number, "second")?,
                    _ => return None,
                }
            }
            Part::Word(word) => {
                if word != "ago" || parts.peek().is_some() || is_empty {
                    return None;
                }
                is_ago = true;
            }
        }
    }
    if is_empty {
        return None;
    }
    if is_ago {
        sum = Sum {
            months: sum.months.checked_neg()?,
            days: sum.days.checked_neg()?,
            micros: sum.micros.checked_neg()?,
            ..sum
        };
    }
    Some(sum)
}

enum Part {
    At,
    Number(f64),
    Word(String),
    /// Microseconds.
    Time(f64),
    /// Months.
    YearsAndMonths(i64),
}

struct Parts<'a> {
    rest: &'a str,
}

impl Iterator for Parts<'_> {
    type Item = Option<Part>;

    fn next(&mut self) -> Option<Option<Part>> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        Some(match first {
            '@' => {
                self.rest = &self.rest[1..];
                Some(Part::At)
            }
            first if first.is_ascii_alphabetic() => {
                let end = self.rest.find(|c: char| !c.is_ascii_alphabetic());
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                Some(Part::Word(word.to_ascii_lowercase()))
            }
            _ => self.number(),
        })
    }
}

impl Parts<'_> {
    fn number(&mut self) -> Option<Part> {
        let signed = self.rest.strip_prefix(['-', '+']);
        let sign = if self.rest.starts_with('-') { -1.0 } else { 1.0 };
        let text = signed.unwrap_or(self.rest).trim_start();
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':' | '-');
        let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        self.rest = rest;
        if number.is_empty() {
            // Whatever it is, it is not looked at again.
            self.rest = "";
            return None;
        }
        if number.contains(':') {
            return time(number).map(|micros| Part::Time(sign * micros));
        }
        if let Some((years, months)) = number.split_once('-') {
            let (years, months): (i64, i64) = (years.parse().ok()?, months.parse().ok()?);
            let months = years.checked_mul(12)?.checked_add(months)?;
            return Some(Part::YearsAndMonths(if sign < 0.0 { -months } else { months }));
        }
        number.parse::<f64>().ok().map(|number| Part::Number(sign * number))
    }
}

/// Microseconds of `H:M[:S[.f]]`; of two parts with a fraction, minutes and seconds.
fn time(text: &str) -> Option<f64> {
    let parts: Vec<&str> = text.split(':').collect();
    let whole = |part: &&str| part.parse::<u32>().ok().map(f64::from);
    let seconds = |part: &&str| {
        let is_number = part.starts_with(|c: char| c.is_ascii_digit());
        part.parse::<f64>().ok().filter(|of| is_number && *of < 61.0)
    };
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, of @ ..] if of.len() == 1 && of[0].contains('.') => {
            (0.0, whole(minutes)?, seconds(&of[0])?)
        }
        [hours, minutes] => (whole(hours)?, whole(minutes)?, 0.0),
        [hours, minutes, of] => (whole(hours)?, whole(minutes)?, seconds(of)?),
        _ => return None,
    };
    (minutes < 60.0).then_some(((hours * 60.0 + minutes) * 60.0 + seconds) * SECOND_US)
}

/// What follows `P`.
fn iso(text: &str) -> Option<Sum> {
    let mut sum = Sum::default();
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    if date.is_empty() && time.is_none_or(str::is_empty) {
        return None;
    }
    for (part, units) in [
        (date, [('Y', "year"), ('M', "month"), ('W', "week"), ('D', "day")].as_slice()),
        (time.unwrap_or(""), [('H', "hour"), ('M', "minute"), ('S', "second")].as_slice()),
    ] {
        let mut rest = part;
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let number: f64 = rest[..end].parse().ok()?;
            let letter = rest[end..].chars().next()?;
            let (_, unit) = units.iter().find(|(known, _)| *known == letter)?;
            sum.add(number, unit)?;
            rest = &rest[end + 1..];
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_postgresql_does() {
        let of = |months, days, seconds: f64| {
            Some(IntervalMonthDayNano::new(months, days, (seconds * 1e9) as i64))
        };
        for (text, expected) in [
            ("1 year 2 months 3 days 4 hours 5 minutes 6.789 seconds", of(14, 3, 14_706.789)),
            ("1-2", of(14, 0, 0.0)),
            ("-1-2", of(-14, 0, 0.0)),
            ("3 4:05:06", of(0, 3, 14_706.0)),
            ("P1Y2M3DT4H5M6S", of(14, 3, 14_706.0)),
            ("PT1.5H", of(0, 0, 5400.0)),
            ("1 week", of(0, 7, 0.0)),
            ("-1 day ago", of(0, 1, 0.0)),
            ("1.5 hours", of(0, 0, 5400.0)),
            ("1 mon -1 day", of(1, -1, 0.0)),
            ("1.5 months", of(1, 15, 0.0)),
            ("1.5 years", of(18, 0, 0.0)),
            ("1day2hours", of(0, 1, 7200.0)),
            ("90", of(0, 0, 90.0)),
            ("40 days 25:00", of(0, 40, 90_000.0)),
            ("-00:30:00", of(0, 0, -1800.0)),
            ("@ 1 minute", of(0, 0, 60.0)),
            ("15h 2m 12s", of(0, 0, 54_132.0)),
            ("", None),
            ("day", None),
            ("1 x", None),
            ("P", None),
            ("1 2 3", None),
            ("1:99", None),
            ("é", None),
            ("1 day é", None),
            ("9999999999999999999 days", None),
            ("99999999999 months", None),
            ("infinity", None),
        ] {
            assert_eq!(read(text).ok(), expected, "{text}");
        }
    }
}
