//! Times by template patterns.

use std::fmt::Write;

use arrow::datatypes::IntervalMonthDayNano;
use chrono::{DateTime, Datelike, NaiveDate, Timelike};
use datafusion::error::Result;

use super::super::call::{failure, unsupported};
use super::super::time_zone::Zone;

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
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// Longer ones stand before their beginnings. Each is known in capitals and in small letters.
const PATTERNS: [&str; 52] = [
    "A.D.", "A.M.", "B.C.", "P.M.", "AD", "AM", "BC", "PM", "CC", "DAY", "DDD", "DD", "DY", "D",
    "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW",
    "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "Q", "RM", "SSSSS",
    "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY",
];
const SHORT_YEARS: [&str; 2] = ["YY", "Y"];
const MIXED: [&str; 4] = ["Month", "Mon", "Day", "Dy"];

/// The parts of a time.
pub(super) struct Fields {
    year: i64,
    /// From 1; of an interval those beyond its years, with their sign.
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// The day, unless it is an interval.
    date: Option<NaiveDate>,
    /// Offset and name of the zone, if it has one.
    zone: Option<(i32, String)>,
}

impl Fields {
    pub(super) fn of_time(micros: i64, zone: Option<&(Zone, String)>) -> Result<Self> {
        let local = zone.map_or(Ok(micros), |(zone, _)| zone.local(micros))?;
        let at = DateTime::from_timestamp_micros(local)
            .ok_or_else(|| failure("22008", "timestamp out of range"))?
            .naive_utc();
        let zone = match zone {
            Some((zone, name)) => Some((zone.offset_seconds(micros)?, name.clone())),
            None => None,
        };
        Ok(Self {
            year: at.year().into(),
            month: at.month().into(),
            day: at.day().into(),
            hour: at.hour().into(),
            minute: at.minute().into(),
            second: at.second().into(),
            micros: i64::from(at.nanosecond()) / 1000,
            date: Some(at.date()),
            zone,
        })
    }

    pub(super) fn of_interval(interval: IntervalMonthDayNano) -> Self {
        let micros = interval.nanoseconds / 1000;
        let seconds = micros / 1_000_000;
        Self {
            year: (interval.months / 12).into(),
            month: (interval.months % 12).into(),
            day: interval.days.into(),
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            micros: micros % 1_000_000,
            date: None,
            zone: None,
        }
    }

    fn date(&self, pattern: &str) -> Result<NaiveDate> {
        self.date.ok_or_else(|| {
            failure(
                "22007",
                format!("invalid format specification for an interval value: {pattern}"),
            )
        })
    }

    /// The year as it is written: there is no year 0.
    fn shown_year(&self) -> i64 {
        match self.date {
            Some(_) if self.year <= 0 => 1 - self.year,
            _ => self.year,
        }
    }
}

/// A time by a format.
pub(super) fn write(fields: &Fields, format: &str) -> Result<String> {
    let mut out = String::with_capacity(format.len() + 8);
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            rest = quoted(&rest[1..], &mut out);
            continue;
        }
        let (fills, after) = match rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            Some(after) => (false, after),
            None => (true, rest),
        };
        if let Some(pattern) = pattern_of(after) {
            rest = &after[pattern.len()..];
            let ordinal = match rest.get(..2) {
                Some(suffix @ ("TH" | "th")) => Some(suffix),
                _ => None,
            };
            let begin = out.len();
            one(fields, pattern, fills, &mut out)?;
            if let Some(suffix) = ordinal {
                rest = &rest[2..];
                let ending = ordinal_of(&out[begin..]);
                match suffix {
                    "TH" => out.push_str(&ending.to_uppercase()),
                    _ => out.push_str(ending),
                }
            }
            continue;
        }
        for refused in ["TM", "SP"] {
            if after.starts_with(refused) && after.len() != rest.len() {
                return Err(unsupported(
                    format!("the pattern {refused} of to_char is not supported"),
                    "leave it out",
                ));
            }
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    Ok(out)
}

/// Copies a quoted text; what is behind it.
fn quoted<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return &text[at + 1..],
            '\\' => out.extend(chars.next().map(|(_, c)| c)),
            c => out.push(c),
        }
    }
    ""
}

fn pattern_of(text: &str) -> Option<&str> {
    let begins = |pattern: &str| {
        text.starts_with(pattern) || text.starts_with(&pattern.to_ascii_lowercase())
    };
    let known = MIXED.iter().find(|pattern| text.starts_with(**pattern));
    let known = known.or_else(|| PATTERNS.iter().find(|pattern| begins(pattern)));
    let known = known.or_else(|| SHORT_YEARS.iter().find(|pattern| begins(pattern)))?;
    Some(&text[..known.len()])
}

