//! Statistics and bloom filters of writers with known bugs are not asked; those of others are.
//!
//! Files are made whose statistics are wrong: where they are trusted, rows are lost.
#![allow(clippy::unwrap_used)]

mod support;

use bytes::Bytes;
use prost::Message;
use stoa_orc::proto::{
    BinaryStatistics, BloomFilter, BloomFilterIndex, CalendarKind, ColumnStatistics,
    DateStatistics, DecimalStatistics, DoubleStatistics, Encryption, EncryptionVariant,
    IntegerStatistics, Metadata, RowIndex, RowIndexEntry, StreamKind, StringStatistics,
    StripeStatistics, TimestampStatistics, Type, TypeKind,
};
use stoa_orc::{ColumnRef, CompareOp, CompressionKind, Literal, Predicate, ReadOptions};
use support::build::{self, FileBuilder, encoding, leaf, parent, signed_v1, unsigned_v1};

use stoa_orc::proto::EncodingKind::Direct;

const ROWS: u64 = 4;
const STRIDE: u32 = 2;

/// Who wrote a file, and what it says of its one column `a`, whose values are all [`value`].
#[derive(Clone)]
struct Claim {
    ty: Type,
    writer: u32,
    version: u32,
    software: Option<&'static str>,
    calendar: CalendarKind,
    is_encrypted: bool,
    statistics: ColumnStatistics,
    bloom: Option<StreamKind>,
    bloom_is_utc: bool,
}

impl Claim {
    /// A file of ORC Java.
    fn java(ty: Type, version: u32) -> Self {
        Self {
            ty,
            writer: 0,
            version,
            software: None,
            calendar: CalendarKind::ProlepticGregorian,
            is_encrypted: false,
            statistics: ColumnStatistics::default(),
            bloom: None,
            bloom_is_utc: false,
        }
    }

    fn with_statistics(mut self, statistics: ColumnStatistics) -> Self {
        let values = statistics.number_of_values.or(Some(1));
        let has_null = statistics.has_null.or(Some(false));
        self.statistics = ColumnStatistics { number_of_values: values, has_null, ..statistics };
        self
    }

    fn with_bloom(mut self, kind: StreamKind) -> Self {
        self.bloom = Some(kind);
        self
    }

    fn kind(&self) -> TypeKind {
        self.ty.kind()
    }

    /// The streams of four values, all zero or `0`.
    fn streams(&self) -> Vec<(StreamKind, Vec<u8>)> {
        let zeros = [0i64; ROWS as usize];
        match self.kind() {
            TypeKind::String | TypeKind::Binary => vec![
                (StreamKind::Data, b"0000".to_vec()),
                (StreamKind::Length, unsigned_v1(&[1; ROWS as usize])),
            ],
            TypeKind::Decimal => vec![
                (StreamKind::Data, build::decimal_varints(&[0; ROWS as usize])),
                (StreamKind::Secondary, signed_v1(&[i64::from(self.ty.scale()); ROWS as usize])),
            ],
            // Seconds from 2015 to 1970.
            TypeKind::Timestamp => vec![
                (StreamKind::Data, signed_v1(&[-1_420_070_400; ROWS as usize])),
                (StreamKind::Secondary, unsigned_v1(&[0; ROWS as usize])),
            ],
            TypeKind::Double => vec![(StreamKind::Data, vec![0; 8 * ROWS as usize])],
            _ => vec![(StreamKind::Data, signed_v1(&zeros))],
        }
    }

