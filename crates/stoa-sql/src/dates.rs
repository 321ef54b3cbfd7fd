//! Dates and times as PostgreSQL reads them from texts (`DateStyle` ISO, MDY).
//!
//! A text is cut into fields ([`fields`]), whose kinds and order say what they are: `1999-01-08`, `19990108`,
//! `January 8, 1999`, `8 Jan 99`, `1/8/1999`, `1999.008` and `J2451187` are the same day. The rules are those of
//! PostgreSQL's documentation, appendix B.1, "Date/Time Input Interpretation", and of what a real server answers.
//!
//! Here is no clock and no zone: `now` and names of zones are left to the caller.

pub mod civil;
mod fields;

use fields::{Field, Kind};

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

/// The first day of PostgreSQL's `date` and `timestamp`, 4713-11-24 BC, in days since 1970-01-01.
const FIRST_DAY: i64 = -2_440_588;
/// The last day of `date`, 5874897-12-31.
const LAST_DAY: i64 = 2_145_042_905;

/// Why a text is no date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is not written as one (22007).
    Form,
    /// There is no such day or time of day, or the type does not hold it (22008).
    Range,
    /// An offset from UTC of 16 hours or more (22009).
    Offset,
}

/// The zone that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneText {
    /// Seconds to the east of UTC.
    Offset(i32),
    /// A name or an abbreviation, as it is written.
    Named(String),
}

/// What a text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Days since 1970-01-01 in the proleptic Gregorian calendar; `None` without a date.
    pub days: Option<i64>,
    /// Microseconds since midnight, up to 24 hours; `None` without a time of day.
    pub micros: Option<i64>,
    /// The zone.
    pub zone: Option<ZoneText>,
}

/// Reads a `date`: days since 1970-01-01. A time of day and a zone behind it are read and left out.
///
/// # Errors
/// See [`Wrong`].
pub fn read_date(text: &str) -> Result<i32, Wrong> {
    let days = read(text)?.days.ok_or(Wrong::Form)?;
    match (FIRST_DAY..=LAST_DAY).contains(&days) {
        true => i32::try_from(days).map_err(|_| Wrong::Range),
        false => Err(Wrong::Range),
    }
}

/// Reads a `timestamp`: microseconds of the local time since 1970-01-01 00:00:00, and its zone. The last is
/// 294247-01-10; PostgreSQL counts from 2000 and has thirty years more.
///
/// # Errors
/// See [`Wrong`].
pub fn read_timestamp(text: &str) -> Result<(i64, Option<ZoneText>), Wrong> {
    let moment = read(text)?;
    let days = moment.days.ok_or(Wrong::Form)?;
    let midnight = days.checked_mul(DAY_US).filter(|_| days >= FIRST_DAY);
    let micros = midnight.and_then(|midnight| midnight.checked_add(moment.micros.unwrap_or(0)));
    Ok((micros.ok_or(Wrong::Range)?, moment.zone))
}

/// Reads a `time`: microseconds since midnight. A date before it is read and left out; so is a zone, but a named one
/// needs a date.
///
/// # Errors
/// See [`Wrong`].
pub fn read_time(text: &str) -> Result<i64, Wrong> {
    Reader::of(text, true)?.moment()?.micros.ok_or(Wrong::Form)
}

/// Reads a date, a time of day, or both.
///
/// # Errors
/// See [`Wrong`].
pub fn read(text: &str) -> Result<Moment, Wrong> {
    Reader::of(text, false)?.moment()
}

/// The unit that stands before a number.
#[derive(Clone, Copy, PartialEq)]
enum Prefix {
    Julian,
    Time,
}

/// Before or after noon.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    Am,
    Pm,
}

