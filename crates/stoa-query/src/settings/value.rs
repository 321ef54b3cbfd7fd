//! Types of settings: how values are read, kept and shown.
//!
//! In: text as a client writes it (`1.5min`, `yes`, `0x10`). Out: the value as it is kept (numbers in
//! the setting's unit, switches as `on` or `off`), and from that the text that `SHOW` gives. Spellings,
//! rounding and errors are those of PostgreSQL 15 (`parse_int`, `parse_bool` and
//! `convert_to_base_unit` in its `guc.c`).

use stoa_error::{Error, Result};

use stoa_sql::Isolation;

/// The type of a setting's values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `on` or `off`.
    Switch,
    /// A whole number without a unit, bounds inclusive.
    Integer(i32, i32),
    /// A time, kept in milliseconds; 0 is no limit.
    Milliseconds,
    /// A size, kept in KiB; at least as many.
    Kibibytes(i32),
    /// One of these, written in any case.
    Choice(&'static [&'static str]),
    /// What statements of a transaction see of others.
    Isolation,
    /// Output format and order of dates; the format is always ISO.
    DateStyle,
    /// Always UTF8, however it is written.
    Encoding,
    /// A time zone.
    Zone,
    /// Any text.
    Text,
}

/// A unit with its size in the setting's own unit, largest first.
type Units = &'static [(&'static str, f64)];

const TIMES: Units = &[
    ("d", 86_400_000.0),
    ("h", 3_600_000.0),
    ("min", 60_000.0),
    ("s", 1000.0),
    ("ms", 1.0),
    ("us", 0.001),
];
const TIMES_HINT: &str =
    "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";

const SIZES: Units = &[
    ("TB", 1_073_741_824.0),
    ("GB", 1_048_576.0),
    ("MB", 1024.0),
    ("kB", 1.0),
    ("B", 1.0 / 1024.0),
];
const SIZES_HINT: &str =
    "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";

/// Levels of messages; `debug` and `info` are read, but not named among the values.
pub(super) const MESSAGE_LEVELS: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];

impl Kind {
    /// The value of setting `name` as it is kept.
    ///
    /// # Errors
    /// 22023 for what the setting does not take; 0A000 for an isolation level that there is not.
    pub(super) fn read(self, name: &str, text: &str) -> Result<String> {
        match self {
            Self::Switch => switch(name, text).map(str::to_owned),
            Self::Integer(min, max) => integer(name, text, (min, max), None),
            Self::Milliseconds => {
                integer(name, text, (0, i32::MAX), Some(("ms", TIMES, TIMES_HINT)))
            }
            Self::Kibibytes(min) => {
                integer(name, text, (min, i32::MAX), Some(("kB", SIZES, SIZES_HINT)))
            }
            Self::Choice(values) => choice(name, text, values),
            Self::Isolation => isolation(name, text),
            Self::DateStyle => date_style(name, text),
            Self::Encoding => encoding(name, text),
            Self::Zone => zone(name, text),
            Self::Text => Ok(text.to_owned()),
        }
    }

    /// A kept value as `SHOW` gives it: times and sizes in the largest unit that leaves no fraction.
    pub(super) fn shown(self, kept: &str) -> String {
        let units = match self {
            Self::Milliseconds => TIMES,
            Self::Kibibytes(_) => SIZES,
            _ => return kept.to_owned(),
        };
        let Ok(number) = kept.parse::<i32>() else { return kept.to_owned() };
        let whole = |size: &&(&str, f64)| size.1 >= 1.0 && f64::from(number) % size.1 == 0.0;
        match units.iter().find(whole) {
            Some((unit, size)) if number > 0 => format!("{:.0}{unit}", f64::from(number) / size),
            _ => kept.to_owned(),
        }
    }

