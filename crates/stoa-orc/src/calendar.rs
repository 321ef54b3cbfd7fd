//! Calendars: which day a number of days means.
//!
//! Arrow and most engines count in the proleptic Gregorian calendar, ORC Java by default in the
//! hybrid one: Julian before 1582-10-15. **Invariant:** a day that is converted keeps its name,
//! that is year, month and day.

use crate::metadata::{FileMetadata, WriterId};
use crate::proto::CalendarKind;

/// 1582-10-15, the first day of the Gregorian calendar, in days since 1970-01-01: the calendars
/// agree from here on.
pub(crate) const FIRST_GREGORIAN_DAY: i32 = -141_427;

/// Which calendar the days of a file are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateRule {
    /// As Arrow does.
    Proleptic,
    /// Julian before 1582-10-15: such days are converted.
    Hybrid,
}

impl DateRule {
    /// From a footer. Where it does not say, ORC Java has written in the hybrid calendar, which is
    /// its default still; the other writers know none but the proleptic one.
    pub(crate) fn of(file: &FileMetadata) -> Self {
        match file.calendar {
            CalendarKind::JulianGregorian => Self::Hybrid,
            CalendarKind::Unknown if file.writer.code == WriterId::JAVA => Self::Hybrid,
            CalendarKind::Unknown | CalendarKind::ProlepticGregorian => Self::Proleptic,
        }
    }
}

/// The day with the same year, month and day in the proleptic Gregorian calendar as `day` has in
/// the Julian one. 29 February of a year that only Julius had becomes 1 March.
pub(crate) fn hybrid_to_proleptic(day: i64) -> i64 {
    // Days to Julian year, month, day: https://howardhinnant.github.io/date_algorithms.html with
    // four-year cycles. 719,470 days lie between 0000-03-01 (Julian) and 1970-01-01.
    let shifted = day + 719_470;
    let cycle = shifted.div_euclid(1461);
    let day_of_cycle = shifted.rem_euclid(1461);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1460) / 365;
    let day_of_year = day_of_cycle - 365 * year_of_cycle;
    let year_from_march = cycle * 4 + year_of_cycle;
    // Back with 400-year cycles.
    let era = year_from_march.div_euclid(400);
    let year_of_era = year_from_march.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn julian_days_keep_their_date() {
        // 1582-10-04 (Julian) was the day before 1582-10-15; in the proleptic calendar it is 10
        // days earlier.
        assert_eq!(hybrid_to_proleptic(-141_428), -141_438);
        // 1500-02-29 exists only in the Julian calendar.
        let julian_leap = -171_596;
        assert_eq!(hybrid_to_proleptic(julian_leap + 1), hybrid_to_proleptic(julian_leap));
        // 0001-01-01: Julian is two days before proleptic.
        assert_eq!(hybrid_to_proleptic(-719_164), -719_162);
    }
}