    /// The file: wrong statistics of the stripe, or else of its row groups.
    fn file(&self, of_stripe: bool) -> Bytes {
        let types = vec![parent(TypeKind::Struct, &[1]), self.ty.clone()];
        let mut builder = FileBuilder::new(types, CompressionKind::None);
        builder.postscript.writer_version = Some(self.version);
        builder.footer.writer = Some(self.writer);
        builder.footer.software_version = self.software.map(str::to_owned);
        builder.footer.calendar = Some(self.calendar as i32);
        builder.footer.row_index_stride = Some(STRIDE);
        if self.is_encrypted {
            let variant = EncryptionVariant { root: Some(1), key: Some(0) };
            builder.footer.encryption = Some(Encryption { variants: vec![variant] });
        }
        if of_stripe {
            let col_stats = vec![ColumnStatistics::default(), self.statistics.clone()];
            builder.metadata = Metadata { stripe_stats: vec![StripeStatistics { col_stats }] };
        }
        let statistics = Some(self.statistics.clone()).filter(|_| !of_stripe);
        // Positions are of no use here: a row group that is left out leaves out both.
        let entry = RowIndexEntry { positions: Vec::new(), statistics };
        let index = RowIndex { entry: vec![entry; (ROWS / u64::from(STRIDE)) as usize] };
        let index = index.encode_to_vec();
        // No bit is set: nothing is in it.
        let filter =
            BloomFilter { num_hash_functions: Some(3), bitset: vec![0; 4], utf8bitset: None };
        let utf8 =
            BloomFilter { bitset: Vec::new(), utf8bitset: Some(vec![0; 32]), ..filter.clone() };
        let filter = if self.bloom == Some(StreamKind::BloomFilterUtf8) { utf8 } else { filter };
        let bloom = BloomFilterIndex { bloom_filter: vec![filter; 2] }.encode_to_vec();
        let data = self.streams();
        let mut streams: Vec<(u32, StreamKind, &[u8])> = vec![(1, StreamKind::RowIndex, &index)];
        streams.extend(self.bloom.map(|kind| (1, kind, bloom.as_slice())));
        streams.extend(data.iter().map(|(kind, bytes)| (1, *kind, bytes.as_slice())));
        let mut encodings = vec![encoding(Direct, 0); 2];
        encodings[1].bloom_encoding = self.bloom_is_utc.then_some(1);
        builder.stripe(ROWS, encodings, &streams);
        builder.finish()
    }

    /// Rows found that have the value which all have.
    fn rows(&self, of_stripe: bool) -> usize {
        let predicate = Predicate::Compare {
            column: ColumnRef::Id(1),
            op: CompareOp::Eq,
            value: value(&self.ty),
        };
        let options = ReadOptions::default().with_predicate(predicate);
        support::read(&self.file(of_stripe), options).unwrap().rows()
    }
}

/// The value of all rows.
fn value(ty: &Type) -> Literal {
    match ty.kind() {
        TypeKind::String => Literal::String("0".to_owned()),
        TypeKind::Binary => Literal::Binary(b"0".to_vec()),
        TypeKind::Decimal => Literal::Decimal(0, 0),
        TypeKind::Timestamp => Literal::TimestampMicros(0),
        TypeKind::Double => Literal::Float(0.0),
        TypeKind::Date => Literal::Date(0),
        _ => Literal::Int(0),
    }
}

/// What is trusted loses all rows, what is not trusted none.
fn check(name: &str, claim: &Claim, of_stripe: bool, is_trusted: bool) {
    let expected = if is_trusted { 0 } else { ROWS as usize };
    let level = if of_stripe { "stripe" } else { "row group" };
    assert_eq!(claim.rows(of_stripe), expected, "{name}, version {}, {level}", claim.version);
}

fn integers(low: i64, high: i64) -> ColumnStatistics {
    let (minimum, maximum) = (Some(low), Some(high));
    let int_statistics = Some(IntegerStatistics { minimum, maximum, sum: None });
    ColumnStatistics { int_statistics, ..ColumnStatistics::default() }
}

fn texts(low: &str, high: &str) -> ColumnStatistics {
    let string_statistics = Some(StringStatistics {
        minimum: Some(low.into()),
        maximum: Some(high.into()),
        ..StringStatistics::default()
    });
    ColumnStatistics { string_statistics, ..ColumnStatistics::default() }
}

fn decimals(low: &str, high: &str) -> ColumnStatistics {
    let decimal_statistics = Some(DecimalStatistics {
        minimum: Some(low.into()),
        maximum: Some(high.into()),
        sum: None,
    });
    ColumnStatistics { decimal_statistics, ..ColumnStatistics::default() }
}

fn timestamps(low: i64, high: i64) -> ColumnStatistics {
    let timestamp_statistics = Some(TimestampStatistics {
        minimum_utc: Some(low),
        maximum_utc: Some(high),
        ..TimestampStatistics::default()
    });
    ColumnStatistics { timestamp_statistics, ..ColumnStatistics::default() }
}

fn dates(low: i32, high: i32) -> ColumnStatistics {
    let date_statistics = Some(DateStatistics { minimum: Some(low), maximum: Some(high) });
    ColumnStatistics { date_statistics, ..ColumnStatistics::default() }
}

