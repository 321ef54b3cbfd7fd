use super::Wrong::{Form, Offset, Range};
use super::*;

/// A text, its day, and its microseconds as a timestamp.
type Case = (&'static str, Result<&'static str, Wrong>, Result<i64, Wrong>);

/// What a PostgreSQL 15 answers, but for timestamps beyond 294247-01-10.
const CASES: &[Case] = &[
    ("1999-01-08", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("January 8, 1999", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("1/8/1999", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("1/18/1999", Ok("1999-01-18"), Ok(916_617_600_000_000)),
    ("01/02/03", Ok("2003-01-02"), Ok(1_041_465_600_000_000)),
    ("1999-Jan-08", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("Jan-08-1999", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("08-Jan-1999", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("99-Jan-08", Err(Range), Err(Range)),
    ("08-Jan-99", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("Jan-08-99", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("1999 Jan 08", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("08 Jan 1999", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("1999 08 Jan", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("Jan 8 99 ", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("19990108", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("990108", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("1999.008", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("J2451187", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("J2451187.5", Ok("1999-01-08"), Ok(915_796_800_000_000)),
    ("January 8, 99 BC", Ok("-98-01-08"), Ok(-65_259_216_000_000_000)),
    ("0044-03-15 BC", Ok("-43-03-15"), Ok(-63_517_824_000_000_000)),
    ("44-03-15 BC", Err(Range), Err(Range)),
    ("0099-01-08 AD", Ok("99-01-08"), Ok(-59_042_390_400_000_000)),
    ("4713-11-24 BC", Ok("-4712-11-24"), Ok(-210_835_180_800_000_000)),
    ("5874897-12-31", Ok("5874897-12-31"), Err(Range)),
    ("5874898-01-01", Err(Range), Err(Range)),
    ("294247-01-10", Ok("294247-01-10"), Ok(9_223_372_022_400_000_000)),
    ("294247-01-11", Ok("294247-01-11"), Err(Range)),
    ("10000-01-01", Ok("10000-01-01"), Ok(253_402_300_800_000_000)),
    ("2000-02-30", Err(Range), Err(Range)),
    ("1900-02-29", Err(Range), Err(Range)),
    ("2000-13-01", Err(Range), Err(Range)),
    ("1999-366", Ok("2000-01-01"), Ok(946_684_800_000_000)),
    ("1999.367", Err(Form), Err(Form)),
    ("Mon Jan 08 1999", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("Monday, 8 January 1999", Ok("1999-01-08"), Ok(915_753_600_000_000)),
    ("Mon 1999-01-08", Err(Form), Err(Form)),
    ("0-1-1", Err(Range), Err(Range)),
    ("0000-01-01", Err(Range), Err(Range)),
    ("2000-1", Err(Form), Err(Form)),
    ("2000", Err(Form), Err(Form)),
    ("20000", Err(Form), Err(Form)),
    ("1999-01-08 04:05:06.789", Ok("1999-01-08"), Ok(915_768_306_789_000)),
    ("1999-01-08 04:05:06.789-8", Ok("1999-01-08"), Ok(915_768_306_789_000)),
    ("1999-01-08 04:05 PM", Ok("1999-01-08"), Ok(915_811_500_000_000)),
    ("1999-01-08 12:30 am", Ok("1999-01-08"), Ok(915_755_400_000_000)),
    ("1999-01-08 13:00 PM", Err(Range), Err(Range)),
    ("1999-01-08T040506", Ok("1999-01-08"), Ok(915_768_306_000_000)),
    ("19990108T040506", Ok("1999-01-08"), Ok(915_768_306_000_000)),
    ("1999-01-08 24:00:00", Ok("1999-01-08"), Ok(915_840_000_000_000)),
    ("1999-01-08 24:00:01", Err(Range), Err(Range)),
    ("1999-01-08 23:59:60", Ok("1999-01-08"), Ok(915_840_000_000_000)),
    ("1999-01-08 10:61", Err(Range), Err(Range)),
    ("1999-01-08 +16", Err(Offset), Err(Offset)),
    ("1999-01-08 04:05+05:30:15", Ok("1999-01-08"), Ok(915_768_300_000_000)),
    ("January 8 04:05:06 1999 PST", Ok("1999-01-08"), Ok(915_768_306_000_000)),
    ("04:05:06 January 8 1999", Ok("1999-01-08"), Ok(915_768_306_000_000)),
    ("1999-01-08 04:05:06 America/New_York", Ok("1999-01-08"), Ok(915_768_306_000_000)),
    ("2001-02-16 20:38:40 BC", Ok("-2000-02-16"), Ok(-125_277_074_480_000_000)),
    ("1999-01-08 11:12.5", Ok("1999-01-08"), Ok(915_754_272_500_000)),
    ("1999-01-08 4", Err(Form), Err(Form)),
    ("yesterday-ish", Err(Form), Err(Form)),
    ("1999-01-08 04:05 04:06", Err(Form), Err(Form)),
    ("1999-01-08 PM", Ok("1999-01-08"), Ok(915_796_800_000_000)),
    ("", Err(Form), Err(Form)),
];

fn shown(days: i32) -> String {
    let (year, month, day) = civil::civil_from_days(days.into());
    format!("{year}-{month:02}-{day:02}")
}

#[test]
fn texts_are_read_as_postgresql_reads_them() {
    for (text, date, micros) in CASES {
        assert_eq!(read_date(text).map(shown), date.map(str::to_owned), "date {text:?}");
        assert_eq!(read_timestamp(text).map(|(micros, _)| micros), *micros, "timestamp {text:?}");
    }
}

#[test]
fn zones_are_told() {
    let named = |name: &str| Some(ZoneText::Named(name.to_owned()));
    for (text, zone) in [
        ("1999-01-08 04:05", None),
        ("1999-01-08 04:05+2", Some(ZoneText::Offset(7_200))),
        ("1999-01-08 04:05 -0330", Some(ZoneText::Offset(-12_600))),
        ("1999-01-08 04:05Z", named("Z")),
        ("1999-01-08 04:05 America/New_York", named("America/New_York")),
        ("1999-01-08 04:05 PST8PDT", named("PST8PDT")),
        ("1999-01-08 Etc/GMT+3", named("Etc/GMT+3")),
        ("1999-01-08 +3", Some(ZoneText::Offset(10_800))),
    ] {
        assert_eq!(read(text).map(|moment| moment.zone), Ok(zone), "{text:?}");
    }
}

#[test]
fn times_are_read() {
    for (text, micros) in [
        ("04:05:06.789", Ok(14_706_789_000)),
        ("040506", Ok(14_706_000_000)),
        ("04:05 PM", Ok(57_900_000_000)),
        ("24:00", Ok(DAY_US)),
        ("04:05:06-08:00", Ok(14_706_000_000)),
        ("1999-01-08 04:05", Ok(14_700_000_000)),
        ("25:00", Err(Range)),
        ("04:60", Err(Range)),
        ("1999-01-08", Err(Form)),
        ("", Err(Form)),
    ] {
        assert_eq!(read_time(text), micros, "{text:?}");
    }
}

#[test]
fn days_lead_back_to_their_dates() {
    for days in (-3_000_000..3_000_000).step_by(97) {
        let (year, month, day) = civil::civil_from_days(days);
        assert_eq!(civil::days_from_civil(year, month, day), Some(days));
    }
    assert_eq!(civil::days_from_civil(2023, 2, 29), None);
}

proptest::proptest! {
    /// Whatever is read, it is a day or an error, and no panic.
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-zA-Z:./, +-]{0,24}|\\PC{0,12}") {
        let _ = (read(&text), read_date(&text), read_timestamp(&text), read_time(&text));
    }
}
