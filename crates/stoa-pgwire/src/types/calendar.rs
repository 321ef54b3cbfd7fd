//! Dates and times of day as text, both ways, without limits on the year.
//!
//! The proleptic Gregorian calendar; days are counted from 1970-01-01. The conversions are those
//! of Howard Hinnant's "chrono-compatible low-level date algorithms".

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
pub(crate) const PG_EPOCH_DAYS: i64 = 10_957;
/// Microseconds per day.
pub(crate) const DAY_US: i64 = 86_400_000_000;

/// Year, month (1 to 12) and day (1 to 31) of a day.
pub(crate) fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// The day of a year, month and day; `None` where there is no such day.
pub(crate) fn days_from_civil(year: i64, month: u32, day: u32) -> Option<i64> {
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    let (month, day) = (i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Appends `YYYY-MM-DD`; returns whether the year is before the common era, for the caller to end
/// the text with ` BC`.
pub(crate) fn put_date(out: &mut Vec<u8>, days: i64) -> bool {
    let (year, month, day) = civil_from_days(days);
    let before = year <= 0;
    let shown = if before { 1 - year } else { year };
    if shown < 10_000 {
        put_2(out, (shown / 100) as u32);
        put_2(out, (shown % 100) as u32);
    } else {
        super::numeric::put_i64(out, shown);
    }
    out.push(b'-');
    put_2(out, month);
    out.push(b'-');
    put_2(out, day);
    before
}

/// Appends `HH:MM:SS` and the fraction without its trailing zeros. `micros` is within a day, or
/// exactly 24 hours.
pub(crate) fn put_time(out: &mut Vec<u8>, micros: i64) {
    let seconds = micros / 1_000_000;
    put_2(out, (seconds / 3600) as u32);
    out.push(b':');
    put_2(out, (seconds / 60 % 60) as u32);
    out.push(b':');
    put_2(out, (seconds % 60) as u32);
    put_fraction(out, (micros % 1_000_000) as u32);
}

/// Appends `.ffffff` without trailing zeros; nothing for 0.
pub(crate) fn put_fraction(out: &mut Vec<u8>, micros: u32) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    let mut divisor = 100_000;
    let mut rest = micros;
    while rest > 0 {
        out.push(b'0' + (rest / divisor) as u8);
        rest %= divisor;
        divisor /= 10;
    }
}

/// Appends a timestamp, as date and time of day, followed by `zone` (such as `+09`) if any.
pub(crate) fn put_timestamp(out: &mut Vec<u8>, micros: i64, zone: &[u8]) {
    let before = put_date(out, micros.div_euclid(DAY_US));
    out.push(b' ');
    put_time(out, micros.rem_euclid(DAY_US));
    out.extend_from_slice(zone);
    if before {
        out.extend_from_slice(b" BC");
    }
}

/// Appends two digits.
pub(crate) fn put_2(out: &mut Vec<u8>, value: u32) {
    out.push(b'0' + (value / 10 % 10) as u8);
    out.push(b'0' + (value % 10) as u8);
}

/// A timestamp as read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParsedTimestamp {
    /// Local microseconds since 1970-01-01 00:00:00.
    pub(crate) micros: i64,
    /// Seconds east of UTC, where the text names a zone.
    pub(crate) offset_seconds: Option<i32>,
}

/// Reads `YYYY-MM-DD[ BC]`.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let (text, before) = strip_bc(text);
    let (days, rest) = scan_date(text, before)?;
    if rest.is_empty() {
        return Some(days);
    }
    // A time of day, or the zone that JDBC sends with a date, is read and left out.
    let rest = rest.strip_prefix([' ', 'T']).unwrap_or(rest);
    match scan_time(rest) {
        Some((_, offset)) if offset.trim().is_empty() => {}
        Some((_, offset)) => {
            parse_offset(offset)?;
        }
        None => {
            parse_offset(rest)?;
        }
    }
    Some(days)
}

/// Reads `HH:MM[:SS[.ffffff]]`; an offset that follows is read and left out.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let (micros, rest) = scan_time(text.trim())?;
    if !rest.is_empty() {
        parse_offset(rest)?;
    }
    Some(micros)
}

/// Reads `YYYY-MM-DD[ T]HH:MM[:SS[.ffffff]][offset][ BC]`, or a date alone.
pub(crate) fn parse_timestamp(text: &str) -> Option<ParsedTimestamp> {
    let (text, before) = strip_bc(text.trim());
    let (days, rest) = scan_date(text, before)?;
    let start = days.checked_mul(DAY_US)?;
    if rest.is_empty() {
        return Some(ParsedTimestamp { micros: start, offset_seconds: None });
    }
    if !matches!(rest.as_bytes().first(), Some(b' ' | b'T')) {
        return None;
    }
    let (time, rest) = scan_time(rest.get(1..)?)?;
    let offset_seconds =
        if rest.trim().is_empty() { None } else { Some(parse_offset(rest.trim())?) };
    Some(ParsedTimestamp { micros: start.checked_add(time)?, offset_seconds })
}

