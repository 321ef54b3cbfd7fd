//! Casts, arithmetic and calendar functions on values drawn at random, against what Rust and chrono say.

use crate::statements::Home;
use arrow::array::AsArray;
use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stoa_query::Outcome;
use tokio::runtime::{Builder, Runtime};

/// Statements asked for each property.
const CASES: u32 = 150;

struct Asker {
    runtime: Runtime,
    home: Home,
}

impl Asker {
    fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let home = runtime.block_on(Home::new());
        Self { runtime, home }
    }

    /// The one value of a query whose column is text, or the SQLSTATE.
    fn ask(&self, sql: &str) -> Result<String, &'static str> {
        let answer = async {
            match self.home.long.sql(sql).await? {
                Outcome::Rows(rows) => rows.collect().await,
                _ => panic!("{sql} gives no rows"),
            }
        };
        let batches = self.runtime.block_on(answer).map_err(|error| error.sqlstate())?;
        let batch = batches.iter().find(|batch| batch.num_rows() == 1).expect("one row");
        let text = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8);
        Ok(text.unwrap().as_string::<i32>().value(0).to_owned())
    }

    /// Asks about values that `strategy` draws.
    fn check<S: Strategy>(&self, strategy: S, test: impl Fn(&Self, S::Value)) {
        let mut runner = TestRunner::new(Config { cases: CASES, ..Config::default() });
        let outcome = runner.run(&strategy, |value| {
            test(self, value);
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -20_i64..20,
        any::<i32>().prop_map(i64::from),
        prop::sample::select(vec![i64::MIN, i64::MAX, i64::from(i32::MIN), i64::from(i32::MAX)]),
    ]
}

fn small() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), -20..20, prop::sample::select(vec![i32::MIN, i32::MAX, -1, 0, 1])]
}

fn date() -> impl Strategy<Value = NaiveDate> {
    // 0001-01-01 to 9999-12-31.
    (1_i32..=3_652_059).prop_map(|days| NaiveDate::from_num_days_from_ce_opt(days).unwrap())
}

fn timestamp() -> impl Strategy<Value = NaiveDateTime> {
    let micros = prop_oneof![Just(0_u32), 0_u32..1_000_000, Just(500_000)];
    (date(), 0_u32..86_400, micros).prop_map(|(date, seconds, micros)| {
        let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, micros * 1000);
        date.and_time(time.unwrap())
    })
}

/// A timestamp with all its digits.
fn written(at: NaiveDateTime) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

