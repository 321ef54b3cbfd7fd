//! Every file of the corpus reads to its expected rows, whatever the options.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray};
use stoa_orc::{ReadOptions, StringOutput, TimestampOutput};
use support::json::{self, Json};

/// Files that other readers refuse and we read, or that have no expected rows: their row counts.
const ROWS: [(&str, u64); 11] = [
    ("TestOrcFile.testSargSkipPickupGroupWithoutIndexCPlusPlus", 10_000),
    ("TestOrcFile.testSargSkipPickupGroupWithoutIndexJava", 10_000),
    ("TestOrcFile.testWithoutCompressionBlockSize", 100),
    ("TestVectorOrcFile.testZstd.0.12", 10_000),
    ("bad_bloom_filter_1.6.11", 5),
    ("complextypes_iceberg", 1),
    ("demo-11-zlib", 1_920_800),
    ("demo-12-zlib", 1_920_800),
    ("orc_no_format", 5),
    ("version1999", 0),
    ("zero", 0),
];

#[test]
fn files_read_to_their_expected_rows() {
    let mut failed = Vec::new();
    for (name, file, expected) in support::corpus() {
        let read = match support::read(&file, ReadOptions::default()) {
            Ok(read) => read,
            Err(error) => {
                failed.push(format!("{name}: {error:?}"));
                continue;
            }
        };
        if let Some(expected) = expected {
            if let Err(what) = compare(&read, &expected) {
                failed.push(format!("{name}: {what}"));
            }
        } else {
            let rows = ROWS.iter().find(|(n, _)| *n == name).map(|(_, rows)| *rows);
            if rows != Some(read.rows() as u64) {
                failed.push(format!("{name}: {} rows, expected {rows:?}", read.rows()));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn compare(read: &support::Read, expected: &str) -> Result<(), String> {
    let mut lines = expected.lines();
    let mut number = 0;
    for batch in &read.batches {
        let is_wrapped = batch.schema().field(0).name() == "value" && batch.num_columns() == 1;
        let rows: ArrayRef = Arc::new(StructArray::from(batch.clone()));
        for row in 0..rows.len() {
            let line = lines.next().ok_or(format!("row {number} is not expected"))?;
            let json = match json::parse(line) {
                Json::Object(fields) => Json::Object(fields),
                other if is_wrapped => Json::Object(vec![("value".to_owned(), other)]),
                other => other,
            };
            if !json::matches(&rows, row, &json) {
                let row = batch.slice(row, 1);
                return Err(format!("row {number}: expected {line}, got {row:?}"));
            }
            number += 1;
        }
    }
    match lines.next() {
        Some(line) => Err(format!("row {number} is missing: {line}")),
        None => Ok(()),
    }
}

#[test]
fn output_types_and_batch_sizes_do_not_change_rows() {
    for (name, file, expected) in support::corpus() {
        let Some(expected) = expected.filter(|_| file.len() < 150_000) else { continue };
        for (strings, batch_rows) in [
            (StringOutput::Utf8View, 1000),
            (StringOutput::Dictionary, 333),
            (StringOutput::Utf8, 1_000_000),
        ] {
            let options = ReadOptions::default().with_strings(strings).with_batch_rows(batch_rows);
            let read = support::read(&file, options.with_align_to_row_groups(batch_rows == 333));
            let result = compare(&read.unwrap(), &expected);
            assert!(result.is_ok(), "{name} as {strings:?}: {result:?}");
        }
    }
}

#[test]
fn timestamps_read_as_microseconds() {
    for (name, file, _) in support::corpus() {
        let options = ReadOptions::default().with_timestamps(TimestampOutput::Micros);
        let read = support::read(&file, options);
        assert!(read.is_ok(), "{name}: {:?}", read.err());
    }
}