fn strip_bc(text: &str) -> (&str, bool) {
    match text.strip_suffix(" BC").or_else(|| text.strip_suffix(" bc")) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

fn scan_date(text: &str, before: bool) -> Option<(i64, &str)> {
    let (year, rest) = scan_number(text, 4, 7)?;
    let (month, rest) = scan_number(rest.strip_prefix('-')?, 1, 2)?;
    let (day, rest) = scan_number(rest.strip_prefix('-')?, 1, 2)?;
    let year = i64::from(year);
    let year = if before { 1 - year } else { year };
    Some((days_from_civil(year, month, day)?, rest))
}

fn scan_time(text: &str) -> Option<(i64, &str)> {
    let (hours, rest) = scan_number(text, 1, 2)?;
    let (minutes, mut rest) = scan_number(rest.strip_prefix(':')?, 2, 2)?;
    let mut seconds = 0;
    let mut micros = 0;
    if let Some(after) = rest.strip_prefix(':') {
        (seconds, rest) = scan_number(after, 2, 2)?;
        if let Some(after) = rest.strip_prefix('.') {
            (micros, rest) = scan_fraction(after)?;
        }
    }
    if hours > 24 || minutes > 59 || seconds > 60 {
        return None;
    }
    let total = i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds);
    let total = total * 1_000_000 + i64::from(micros);
    (total <= DAY_US).then_some((total, rest))
}

/// The fraction's microseconds; further digits are left out.
fn scan_fraction(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, rest) = text.split_at(digits);
    let mut micros = 0;
    for index in 0..6 {
        let digit = fraction.as_bytes().get(index).map_or(0, |byte| u32::from(byte - b'0'));
        micros = micros * 10 + digit;
    }
    (digits > 0).then_some((micros, rest))
}

fn scan_number(text: &str, digits_min: usize, digits_max: usize) -> Option<(u32, &str)> {
    let digits = text.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
    if digits < digits_min {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// Reads `Z`, `UTC`, `+HH`, `+HHMM`, `+HH:MM` or `+HH:MM:SS` as seconds east of UTC.
pub(crate) fn parse_offset(text: &str) -> Option<i32> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") {
        return Some(0);
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, rest) = scan_number(digits, 1, 2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { scan_number(rest, 2, 2)? };
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (seconds, rest) = if rest.is_empty() { (0, rest) } else { scan_number(rest, 2, 2)? };
    if !rest.is_empty() || hours > 15 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(sign * i32::try_from(hours * 3600 + minutes * 60 + seconds).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(micros: i64) -> String {
        let mut out = Vec::new();
        put_timestamp(&mut out, micros, b"");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn days_lead_back_to_their_dates() {
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), Some(days));
        }
        assert_eq!(civil_from_days(PG_EPOCH_DAYS), (2000, 1, 1));
        assert_eq!(days_from_civil(2023, 2, 29), None);
    }

    #[test]
    fn timestamps_are_written_as_postgresql_writes_them() {
        assert_eq!(timestamp(0), "1970-01-01 00:00:00");
        assert_eq!(timestamp(1_500_000), "1970-01-01 00:00:01.5");
        assert_eq!(timestamp(-1), "1969-12-31 23:59:59.999999");
        assert_eq!(timestamp(-62_135_596_800_000_000 - 1), "0001-12-31 23:59:59.999999 BC");
        assert_eq!(timestamp(253_402_300_800_000_000), "10000-01-01 00:00:00");
    }

    #[test]
    fn timestamps_are_read_back() {
        let read = |text| parse_timestamp(text).map(|t| (t.micros, t.offset_seconds));
        assert_eq!(read("1970-01-01 00:00:01.5"), Some((1_500_000, None)));
        assert_eq!(read("1970-01-01T00:00:00Z"), Some((0, Some(0))));
        assert_eq!(read("1970-01-01 00:00:00+09"), Some((0, Some(32_400))));
        assert_eq!(read("1970-01-01 00:00:00-05:30"), Some((0, Some(-19_800))));
        assert_eq!(read("1970-01-02"), Some((DAY_US, None)));
        assert_eq!(read("0001-12-31 23:59:59.999999 BC"), Some((-62_135_596_800_000_001, None)));
        assert_eq!(read("1970-13-01"), None);
        assert_eq!(read("1970-01-01 25:00"), None);
        assert_eq!(read("1970-01-01ä"), None);
        for text in ["2024-02-29", "2024-02-29 +00", "2024-02-29 12:00:00+09", "2024-02-29T12:00Z"]
        {
            assert_eq!(parse_date(text), Some(19_782), "{text}");
        }
        assert_eq!(parse_date("2024-02-29 noon"), None);
        assert_eq!(parse_time("24:00:00"), Some(DAY_US));
        assert_eq!(parse_time("12:30:00.25+02"), Some(45_000_250_000));
    }
}