fn doubles(minimum: Option<f64>, maximum: Option<f64>, sum: Option<f64>) -> ColumnStatistics {
    let double_statistics = Some(DoubleStatistics { minimum, maximum, sum });
    ColumnStatistics { double_statistics, ..ColumnStatistics::default() }
}

/// HIVE-8732: maxima of stripes before writer version 1; texts that were not UTF-8.
#[test]
fn stripes_of_the_first_writer_version_are_not_judged() {
    let int = |version| Claim::java(leaf(TypeKind::Int), version).with_statistics(integers(5, 9));
    let text =
        |version| Claim::java(leaf(TypeKind::String), version).with_statistics(texts("5", "9"));
    for (version, is_fixed) in [(0, false), (1, true), (9, true)] {
        check("integers", &int(version), true, is_fixed);
        check("integers", &int(version), false, true);
        check("texts", &text(version), true, is_fixed);
        check("texts", &text(version), false, is_fixed);
    }
}

/// ORC-135: timestamps in the writer's zone before version 6.
#[test]
fn local_timestamps_are_not_judged() {
    for (version, is_fixed) in [(1, false), (5, false), (6, true), (9, true)] {
        let claim = Claim::java(leaf(TypeKind::Timestamp), version)
            .with_statistics(timestamps(10_000_000, 20_000_000));
        check("timestamps", &claim, false, is_fixed);
        check("timestamps", &claim, true, is_fixed);
    }
    // The old fields, without those in UTC, say nothing.
    let timestamp_statistics = Some(TimestampStatistics {
        minimum: Some(10_000_000),
        maximum: Some(20_000_000),
        ..TimestampStatistics::default()
    });
    let statistics = ColumnStatistics { timestamp_statistics, ..ColumnStatistics::default() };
    let claim = Claim::java(leaf(TypeKind::Timestamp), 9).with_statistics(statistics);
    check("timestamps without UTC", &claim, false, false);
}

/// ORC-517: decimals of up to 18 digits before version 7; decimals of Hive 0.11 have no scale.
#[test]
fn small_decimals_are_not_judged() {
    for (precision, version, is_fixed) in
        [(18, 1, false), (18, 6, false), (18, 7, true), (19, 1, true), (38, 6, true), (0, 9, false)]
    {
        let claim =
            Claim::java(build::decimal(precision, 0), version).with_statistics(decimals("5", "9"));
        check("decimals", &claim, false, is_fixed);
    }
}

/// Days before 1582-10-15 have other numbers in the hybrid calendar.
#[test]
fn julian_days_are_not_judged() {
    let gregorian = dates(5, 9);
    let julian = dates(-200_000, -150_000);
    let millis = timestamps(-200_000 * 86_400_000, -150_000 * 86_400_000);
    for (calendar, is_hybrid) in
        [(CalendarKind::ProlepticGregorian, false), (CalendarKind::JulianGregorian, true)]
    {
        let claim = |ty, statistics: &ColumnStatistics| Claim {
            calendar,
            ..Claim::java(leaf(ty), 9).with_statistics(statistics.clone())
        };
        check("Gregorian", &claim(TypeKind::Date, &gregorian), false, true);
        check("Julian", &claim(TypeKind::Date, &julian), false, !is_hybrid);
        check("Julian", &claim(TypeKind::Timestamp, &millis), false, !is_hybrid);
        let bloom = claim(TypeKind::Date, &dates(-9, 9)).with_bloom(StreamKind::BloomFilterUtf8);
        check("bloom", &bloom, false, !is_hybrid);
    }
}

/// Values that no bound tells of: NaN (the sum is NaN), and everything where bounds are missing.
#[test]
fn bounds_of_doubles_are_judged_with_care() {
    let (low, high) = (Some(5.0), Some(9.0));
    for (statistics, is_trusted) in [
        (doubles(low, high, Some(30.0)), true),
        (doubles(low, high, Some(f64::NAN)), false),
        (doubles(low, high, None), false),
        (doubles(Some(f64::NAN), high, Some(30.0)), false),
        (doubles(None, high, Some(30.0)), false),
        (doubles(low, None, Some(30.0)), true),
        (doubles(None, None, None), false),
    ] {
        let claim = Claim::java(leaf(TypeKind::Double), 9).with_statistics(statistics);
        check("doubles", &claim, false, is_trusted);
    }
}