#[derive(Default)]
struct Reader {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    /// The day of the year, where it stands for month and day.
    day_of_year: Option<i64>,
    /// The whole date, where it was written as one number.
    days: Option<i64>,
    micros: Option<i64>,
    zone: Option<ZoneText>,
    prefix: Option<Prefix>,
    half: Option<Half>,
    is_bc: Option<bool>,
    has_month_word: bool,
    has_weekday: bool,
    is_short_year: bool,
}

impl Reader {
    /// Reads all fields. Of a time alone, numbers without a date are hours.
    fn of(text: &str, is_time: bool) -> Result<Self, Wrong> {
        let fields = fields::of(text).ok_or(Wrong::Form)?;
        if fields.is_empty() {
            return Err(Wrong::Form);
        }
        let mut reader = Self::default();
        for field in &fields {
            reader.take(field, is_time)?;
        }
        match reader.prefix {
            Some(_) => Err(Wrong::Form),
            None => Ok(reader),
        }
    }

    fn take(&mut self, field: &Field<'_>, is_time: bool) -> Result<(), Wrong> {
        let text = field.text;
        match field.kind {
            Kind::Parts
                if text.starts_with(|c: char| c.is_ascii_alphabetic()) && self.has_day() =>
            {
                self.set_zone(ZoneText::Named(text.to_owned()))
            }
            Kind::Parts => self.parts(text),
            Kind::Clock => {
                self.prefix.take_if(|prefix| *prefix == Prefix::Time);
                self.set_micros(clock(text)?)
            }
            Kind::Offset => self.set_zone(ZoneText::Offset(offset(text)?)),
            Kind::Number => self.standing_number(text, is_time),
            Kind::Word => self.word(text),
        }
    }

    /// Whether month and day are known, so that what follows is no date.
    fn has_day(&self) -> bool {
        self.days.is_some() || self.month.is_some() && self.day.is_some()
    }

    fn has_date(&self) -> bool {
        self.days.is_some() || self.has_day() && self.year.is_some()
    }

    fn set_micros(&mut self, micros: i64) -> Result<(), Wrong> {
        match self.micros.replace(micros) {
            None => Ok(()),
            Some(_) => Err(Wrong::Form),
        }
    }

    fn set_zone(&mut self, zone: ZoneText) -> Result<(), Wrong> {
        match self.zone.replace(zone) {
            None => Ok(()),
            Some(_) => Err(Wrong::Form),
        }
    }

