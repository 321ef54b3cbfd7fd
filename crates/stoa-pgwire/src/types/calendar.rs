//! Dates and times of day as bytes of text, without limits on the year. `stoa_sql::dates` reads them.

use stoa_sql::dates::civil::civil_from_days;

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
pub(crate) const PG_EPOCH_DAYS: i64 = 10_957;
/// Microseconds per day.
pub(crate) const DAY_US: i64 = 86_400_000_000;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(micros: i64) -> String {
        let mut out = Vec::new();
        put_timestamp(&mut out, micros, b"");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn timestamps_are_written_as_postgresql_writes_them() {
        assert_eq!(timestamp(0), "1970-01-01 00:00:00");
        assert_eq!(timestamp(1_500_000), "1970-01-01 00:00:01.5");
        assert_eq!(timestamp(-1), "1969-12-31 23:59:59.999999");
        assert_eq!(timestamp(-62_135_596_800_000_000 - 1), "0001-12-31 23:59:59.999999 BC");
        assert_eq!(timestamp(253_402_300_800_000_000), "10000-01-01 00:00:00");
    }
}
