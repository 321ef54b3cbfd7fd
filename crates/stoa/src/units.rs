//! Counts, bytes and times as people write and read them.

use std::time::Duration;

/// Bytes in the largest unit that fits: `1.5 GiB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Reads `30s`, `10m`, `24h`, `7d`, `500ms`, or a bare number of seconds.
///
/// # Errors
/// What would be valid.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("write a time such as 30s, 10m, 24h or 7d".into()),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * factor);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "write a time such as 30s, 10m, 24h or 7d".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("30s", 30_000), ("2", 2000), ("1.5m", 90_000), ("500ms", 500)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for wrong in ["", "s", "10 apples", "-1s", "1..2s", "9e999d"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
