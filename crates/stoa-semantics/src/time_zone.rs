//! Instants and local times: `AT TIME ZONE`, and casts between timestamps with and without a zone.
//!
//! As in PostgreSQL: a local time that comes twice is the later one, one that is left out by a change
//! of the clocks is read with the offset before it.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::TZ_VARIANTS;
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Expr};

use super::call::{Operation, call, column, failure};

/// Timestamps without a zone.
pub(super) const LOCAL: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Timestamps with a zone.
pub(super) fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone(Tz);

impl Zone {
    /// The zone of a name, or of an offset.
    ///
    /// # Errors
    /// No such zone (22023).
    pub(super) fn named(name: &str) -> Result<Self> {
        let message = || failure("22023", format!("time zone \"{name}\" not recognized"));
        name_of(name).parse().map(Self).map_err(|_| message())
    }

    /// The local time at an instant, microseconds.
    pub(super) fn local(&self, instant: i64) -> Result<i64> {
        let seconds = i64::from(self.offset_seconds(instant)?);
        instant.checked_add(seconds * 1_000_000).ok_or_else(out_of_range)
    }

    /// How far the clocks are before UTC at an instant.
    pub(super) fn offset_seconds(&self, instant: i64) -> Result<i32> {
        let at = at(instant).ok_or_else(out_of_range)?;
        Ok(self.0.offset_from_utc_datetime(&at).fix().local_minus_utc())
    }

    /// The instant of a local time, microseconds.
    pub(super) fn instant(&self, local: i64) -> Result<i64> {
        let at = at(local).ok_or_else(out_of_range)?;
        let seconds = i64::from(self.offset_of_local(&at));
        local.checked_sub(seconds * 1_000_000).ok_or_else(out_of_range)
    }

    fn offset_of_local(&self, at: &NaiveDateTime) -> i32 {
        match self.0.offset_from_local_datetime(at) {
            LocalResult::Single(offset) => offset.fix().local_minus_utc(),
            LocalResult::Ambiguous(a, b) => {
                // The later instant is that of the smaller offset.
                a.fix().local_minus_utc().min(b.fix().local_minus_utc())
            }
            LocalResult::None => {
                let before = *at - TimeDelta::days(1);
                self.0.offset_from_utc_datetime(&before).fix().local_minus_utc()
            }
        }
    }
}

/// The time of day and date of microseconds since 1970. Years beyond those of the calendar used have the rules of its last.
fn at(micros: i64) -> Option<NaiveDateTime> {
    // 262,000 years in either direction.
    const MOST: i64 = 8_267_936_000_000_000_000;
    DateTime::from_timestamp_micros(micros.clamp(-MOST, MOST)).map(|time| time.naive_utc())
}

/// The name of a zone as it is called; what is none, such as an offset, as it is written.
pub(super) fn name_of(written: &str) -> &str {
    let written = written.trim();
    if ["utc", "z"].iter().any(|utc| written.eq_ignore_ascii_case(utc)) {
        return "UTC";
    }
    let called = TZ_VARIANTS.iter().map(|zone| zone.name());
    let is_same = |called: &&str| called.eq_ignore_ascii_case(written);
    match written.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        true => called.into_iter().find(is_same).unwrap_or(written),
        false => written,
    }
}