fn one(fields: &Fields, pattern: &str, fills: bool, out: &mut String) -> Result<()> {
    let mut number = |value: i64, width: usize| {
        let width = if fills { width } else { 0 };
        let _ = match value < 0 {
            true => write!(out, "-{:0width$}", -value),
            false => write!(out, "{value:0width$}"),
        };
    };
    let upper = pattern.to_ascii_uppercase();
    match upper.as_str() {
        "Y,YYY" => {
            let year = fields.shown_year();
            let _ = write!(out, "{},{:03}", year / 1000, year % 1000);
        }
        "YYYY" => number(fields.shown_year(), 4),
        "YYY" => number(fields.shown_year() % 1000, 3),
        "YY" => number(fields.shown_year() % 100, 2),
        "Y" => number(fields.shown_year() % 10, 1),
        "IYYY" => number(fields.date(pattern)?.iso_week().year().into(), 4),
        "IYY" => number(i64::from(fields.date(pattern)?.iso_week().year()) % 1000, 3),
        "IY" => number(i64::from(fields.date(pattern)?.iso_week().year()) % 100, 2),
        "I" => number(i64::from(fields.date(pattern)?.iso_week().year()) % 10, 1),
        "MM" => number(fields.month, 2),
        "DDD" => number(day_of_year(fields, pattern)?, 3),
        // The sign is one of the two.
        "DD" => number(fields.day, if fields.day < 0 { 1 } else { 2 }),
        "D" => number(i64::from(fields.date(pattern)?.weekday().num_days_from_sunday()) + 1, 1),
        "ID" => number(fields.date(pattern)?.weekday().number_from_monday().into(), 1),
        "IDDD" => {
            let date = fields.date(pattern)?;
            let week = i64::from(date.iso_week().week());
            number((week - 1) * 7 + i64::from(date.weekday().number_from_monday()), 3);
        }
        "WW" => number((day_of_year(fields, pattern)? - 1) / 7 + 1, 2),
        "IW" => number(fields.date(pattern)?.iso_week().week().into(), 2),
        "W" => number((fields.day - 1) / 7 + 1, 1),
        "Q" if fields.month == 0 => {}
        "Q" => number((fields.month - 1) / 3 + 1, 1),
        "CC" => {
            let year = fields.year;
            let century = if year > 0 { (year - 1) / 100 + 1 } else { year / 100 - 1 };
            number(century, 2);
        }
        "J" => {
            // Day 1 of Julian days is 4714-11-24 BC.
            number(i64::from(fields.date(pattern)?.num_days_from_ce()) + 1_721_425, 0);
        }
        "HH" | "HH12" => number(if fields.hour % 12 == 0 { 12 } else { fields.hour % 12 }, 2),
        "HH24" => number(fields.hour, 2),
        "MI" => number(fields.minute, 2),
        "SS" => number(fields.second, 2),
        "SSSS" | "SSSSS" => number((fields.hour * 60 + fields.minute) * 60 + fields.second, 0),
        "MS" => number(fields.micros / 1000, 3),
        "US" => number(fields.micros, 6),
        digits if digits.starts_with("FF") => {
            let count = usize::from(digits.as_bytes()[2] - b'0');
            out.push_str(&format!("{:06}", fields.micros)[..count]);
        }
        "FX" => {}
        _ => word(fields, pattern, &upper, fills, out)?,
    }
    Ok(())
}

/// Patterns that are written as words, in the letters of the pattern.
fn word(fields: &Fields, pattern: &str, upper: &str, fills: bool, out: &mut String) -> Result<()> {
    let half =
        |am: &str, pm: &str| if fields.hour % 24 < 12 { am.to_owned() } else { pm.to_owned() };
    let era = |ad: &str, bc: &str| if fields.year > 0 { ad.to_owned() } else { bc.to_owned() };
    let month = |pattern: &str| {
        fields.date(pattern).map(|_| MONTHS[(fields.month - 1).rem_euclid(12) as usize])
    };
    let day = |pattern: &str| {
        fields.date(pattern).map(|date| DAYS[date.weekday().num_days_from_sunday() as usize])
    };
    let (text, width) = match upper {
        "MONTH" => (month(pattern)?.to_owned(), 9),
        "MON" => (month(pattern)?[..3].to_owned(), 0),
        "DAY" => (day(pattern)?.to_owned(), 9),
        "DY" => (day(pattern)?[..3].to_owned(), 0),
        // Whole years end with their last month; negative months are counted from the end.
        "RM" => match (fields.month, fields.year) {
            (0, 0) => (String::new(), 0),
            (0, year) => (ROMAN[if year < 0 { 0 } else { 11 }].to_owned(), 4),
            (month, _) => {
                (ROMAN[if month < 0 { 12 + month } else { month - 1 } as usize].to_owned(), 4)
            }
        },
        "AM" | "PM" => (half("AM", "PM"), 0),
        "A.M." | "P.M." => (half("A.M.", "P.M."), 0),
        "AD" | "BC" => (era("AD", "BC"), 0),
        "A.D." | "B.C." => (era("A.D.", "B.C."), 0),
        "TZ" => match &fields.zone {
            None => (String::new(), 0),
            Some((_, name)) if name.eq_ignore_ascii_case("utc") => ("UTC".to_owned(), 0),
            Some(_) => {
                return Err(unsupported(
                    "the pattern TZ of to_char is not supported in other zones than UTC",
                    "write OF",
                ));
            }
        },
        "TZH" | "TZM" | "OF" => (offset(fields, upper), 0),
        _ => (pattern.to_owned(), 0),
    };
    let is_name = matches!(upper, "MONTH" | "MON" | "DAY" | "DY");
    let text = match pattern {
        pattern if is_name && MIXED.contains(&pattern) => text,
        pattern if pattern == upper => text.to_uppercase(),
        _ => text.to_lowercase(),
    };
    let width = if fills { width } else { 0 };
    let _ = write!(out, "{text:<width$}");
    Ok(())
}

fn offset(fields: &Fields, pattern: &str) -> String {
    let seconds = fields.zone.as_ref().map_or(0, |(seconds, _)| *seconds);
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
    match pattern {
        "TZH" => format!("{sign}{hours:02}"),
        "TZM" => format!("{minutes:02}"),
        _ if minutes == 0 => format!("{sign}{hours:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}"),
    }
}

fn day_of_year(fields: &Fields, pattern: &str) -> Result<i64> {
    Ok(fields.date(pattern)?.ordinal().into())
}

/// The ending of an ordinal number.
fn ordinal_of(number: &str) -> &'static str {
    let digits: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).collect();
    match digits.as_slice() {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    }
}