    /// Its name in `pg_settings.vartype`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Switch => "bool",
            Self::Integer(..) | Self::Milliseconds | Self::Kibibytes(_) => "integer",
            Self::Choice(_) | Self::Isolation => "enum",
            Self::DateStyle | Self::Encoding | Self::Zone | Self::Text => "string",
        }
    }

    /// The unit of bare numbers.
    pub(super) fn unit(self) -> Option<&'static str> {
        match self {
            Self::Milliseconds => Some("ms"),
            Self::Kibibytes(_) => Some("kB"),
            _ => None,
        }
    }

    /// The smallest and the largest number, both inclusive, in the setting's unit.
    pub(super) fn bounds(self) -> Option<(i32, i32)> {
        match self {
            Self::Integer(min, max) => Some((min, max)),
            Self::Milliseconds => Some((0, i32::MAX)),
            Self::Kibibytes(min) => Some((min, i32::MAX)),
            _ => None,
        }
    }

    /// The values there are to choose from.
    pub(super) fn values(self) -> &'static [&'static str] {
        match self {
            Self::Choice(values) => values,
            Self::Isolation => ISOLATION_LEVELS,
            _ => &[],
        }
    }
}

const ISOLATION_LEVELS: &[&str] =
    &["serializable", "repeatable read", "read committed", "read uncommitted"];

/// A value as PostgreSQL reads one of a setting that is on or off: words may be cut short as long as
/// they mean one thing.
pub(crate) fn as_boolean(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if lower == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        return Some(true);
    }
    let is_off = lower == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2);
    is_off.then_some(false)
}

fn switch(name: &str, text: &str) -> Result<&'static str> {
    match as_boolean(text) {
        Some(true) => Ok("on"),
        Some(false) => Ok("off"),
        None => Err(Error::invalid(format!("parameter \"{name}\" requires a Boolean value"))
            .with_sqlstate("22023")),
    }
}

/// The error for a value that a setting does not take.
pub(super) fn invalid(name: &str, text: &str) -> Error {
    Error::invalid(format!("invalid value for parameter \"{name}\": \"{text}\""))
        .with_sqlstate("22023")
}

fn choice(name: &str, text: &str, values: &[&str]) -> Result<String> {
    let lower = text.to_ascii_lowercase();
    if values.contains(&lower.as_str()) {
        return Ok(lower);
    }
    match lower.as_str() {
        "debug" if values == MESSAGE_LEVELS => Ok("debug2".to_owned()),
        "info" if values == MESSAGE_LEVELS => Ok(lower),
        _ => {
            let hint = format!("Available values: {}.", values.join(", "));
            Err(invalid(name, text).with_hint(hint))
        }
    }
}

fn isolation(name: &str, text: &str) -> Result<String> {
    let lower = choice(name, text, ISOLATION_LEVELS)?;
    if let Some(isolation) = Isolation::named(&lower) {
        isolation.check()?;
    }
    Ok(lower)
}

/// `ISO` and the order of month and day, both optional. Dates such as 02/01/2001 are read in one order only: to take
/// another would be to read them wrongly.
fn date_style(name: &str, text: &str) -> Result<String> {
    let mut order = None;
    for word in text.split(',') {
        let new = match word.trim().to_ascii_uppercase().as_str() {
            "ISO" => continue,
            "DEFAULT" => "MDY",
            "YMD" => "YMD",
            "DMY" => "DMY",
            word if word.starts_with("EURO") => "DMY",
            "MDY" | "US" => "MDY",
            word if word.starts_with("NONEURO") => "MDY",
            _ => {
                let hint = "Dates are always written as ISO; the order is MDY.";
                return Err(invalid(name, text).with_hint(hint));
            }
        };
        if order.is_some_and(|order| order != new) {
            return Err(invalid(name, text).with_hint("Conflicting \"datestyle\" specifications."));
        }
        order = Some(new);
    }
    match order {
        Some(other @ ("DMY" | "YMD")) => Err(Error::unsupported(format!(
            "DateStyle {other} is not supported: 02/01/2001 is February 1"
        ))
        .with_hint("write dates as 2001-01-02, which is read alike in all styles")),
        _ => Ok("ISO, MDY".to_owned()),
    }
}