/// A zone with one offset, as `SET TIME ZONE` and `AT TIME ZONE` take it: seconds to the east of UTC.
///
/// POSIX counts to the west: `+02:00`, `UTC+2` and `<-02>+02` are all two hours behind UTC. `None` for what is written
/// in another way, with changes of the clocks or with seconds.
pub(super) fn posix_offset(written: &str) -> Option<i32> {
    let rest = match written.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => written.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()),
    };
    let (sign, digits) = match rest.as_bytes().first()? {
        b'+' => (-1, &rest[1..]),
        b'-' => (1, &rest[1..]),
        _ => (-1, rest),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let number = |text: &str| match text.len() {
        1 | 2 if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse::<i32>().ok(),
        _ => None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Hours to the east, which may have a fraction, as `SET TIME ZONE 5.5` has them: seconds.
fn hours_east(written: &str) -> Option<i32> {
    let hours: f64 = written.parse().ok().filter(|hours: &f64| hours.abs() <= 24.0)?;
    let seconds = (hours * 3600.0).round();
    (seconds % 60.0 == 0.0).then_some(seconds as i32)
}

/// How PostgreSQL calls a zone with one offset: `<+02>-02`.
fn called_of_offset(east: i32) -> String {
    let shown = |seconds: i32| {
        let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
        match minutes % 60 {
            0 => format!("{sign}{:02}", minutes / 60),
            rest => format!("{sign}{:02}:{rest:02}", minutes / 60),
        }
    };
    format!("<{}>{}", shown(east), shown(-east))
}

/// The offset as the engine writes it, which counts to the east: `+02:00`.
pub(super) fn engine_offset(east: i32) -> String {
    let (sign, minutes) = (if east < 0 { '-' } else { '+' }, east.abs() / 60);
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// The zone that a session is set to, as it is called; `None` where there is none.
pub(super) fn called(written: &str) -> Option<String> {
    let written = written.trim();
    let is_name = written.starts_with(|letter: char| letter.is_ascii_alphabetic());
    if is_name && Zone::named(written).is_ok() {
        return Some(name_of(written).to_owned());
    }
    hours_east(written).or_else(|| posix_offset(written)).map(called_of_offset)
}

/// A zone that [`called`] gave, or that stands behind `AT TIME ZONE`, as the engine writes it.
pub(super) fn for_engine(called: &str) -> String {
    let is_name = called.starts_with(|letter: char| letter.is_ascii_alphabetic());
    if is_name && Zone::named(called).is_ok() {
        return name_of(called).to_owned();
    }
    posix_offset(called).map_or_else(|| called.to_owned(), engine_offset)
}

/// The name of a session's zone.
pub(super) fn name_of_session(options: &ConfigOptions) -> &str {
    options.execution.time_zone.as_deref().unwrap_or("UTC")
}

/// Whether local times of a session are those of UTC.
pub(super) fn is_utc(options: &ConfigOptions) -> bool {
    let name = name_of_session(options);
    ["utc", "etc/utc", "+00:00", "gmt", "z", "+00"].iter().any(|utc| name.eq_ignore_ascii_case(utc))
}

fn out_of_range() -> DataFusionError {
    failure("22008", "timestamp out of range")
}

/// The local time of an instant in a zone.
pub(super) fn local(instant: Expr, zone: &str) -> Expr {
    call(InZone { zone: zone.into(), is_local: true }, vec![instant])
}

/// The instant of a local time in a zone.
pub(super) fn instant_of(local: Expr, zone: &str) -> Expr {
    call(InZone { zone: zone.into(), is_local: false }, vec![local])
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InZone {
    zone: Arc<str>,
    /// Whether the result is a local time.
    is_local: bool,
}

impl Operation for InZone {
    fn name(&self) -> &str {
        if self.is_local { "local_time" } else { "instant" }
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Zone::named(&self.zone)?;
        Ok(if self.is_local { LOCAL } else { instant() })
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("{} AT TIME ZONE '{}'", operands.join(","), self.zone)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let zone = Zone::named(&self.zone)?;
        let of = if self.is_local { instant() } else { LOCAL };
        let times = cast(column, &of)?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let times = times.iter().map(|time| match self.is_local {
            true => time.map(|time| zone.local(time)).transpose(),
            false => time.map(|time| zone.instant(time)).transpose(),
        });
        let times = times.collect::<Result<TimestampMicrosecondArray>>()?;
        Ok(Arc::new(times.with_data_type(self.result(&[])?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_named_in_any_case() {
        for (written, called) in [
            ("europe/berlin", "Europe/Berlin"),
            ("Europe/Berlin", "Europe/Berlin"),
            ("AMERICA/NEW_YORK", "America/New_York"),
            ("utc", "UTC"),
            ("gmt", "GMT"),
            ("+02:00", "+02:00"),
            ("nowhere/land", "nowhere/land"),
        ] {
            assert_eq!(name_of(written), called);
            assert_eq!(Zone::named(written).is_ok(), written != "nowhere/land");
        }
    }

    /// As PostgreSQL 15 calls and understands them.
    #[test]
    fn offsets_are_those_of_posix() {
        for (written, shown, engine) in [
            ("2", "<+02>-02", "+02:00"),
            ("-8", "<-08>+08", "-08:00"),
            ("5.5", "<+05:30>-05:30", "+05:30"),
            ("+02", "<+02>-02", "+02:00"),
            ("+02:00", "<-02>+02", "-02:00"),
            ("-13:00", "<+13>-13", "+13:00"),
            ("-00:30", "<+00:30>-00:30", "+00:30"),
            ("00:00", "<+00>+00", "+00:00"),
            ("UTC+2", "<-02>+02", "-02:00"),
            ("GMT-05:30", "<+05:30>-05:30", "+05:30"),
            ("<+02>-02", "<+02>-02", "+02:00"),
            ("europe/berlin", "Europe/Berlin", "Europe/Berlin"),
        ] {
            let known = called(written).unwrap();
            assert_eq!(known, shown, "{written}");
            assert_eq!(for_engine(&known), engine, "{written}");
            assert!(Zone::named(&for_engine(&known)).is_ok());
        }
        for none in ["", "nowhere", "nowhere/land", "+2:3:4", "99", "+123", "1e400", "NaN"] {
            assert_eq!(called(none), None, "{none}");
        }
    }
}