/// A timestamp as PostgreSQL shows it: without zeros at the end of its fraction.
fn shown(at: NaiveDateTime) -> String {
    written(at).trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[test]
fn whole_numbers_are_read_and_written() {
    let asker = Asker::new();
    asker.check(whole(), |asker, n| {
        assert_eq!(asker.ask(&format!("SELECT '{n}'::bigint::text")), Ok(n.to_string()));
        let fits = i32::try_from(n).map(|n| n.to_string()).map_err(|_| "22003");
        assert_eq!(asker.ask(&format!("SELECT '{n}'::int::text")), fits);
        assert_eq!(asker.ask(&format!("SELECT ' {n} '::bigint::int::text")), fits);
    });
}

#[test]
fn texts_that_are_no_numbers_are_refused() {
    let asker = Asker::new();
    asker.check("[a-z.+-]{0,4}[0-9]{0,3}[a-z ]{1,3}x", |asker, text| {
        assert_eq!(asker.ask(&format!("SELECT '{text}'::bigint::text")), Err("22P02"), "{text}");
        assert_eq!(asker.ask(&format!("SELECT '{text}'::numeric::text")), Err("22P02"), "{text}");
    });
}

#[test]
fn arithmetic_of_integers_is_exact_or_an_error() {
    let asker = Asker::new();
    let operators = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
    asker.check((small(), operators, small()), |asker, (a, operator, b)| {
        let fits = |result: Option<i32>| result.map(|n| n.to_string()).ok_or("22003");
        let expected = match operator {
            "+" => fits(a.checked_add(b)),
            "-" => fits(a.checked_sub(b)),
            "*" => fits(a.checked_mul(b)),
            _ if b == 0 => Err("22012"),
            "/" => fits(a.checked_div(b)),
            _ => Ok(a.wrapping_rem(b).to_string()),
        };
        let sql = format!("SELECT ('{a}'::int {operator} '{b}'::int)::text");
        assert_eq!(asker.ask(&sql), expected, "{sql}");
    });
}

#[test]
fn doubles_come_back_from_their_texts() {
    let asker = Asker::new();
    let double = any::<f64>().prop_filter("no room for small ones", |f| f.is_normal() || *f == 0.0);
    asker.check(double, |asker, f| {
        let text = asker.ask(&format!("SELECT '{f:?}'::double precision::text")).unwrap();
        assert_eq!(text.parse::<f64>().unwrap(), f, "{text}");
        // To the even neighbour.
        let rounded = asker.ask(&format!("SELECT round('{f:?}'::double precision)::text")).unwrap();
        assert_eq!(rounded.parse::<f64>().unwrap(), f.round_ties_even(), "{f:?}");
    });
}

#[test]
fn decimals_keep_their_digits() {
    let asker = Asker::new();
    asker.check((any::<i32>(), 0_u32..1_000_000), |asker, (whole, fraction)| {
        let text = format!("{whole}.{fraction:06}");
        let cast = format!("'{text}'::numeric(24,6)");
        assert_eq!(asker.ask(&format!("SELECT {cast}::text")), Ok(text.clone()));
        let doubled = asker.ask(&format!("SELECT ({cast} + {cast})::text")).unwrap();
        let digits = |text: &str| text.replace('.', "").parse::<i128>().unwrap();
        assert_eq!(digits(&doubled), 2 * digits(&text), "{text}");
        // Half goes away from zero.
        let millis = (digits(&text).abs() + 500) / 1000 * digits(&text).signum();
        let rounded = asker.ask(&format!("SELECT {cast}::numeric(20,3)::text")).unwrap();
        assert_eq!(digits(&rounded), millis, "{text}");
    });
}

#[test]
fn dates_and_timestamps_are_read_and_written() {
    let asker = Asker::new();
    asker.check((date(), timestamp()), |asker, (date, at)| {
        assert_eq!(asker.ask(&format!("SELECT '{date}'::date::text")), Ok(date.to_string()));
        let text = written(at);
        assert_eq!(asker.ask(&format!("SELECT '{text}'::timestamp::text")), Ok(shown(at)));
        let cut = asker.ask(&format!("SELECT timestamp '{text}'::date::text"));
        assert_eq!(cut, Ok(at.date().to_string()));
        let format = "to_char(timestamp '{}', 'YYYY-MM-DD HH24:MI:SS.US')".replace("{}", &text);
        assert_eq!(asker.ask(&format!("SELECT {format}")), Ok(text));
    });
}

#[test]
fn days_that_there_are_not_are_refused() {
    let asker = Asker::new();
    asker.check((1_i32..9999, 1_u32..20, 1_u32..40), |asker, (year, month, day)| {
        let text = format!("{year:04}-{month:02}-{day:02}");
        let expected = NaiveDate::from_ymd_opt(year, month, day);
        let expected = expected.map(|date| date.to_string()).ok_or("22008");
        assert_eq!(asker.ask(&format!("SELECT '{text}'::date::text")), expected, "{text}");
    });
}

#[test]
fn parts_of_timestamps_are_the_calendars() {
    let asker = Asker::new();
    asker.check(timestamp(), |asker, at| {
        let parts = [
            ("year", i64::from(at.year())),
            ("quarter", i64::from(at.month0() / 3 + 1)),
            ("month", i64::from(at.month())),
            ("day", i64::from(at.day())),
            ("hour", i64::from(at.hour())),
            ("minute", i64::from(at.minute())),
            ("doy", i64::from(at.ordinal())),
            ("dow", i64::from(at.weekday().num_days_from_sunday())),
            ("isodow", i64::from(at.weekday().number_from_monday())),
            ("week", i64::from(at.iso_week().week())),
        ];
        let texts: Vec<String> = parts
            .iter()
            .map(|(part, _)| format!("extract({part} FROM timestamp '{}')::text", written(at)))
            .collect();
        let expected: Vec<String> = parts.iter().map(|(_, value)| value.to_string()).collect();
        let sql = format!("SELECT concat_ws(' ', {})", texts.join(", "));
        assert_eq!(asker.ask(&sql), Ok(expected.join(" ")), "{at}");
    });
}

#[test]
fn timestamps_are_cut_at_the_calendars_units() {
    let asker = Asker::new();
    asker.check(timestamp(), |asker, at| {
        let first = |date: NaiveDate| date.and_time(NaiveTime::MIN);
        let date = at.date();
        let of_month = date.with_day(1).unwrap();
        let since_monday = u64::from(date.weekday().num_days_from_monday());
        let Some(monday) = date.checked_sub_days(Days::new(since_monday)) else { return };
        if monday.year() < 1 {
            return;
        }
        let clock = |minute: u32, second: u32| date.and_hms_opt(at.hour(), minute, second).unwrap();
        let units = [
            ("second", clock(at.minute(), at.second())),
            ("minute", clock(at.minute(), 0)),
            ("hour", clock(0, 0)),
            ("day", first(date)),
            ("week", first(monday)),
            ("month", first(of_month)),
            ("quarter", first(of_month.with_month0(date.month0() / 3 * 3).unwrap())),
            ("year", first(NaiveDate::from_ymd_opt(date.year(), 1, 1).unwrap())),
        ];
        for (unit, expected) in units {
            let sql = format!("SELECT date_trunc('{unit}', timestamp '{}')::text", written(at));
            assert_eq!(asker.ask(&sql), Ok(shown_whole(expected)), "{sql}");
        }
    });
}

/// A timestamp of whole seconds.
fn shown_whole(at: NaiveDateTime) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

#[test]
fn texts_are_counted_and_cut_by_characters() {
    let asker = Asker::new();
    asker.check(("[a-zA-Zäöß€' \\\\]{0,12}", -14_i32..14), |asker, (text, n)| {
        let letters: Vec<char> = text.chars().collect();
        let literal = quoted(&text);
        let length = asker.ask(&format!("SELECT length({literal})::text"));
        assert_eq!(length, Ok(letters.len().to_string()), "{text}");
        let reversed = asker.ask(&format!("SELECT reverse({literal})"));
        assert_eq!(reversed, Ok(letters.iter().rev().collect::<String>()), "{text}");
        let bytes = asker.ask(&format!("SELECT octet_length({literal})::text"));
        assert_eq!(bytes, Ok(text.len().to_string()), "{text}");
        // Negative numbers leave out so many at the other end.
        let size = letters.len();
        let count = match usize::try_from(n) {
            Ok(n) => n.min(size),
            Err(_) => size.saturating_sub(n.unsigned_abs() as usize),
        };
        let left = asker.ask(&format!("SELECT left({literal}, {n})"));
        assert_eq!(left, Ok(letters[..count].iter().collect::<String>()), "{text} {n}");
        let right = asker.ask(&format!("SELECT right({literal}, {n})"));
        assert_eq!(right, Ok(letters[size - count..].iter().collect::<String>()), "{text} {n}");
    });
}

#[test]
fn bytes_are_read_and_written_as_digits() {
    let asker = Asker::new();
    asker.check(prop::collection::vec(any::<u8>(), 0..20), |asker, bytes| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let literal = format!("'\\x{digits}'::bytea");
        assert_eq!(asker.ask(&format!("SELECT {literal}::text")), Ok(format!("\\x{digits}")));
        assert_eq!(asker.ask(&format!("SELECT encode({literal}, 'hex')")), Ok(digits));
        let length = asker.ask(&format!("SELECT (length(encode({literal}, 'hex')) / 2)::text"));
        assert_eq!(length, Ok(bytes.len().to_string()));
    });
}
