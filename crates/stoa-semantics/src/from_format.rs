//! `to_date` and `to_timestamp` by template patterns.
//!
//! In: a text and a format. Out: the local time that it means, or 22007 (the text does not have the form) or 22008 (there is
//! no such time). As in PostgreSQL, what follows the last pattern is not looked at, and patterns behind the end of
//! the text have no effect. Patterns of which PostgreSQL has more are refused (0A000).
//!
//! Source: PostgreSQL's `formatting.c`.

use arrow::array::{ArrayRef, Date32Array, TimestampMicrosecondArray};
use datafusion::error::{DataFusionError, Result};
use stoa_sql::dates::MONTHS;

use super::call::{failure, unsupported};
use super::declared::{Declared, Row, Type};
use super::times::days_at;
use Type::{Date, Text, Timestamp};

pub(super) const FUNCTIONS: &[Declared] = &[
    Declared {
        name: "to_date",
        called: "to_date",
        takes: &[Text, Text],
        needed: 2,
        makes: Date,
        json: None,
        compute: to_date,
    },
    Declared {
        name: "to_local_timestamp",
        called: "to_timestamp",
        takes: &[Text, Text],
        needed: 2,
        makes: Timestamp,
        json: None,
        compute: to_timestamp,
    },
];

const DAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const DAY_US: i64 = 86_400_000_000;

/// A pattern, and how many digits it has; none where it is a word.
struct Pattern {
    name: &'static str,
    digits: usize,
}

const fn pattern(name: &'static str, digits: usize) -> Pattern {
    Pattern { name, digits }
}

/// Longer ones stand before their beginnings.
const PATTERNS: [Pattern; 49] = [
    pattern("A.D.", 0),
    pattern("A.M.", 0),
    pattern("B.C.", 0),
    pattern("P.M.", 0),
    pattern("AD", 0),
    pattern("AM", 0),
    pattern("BC", 0),
    pattern("PM", 0),
    pattern("CC", 2),
    pattern("DAY", 0),
    pattern("DDD", 3),
    pattern("DD", 2),
    pattern("DY", 0),
    pattern("D", 1),
    pattern("FF1", 1),
    pattern("FF2", 2),
    pattern("FF3", 3),
    pattern("FF4", 4),
    pattern("FF5", 5),
    pattern("FF6", 6),
    pattern("FX", 0),
    pattern("HH24", 2),
    pattern("HH12", 2),
    pattern("HH", 2),
    pattern("IDDD", 3),
    pattern("ID", 1),
    pattern("IW", 2),
    pattern("IYYY", 4),
    pattern("IYY", 3),
    pattern("IY", 2),
    pattern("J", 7),
    pattern("MI", 2),
    pattern("MM", 2),
    pattern("MONTH", 0),
    pattern("MON", 0),
    pattern("MS", 3),
    pattern("OF", 0),
    pattern("Q", 1),
    pattern("RM", 0),
    pattern("SSSSS", 5),
    pattern("SSSS", 5),
    pattern("SS", 2),
    pattern("TZ", 0),
    pattern("US", 6),
    pattern("W", 1),
    pattern("Y,YYY", 4),
    pattern("YYYY", 4),
    pattern("YYY", 3),
    pattern("YY", 2),
];

/// A part of a format.
enum Node {
    Field {
        name: &'static str,
        digits: usize,
        is_free: bool,
    },
    /// A blank or a sign between fields.
    Separator,
    /// Another character, whatever the text has there.
    Letter(char),
}

fn nodes(format: &str) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut rest = format;
    'all: while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = &rest[1..];
            while let Some(letter) = rest.chars().next() {
                rest = &rest[letter.len_utf8()..];
                if letter == '"' {
                    break;
                }
                nodes.push(Node::Letter(letter));
            }
            continue;
        }
        let is_free = rest.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("FM"));
        let fields = if is_free { &rest[2..] } else { rest };
        let known =
            PATTERNS.iter().map(|known| (known.name, known.digits)).chain([("Y", 1), ("I", 1)]);
        for (name, digits) in known {
            if fields.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
                rest = &fields[name.len()..];
                // An ending such as `th` is read and has no meaning.
                let ends = rest.get(..2).is_some_and(|end| end.eq_ignore_ascii_case("TH"));
                if ends && digits > 0 {
                    return Err(not_supported("TH"));
                }
                nodes.push(Node::Field { name, digits, is_free });
                continue 'all;
            }
        }
        if is_free {
            rest = fields;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        let is_separator = first.is_ascii() && !first.is_ascii_alphanumeric();
        nodes.push(if is_separator { Node::Separator } else { Node::Letter(first) });
    }
    Ok(nodes)
}

