//! Time zones of writers.
//!
//! In: a zone's name from a stripe footer and points in UTC. Out: the zone's offset there.
//! ORC's TIMESTAMP is a wall-clock time, stored as seconds from 2015-01-01 00:00:00 in the
//! writer's zone. **Invariant:** offsets change only at multiples of 15 minutes of UTC from 1900
//! on; points before that are looked up one by one.

use chrono::{Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::error::{Result, unsupported};

/// 2015-01-01 00:00:00 in seconds since 1970-01-01.
pub(crate) const ORC_EPOCH_SECONDS: i64 = 1_420_070_400;

/// Offsets are remembered for blocks of this many seconds.
const BLOCK_SECONDS: i64 = 900;

/// Blocks before this one (1900-01-01) may have a change inside.
const FIRST_BLOCK: i64 = -2_208_988_800 / BLOCK_SECONDS;

/// How many blocks are remembered.
const CACHE_SIZE: usize = 256;

/// A writer's time zone.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// The same offset at all times, in seconds east of UTC.
    Fixed(i64),
    /// A zone of the IANA database.
    Named(Tz),
    /// A name that is not known: an error once a TIMESTAMP is read.
    Unknown(String),
}

impl Zone {
    /// By the name in a stripe footer. Files without one (before Hive 1.2) are read as UTC: they
    /// were meant to be read in the zone they were written in.
    pub(crate) fn of(name: Option<&str>) -> Self {
        let Some(name) = name else { return Self::Fixed(0) };
        if matches!(name, "" | "UTC" | "GMT" | "Z" | "Etc/UTC") {
            return Self::Fixed(0);
        }
        if let Ok(zone) = name.parse::<Tz>() {
            return Self::Named(zone);
        }
        fixed_offset(name).map_or_else(|| Self::Unknown(name.to_owned()), Self::Fixed)
    }

    /// Opens the zone for lookups.
    pub(crate) fn offsets(&self) -> Result<Offsets> {
        let zone = match self {
            Self::Fixed(_) => None,
            Self::Named(zone) => Some(*zone),
            Self::Unknown(name) => {
                return Err(unsupported(format!("time zone `{name}` of the writer is not known")));
            }
        };
        let fixed = if let Self::Fixed(offset) = self { *offset } else { 0 };
        let cache = if zone.is_some() { vec![(i64::MIN, 0); CACHE_SIZE] } else { Vec::new() };
        Ok(Offsets { zone, fixed, cache })
    }
}

/// `GMT+09:00`, `UTC-5`, `+0530` and the like, in seconds east.
fn fixed_offset(name: &str) -> Option<i64> {
    let rest = name.strip_prefix("GMT").or_else(|| name.strip_prefix("UTC")).unwrap_or(name);
    let (sign, digits) = match rest.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() <= 2 => (digits, "0"),
        None => digits.split_at_checked(digits.len() - 2)?,
    };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..=18).contains(&hours) && (0..60).contains(&minutes))
        .then_some(sign * (hours * 3600 + minutes * 60))
}

/// Offsets of a zone, the last ones remembered.
pub(crate) struct Offsets {
    zone: Option<Tz>,
    fixed: i64,
    cache: Vec<(i64, i64)>,
}

impl Offsets {
    /// The offset if it is the same at all times.
    pub(crate) fn fixed(&self) -> Option<i64> {
        self.zone.is_none().then_some(self.fixed)
    }

    /// The offset in seconds east at a point in UTC.
    #[inline]
    pub(crate) fn at(&mut self, utc_seconds: i64) -> i64 {
        let Some(zone) = self.zone else { return self.fixed };
        let block = utc_seconds.div_euclid(BLOCK_SECONDS);
        if block < FIRST_BLOCK {
            return look_up(zone, utc_seconds);
        }
        let slot = block as usize % CACHE_SIZE;
        let (known, offset) = self.cache[slot];
        if known == block {
            return offset;
        }
        let offset = look_up(zone, utc_seconds);
        self.cache[slot] = (block, offset);
        offset
    }

    /// 2015-01-01 00:00:00 in the zone, in seconds since 1970-01-01 UTC.
    pub(crate) fn epoch(&self) -> i64 {
        let Some(zone) = self.zone else { return ORC_EPOCH_SECONDS - self.fixed };
        let local = NaiveDate::from_ymd_opt(2015, 1, 1).and_then(|d| d.and_hms_opt(0, 0, 0));
        let utc = local.and_then(|local| zone.from_local_datetime(&local).earliest());
        utc.map_or(ORC_EPOCH_SECONDS, |utc| utc.timestamp())
    }
}

/// The last year that the zone tables list changes for; later ones repeat its rules.
const LAST_LISTED_YEAR: i32 = 2036;

fn look_up(zone: Tz, utc_seconds: i64) -> i64 {
    let utc = chrono::DateTime::from_timestamp(utc_seconds, 0).map(|utc| utc.naive_utc());
    // Beyond chrono's years (±262,000) the zone keeps its first or last offset.
    let edge = if utc_seconds < 0 { NaiveDateTime::MIN } else { NaiveDateTime::MAX };
    let utc = utc.unwrap_or(edge);
    let utc = if utc.year() > LAST_LISTED_YEAR { same_day_of_listed_year(utc) } else { utc };
    i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
}

/// The same day and time of a listed year with the same calendar: as long and starting on the
/// same weekday. 28 years have all 14 calendars.
fn same_day_of_listed_year(utc: NaiveDateTime) -> NaiveDateTime {
    let calendar = |year: i32| {
        let first = NaiveDate::from_ymd_opt(year, 1, 1)?;
        Some((first.weekday(), first.leap_year()))
    };
    let wanted = calendar(utc.year());
    let year = (LAST_LISTED_YEAR - 27..=LAST_LISTED_YEAR).find(|year| calendar(*year) == wanted);
    year.and_then(|year| utc.with_year(year)).unwrap_or(utc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_by_name() {
        let at = |name: &str, utc| Zone::of(Some(name)).offsets().unwrap().at(utc);
        assert_eq!(at("UTC", 0), 0);
        assert_eq!(at("Asia/Tokyo", 1_600_000_000), 9 * 3600);
        assert_eq!(at("US/Pacific", 1_600_000_000), -7 * 3600);
        assert_eq!(at("GMT+09:00", 0), 9 * 3600);
        assert_eq!(at("GMT-0330", 0), -(3 * 3600 + 30 * 60));
        assert!(Zone::of(Some("Mars/Olympus")).offsets().is_err());
        assert_eq!(at("Europe/Berlin", i64::MAX), 3600);
        at("Europe/Berlin", i64::MIN);
    }

    #[test]
    fn the_epoch_is_in_the_zone() {
        let epoch = |name: &str| Zone::of(Some(name)).offsets().unwrap().epoch();
        assert_eq!(epoch("UTC"), ORC_EPOCH_SECONDS);
        assert_eq!(epoch("Asia/Tokyo"), ORC_EPOCH_SECONDS - 9 * 3600);
        assert_eq!(epoch("US/Pacific"), ORC_EPOCH_SECONDS + 8 * 3600);
    }
}
