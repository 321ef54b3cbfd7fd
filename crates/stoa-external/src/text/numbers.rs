//! Texts as Hive reads numbers, dates and times. `None` is what becomes NULL.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

/// A whole number, as `LazyLong.parseLong`: digits behind a point are read and dropped; blanks make it none.
pub(super) fn whole(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (digits, fraction) = match digits.iter().position(|byte| *byte == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &[][..]),
    };
    let has_digits = !digits.is_empty() || !fraction.is_empty();
    if !has_digits || !fraction.iter().chain(digits).all(u8::is_ascii_digit) {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        let digit = i64::from(digit - b'0');
        value = value.checked_mul(10)?;
        value = if is_negative { value.checked_sub(digit)? } else { value.checked_add(digit)? };
    }
    Some(value)
}

/// A floating point number, as Java's `Double.parseDouble`.
pub(super) fn floating(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let unsigned = text.trim_start_matches(['+', '-']);
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" => {
            let is_negative = text.starts_with('-');
            return Some(if is_negative { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        _ => {}
    }
    let text = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    // Words that only Rust takes for numbers.
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    if !text.bytes().all(is_number) {
        return None;
    }
    text.parse().ok()
}

/// A decimal of `precision` digits, `scale` of them behind the point; further ones are rounded half up.
pub(super) fn decimal(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (is_negative, digits) = match mantissa.as_bytes().first() {
        Some(b'-') => (true, &mantissa[1..]),
        Some(b'+') => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let behind = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
    // Digits that are left after the last one that counts.
    let surplus = behind - i64::from(scale);
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let kept = i64::try_from(all.len()).ok()? - surplus.max(0);
    let mut value = 0_i128;
    for digit in all.iter().take(usize::try_from(kept.max(0)).ok()?) {
        value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    if surplus > 0
        && kept >= 0
        && all.get(usize::try_from(kept).ok()?).is_some_and(|digit| *digit >= b'5')
    {
        value = value.checked_add(1)?;
    }
    for _ in 0..surplus.saturating_neg().clamp(0, 80) {
        value = value.checked_mul(10)?;
    }
    let fits = value < 10_i128.checked_pow(u32::from(precision))?;
    fits.then_some(if is_negative { -value } else { value })
}

/// Days since 1970-01-01: `yyyy-m[m]-d[d]`, and maybe a time, which is dropped.
pub(super) fn date(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let text = text.split([' ', 'T']).next()?;
    day(text).and_then(days)
}

fn days(day: NaiveDate) -> Option<i32> {
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    i32::try_from(day.signed_duration_since(epoch).num_days()).ok()
}

fn day(text: &str) -> Option<NaiveDate> {
    let mut parts = text.splitn(3, '-');
    let mut next = |digits: std::ops::RangeInclusive<usize>| {
        let part = parts.next()?;
        let is_number =
            digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok()).flatten()
    };
    let (year, month, day) = (next(4..=4)?, next(1..=2)?, next(1..=2)?);
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
}

/// Microseconds since 1970-01-01: `yyyy-m[m]-d[d] [h]h:mm:ss[.fffffffff]`, also with a `T`.
pub(super) fn timestamp(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (date, time) = text.split_once([' ', 'T'])?;
    let day = day(date)?;
    let (time, fraction) = time.trim().split_once('.').unwrap_or((time.trim(), "0"));
    let mut parts = time.splitn(3, ':');
    let mut next = || {
        let part = parts.next()?;
        let is_number =
            (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok()).flatten()
    };
    let (hour, minute, second) = (next()?, next()?, next()?);
    if fraction.is_empty()
        || fraction.len() > 9
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse::<u32>().ok()?;
    let time = NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)?;
    Some(NaiveDateTime::new(day, time).and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_drop_what_is_behind_the_point() {
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(whole(text.as_bytes()), expected, "{text}");
        };
        check("12", Some(12));
        check("-12.9", Some(-12));
        check(" 7 ", None);
        check("+3.", Some(3));
        check("-9223372036854775808", Some(i64::MIN));
        check("9223372036854775808", None);
        check("1e3", None);
        check("", None);
        check("-", None);
        check("1.x", None);
    }

    #[test]
    fn decimals_are_rounded_half_up() {
        let check = |text: &str, expected: Option<i128>| {
            assert_eq!(decimal(text.as_bytes(), 5, 2), expected, "{text}");
        };
        check("1.5", Some(150));
        check("1.005", Some(101));
        check("-1.005", Some(-101));
        check("1.0049", Some(100));
        check("999.99", Some(99999));
        check("999.995", None);
        check("1e2", Some(10000));
        check("1.5e-2", Some(2));
        check("1e-9", Some(0));
        check("1e40", None);
        check("1e2147483647", None);
        check("1e-2147483648", Some(0));
        check(".5", Some(50));
        check("x", None);
        check("", None);
    }

    #[test]
    fn dates_and_times_are_read_as_hive_reads_them() {
        assert_eq!(date(b"1970-01-02"), Some(1));
        assert_eq!(date(b"1970-1-2"), Some(1));
        assert_eq!(date(b"1970-01-02 10:00:00"), Some(1));
        assert_eq!(date(b"1970-02-30"), None);
        assert_eq!(date(b"70-01-02"), None);
        assert_eq!(timestamp(b"1970-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(timestamp(b"1970-01-02"), None);
        assert_eq!(timestamp(b"1970-01-01 00:00:00.1234567"), Some(123_456));
        assert_eq!(timestamp(b"1970-01-01T00:00:01"), Some(1_000_000));
        assert_eq!(timestamp(b"now"), None);
    }

    #[test]
    fn floating_numbers_are_javas() {
        assert_eq!(floating(b"1.5e3"), Some(1500.0));
        assert_eq!(floating(b" 2f"), Some(2.0));
        assert_eq!(floating(b"-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(floating(b"inf"), None);
        assert_eq!(floating(b""), None);
        assert!(floating(b"NaN").unwrap().is_nan());
    }
}