/// ORC-1553: "no values, no NULL" means that nothing is known.
#[test]
fn empty_statistics_say_nothing() {
    for (values, has_null, is_trusted) in
        [(Some(0), Some(false), false), (Some(0), Some(true), true), (None, None, false)]
    {
        let mut claim = Claim::java(leaf(TypeKind::Int), 9);
        claim.statistics.number_of_values = values;
        claim.statistics.has_null = has_null;
        check("empty", &claim, false, is_trusted);
    }
    // Statistics of another type than the column's.
    let claim = Claim::java(leaf(TypeKind::Int), 9).with_statistics(texts("5", "9"));
    check("another type", &claim, false, false);
    let binary_statistics = Some(BinaryStatistics { sum: Some(4) });
    let statistics = ColumnStatistics { binary_statistics, ..ColumnStatistics::default() };
    let claim = Claim::java(leaf(TypeKind::Binary), 9).with_statistics(statistics);
    check("no bounds", &claim, false, false);
}

/// The statistics of an encrypted column are those of its mask.
#[test]
fn statistics_of_encrypted_columns_are_not_judged() {
    for is_encrypted in [false, true] {
        let claim = Claim::java(leaf(TypeKind::Int), 9).with_statistics(integers(5, 9));
        let claim = Claim { is_encrypted, ..claim };
        check("encrypted", &claim, false, !is_encrypted);
        check("encrypted", &claim, true, !is_encrypted);
    }
}

/// Writers other than ORC Java never had its bugs, whatever their version says.
#[test]
fn versions_are_those_of_java_only() {
    for writer in [1, 2, 3, 4, 5, 77] {
        for (ty, statistics) in [
            (leaf(TypeKind::Int), integers(5, 9)),
            (leaf(TypeKind::String), texts("5", "9")),
            (leaf(TypeKind::Timestamp), timestamps(10_000_000, 20_000_000)),
            (build::decimal(9, 0), decimals("5", "9")),
        ] {
            let claim = Claim { writer, ..Claim::java(ty, 0).with_statistics(statistics) };
            check("other writers", &claim, true, true);
        }
    }
}

/// HIVE-12055 and ORC-101: strings in the older kind of filter before version 3; ORC-135:
/// timestamps; decimals, whose text is written in different ways, never.
#[test]
fn bloom_filters_are_asked_where_hashes_are_right() {
    use StreamKind::{BloomFilter as Old, BloomFilterUtf8 as Utf8};
    let claim = |ty: Type, version, stream| {
        let statistics = match ty.kind() {
            TypeKind::String => texts("", "9"),
            TypeKind::Timestamp => timestamps(-10_000_000, 10_000_000),
            TypeKind::Decimal => decimals("-9", "9"),
            _ => integers(-9, 9),
        };
        Claim::java(ty, version).with_statistics(statistics).with_bloom(stream)
    };
    for (stream, version, is_trusted) in
        [(Old, 2, false), (Old, 3, true), (Utf8, 1, true), (Utf8, 9, true)]
    {
        check("strings", &claim(leaf(TypeKind::String), version, stream), false, is_trusted);
        check("integers", &claim(leaf(TypeKind::Int), version, stream), false, true);
        check("decimals", &claim(build::decimal(20, 0), version, stream), false, false);
    }
    for (version, bloom_is_utc, is_trusted) in
        [(5, true, false), (6, false, false), (6, true, true), (9, true, true)]
    {
        let claim = claim(leaf(TypeKind::Timestamp), version, Utf8);
        check("timestamps", &Claim { bloom_is_utc, ..claim }, false, is_trusted);
    }
    // ORC-1024: numbers in ORC C++ before 1.7.1. A release that is not known may be one of them.
    for (software, is_trusted) in [
        (Some("1.6.0"), false),
        (Some("1.6.11"), false),
        (Some("1.7.0"), false),
        (Some("1.7.0-SNAPSHOT"), false),
        (None, false),
        (Some("1.7.1"), true),
        (Some("2.2.2"), true),
        (Some("stoa-0.1.0"), true),
    ] {
        let claim = claim(leaf(TypeKind::Int), 6, Utf8);
        check("C++", &Claim { writer: 1, software, ..claim }, false, is_trusted);
    }
}