    /// Parts of a date with something between them: `1999-01-08`, `8-Jan-99`. Nothing but a zone stands before it.
    fn parts(&mut self, text: &str) -> Result<(), Wrong> {
        if self.prefix.is_some() || self.has_weekday || self.micros.is_some() {
            return Err(Wrong::Form);
        }
        let parts = fields::runs(text);
        for word in parts.iter().filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            let month = month_of(word).ok_or(Wrong::Form)?;
            if self.has_month_word {
                return Err(Wrong::Form);
            }
            self.has_month_word = true;
            self.set_month(month)?;
        }
        for number in parts.iter().filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
            self.number(number)?;
        }
        match self.has_date() {
            true => Ok(()),
            false => Err(Wrong::Form),
        }
    }

    fn set_month(&mut self, month: i64) -> Result<(), Wrong> {
        match self.month.replace(month) {
            None => Ok(()),
            Some(_) => Err(Wrong::Form),
        }
    }

    /// A number that stands alone.
    fn standing_number(&mut self, text: &str, is_time: bool) -> Result<(), Wrong> {
        match self.prefix.take() {
            Some(Prefix::Julian) => return self.julian(text),
            Some(Prefix::Time) => return self.run_together(text, true),
            None => {}
        }
        let whole = text.split('.').next().unwrap_or_default();
        if text.contains('.') && !self.has_any_date() && !is_time {
            return self.parts(text);
        }
        let is_long = match text.contains('.') {
            true => whole.len() > 2,
            false => whole.len() >= 6 && (!self.has_date() || self.micros.is_none()),
        };
        match is_long || is_time && !self.has_any_date() {
            true => self.run_together(text, is_time),
            false => self.number(text),
        }
    }

    fn has_any_date(&self) -> bool {
        self.days.is_some() || self.year.is_some() || self.month.is_some() || self.day.is_some()
    }

    /// `19990108`, `990108`, and behind a date `101112`.
    fn run_together(&mut self, text: &str, is_time: bool) -> Result<(), Wrong> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if !text.contains('.') && !is_time && !self.has_date() && whole.len() >= 6 {
            if self.has_any_date() {
                return Err(Wrong::Form);
            }
            let (year, rest) = whole.split_at(whole.len() - 4);
            self.is_short_year = year.len() == 2;
            self.year = Some(number(year)?);
            self.month = Some(number(&rest[..2])?);
            self.day = Some(number(&rest[2..])?);
            return Ok(());
        }
        let (hours, minutes, seconds) = match whole.len() {
            6 => (&whole[..2], &whole[2..4], &whole[4..]),
            4 => (&whole[..2], &whole[2..], "0"),
            _ => return Err(Wrong::Form),
        };
        self.set_micros(time_of([number(hours)?, number(minutes)?, number(seconds)?], fraction)?)
    }

    /// A number of a date: what it is depends on what is there already.
    fn number(&mut self, text: &str) -> Result<(), Wrong> {
        if text.contains('.') {
            return Err(Wrong::Form);
        }
        let (value, digits) = (number(text)?, text.len());
        let is_day_of_year = digits == 3 && (1..=366).contains(&value);
        match (self.year, self.month, self.day) {
            _ if self.days.is_some() => self.run_together(text, false),
            (Some(_), None, None) if is_day_of_year && self.day_of_year.is_none() => {
                self.day_of_year = Some(value);
                self.month = Some(1);
                self.day = Some(1);
                Ok(())
            }
            (None, None, None) if digits >= 3 => self.set_year(value, digits),
            (None | Some(_), None, None) => self.set_month(value),
            (None, Some(_), None) if self.has_month_word && digits >= 3 => {
                self.set_year(value, digits)
            }
            (Some(year), Some(_), None)
                if self.has_month_word && digits >= 3 && self.is_short_year =>
            {
                // The first number was no year.
                self.day = Some(year);
                self.set_year(value, digits)
            }
            (_, Some(_), None) => {
                self.day = Some(value);
                Ok(())
            }
            (None, _, Some(_)) if self.month.is_some() => self.set_year(value, digits),
            (_, None, Some(_)) => self.set_month(value),
            (Some(_), Some(_), Some(_)) => self.run_together(text, false),
            _ => Err(Wrong::Form),
        }
    }

    fn set_year(&mut self, year: i64, digits: usize) -> Result<(), Wrong> {
        self.year = Some(year);
        self.is_short_year = digits <= 2;
        Ok(())
    }

    /// The number of a Julian day, whose fraction is the time of day.
    fn julian(&mut self, text: &str) -> Result<(), Wrong> {
        if self.has_any_date() {
            return Err(Wrong::Form);
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        self.days = Some(number(whole)? + FIRST_DAY);
        if text.contains('.') {
            let part: f64 = format!("0.{fraction}0").parse().map_err(|_| Wrong::Form)?;
            self.set_micros((part * DAY_US as f64) as i64)?;
        }
        Ok(())
    }

    fn word(&mut self, text: &str) -> Result<(), Wrong> {
        let word = text.to_ascii_lowercase();
        if self.prefix.is_some() {
            return Err(Wrong::Form);
        }
        match word.as_str() {
            "t" if self.has_day() => self.prefix = Some(Prefix::Time),
            "j" | "jd" | "julian" => self.prefix = Some(Prefix::Julian),
            "am" | "pm" => {
                let half = if word == "am" { Half::Am } else { Half::Pm };
                if self.half.replace(half).is_some() {
                    return Err(Wrong::Form);
                }
            }
            "ad" | "bc" => {
                if self.is_bc.replace(word == "bc").is_some() {
                    return Err(Wrong::Form);
                }
            }
            "on" | "at" => {}
            _ => return self.name(&word, text),
        }
        Ok(())
    }

    /// A month, a day of the week, or a zone.
    fn name(&mut self, word: &str, text: &str) -> Result<(), Wrong> {
        if let Some(month) = month_of(word) {
            // `1999 08 Jan`, `08 Jan`: what looked like a month was the day.
            if !self.has_month_word && self.day.is_none() {
                self.day = self.month.take();
            }
            self.has_month_word = true;
            return self.set_month(month);
        }
        if is_weekday(word) {
            return match std::mem::replace(&mut self.has_weekday, true) {
                false => Ok(()),
                true => Err(Wrong::Form),
            };
        }
        self.set_zone(ZoneText::Named(text.to_owned()))
    }

    fn moment(&mut self) -> Result<Moment, Wrong> {
        let days = match (self.days, self.has_any_date()) {
            (Some(days), _) => Some(days),
            (None, true) => Some(self.civil_days()?),
            (None, false) if self.is_bc.is_some() => return Err(Wrong::Form),
            (None, false) => None,
        };
        // `PM` alone is noon.
        let micros = self.micros.or(self.half.map(|_| 0));
        let micros = micros.map(|micros| self.in_half(micros)).transpose()?;
        if micros.is_none() && days.is_none() {
            return Err(Wrong::Form);
        }
        Ok(Moment { days, micros, zone: self.zone.take() })
    }

    fn civil_days(&self) -> Result<i64, Wrong> {
        let (Some(year), Some(month), Some(day)) = (self.year, self.month, self.day) else {
            return Err(Wrong::Form);
        };
        let year = match (self.is_bc, year) {
            (Some(true), 1..) => 1 - year,
            (Some(false) | None, 0..=69) if self.is_short_year => year + 2000,
            (Some(false) | None, 70..=99) if self.is_short_year => year + 1900,
            (_, ..0 | 0) => return Err(Wrong::Range),
            (_, year) => year,
        };
        if let Some(day) = self.day_of_year {
            let first = civil::days_from_civil(year, 1, 1).ok_or(Wrong::Range)?;
            return Ok(first + day - 1);
        }
        let (month, day) = (u32::try_from(month).ok(), u32::try_from(day).ok());
        month
            .zip(day)
            .filter(|_| year <= 5_874_898)
            .and_then(|(month, day)| civil::days_from_civil(year, month, day))
            .ok_or(Wrong::Range)
    }

    fn in_half(&self, micros: i64) -> Result<i64, Wrong> {
        const NOON: i64 = DAY_US / 2;
        let Some(half) = self.half else { return Ok(micros) };
        if micros >= NOON + DAY_US / 24 {
            return Err(Wrong::Range);
        }
        let morning = if micros >= NOON { micros - NOON } else { micros };
        Ok(if half == Half::Pm { morning + NOON } else { morning })
    }
}

