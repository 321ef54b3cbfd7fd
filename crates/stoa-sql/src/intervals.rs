//! Intervals as texts, in PostgreSQL's four styles.

use std::fmt::Write;

/// The setting `IntervalStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntervalStyle {
    /// `1 year 2 mons -3 days 04:05:06.7`.
    #[default]
    Postgres,
    /// `@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs`.
    PostgresVerbose,
    /// `+1-2 -3 +4:05:06.7`.
    SqlStandard,
    /// `P1Y2M-3DT4H5M6.7S`.
    Iso8601,
}

impl IntervalStyle {
    /// The style of a name, as the setting has it.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Postgres, Self::PostgresVerbose, Self::SqlStandard, Self::Iso8601]
            .into_iter()
            .find(|style| style.name().eq_ignore_ascii_case(name))
    }

    /// The name, as the setting has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::PostgresVerbose => "postgres_verbose",
            Self::SqlStandard => "sql_standard",
            Self::Iso8601 => "iso_8601",
        }
    }

    /// Appends an interval of `months`, `days` and `micros`, microseconds.
    pub fn write(self, (months, days, micros): (i32, i32, i64), out: &mut String) {
        let parts = Parts::of(months, days, micros);
        match self {
            Self::Postgres => parts.postgres(out),
            Self::PostgresVerbose => parts.verbose(out),
            Self::SqlStandard => parts.standard(out),
            Self::Iso8601 => parts.iso(out),
        }
    }
}

/// An interval by its units; those of one number have the same sign.
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    /// Microseconds within a minute.
    micros: i64,
}

impl Parts {
    fn of(months: i32, days: i32, micros: i64) -> Self {
        Self {
            years: i64::from(months / 12),
            months: i64::from(months % 12),
            days: i64::from(days),
            hours: micros / 3_600_000_000,
            minutes: micros / 60_000_000 % 60,
            micros: micros % 60_000_000,
        }
    }