fn not_supported(name: &str) -> DataFusionError {
    unsupported(
        format!("the pattern {name} is not supported in to_date and to_timestamp"),
        "use YYYY, MM, MON, MONTH, DD, DDD, J, HH24, HH12, MI, SS, MS, US, FF1 to FF6 and AM",
    )
}

/// What was read.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    is_before_christ: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    /// Whether the fields of a date are those of ISO weeks; `None` while there are none.
    is_iso: Option<bool>,
    week: Option<i64>,
    /// From 1, which is Sunday.
    weekday: Option<i64>,
    hour: Option<i64>,
    is_twelve_hours: bool,
    is_afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    second_of_day: Option<i64>,
    micros: Option<i64>,
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    fields: Fields,
}

fn is_separator(letter: char) -> bool {
    letter.is_ascii() && !letter.is_ascii_alphanumeric() && !letter.is_ascii_control()
        || letter.is_whitespace()
}

impl Reader<'_> {
    fn skip_blanks(&mut self) -> usize {
        let before = self.rest.len();
        self.rest = self.rest.trim_start();
        before - self.rest.len()
    }

    fn skip(&mut self) {
        let mut letters = self.rest.chars();
        letters.next();
        self.rest = letters.as_str();
    }

    fn read(&mut self, nodes: &[Node]) -> Result<()> {
        // Blanks that were skipped without a separator of the format for them.
        let mut extra = 0_i64;
        for (place, node) in nodes.iter().enumerate() {
            extra += i64::try_from(self.skip_blanks_before(node)).unwrap_or(0);
            if self.rest.is_empty() {
                break;
            }
            match node {
                Node::Separator => {
                    extra -= 1;
                    if self.rest.starts_with(is_separator) {
                        self.skip();
                        extra += 1;
                    }
                }
                Node::Letter(_) if extra > 0 => extra -= 1,
                Node::Letter(_) => self.skip(),
                Node::Field { name, digits, is_free } => {
                    extra = 0;
                    let is_free = *is_free || ends_number(nodes.get(place + 1));
                    self.field(name, *digits, is_free)?;
                    // Blanks behind a field belong to it, unless the format has one there.
                    if !matches!(nodes.get(place + 1), Some(Node::Separator | Node::Letter(_))) {
                        self.skip_blanks();
                    }
                }
            }
        }
        Ok(())
    }

    fn skip_blanks_before(&mut self, node: &Node) -> usize {
        match node {
            Node::Field { .. } => self.skip_blanks(),
            _ => 0,
        }
    }

    fn invalid(&self, name: &str) -> DataFusionError {
        let shown: String = self.rest.chars().take(name.len().max(4)).collect();
        failure("22007", format!("invalid value \"{shown}\" for \"{name}\""))
    }

    /// A number of so many digits, or of as many as there are; with how many it had.
    fn number(&mut self, name: &str, digits: usize, is_free: bool) -> Result<(i64, usize)> {
        self.skip_blanks();
        let sign = usize::from(self.rest.starts_with(['-', '+']));
        let there = self.rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let taken = if is_free { sign + there } else { (sign + there).min(digits) };
        if !is_free && self.rest.chars().count() < digits {
            return Err(failure(
                "22007",
                format!("source string too short for \"{name}\" formatting field"),
            ));
        }
        if there == 0 || taken <= sign || !is_free && taken < digits {
            return Err(self.invalid(name));
        }
        let number = self.rest[..taken].parse::<i32>().map_err(|_| {
            failure("22008", format!("value for \"{name}\" in source string is out of range"))
        })?;
        self.rest = &self.rest[taken..];
        Ok((number.into(), taken))
    }

    /// The place of a word among others, of which this many letters count.
    fn word(&mut self, name: &str, words: &[&str], letters: Option<usize>) -> Result<i64> {
        for (place, word) in words.iter().enumerate() {
            let word = &word[..letters.unwrap_or(word.len()).min(word.len())];
            if self.rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
                self.rest = &self.rest[word.len()..];
                return Ok(i64::try_from(place).unwrap_or(0) + 1);
            }
        }
        Err(self.invalid(name))
    }

    /// A date is of the calendar's months, or of ISO weeks.
    fn take_convention(&mut self, name: &str) -> Result<()> {
        let is_iso = match name {
            "IYYY" | "IYY" | "IY" | "I" | "IW" | "ID" | "IDDD" => true,
            "YYYY" | "YYY" | "YY" | "Y" | "Y,YYY" | "MM" | "MONTH" | "MON" | "DD" | "DDD" => false,
            _ => return Ok(()),
        };
        match self.fields.is_iso.replace(is_iso) {
            Some(other) if other != is_iso => {
                Err(failure("22007", "invalid combination of date conventions"))
            }
            _ => Ok(()),
        }
    }

    fn field(&mut self, name: &'static str, digits: usize, is_free: bool) -> Result<()> {
        self.take_convention(name)?;
        match name {
            "IW" => {
                let (week, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.week, week, name)
            }
            "ID" => {
                let (day, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.weekday, if day + 1 > 7 { 1 } else { day + 1 }, name)
            }
            "YYYY" | "YYY" | "YY" | "Y" | "IYYY" | "IYY" | "IY" | "I" => {
                let (year, taken) = self.number(name, digits, is_free)?;
                let is_partial = digits < 4 && taken < 4;
                let year = if is_partial { nearest_to_2020(year) } else { year };
                set(&mut self.fields.year, year, name)
            }
            "Y,YYY" => {
                let (thousands, _) = self.number(name, 4, true)?;
                self.rest = self.rest.strip_prefix(',').ok_or_else(|| self.invalid(name))?;
                let (year, _) = self.number(name, 3, false)?;
                set(&mut self.fields.year, thousands * 1000 + year, name)
            }
            "MM" => {
                let (month, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.month, month, name)
            }
            "MONTH" => {
                let month = self.word(name, &MONTHS, None)?;
                set(&mut self.fields.month, month, name)
            }
            "MON" => {
                let month = self.word(name, &MONTHS, Some(3))?;
                set(&mut self.fields.month, month, name)
            }
            "DAY" | "DY" => {
                let letters = (name == "DY").then_some(3);
                let day = self.word(name, &DAYS, letters)?;
                set(&mut self.fields.weekday, day, name)
            }
            "DD" => {
                let (day, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.day, day, name)
            }
            "DDD" | "IDDD" => {
                let (day, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.day_of_year, day, name)
            }
            "J" => {
                let (day, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.julian, day, name)
            }
            "Q" => self.number(name, digits, is_free).map(drop),
            "AD" | "BC" => {
                self.fields.is_before_christ = self.word(name, &["ad", "bc"], None)? == 2;
                Ok(())
            }
            "A.D." | "B.C." => {
                self.fields.is_before_christ = self.word(name, &["a.d.", "b.c."], None)? == 2;
                Ok(())
            }
            _ => self.time_field(name, digits, is_free),
        }
    }

    fn time_field(&mut self, name: &'static str, digits: usize, is_free: bool) -> Result<()> {
        match name {
            "HH24" | "HH12" | "HH" => {
                let (hour, _) = self.number(name, digits, is_free)?;
                self.fields.is_twelve_hours |= name != "HH24";
                set(&mut self.fields.hour, hour, name)
            }
            "MI" => {
                let (minute, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.minute, minute, name)
            }
            "SS" => {
                let (second, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.second, second, name)
            }
            "SSSS" | "SSSSS" => {
                let (second, _) = self.number(name, digits, is_free)?;
                set(&mut self.fields.second_of_day, second, name)
            }
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let before = self.rest.trim_start().len();
                let (part, _) = self.number(name, digits, is_free)?;
                let taken = before - self.rest.len();
                let Some(scale) = 6_usize.checked_sub(taken) else {
                    let message = format!("value for \"{name}\" in source string is out of range");
                    return Err(failure("22008", message));
                };
                let micros = part * 10_i64.pow(u32::try_from(scale).unwrap_or(0));
                set(&mut self.fields.micros, micros, name)
            }
            "AM" | "PM" => {
                let word = self.word(name, &["am", "pm"], None)?;
                self.fields.is_twelve_hours = true;
                self.fields.is_afternoon = Some(word == 2);
                Ok(())
            }
            "A.M." | "P.M." => {
                let word = self.word(name, &["a.m.", "p.m."], None)?;
                self.fields.is_twelve_hours = true;
                self.fields.is_afternoon = Some(word == 2);
                Ok(())
            }
            other => Err(not_supported(other)),
        }
    }

    fn out_of_range(&self) -> DataFusionError {
        failure("22008", format!("date/time field value out of range: \"{}\"", self.text))
    }

    /// Days since 1970.
    fn days(&self) -> Result<i64> {
        let fields = &self.fields;
        if let Some(julian) = fields.julian {
            return Ok(julian - 2_440_588);
        }
        let year = match (fields.year.unwrap_or(0), fields.is_before_christ) {
            (year, true) => 1 - year,
            (year, false) if year < 0 => year + 1,
            (year, false) => year,
        };
        let is_iso = fields.is_iso == Some(true);
        if let (true, Some(week @ 1..)) = (is_iso, fields.week) {
            let since_monday = match fields.weekday {
                Some(day @ 2..) => day - 2,
                Some(_) => 6,
                None => 0,
            };
            let first = first_of_iso_year(year).ok_or_else(|| self.out_of_range())?;
            return Ok(first + (week - 1) * 7 + since_monday);
        }
        if let (true, Some(day)) = (is_iso, fields.day_of_year) {
            if fields.year.is_none() && !fields.is_before_christ {
                let message = "cannot calculate day of year without year information";
                return Err(failure("22007", message));
            }
            let first = first_of_iso_year(year).ok_or_else(|| self.out_of_range())?;
            return Ok(first + day - 1);
        }
        let (month, day) = match (fields.day_of_year, fields.month, fields.day) {
            (Some(day), None, None) => {
                let first = days_at(year, 1, 1).ok_or_else(|| self.out_of_range())?;
                let length = days_at(year + 1, 1, 1).map_or(365, |next| next - first);
                if !(1..=length).contains(&day) {
                    return Err(self.out_of_range());
                }
                return Ok(first + day - 1);
            }
            (_, month, day) => (month.unwrap_or(1), day.unwrap_or(1)),
        };
        days_at(year, month, day).ok_or_else(|| self.out_of_range())
    }

    /// Microseconds of the day.
    fn time(&self) -> Result<i64> {
        let fields = &self.fields;
        let mut hour = fields.hour.unwrap_or(0);
        let (mut minute, mut second) = (fields.minute.unwrap_or(0), fields.second.unwrap_or(0));
        if let Some(of_day) = fields.second_of_day {
            (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        } else if fields.is_twelve_hours {
            if !(1..=12).contains(&hour) && fields.hour.is_some() {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                return Err(failure("22007", message));
            }
            match fields.is_afternoon {
                Some(true) if hour < 12 => hour += 12,
                Some(false) if hour == 12 => hour = 0,
                _ => {}
            }
        }
        let is_time =
            (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        if !is_time {
            return Err(self.out_of_range());
        }
        Ok(((hour * 60 + minute) * 60 + second) * 1_000_000 + fields.micros.unwrap_or(0))
    }
}

/// The Monday of the week with January 4, in days since 1970.
fn first_of_iso_year(year: i64) -> Option<i64> {
    let fourth = days_at(year, 1, 4)?;
    // 1970-01-01 was a Thursday.
    Some(fourth - (fourth + 3).rem_euclid(7))
}

/// A year of two or three digits: the one that is nearest to 2020.
fn nearest_to_2020(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// A field has one value, however often it is written.
fn set(field: &mut Option<i64>, value: i64, name: &str) -> Result<()> {
    match field.replace(value) {
        Some(other) if other != value => Err(failure(
            "22007",
            format!("conflicting values for \"{name}\" field in formatting string"),
        )),
        _ => Ok(()),
    }
}

/// Whether a number ends before a node, however many digits it has.
fn ends_number(next: Option<&Node>) -> bool {
    match next {
        None | Some(Node::Separator) => true,
        Some(Node::Field { digits, .. }) => *digits == 0,
        Some(Node::Letter(letter)) => !letter.is_ascii_digit(),
    }
}

fn read<'a>(text: &'a str, nodes: &[Node]) -> Result<Reader<'a>> {
    let mut reader = Reader { text, rest: text, fields: Fields::default() };
    reader.read(nodes)?;
    Ok(reader)
}