fn number(text: &str) -> Result<i64, Wrong> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        // More digits than any year or day has.
        true => text.parse::<i32>().map(i64::from).map_err(|_| Wrong::Range),
        false => Err(Wrong::Form),
    }
}

/// `10:11`, `10:11:12.5`, and as PostgreSQL reads it `11:12.5`, minutes and seconds.
fn clock(text: &str) -> Result<i64, Wrong> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<i64> = whole.split(':').map(number).collect::<Result<_, _>>()?;
    match (parts.as_slice(), text.contains('.')) {
        ([hours, minutes], false) => time_of([*hours, *minutes, 0], ""),
        ([minutes, seconds], true) => time_of([0, *minutes, *seconds], fraction),
        ([hours, minutes, seconds], _) => time_of([*hours, *minutes, *seconds], fraction),
        _ => Err(Wrong::Form),
    }
}

fn time_of([hours, minutes, seconds]: [i64; 3], fraction: &str) -> Result<i64, Wrong> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Wrong::Form);
    }
    let part: f64 = format!("0.{fraction}0").parse().map_err(|_| Wrong::Form)?;
    let micros = (part * 1e6).round_ties_even() as i64;
    let all = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
    match hours <= 24 && minutes < 60 && seconds <= 60 && all <= DAY_US {
        true => Ok(all),
        false => Err(Wrong::Range),
    }
}

