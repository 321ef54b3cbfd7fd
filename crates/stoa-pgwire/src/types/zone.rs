//! The session's time zone: how far local time is from UTC at an instant.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use stoa_sql::dates;

use super::calendar::put_2;

/// A named zone, or a fixed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Seconds east of UTC.
    Fixed(i32),
    /// A zone of the IANA database.
    Named(Tz),
}

impl Default for Zone {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl Zone {
    /// Reads a zone's name (`Asia/Tokyo`, `UTC`) or an offset (`+09:00`); letter case does not
    /// matter. `None` where there is no such zone.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if ["utc", "gmt", "z"].iter().any(|utc| text.eq_ignore_ascii_case(utc)) {
            return Some(Self::Fixed(0));
        }
        if let Ok(offset) = dates::offset(text) {
            return Some(Self::Fixed(offset));
        }
        if let Ok(hours) = text.parse::<f64>()
            && hours.abs() <= 15.0
        {
            return Some(Self::Fixed((hours * 3600.0) as i32));
        }
        Tz::from_str_insensitive(text).ok().map(Self::Named)
    }

    /// Seconds that local time is ahead of UTC at an instant (microseconds since 1970, UTC).
    pub(crate) fn offset_at(self, utc_micros: i64) -> i32 {
        match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => DateTime::from_timestamp(utc_micros.div_euclid(1_000_000), 0)
                .map_or(0, |at| {
                    zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
                }),
        }
    }

    /// Seconds that local time is ahead of UTC at a local time. As in PostgreSQL, the later instant is taken where clocks are
    /// set back, and the offset from before where they are set forward.
    pub(crate) fn offset_at_local(self, local_micros: i64) -> i32 {
        let zone = match self {
            Self::Fixed(offset) => return offset,
            Self::Named(zone) => zone,
        };
        let seconds = local_micros.div_euclid(1_000_000);
        let Some(local) = DateTime::from_timestamp(seconds, 0).map(|at| at.naive_utc()) else {
            return 0;
        };
        match zone.offset_from_local_datetime(&local) {
            LocalResult::Single(offset) => offset.fix().local_minus_utc(),
            LocalResult::Ambiguous(one, other) => {
                one.fix().local_minus_utc().min(other.fix().local_minus_utc())
            }
            LocalResult::None => before_gap(zone, local),
        }
    }
}

fn before_gap(zone: Tz, local: NaiveDateTime) -> i32 {
    let earlier = local.checked_sub_signed(chrono::TimeDelta::hours(3)).unwrap_or(local);
    match zone.offset_from_local_datetime(&earlier) {
        LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => {
            offset.fix().local_minus_utc()
        }
        LocalResult::None => 0,
    }
}

/// Appends an offset as PostgreSQL does: `+09`, `-03:30`, `+00:19:32`.
pub(crate) fn put_offset(out: &mut Vec<u8>, seconds: i32) {
    out.push(if seconds < 0 { b'-' } else { b'+' });
    let seconds = seconds.unsigned_abs();
    put_2(out, seconds / 3600);
    if !seconds.is_multiple_of(3600) {
        out.push(b':');
        put_2(out, seconds / 60 % 60);
    }
    if !seconds.is_multiple_of(60) {
        out.push(b':');
        put_2(out, seconds % 60);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_know_their_offsets() {
        let berlin = Zone::parse("europe/berlin").unwrap();
        assert_eq!(berlin.offset_at(1_704_067_200_000_000), 3600);
        assert_eq!(berlin.offset_at(1_719_792_000_000_000), 7200);
        // 2024-03-31 02:30 does not exist there.
        assert_eq!(berlin.offset_at_local(1_711_852_200_000_000), 3600);
        assert_eq!(Zone::parse("-7"), Some(Zone::Fixed(-25_200)));
        assert_eq!(Zone::parse("+05:30"), Some(Zone::Fixed(19_800)));
        assert_eq!(Zone::parse("Nowhere/City"), None);
    }

    #[test]
    fn offsets_are_written_short() {
        let text = |seconds| {
            let mut out = Vec::new();
            put_offset(&mut out, seconds);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0), "+00");
        assert_eq!(text(-12_600), "-03:30");
        assert_eq!(text(1172), "+00:19:32");
    }
}