/// The nodes of the row before: mostly the format is a constant.
struct Formats(Option<(String, Vec<Node>)>);

impl Formats {
    fn of(&mut self, format: &str) -> Result<&[Node]> {
        let is_known = self.0.as_ref().is_some_and(|(known, _)| known == format);
        if !is_known {
            self.0 = Some((format.to_owned(), nodes(format)?));
        }
        Ok(self.0.as_ref().map_or(&[], |(_, nodes)| nodes))
    }
}

fn to_date(row: &Row<'_>) -> Result<ArrayRef> {
    let formats = std::cell::RefCell::new(Formats(None));
    row.each::<i32, Date32Array>(|at| {
        let (Some(text), Some(format)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let reader = read(text, formats.borrow_mut().of(format)?)?;
        reader.time()?;
        let days = reader.days()?;
        i32::try_from(days).map(Some).map_err(|_| reader.out_of_range())
    })
}

fn to_timestamp(row: &Row<'_>) -> Result<ArrayRef> {
    let formats = std::cell::RefCell::new(Formats(None));
    row.each::<i64, TimestampMicrosecondArray>(|at| {
        let (Some(text), Some(format)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let reader = read(text, formats.borrow_mut().of(format)?)?;
        let time = reader.time()?;
        let micros = reader.days()?.checked_mul(DAY_US).and_then(|days| days.checked_add(time));
        micros.map(Some).ok_or_else(|| reader.out_of_range())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_postgresql_does() {
        let check = |text: &str, format: &str, expected: Option<(i64, i64, i64, i64)>| {
            let read = nodes(format).and_then(|nodes| {
                let reader = read(text, &nodes)?;
                Ok((reader.days()?, reader.time()?))
            });
            let expected = expected.map(|(year, month, day, seconds)| {
                (days_at(year, month, day).unwrap(), seconds * 1_000_000)
            });
            assert_eq!(read.as_ref().ok(), expected.as_ref(), "{text} {format} {read:?}");
        };
        check("05 Dec 2000", "DD Mon YYYY", Some((2000, 12, 5, 0)));
        check("20240229", "YYYYMMDD", Some((2024, 2, 29, 0)));
        check("2024-060", "YYYY-DDD", Some((2024, 2, 29, 0)));
        check("3/4/99", "MM/DD/YY", Some((1999, 3, 4, 0)));
        check("2024 January 5", "YYYY Month DD", Some((2024, 1, 5, 0)));
        check("2024-10", "YYYY-MM-DD", Some((2024, 10, 1, 0)));
        check("02:30 PM", "HH12:MI AM", Some((0, 1, 1, 52_200)));
        check("20240102030405", "YYYYMMDDHH24MISS", Some((2024, 1, 2, 11_045)));
        check("2024/1/2", "YYYY-MM-DD", Some((2024, 1, 2, 0)));
        check("  2024  1 2", "YYYY MM DD", Some((2024, 1, 2, 0)));
        check("2024T01", "YYYY\"T\"MM", Some((2024, 1, 1, 0)));
        check("12.03.2024 trailing", "DD.MM.YYYY", Some((2024, 3, 12, 0)));
        for (text, format) in [
            ("2024-02-30", "YYYY-MM-DD"),
            ("abc", "YYYY"),
            ("2024-01-02 25:00", "YYYY-MM-DD HH24:MI"),
            ("13 PM", "HH12 AM"),
            ("1", "YYYYMM"),
            ("99999999999", "YYYY"),
            ("ä", "MON"),
            ("1st", "DDth"),
        ] {
            check(text, format, None);
        }
    }
}
