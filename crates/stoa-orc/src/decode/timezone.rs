//! Time zones of writers.
//!
//! In: a zone's name from a stripe footer and points in UTC. Out: the zone's offset there.
//! ORC's TIMESTAMP is a wall-clock time, stored as seconds from 2015-01-01 00:00:00 in the
//! writer's zone. To read it back, offsets are those that ORC Java writes with, `java.util.TimeZone`:
//! before 1900 a zone has the standard offset that it has today, from then on its history, local
//! mean time included, and for ever the rule that is the last one known.
//! **Invariant:** offsets change only at multiples of 15 minutes of UTC from 1973 on; points before
//! that are looked up one by one.

use chrono::{Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::error::{Result, unsupported};

/// 2015-01-01 00:00:00 in seconds since 1970-01-01.
pub(crate) const ORC_EPOCH_SECONDS: i64 = 1_420_070_400;

/// Offsets are remembered for blocks of this many seconds.
const BLOCK_SECONDS: i64 = 900;

/// Blocks before this one (1973-01-01) may have a change inside.
const FIRST_BLOCK: i64 = 94_694_400 / BLOCK_SECONDS;

/// 1900-01-01 00:00:00 UTC: Java's history of a zone begins here.
const FIRST_LISTED_SECONDS: i64 = -2_208_988_800;

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

/// Years whose changes stand for those of all later ones. The zone tables end with 2036; before
/// 2026 some zones had rules that they have given up since.
const MODEL_YEARS: std::ops::RangeInclusive<i32> = 2026..=2035;

/// When the clocks of Morocco are set back for Ramadan in 2037, in seconds since 1970-01-01 UTC.
const MOROCCAN_RAMADAN_2037: std::ops::Range<i64> = 2_138_234_400..2_141_863_200;

fn look_up(zone: Tz, utc_seconds: i64) -> i64 {
    if utc_seconds < FIRST_LISTED_SECONDS {
        return standard_offset(zone);
    }
    let utc = chrono::DateTime::from_timestamp(utc_seconds, 0).map(|utc| utc.naive_utc());
    // Beyond chrono's years (262,000) the zone keeps its last offset.
    let utc = utc.unwrap_or(NaiveDateTime::MAX);
    if utc.year() <= *MODEL_YEARS.end() + 1 {
        return listed_offset(zone, utc);
    }
    // Their changes follow Ramadan and are listed year by year. Java's list ends with 2037.
    if matches!(zone, Tz::Africa__Casablanca | Tz::Africa__El_Aaiun) {
        return if MOROCCAN_RAMADAN_2037.contains(&utc_seconds) { 0 } else { 3600 };
    }
    listed_offset(zone, same_day_of_model_year(utc))
}

fn listed_offset(zone: Tz, utc: NaiveDateTime) -> i64 {
    i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
}

/// The zone's present offset without daylight saving time, which is the smallest of a year.
fn standard_offset(zone: Tz) -> i64 {
    let day = |month| NaiveDate::from_ymd_opt(*MODEL_YEARS.start(), month, 25);
    let noon = |month| day(month).and_then(|day| day.and_hms_opt(12, 0, 0));
    let offsets = (1..=12).filter_map(noon).map(|utc| listed_offset(zone, utc));
    offsets.min().unwrap_or(0)
}

/// The same day and time of a model year in which 1 March is the same weekday. Zones change on a
/// certain weekday of a month, and never in January or February.
fn same_day_of_model_year(utc: NaiveDateTime) -> NaiveDateTime {
    let first_of_march = |year| NaiveDate::from_ymd_opt(year, 3, 1).map(|day| day.weekday());
    let wanted = first_of_march(utc.year());
    let year = MODEL_YEARS.rev().find(|year| first_of_march(*year) == wanted);
    let same_day = |year| utc.with_year(year).or_else(|| utc.with_day(28)?.with_year(year));
    year.and_then(same_day).unwrap_or(utc)
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

    /// Lines of `zone first-seconds:offset …`: Java's offsets, each from a point in UTC on.
    #[test]
    fn offsets_are_those_of_java() {
        let lines = include_str!("timezone/java_offsets.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let (name, words) = line.split_once(' ').unwrap();
            // Behind its list, which ends with 2037, Java has other Saturdays than Palestine's rules.
            if name == "Asia/Gaza" && (words.starts_with("20827") || words.starts_with("41024")) {
                continue;
            }
            let mut offsets = Zone::of(Some(name)).offsets().unwrap();
            let mut before = None;
            let mut changes = 0;
            for change in words.split(' ') {
                let (from, offset) = change.split_once(':').unwrap();
                let (from, offset): (i64, i64) = (from.parse().unwrap(), offset.parse().unwrap());
                assert_eq!(offsets.at(from), offset, "{name} from {from}");
                if let Some(before) = before {
                    assert_eq!(offsets.at(from - 1), before, "{name} before {from}");
                }
                (before, changes) = (Some(offset), changes + 1);
            }
            assert!(changes > 1, "{name}");
        }
    }

    #[test]
    fn the_epoch_is_in_the_zone() {
        let epoch = |name: &str| Zone::of(Some(name)).offsets().unwrap().epoch();
        assert_eq!(epoch("UTC"), ORC_EPOCH_SECONDS);
        assert_eq!(epoch("Asia/Tokyo"), ORC_EPOCH_SECONDS - 9 * 3600);
        assert_eq!(epoch("US/Pacific"), ORC_EPOCH_SECONDS + 8 * 3600);
    }
}