    fn all(&self) -> [i64; 6] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.micros]
    }

    fn has_time(&self) -> bool {
        self.hours != 0 || self.minutes != 0 || self.micros != 0
    }

    fn is_time_negative(&self) -> bool {
        self.hours < 0 || self.minutes < 0 || self.micros < 0
    }

    fn postgres(&self, out: &mut String) {
        // Each part after a negative one carries its sign, so that it reads back the same.
        let (mut is_first, mut after_negative) = (true, false);
        for (count, unit) in [(self.years, "year"), (self.months, "mon"), (self.days, "day")] {
            if count == 0 {
                continue;
            }
            let blank = if is_first { "" } else { " " };
            let sign = if after_negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(out, "{blank}{sign}{count} {unit}{plural}");
            (is_first, after_negative) = (false, count < 0);
        }
        if !is_first && !self.has_time() {
            return;
        }
        if !is_first {
            out.push(' ');
        }
        match (self.is_time_negative(), after_negative) {
            (true, _) => out.push('-'),
            (false, true) => out.push('+'),
            (false, false) => {}
        }
        let _ = write!(out, "{:02}:{:02}:", self.hours.unsigned_abs(), self.minutes.unsigned_abs());
        self.seconds(true, out);
    }

    fn verbose(&self, out: &mut String) {
        out.push('@');
        let (mut is_zero, mut is_before) = (true, false);
        let units = ["year", "mon", "day", "hour", "min"];
        for (count, unit) in self.all().into_iter().zip(units).filter(|(count, _)| *count != 0) {
            is_before |= is_zero && count < 0;
            is_zero = false;
            let count = if is_before { -count } else { count };
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(out, " {count} {unit}{plural}");
        }
        if self.micros != 0 {
            is_before |= is_zero && self.micros < 0;
            is_zero = false;
            out.push(' ');
            if is_before != (self.micros < 0) {
                out.push('-');
            }
            self.seconds(false, out);
            out.push_str(if self.micros.abs() == 1_000_000 { " sec" } else { " secs" });
        }
        out.push_str(if is_zero { " 0" } else { "" });
        out.push_str(if is_before { " ago" } else { "" });
    }

    fn standard(&self, out: &mut String) {
        let all = self.all();
        let has_months = self.years != 0 || self.months != 0;
        let (is_negative, is_positive) =
            (all.iter().any(|part| *part < 0), all.iter().any(|part| *part > 0));
        if !is_negative && !is_positive {
            out.push('0');
            return;
        }
        let [years, months, days, hours, minutes, _] = all.map(i64::unsigned_abs);
        let has_day_or_time = self.days != 0 || self.has_time();
        let sign = |is_negative: bool| if is_negative { '-' } else { '+' };
        if is_negative && is_positive || has_months && has_day_or_time {
            let of_months = sign(self.years < 0 || self.months < 0);
            let (of_days, of_time) = (sign(self.days < 0), sign(self.is_time_negative()));
            let _ = write!(
                out,
                "{of_months}{years}-{months} {of_days}{days} {of_time}{hours}:{minutes:02}:"
            );
            self.seconds(true, out);
            return;
        }
        if is_negative {
            out.push('-');
        }
        if has_months {
            let _ = write!(out, "{years}-{months}");
            return;
        }
        if days != 0 {
            let _ = write!(out, "{days} ");
        }
        let _ = write!(out, "{hours}:{minutes:02}:");
        self.seconds(true, out);
    }

    fn iso(&self, out: &mut String) {
        if self.all() == [0; 6] {
            out.push_str("PT0S");
            return;
        }
        let put = |out: &mut String, count: i64, unit: char| {
            if count != 0 {
                let _ = write!(out, "{count}{unit}");
            }
        };
        out.push('P');
        put(out, self.years, 'Y');
        put(out, self.months, 'M');
        put(out, self.days, 'D');
        if !self.has_time() {
            return;
        }
        out.push('T');
        put(out, self.hours, 'H');
        put(out, self.minutes, 'M');
        if self.micros != 0 {
            out.push_str(if self.micros < 0 { "-" } else { "" });
            self.seconds(false, out);
            out.push('S');
        }
    }

    /// The seconds without their sign, with two digits before the dot where `is_padded`.
    fn seconds(&self, is_padded: bool, out: &mut String) {
        let (whole, fraction) =
            (self.micros.unsigned_abs() / 1_000_000, self.micros.unsigned_abs() % 1_000_000);
        let _ = match is_padded {
            true => write!(out, "{whole:02}"),
            false => write!(out, "{whole}"),
        };
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Months, days and microseconds, and what a PostgreSQL 15 writes in each style.
    type Case = ((i32, i32, i64), [&'static str; 4]);

    const CASES: &[Case] = &[
        (
            (14, 3, 14_706_700_000),
            [
                "1 year 2 mons 3 days 04:05:06.7",
                "@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs",
                "+1-2 +3 +4:05:06.7",
                "P1Y2M3DT4H5M6.7S",
            ],
        ),
        (
            (-14, -3, -14_706_700_000),
            [
                "-1 years -2 mons -3 days -04:05:06.7",
                "@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs ago",
                "-1-2 -3 -4:05:06.7",
                "P-1Y-2M-3DT-4H-5M-6.7S",
            ],
        ),
        ((0, -1, 0), ["-1 days", "@ 1 day ago", "-1 0:00:00", "P-1D"]),
        ((0, 0, 0), ["00:00:00", "@ 0", "0", "PT0S"]),
        ((12, 0, 0), ["1 year", "@ 1 year", "1-0", "P1Y"]),
        (
            (1, 1, 1),
            [
                "1 mon 1 day 00:00:00.000001",
                "@ 1 mon 1 day 0.000001 secs",
                "+0-1 +1 +0:00:00.000001",
                "P1M1DT0.000001S",
            ],
        ),
        ((0, 0, -500_000), ["-00:00:00.5", "@ 0.5 secs ago", "-0:00:00.5", "PT-0.5S"]),
        (
            (14, -3, 14_706_000_000),
            [
                "1 year 2 mons -3 days +04:05:06",
                "@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs",
                "+1-2 -3 +4:05:06",
                "P1Y2M-3DT4H5M6S",
            ],
        ),
        (
            (-1, 3, -4_000_000),
            [
                "-1 mons +3 days -00:00:04",
                "@ 1 mon -3 days 4 secs ago",
                "-0-1 +3 -0:00:04",
                "P-1M3DT-4S",
            ],
        ),
        ((0, 5, 3_600_000_000), ["5 days 01:00:00", "@ 5 days 1 hour", "5 1:00:00", "P5DT1H"]),
        (
            (0, -5, -3_600_000_000),
            ["-5 days -01:00:00", "@ 5 days 1 hour ago", "-5 1:00:00", "P-5DT-1H"],
        ),
        ((25, 0, 0), ["2 years 1 mon", "@ 2 years 1 mon", "2-1", "P2Y1M"]),
        ((-25, 0, 0), ["-2 years -1 mons", "@ 2 years 1 mon ago", "-2-1", "P-2Y-1M"]),
        ((0, 0, 1_000_000), ["00:00:01", "@ 1 sec", "0:00:01", "PT1S"]),
        ((0, 0, -1_000_000), ["-00:00:01", "@ 1 sec ago", "-0:00:01", "PT-1S"]),
        (
            (0, 2, -1_000_000),
            ["2 days -00:00:01", "@ 2 days -1 sec", "+0-0 +2 -0:00:01", "P2DT-1S"],
        ),
        (
            (-14, 2, 1_500_000),
            [
                "-1 years -2 mons +2 days 00:00:01.5",
                "@ 1 year 2 mons -2 days -1.5 secs ago",
                "-1-2 +2 +0:00:01.5",
                "P-1Y-2M2DT1.5S",
            ],
        ),
        ((0, 0, 360_000_000_000), ["100:00:00", "@ 100 hours", "100:00:00", "PT100H"]),
        (
            (11, 30, 86_399_999_999),
            [
                "11 mons 30 days 23:59:59.999999",
                "@ 11 mons 30 days 23 hours 59 mins 59.999999 secs",
                "+0-11 +30 +23:59:59.999999",
                "P11M30DT23H59M59.999999S",
            ],
        ),
        (
            (0, 1, -86_400_000_000),
            ["1 day -24:00:00", "@ 1 day -24 hours", "+0-0 +1 -24:00:00", "P1DT-24H"],
        ),
    ];

    #[test]
    fn intervals_are_written_as_postgresql_writes_them() {
        for (interval, texts) in CASES {
            for (style, text) in
                ["postgres", "postgres_verbose", "sql_standard", "iso_8601"].into_iter().zip(texts)
            {
                let mut out = String::new();
                IntervalStyle::named(style).unwrap().write(*interval, &mut out);
                assert_eq!(out, *text, "{interval:?} as {style}");
            }
        }
    }
}
