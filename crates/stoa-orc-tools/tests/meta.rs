//! Metadata as text and JSON.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use std::sync::Arc;

use arrow_array::*;
use serde_json::Value;
use stoa_orc::{Compression, WriterOptions};
use stoa_orc_tools::{MetaOptions, failed_json, files_of, meta};
use support::{File, counting, plain, texts, without_directory};

fn shown(file: &File, options: &MetaOptions) -> String {
    let mut out = Vec::new();
    meta(&file.path(), options, &mut out).unwrap();
    without_directory(&String::from_utf8(out).unwrap(), &file.path())
}

/// A small file with a bit of everything, whose bytes do not depend on a codec.
fn file() -> File {
    let decimal = Decimal128Array::from(vec![Some(-250), None, Some(1200)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![3, 1, 2]))),
        ("text", Arc::new(StringArray::from(vec![Some("b"), None, Some("a")]))),
        ("ratio", Arc::new(Float64Array::from(vec![0.5, -1.0, 1e10]))),
        ("odd name", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("amount", Arc::new(decimal.with_precision_and_scale(10, 2).unwrap())),
        ("day", Arc::new(Date32Array::from(vec![0, 1, 16_801]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![0, 1_500_001, 2_000_000]))),
        ("raw", Arc::new(BinaryArray::from(vec![Some(b"xyz".as_slice()), None, None]))),
    ];
    let options = plain()
        .with_stripe_rows(2)
        .with_bloom_column("id")
        .with_compact_index(false)
        .with_user_metadata("owner", "reports")
        .with_user_metadata("blob", [0xff, 0x00]);
    File::of(columns, options)
}

#[test]
fn the_text_is_that_of_orc_tools() {
    let options = MetaOptions {
        row_index: vec!["id".to_owned(), "2".to_owned()],
        timezone: true,
        ..MetaOptions::default()
    };
    let text = shown(&file(), &options).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let golden = include_str!("golden/meta.txt");
    assert!(text == golden, "got:\n{text}");
}

#[test]
fn json_says_the_same() {
    let options =
        MetaOptions { json: true, row_index: vec!["id".to_owned()], ..MetaOptions::default() };
    let text = shown(&file(), &options);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["fileName"], "t.orc");
    assert_eq!(value["status"], "OK");
    assert_eq!(value["numberOfRows"], 3);
    assert_eq!(value["compression"], "NONE");
    assert_eq!(value["schema"]["children"]["amount"]["precision"], 10);
    assert_eq!(value["schema"]["children"]["odd name"]["columnType"], "BOOLEAN");
    assert_eq!(value["fileStatistics"][1]["sum"], 6);
    assert_eq!(value["fileStatistics"][2]["totalLength"], 2);
    assert_eq!(value["fileStatistics"][3]["max"], 1e10);
    assert_eq!(value["fileStatistics"][4]["falseCount"], 1);
    assert_eq!(value["fileStatistics"][5]["min"], "-2.5");
    assert_eq!(value["fileStatistics"][6]["max"], "2016-01-01");
    assert_eq!(value["fileStatistics"][7]["max"], "1970-01-01 00:00:02.0");
    assert_eq!(value["stripeStatistics"][0]["columnStatistics"][1]["max"], 3);
    assert_eq!(value["stripes"][1]["stripeInformation"]["rowCount"], 1);
    assert_eq!(value["stripes"][0]["writerTimezone"], "UTC");
    assert_eq!(value["stripes"][0]["indexes"][0]["rowGroupIndexes"][0]["min"], 1);
    assert_eq!(value["stripes"][0]["indexes"][0]["bloomFilterIndexes"][0]["entryId"], 0);
    assert_eq!(value["userMetadata"]["owner"], "reports");
    assert_eq!(value["userMetadata"]["blob"]["bytes"], 2);
    let pretty = shown(&file(), &MetaOptions { pretty: true, ..options });
    assert!(pretty.lines().count() > 100, "{pretty}");
    assert_eq!(serde_json::from_str::<Value>(&pretty).unwrap(), value);
}

#[test]
fn attributes_are_shown() {
    let field = arrow_schema::Field::new("id", arrow_schema::DataType::Int64, false);
    let id = [("PARQUET:field_id".to_owned(), "7".to_owned())];
    let schema = arrow_schema::Schema::new(vec![field.with_metadata(id.into())]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![counting(1)]).unwrap();
    let text = shown(&File::of_batch(&batch, plain()), &MetaOptions::default());
    assert!(text.contains("\nType: struct<id:bigint>\nAttributes on root.id\n"), "{text}");
    assert!(text.contains("\n  iceberg.id: 7\n  iceberg.required: true\n"), "{text}");
}

#[test]
fn damage_is_named_and_the_rest_shown() {
    let options = WriterOptions::default()
        .with_compression(Compression::Zstd { level: 1 })
        .with_stripe_rows(1000);
    let file = File::of(vec![("a", counting(3000)), ("b", texts(3000))], options);
    let info = &file.meta()["stripes"][1]["stripeInformation"];
    let number = |name: &str| info[name].as_u64().unwrap();
    let at = number("offset") + number("indexLength") + number("dataLength");
    let damaged = file.damaged(at, 3);
    let mut out = Vec::new();
    let error = meta(&damaged.path(), &MetaOptions::default(), &mut out).unwrap_err();
    let place = format!("t.orc: stripe 1: footer at offset {at}: ");
    assert!(error.message().contains(&place), "{error:?}");
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches("  Stripe: offset: ").count(), 2, "{text}");
    assert!(text.contains("\nFile length: "), "{text}");

    let options = MetaOptions { json: true, ..MetaOptions::default() };
    let mut out = Vec::new();
    let error = meta(&damaged.path(), &options, &mut out).unwrap_err();
    assert!(out.is_empty());
    let failed: Value = serde_json::from_str(&failed_json(&damaged.path(), &error, false)).unwrap();
    assert_eq!(failed["status"], "FAILED");
    assert!(failed["error"].as_str().unwrap().contains(&place), "{failed}");
}

#[test]
fn a_column_that_does_not_exist_is_an_error() {
    for name in ["9", "b", "id.x", "-1"] {
        let options = MetaOptions { row_index: vec![name.to_owned()], ..MetaOptions::default() };
        let error = meta(&file().path(), &options, &mut Vec::new()).unwrap_err();
        assert_eq!(error.sqlstate(), "42703", "{name}");
    }
}

#[test]
fn directories_are_the_files_below_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("day=1/hour=2")).unwrap();
    for name in ["b.orc", "day=1/hour=2/c.orc", "day=1/a.orc", "_SUCCESS", ".hidden"] {
        std::fs::write(path(name), "").unwrap();
    }
    let asked = [directory.path().to_owned(), path("absent.orc"), path("_SUCCESS")];
    let files = files_of(&asked).unwrap();
    let wanted = ["b.orc", "day=1/a.orc", "day=1/hour=2/c.orc", "absent.orc", "_SUCCESS"];
    assert_eq!(files, wanted.map(path));
}