fn encoding(name: &str, text: &str) -> Result<String> {
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    match letters.collect::<String>().to_ascii_lowercase().as_str() {
        "utf8" | "unicode" => Ok("UTF8".to_owned()),
        _ => Err(invalid(name, text).with_hint("The only encoding is UTF8.")),
    }
}

/// A name of a zone, or an offset.
fn zone(name: &str, text: &str) -> Result<String> {
    stoa_semantics::zone_called(text).ok_or_else(|| invalid(name, text))
}

/// A number of the setting's unit; fractions are rounded, halves to the even number.
fn integer(
    name: &str,
    text: &str,
    (min, max): (i32, i32),
    unit: Option<(&str, Units, &'static str)>,
) -> Result<String> {
    let (number, rest) = leading_number(text).ok_or_else(|| invalid(name, text))?;
    let number = match (rest.trim(), unit) {
        ("", _) => number,
        (_, None) => return Err(invalid(name, text)),
        (written, Some((_, units, hint))) => {
            in_unit(number, written, units).ok_or_else(|| invalid(name, text).with_hint(hint))?
        }
    };
    let number = number.round_ties_even();
    if number > f64::from(i32::MAX) || number < f64::from(i32::MIN) {
        return Err(invalid(name, text).with_hint("Value exceeds integer range."));
    }
    if number < f64::from(min) || number > f64::from(max) {
        let unit = unit.map_or_else(String::new, |(unit, ..)| format!(" {unit}"));
        let message = format!(
            "{number:.0}{unit} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
        );
        return Err(Error::invalid(message).with_sqlstate("22023"));
    }
    // Not "-0".
    Ok(format!("{:.0}", number + 0.0))
}

/// Converts from the unit `written`; a fraction is rounded to whole units of the next smaller one.
fn in_unit(number: f64, written: &str, units: Units) -> Option<f64> {
    let place = units.iter().position(|(unit, _)| *unit == written)?;
    let (_, size) = units.get(place)?;
    let value = number * size;
    Some(match units.get(place + 1) {
        Some((_, smaller)) => (value / smaller).round_ties_even() * smaller,
        None => value,
    })
}

/// The number that a text begins with, as C reads it (decimal, `0x10`, octal `010`, `1.5`, `1e3`), and
/// what follows it.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, rest) = whole_number(digits).unwrap_or((0.0, digits));
    if rest.starts_with(['.', 'e', 'E']) {
        return decimal(digits).map(|(number, rest)| (sign * number, rest));
    }
    (rest.len() < digits.len()).then_some((sign * number, rest))
}

fn whole_number(text: &str) -> Option<(f64, &str)> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (radix, digits) = match hex {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => (16, digits),
        _ if text.starts_with('0') => (8, text),
        _ => (10, text),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let add = |sum: f64, c: char| {
        sum * f64::from(radix) + f64::from(c.to_digit(radix).unwrap_or_default())
    };
    (!digits.is_empty()).then(|| (digits.chars().fold(0.0, add), rest))
}

/// The longest beginning that is a decimal number, without a sign.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(text);
    if text.get(end..).is_some_and(|rest| rest.starts_with('.')) {
        end += 1 + digits(text.get(end + 1..).unwrap_or_default());
    }
    let mantissa: f64 = text.get(..end)?.parse().ok()?;
    let exponent = text.get(end..)?.strip_prefix(['e', 'E']).and_then(|exponent| {
        let signed = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let length = exponent.len() - signed.len() + digits(signed);
        (digits(signed) > 0).then_some(end + 1 + length)
    });
    let whole = exponent.and_then(|end| Some((text.get(..end)?.parse().ok()?, text.get(end..)?)));
    whole.or_else(|| Some((mantissa, text.get(end..)?)))
}

#[cfg(test)]
mod tests;