/// `+2`, `-0330`, `+05:30`, `+05:30:15`: seconds to the east.
pub fn offset(text: &str) -> Result<i32, Wrong> {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return Err(Wrong::Form),
    };
    let parts: Vec<i64> = digits.trim_start().split(':').map(number).collect::<Result<_, _>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [run] if digits.trim_start().len() > 2 => (run / 100, run % 100, 0),
        [hours] => (*hours, 0, 0),
        [hours, minutes] => (*hours, *minutes, 0),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return Err(Wrong::Form),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Wrong::Offset);
    }
    i32::try_from(sign * (hours * 3600 + minutes * 60 + seconds)).map_err(|_| Wrong::Offset)
}

/// Abbreviations of zones, and seconds to the east of UTC: the usual ones among PostgreSQL's `Default` set. `CET` is the
/// winter's time in summer, too, unlike the zone of that name.
const ABBREVIATIONS: &[(&str, i32)] = &[
    ("HST", -36_000),
    ("AKST", -32_400),
    ("AKDT", -28_800),
    ("PST", -28_800),
    ("MST", -25_200),
    ("PDT", -25_200),
    ("CST", -21_600),
    ("MDT", -21_600),
    ("EST", -18_000),
    ("CDT", -18_000),
    ("EDT", -14_400),
    ("AST", -14_400),
    ("NST", -12_600),
    ("ADT", -10_800),
    ("NDT", -9_000),
    ("UTC", 0),
    ("GMT", 0),
    ("Z", 0),
    ("ZULU", 0),
    ("UT", 0),
    ("WET", 0),
    ("MET", 3_600),
    ("CET", 3_600),
    ("BST", 3_600),
    ("MEST", 7_200),
    ("SAST", 7_200),
    ("IST", 7_200),
    ("EET", 7_200),
    ("CEST", 7_200),
    ("EAT", 10_800),
    ("EEST", 10_800),
    ("PKT", 18_000),
    ("AWST", 28_800),
    ("HKT", 28_800),
    ("PHT", 28_800),
    ("SGT", 28_800),
    ("JST", 32_400),
    ("KST", 32_400),
    ("ACST", 34_200),
    ("AEST", 36_000),
    ("AEDT", 39_600),
    ("NZST", 43_200),
    ("NZDT", 46_800),
];

/// The offset that an abbreviation means: seconds to the east of UTC.
pub fn abbreviation(name: &str) -> Option<i32> {
    let is_name = |(short, _): &&(&str, i32)| short.eq_ignore_ascii_case(name);
    ABBREVIATIONS.iter().find(is_name).map(|(_, east)| *east)
}

/// Names of months, in small letters; three of them are enough.
pub const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month_of(word: &str) -> Option<i64> {
    let word = word.to_ascii_lowercase();
    let is_month =
        |month: &str| month == word || month[..3] == word || month == "september" && word == "sept";
    MONTHS.iter().position(|month| is_month(month)).map(|at| at as i64 + 1)
}

fn is_weekday(word: &str) -> bool {
    matches!(
        word,
        "sun"
            | "sunday"
            | "mon"
            | "monday"
            | "tue"
            | "tues"
            | "tuesday"
            | "wed"
            | "weds"
            | "wednesday"
            | "thu"
            | "thur"
            | "thurs"
            | "thursday"
            | "fri"
            | "friday"
            | "sat"
            | "saturday"
    )
}

#[cfg(test)]
mod tests;
