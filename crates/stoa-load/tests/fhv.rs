//! The real files: daily trips of for-hire-vehicle bases, as cleaned and as published.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use stoa_load::{Input, LoadOptions, infer_schema, open};

fn file(name: &str) -> Option<PathBuf> {
    stoa_testkit::shared_dir("data").map(|dir| dir.join(name))
}

fn load(path: &Path, schema: SchemaRef, options: LoadOptions) -> Vec<RecordBatch> {
    let reader = open(vec![Input::Path(path.to_path_buf())], schema, options).unwrap();
    let progress = reader.progress();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(progress.rows_read(), rows as u64);
    assert_eq!(progress.bytes_read(), progress.bytes_total());
    batches
}

/// Sums of trips and vehicles per base and month (days / 31 does as one).
fn sums(batches: &[RecordBatch]) -> BTreeMap<(String, i32), (i64, i64, usize)> {
    let mut sums = BTreeMap::new();
    for batch in batches {
        let base = batch.column(0).as_string::<i32>();
        let day = batch.column(2).as_primitive::<Date32Type>();
        let trips = batch.column(3).as_primitive::<Int64Type>();
        let vehicles = batch.column(4).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let key = (base.value(row).to_uppercase(), day.value(row) / 31);
            let entry: &mut (i64, i64, usize) = sums.entry(key).or_default();
            entry.0 += if trips.is_valid(row) { trips.value(row) } else { 0 };
            entry.1 += if vehicles.is_valid(row) { vehicles.value(row) } else { 0 };
            entry.2 += 1;
        }
    }
    sums
}

fn raw_options() -> LoadOptions {
    let mut options = LoadOptions::default();
    for (name, value) in [
        ("skip_lines", "5"),
        ("columns", "-,base,base_name,-,day,trips,vehicles"),
        ("thousands_separator", ","),
        ("null_text", "-,"),
        ("date_format", "%m/%d/%Y"),
        ("trim", "true"),
        ("skip_empty_rows", "true"),
    ] {
        options.set(name, value).unwrap();
    }
    options
}

#[test]
fn the_clean_file_infers_and_loads() {
    let Some(path) = file("fhv-daily-2015.csv") else { return };
    let schema = infer_schema(std::slice::from_ref(&path), &LoadOptions::default()).unwrap();
    let columns: Vec<_> =
        schema.fields().iter().map(|f| (f.name().as_str(), f.data_type().clone())).collect();
    assert_eq!(
        columns,
        [
            ("base", DataType::Utf8),
            ("base_name", DataType::Utf8),
            ("day", DataType::Date32),
            ("trips", DataType::Int64),
            ("vehicles", DataType::Int64),
        ]
    );
    let batches = load(&path, schema, LoadOptions::default());
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 26_181);
}

#[test]
fn the_raw_file_loads_with_options_to_the_same_sums() {
    let (Some(clean), Some(raw)) = (file("fhv-daily-2015.csv"), file("fhv-daily-2015-raw.csv"))
    else {
        return;
    };
    let schema = infer_schema(std::slice::from_ref(&clean), &LoadOptions::default()).unwrap();
    let expected = sums(&load(&clean, schema.clone(), LoadOptions::default()));
    assert_eq!(sums(&load(&raw, schema, raw_options())), expected);
}

#[test]
fn the_raw_file_infers_with_options() {
    let Some(raw) = file("fhv-daily-2015-raw.csv") else { return };
    let mut options = raw_options();
    options.columns.clear();
    let schema = infer_schema(std::slice::from_ref(&raw), &options).unwrap();
    let columns: Vec<_> =
        schema.fields().iter().map(|f| (f.name().as_str(), f.data_type().clone())).collect();
    assert_eq!(
        columns,
        [
            ("column_1", DataType::Utf8),
            ("base_number", DataType::Utf8),
            ("base_name", DataType::Utf8),
            ("column_4", DataType::Utf8),
            ("pick_up_date", DataType::Date32),
            ("number_of_trips", DataType::Int64),
            ("number_of_vehicles", DataType::Int64),
        ]
    );
    let rows: usize = load(&raw, schema, options).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 26_181);
}

#[test]
fn the_raw_file_without_options_says_what_to_do() {
    let (Some(clean), Some(raw)) = (file("fhv-daily-2015.csv"), file("fhv-daily-2015-raw.csv"))
    else {
        return;
    };
    let schema = infer_schema(&[clean], &LoadOptions::default()).unwrap();
    let error = |remove: &[&str]| {
        let (mut options, defaults) = (raw_options(), LoadOptions::default());
        for name in remove {
            match *name {
                "skip_lines" => options.skip_lines = 0,
                "columns" => options.columns.clear(),
                "thousands_separator" => options.thousands_separator = None,
                "null_text" => options.null_text.clear(),
                "date_format" => options.date_format = None,
                _ => options = defaults.clone(),
            }
        }
        let mut reader = open(vec![Input::Path(raw.clone())], schema.clone(), options).unwrap();
        let error = reader.find_map(Result::err).unwrap();
        assert!(reader.next().is_none());
        (
            error.message().replace(&raw.display().to_string(), "raw.csv"),
            error.hint().unwrap_or("").to_owned(),
        )
    };
    let (message, hint) = error(&["all"]);
    assert_eq!(message, "raw.csv line 1: expected a header, but no field of it has a name");
    assert!(hint.contains("skip_lines"), "{hint}");
    let (message, hint) = error(&["columns"]);
    assert!(message.starts_with("raw.csv line 6: the table has no column for"), "{message}");
    assert!(hint.contains("columns"), "{hint}");
    let (message, hint) = error(&["thousands_separator"]);
    assert_eq!(message, "raw.csv line 14, column \"trips\": \"1,137\" is not a bigint");
    assert!(hint.contains("thousands_separator"), "{hint}");
    let (message, hint) = error(&["date_format"]);
    assert_eq!(message, "raw.csv line 7, column \"day\": \"01/01/2015\" is not a date");
    assert!(hint.contains("date_format"), "{hint}");
    let (message, hint) = error(&["null_text"]);
    assert!(message.ends_with("\"-\" is not a bigint"), "{message}");
    assert!(hint.contains("null_text"), "{hint}");
}
