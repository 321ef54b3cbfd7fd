//! Small files of other writers (tests/data), for what the shared corpus does not have.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, StructArray};
use bytes::Bytes;
use stoa_error::ErrorKind;
use stoa_orc::{ColumnRef, CompareOp, FileMetadata, Literal, Predicate, ReadOptions, WriterId};
use support::json;

fn sample(name: &str) -> Bytes {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    Bytes::from(std::fs::read(path).unwrap())
}

fn metadata(name: &str) -> FileMetadata {
    support::metadata(&sample(name)).unwrap()
}

/// The first rows are these lines of JSON, as `orc-tools data` prints them.
fn check(name: &str, rows: usize, lines: &[&str]) {
    let read = support::read(&sample(name), ReadOptions::default()).unwrap();
    assert_eq!(read.rows(), rows, "{name}");
    let found: ArrayRef = Arc::new(StructArray::from(read.concat().unwrap()));
    for (row, line) in lines.iter().enumerate() {
        let is_same = json::matches(&found, row, &json::parse(line));
        assert!(is_same, "{name}, row {row}: expected {line}, got {:?}", found.slice(row, 1));
    }
}

#[test]
fn decimals_of_the_unreleased_format() {
    check(
        "decimal64_v2.orc",
        10,
        &[
            r#"{"a":17292380420,"b":24,"c":36164.16,"d":0.03,"e":0.01}"#,
            r#"{"a":17292380421,"b":38,"c":63351.7,"d":0.08,"e":0.01}"#,
            r#"{"a":17292380421,"b":28,"c":42673.96,"d":0.09,"e":0.06}"#,
        ],
    );
    check(
        "decimal64_v2_cplusplus.orc",
        10,
        &[
            r#"{"a":17292380420,"b":164.16,"c":0.03,"d":0.01,"e":0.04}"#,
            r#"{"a":17292380421,"b":328.32,"c":0.08,"d":0.01,"e":0.09}"#,
            r#"{"a":17292380422,"b":656.64,"c":0.09,"d":0.06,"e":0.15}"#,
        ],
    );
}

#[test]
fn encrypted_columns_are_read_masked() {
    for (name, digest, person) in [
        (
            "sample1.orc",
            "841626795E7D351555B835A002E3BF10669DE9B81C95A3D59E10865AC37EA7C3",
            "Dongjoon Hyun",
        ),
        (
            "sample2.orc",
            "B948E77D79105EAA53E54502CB39DA20C6A86263FA301D5B7EDBACC66D15B642",
            "William Hyun",
        ),
    ] {
        let line = format!(r#"{{"ssn":null,"email":"{digest}","name":"{person}"}}"#);
        check(name, 1, &[&line]);
        let metadata = metadata(name);
        let encrypted: Vec<bool> = (0..4).map(|column| metadata.is_encrypted(column)).collect();
        assert_eq!(encrypted, [false, true, true, false], "{name}");
    }
}

#[test]
fn statistics_of_masked_columns_are_not_asked() {
    // The masked statistics say that `ssn` is NULL everywhere; the true values are not known.
    for column in [1, 2] {
        let value = Literal::String("no such value".to_owned());
        let column = ColumnRef::Id(column);
        let predicate = Predicate::Compare { column, op: CompareOp::Eq, value };
        let options = ReadOptions::default().with_predicate(predicate);
        let read = support::read(&sample("sample1.orc"), options).unwrap();
        assert_eq!(read.metrics.stripes_pruned, 0);
    }
    let value = Literal::String("no such value".to_owned());
    let predicate = Predicate::Compare { column: ColumnRef::Id(3), op: CompareOp::Eq, value };
    let options = ReadOptions::default().with_predicate(predicate);
    assert_eq!(support::read(&sample("sample1.orc"), options).unwrap().metrics.stripes_pruned, 1);
}

#[test]
fn timestamps_of_files_without_a_zone_are_read_as_utc() {
    let noon = |day: &str, hour: u32| format!(r#"{{"_col0":"{day} {hour}:34:56.0"}}"#);
    let (winter, summer) = (noon("2014-01-01", 12), noon("2014-06-06", 12));
    check("orc-file-no-timezone.orc", 2, &[&winter, &summer]);
    // Written in a zone with daylight saving, which the file does not name.
    check("orc-file-dst-no-timezone.orc", 2, &[&winter, &noon("2014-06-06", 11)]);
}

#[test]
fn files_of_other_writers() {
    check("col.dot.orc", 1, &[r#"{"col.dot":0}"#]);
    check("orc-file-no-double-statistic.orc", 1, &[r#"{"x":null}"#]);
    let name = "a".repeat(91);
    let line = format!(r#"{{"id":3,"name":"{name}","score":90}}"#);
    check("orc-file-presto-string.orc", 1, &[&line]);
    assert_eq!(metadata("orc-file-presto-string.orc").writer.code, 2);
    check("bad_bloom_filter_1.6.0.orc", 5, &[r#"{"id":0,"name":"Alice"}"#]);
    assert_eq!(metadata("bad_bloom_filter_1.6.0.orc").writer.code, WriterId::CPP);
    let first = r#"{"int1":1,"string1":"one"}"#;
    check("TestOrcFile.testStripeLevelStats.orc", 11_000, &[first, first]);
    assert_eq!(metadata("TestOrcFile.testStripeLevelStats.orc").stripes.len(), 3);
}

/// Presto wrote cut bounds of strings that are not values.
#[test]
fn bounds_of_presto_are_bounds() {
    let name = "a".repeat(91);
    let predicate = Predicate::Compare {
        column: ColumnRef::Id(2),
        op: CompareOp::Eq,
        value: Literal::String(name),
    };
    let options = ReadOptions::default().with_predicate(predicate);
    let read = support::read(&sample("orc-file-presto-string.orc"), options).unwrap();
    assert_eq!(read.rows(), 1);
}

/// Numbers in the bloom filters of ORC C++ before 1.7.1 are hashed in another way (ORC-1024).
#[test]
fn wrong_bloom_filters_lose_no_row() {
    let file = sample("bad_bloom_filter_1.6.0.orc");
    let all = support::read(&file, ReadOptions::default()).unwrap().concat().unwrap();
    let ids = all.column(0).as_primitive::<Int64Type>().values().to_vec();
    for id in ids {
        let (column, value) = (ColumnRef::Id(1), Literal::Int(id));
        let predicate = Predicate::Compare { column, op: CompareOp::Eq, value };
        let options = ReadOptions::default().with_predicate(predicate);
        let kept = support::read(&file, options).unwrap().concat().unwrap();
        assert!(kept.column(0).as_primitive::<Int64Type>().values().contains(&id), "{id}");
    }
}

#[test]
fn damaged_files_are_refused() {
    for (name, parts) in [
        ("missing_length_stream_in_string_dict.orc", ["stripe 0: column", "LENGTH"]),
        ("negative_dict_entry_lengths.orc", ["stripe 0: column", "dictionary entry"]),
        ("stripe_footer_bad_column_encodings.orc", ["stripe 0", "stripe footer"]),
        ("orc_corrupt_zlib.orc", ["file tail: footer", "block size of 85 bytes"]),
    ] {
        let error = support::read(&sample(name), ReadOptions::default()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error:?}");
        for part in parts {
            assert!(error.message().contains(part), "{name}: {error:?}");
        }
    }
}
