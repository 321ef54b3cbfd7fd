//! Every file of the corpus: its rows are the expected ones, its metadata can be shown, all of it
//! can be read.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stoa_orc_tools::{DataOptions, MetaOptions, RowFormat, ScanOptions, data, meta, scan};

/// Rows to look at of a file whose rows are not known.
const SOME_ROWS: u64 = 20_000;

fn corpus() -> Vec<PathBuf> {
    let Some(directory) = stoa_testkit::shared_dir("orc-corpus") else { return Vec::new() };
    let mut files = stoa_orc_tools::files_of(&[directory]).unwrap();
    files.retain(|path| path.extension().is_some_and(|e| e == "orc"));
    files
}

fn expected(path: &Path) -> Option<String> {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let file = path.with_file_name("expected").join(format!("{name}.jsn.gz"));
    let mut text = String::new();
    let mut unpacked = flate2::read::MultiGzDecoder::new(std::fs::File::open(file).ok()?);
    unpacked.read_to_string(&mut text).unwrap();
    Some(text)
}

fn rows(path: &Path, options: &DataOptions) -> String {
    let mut out = Vec::new();
    let report = data(path, options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(report.rows, text.lines().count() as u64);
    assert_eq!(report.stripes_in_micros, 0);
    text
}

/// Whether two rows say the same; the expected ones have seven or fourteen digits of a float.
fn same(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, a)| b.get(k).is_some_and(|b| same(a, b)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-6 * b.abs()
        }
        _ => got == expected,
    }
}

#[test]
fn rows_are_the_expected_ones() {
    for path in corpus() {
        let Some(expected) = expected(&path) else { continue };
        let text = rows(&path, &DataOptions::default());
        assert_eq!(text.lines().count(), expected.lines().count(), "{}", path.display());
        let pairs = text.lines().zip(expected.lines()).enumerate();
        for (row, (got, expected)) in pairs.filter(|(_, (got, expected))| got != expected) {
            let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
            let place = path.display();
            assert!(same(&parse(got), &parse(expected)), "{place}: row {row}: {got}, {expected}");
        }
    }
}

#[test]
fn each_row_is_a_line_of_json() {
    let options = DataOptions { limit: Some(SOME_ROWS), ..DataOptions::default() };
    let java = DataOptions { format: RowFormat::Java, ..options.clone() };
    for path in corpus() {
        for line in rows(&path, &options).lines().chain(rows(&path, &java).lines()) {
            let parsed = serde_json::from_str::<Value>(line);
            assert!(parsed.is_ok(), "{}: {line}", path.display());
        }
    }
}

#[test]
fn metadata_can_be_shown() {
    for path in corpus() {
        let all = MetaOptions { row_index: vec!["*".to_owned()], ..MetaOptions::default() };
        let mut text = Vec::new();
        meta(&path, &all, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\nFile length: "), "{}: {text}", path.display());

        let mut json = Vec::new();
        meta(&path, &MetaOptions { json: true, ..all }, &mut json).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["status"], "OK", "{}", path.display());
        let length = std::fs::metadata(&path).unwrap().len();
        assert_eq!(json["fileLength"], length, "{}", path.display());
    }
}

#[test]
fn all_of_it_can_be_read() {
    for path in corpus() {
        let mut out = Vec::new();
        let report = scan(&path, &ScanOptions { verbose: true }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(report.is_sound(), "{text}");
        let rows = report.rows_total;
        let line = format!("File: {}, bad batches: 0, rows: {rows}/{rows}\n", path.display());
        assert_eq!(text, line);
    }
}
