//! Every format to the same rows.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, LargeStringArray, ListArray, RecordBatch,
    TimestampNanosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};
use bytes::Bytes;
use common::{load, options, rows, schema, stream};
use stoa_load::{Input, LoadOptions, Spool, infer_sample, infer_schema};

fn table() -> SchemaRef {
    schema(&[
        ("id", DataType::Int64),
        ("name", DataType::Utf8),
        ("day", DataType::Date32),
        ("at", DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))),
        ("cost", DataType::Decimal128(10, 2)),
        ("ok", DataType::Boolean),
        ("raw", DataType::Binary),
    ])
}

fn expected() -> Vec<Vec<&'static str>> {
    vec![
        vec!["1", "a\tb", "2015-01-31", "2015-01-31T09:30:00Z", "12.50", "true", "00ff"],
        vec!["2", "", "NULL", "NULL", "NULL", "NULL", "NULL"],
        vec!["3", "NULL", "2015-02-01", "2015-02-01T00:00:00Z", "-1.00", "false", ""],
    ]
}

const CSV: &str = "id,name,day,at,cost,ok,raw\n\
    1,a\tb,2015-01-31,2015-01-31 10:30:00+01,12.5,yes,\\x00ff\n\
    2,\"\",,,,,\n\
    3,,2015-02-01,2015-02-01,-1,F,\\x\n";
const TSV: &str = "id\tname\tday\tat\tcost\tok\traw\n\
    1\t\"a\tb\"\t2015-01-31\t2015-01-31 10:30:00+01\t12.5\tyes\t\\x00ff\n\
    2\t\"\"\t\t\t\t\t\n\
    3\t\t2015-02-01\t2015-02-01\t-1\tF\t\\x\n";
const NDJSON: &str = r#"{"id":1,"name":"a\tb","day":"2015-01-31","at":"2015-01-31T10:30:00+01:00","cost":12.5,"ok":true,"raw":"\\x00ff"}
{"ID":"2","name":""}

{"raw":"\\x","ok":false,"cost":-1,"at":"2015-02-01","day":"2015-02-01","name":null,"id":3}
"#;
const PGTEXT: &str = "1\ta\\tb\t2015-01-31\t2015-01-31 10:30:00+01\t12.5\tt\t\\\\x00ff\n\
    2\t\t\\N\t\\N\t\\N\t\\N\t\\N\n\
    3\t\\N\t2015-02-01\t2015-02-01\t-1\tf\t\\\\x\n\
    \\.\n\
    this is not read\n";

#[test]
fn text_formats_give_the_same_rows() {
    for (name, text) in [("f.csv", CSV), ("f.tsv", TSV), ("f.ndjson", NDJSON), ("f.pgtext", PGTEXT)]
    {
        let batches = load(vec![stream(name, text)], table(), options(&[])).unwrap();
        assert_eq!(rows(&batches), expected(), "{name}");
    }
}

#[test]
fn compressed_text_is_decompressed() {
    let folder = tempfile::tempdir().unwrap();
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    let (head, tail) = CSV.split_at(100);
    let two_members = [gzip(head), gzip(tail)].concat();
    let two_frames = [zstd(head), zstd(tail)].concat();
    // Named rightly, wrongly and not at all: on disk the bytes decide.
    for (name, bytes) in [
        ("a.csv.gz", &two_members),
        ("b.csv.zst", &two_frames),
        ("c.csv", &two_members),
        ("d.csv.gz", &CSV.as_bytes().to_vec()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let reader = stoa_load::open(vec![Input::Path(path)], table(), options(&[])).unwrap();
        let progress = reader.progress();
        assert_eq!(progress.bytes_total(), bytes.len() as u64);
        let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        assert_eq!(rows(&batches), expected(), "{name}");
        assert_eq!(progress.bytes_read(), bytes.len() as u64, "{name}");
    }
    for (name, bytes) in [("e.csv.gz", two_members), ("f.csv.zst", two_frames)] {
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        let error = load(vec![Input::Path(path)], table(), options(&[])).unwrap_err();
        assert!(error.message().contains("damaged, cut off"), "{error:?}");
    }
}

fn typed_batch() -> RecordBatch {
    let batches = load(vec![stream("f.csv", CSV)], table(), options(&[])).unwrap();
    batches.into_iter().next().unwrap()
}

fn write_parquet(folder: &tempfile::TempDir, batch: &RecordBatch) -> PathBuf {
    let path = folder.path().join("f.parquet");
    let file = File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path
}

fn write_arrow(folder: &tempfile::TempDir, batch: &RecordBatch, as_stream: bool) -> PathBuf {
    let path = folder.path().join(if as_stream { "f.arrows" } else { "f.arrow" });
    let file = File::create(&path).unwrap();
    if as_stream {
        let mut writer = arrow_ipc::writer::StreamWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    } else {
        let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    }
    path
}

fn write_orc(folder: &tempfile::TempDir, batch: &RecordBatch) -> PathBuf {
    let path = folder.path().join("f.orc");
    let options = stoa_orc::WriterOptions::default();
    let mut writer = stoa_orc::Writer::new(&batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    std::fs::write(&path, writer.take_output()).unwrap();
    path
}

fn binary_files(folder: &tempfile::TempDir, batch: &RecordBatch) -> Vec<PathBuf> {
    vec![
        write_parquet(folder, batch),
        write_arrow(folder, batch, false),
        write_arrow(folder, batch, true),
        write_orc(folder, batch),
    ]
}

#[test]
fn binary_formats_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    for path in binary_files(&folder, &typed_batch()) {
        let options = LoadOptions { batch_rows: 2, ..LoadOptions::default() };
        let reader = stoa_load::open(vec![Input::Path(path.clone())], table(), options).unwrap();
        let progress = reader.progress();
        let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        assert_eq!(rows(&batches), expected(), "{path:?}");
        assert_eq!(batches.len(), 2);
        assert_eq!(progress.bytes_read(), progress.bytes_total());
        let inferred = infer_schema(&[path], &LoadOptions::default()).unwrap();
        assert_eq!(inferred, table());
    }
}

#[test]
fn streams_that_are_read_from_their_end_go_through_a_file() {
    let (folder, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for path in [write_parquet(&folder, &typed_batch()), write_orc(&folder, &typed_batch())] {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let error = load(vec![stream(name, bytes.clone())], table(), options(&[])).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000", "{error:?}");
        let directory = spool.path().to_owned();
        let spooled = |bytes_max| LoadOptions {
            spool: Some(Spool { directory: directory.clone(), bytes_max }),
            ..LoadOptions::default()
        };
        let all = bytes.len() as u64;
        let batches = load(vec![stream(name, bytes.clone())], table(), spooled(all)).unwrap();
        assert_eq!(rows(&batches), expected(), "{name}");
        let error = load(vec![stream(name, bytes.clone())], table(), spooled(all - 1)).unwrap_err();
        assert_eq!(error.sqlstate(), "54000", "{error:?}");
        let cut = bytes[..bytes.len() - 20].to_vec();
        let error = load(vec![stream(name, cut)], table(), spooled(all)).unwrap_err();
        assert!(error.message().contains(name), "{error:?}");
        assert!(!format!("{error:?}").contains(directory.to_str().unwrap()), "{error:?}");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "nothing stays");
    }
}

#[test]
fn a_part_of_a_file_tells_its_columns() {
    let infer = |name: &str, part: &[u8], is_cut| {
        infer_sample(name, Bytes::copy_from_slice(part), is_cut, &LoadOptions::default())
    };
    let text = "id,note\n".to_owned() + &"1,\"two\nlines, or more\"\n".repeat(500);
    let wanted = schema(&[("id", DataType::Int64), ("note", DataType::Utf8)]);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gz.write_all(text.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, bytes) in [("a.csv", text.as_bytes()), ("a.csv.gz", &gz), ("a.csv.zst", &zst)] {
        assert_eq!(infer(name, bytes, false).unwrap().2, wanted, "{name}");
    }
    // Wherever it is cut after the first row: in a number, within quotes, between lines.
    for at in 40..120 {
        assert_eq!(infer("a.csv", &text.as_bytes()[..at], true).unwrap().2, wanted, "at {at}");
        assert_eq!(infer("a.csv.gz", &gz[..at + 20], true).unwrap().2, wanted, "at {at}");
    }
    assert_eq!(infer("a.csv", b"id,note", true).unwrap_err().sqlstate(), "22023");
    let bad = infer("a.csv", b"id,note\n1,a\n2\n", false).unwrap_err();
    assert!(bad.message().contains("line 3"), "{bad:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::read(write_parquet(&folder, &typed_batch())).unwrap();
    let footer = u32::from_le_bytes(file[file.len() - 8..][..4].try_into().unwrap()) as usize + 8;
    let tail = &file[file.len() - footer..];
    assert!(tail.len() < file.len());
    assert_eq!(infer("a.parquet", tail, true).unwrap().2, table());
    assert_eq!(infer("a.parquet", &tail[..tail.len() - 1], true).unwrap_err().sqlstate(), "22P04");
    assert_eq!(infer("a.orc", tail, true).unwrap_err().sqlstate(), "0A000");
    assert!(infer("a.unknown", b"x", false).is_err());
}

#[test]
fn binary_formats_cast_what_fits_and_refuse_what_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ID", Arc::new(Int32Array::from(vec![Some(1), None, Some(70_000)]))),
        ("name", Arc::new(LargeStringArray::from(vec!["7", "8", "x"]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for path in binary_files(&folder, &batch) {
        let check = |id: DataType, name: DataType, expected: Result<Vec<Vec<&str>>, &str>| {
            let target = schema(&[("name", name), ("id", id)]);
            let loaded = load(vec![Input::Path(path.clone())], target, options(&[]));
            match (loaded, expected) {
                (Ok(batches), Ok(expected)) => assert_eq!(rows(&batches), expected),
                (Err(e), Err(expected)) => assert!(e.message().ends_with(expected), "{e:?}"),
                (got, expected) => panic!("{got:?}, expected {expected:?}"),
            }
        };
        check(
            DataType::Int64,
            DataType::Utf8,
            Ok(vec![vec!["7", "1"], vec!["8", "NULL"], vec!["x", "70000"]]),
        );
        check(
            DataType::Int16,
            DataType::Utf8,
            Err("row 3, column \"id\": \"70000\" is out of range for smallint"),
        );
        check(
            DataType::Int64,
            DataType::Int64,
            Err("row 3, column \"name\": \"x\" is not a bigint"),
        );
        check(
            DataType::Float32,
            DataType::Utf8,
            Ok(vec![vec!["7", "1.0"], vec!["8", "NULL"], vec!["x", "70000.0"]]),
        );
        check(
            DataType::Boolean,
            DataType::Utf8,
            Err("column \"id\": integer does not become boolean without loss"),
        );
        let target = schema(&[("id", DataType::Int64), ("other", DataType::Utf8)]);
        let inputs = || vec![Input::Path(path.clone())];
        assert!(load(inputs(), target.clone(), options(&[])).is_err());
        let lenient = options(&[("missing_columns", "null"), ("extra_columns", "ignore")]);
        assert_eq!(rows(&load(inputs(), target, lenient).unwrap())[0], ["1", "NULL"]);
    }
}

#[test]
fn damaged_binary_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in binary_files(&folder, &typed_batch()) {
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let error = load(vec![Input::Path(path.clone())], table(), options(&[])).unwrap_err();
        assert!(error.message().contains("/f."), "{error:?}");
    }
}

#[test]
fn nested_json_loads_into_nested_columns() {
    let text = r#"{"tags":["a",null],"geo":{"lat":1.5,"place":{"name":"x"}},"any":{"k":[1,2]}}
{"tags":[],"geo":null}
{"geo":{"lat":2}}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.ndjson");
    std::fs::write(&path, text).unwrap();
    let inferred = infer_schema(std::slice::from_ref(&path), &LoadOptions::default()).unwrap();
    let geo = DataType::Struct(
        vec![
            Field::new("lat", DataType::Float64, true),
            Field::new(
                "place",
                DataType::Struct(vec![Field::new("name", DataType::Utf8, true)].into()),
                true,
            ),
        ]
        .into(),
    );
    assert_eq!(inferred.field(1).data_type(), &geo);
    let target = schema(&[
        ("tags", DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))),
        ("geo", geo),
        ("any", DataType::Utf8),
    ]);
    let batches = load(vec![Input::Path(path)], target, options(&[])).unwrap();
    assert_eq!(
        rows(&batches),
        [
            ["[a, NULL]", "{lat: 1.5, place: {name: x}}", "{\"k\":[1,2]}"],
            ["[]", "NULL", "NULL"],
            ["NULL", "{lat: 2.0, place: NULL}", "NULL"],
        ]
    );
}

#[test]
fn inference_widens_and_keeps_what_numbers_would_lose() {
    let check = |text: &str, settings: &[(&str, &str)], expected: &[(&str, DataType)]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.csv");
        std::fs::write(&path, text).unwrap();
        let schema = infer_schema(&[path], &options(settings)).unwrap();
        let got: Vec<(&str, DataType)> =
            schema.fields().iter().map(|f| (f.name().as_str(), f.data_type().clone())).collect();
        assert_eq!(got, expected, "{text:?}");
    };
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    let timestamptz = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    check(
        "i,f,b,d,t,z,s\n1,1,true,2015-01-01,2015-01-01 10:00,2015-01-01T10:00:00Z,1\n\
         ,-1.5e3,FALSE,2015-01-02,2015-01-01,2015-01-01 10:00+02,x\n",
        &[],
        &[
            ("i", DataType::Int64),
            ("f", DataType::Float64),
            ("b", DataType::Boolean),
            ("d", DataType::Date32),
            ("t", timestamp),
            ("z", timestamptz),
            ("s", DataType::Utf8),
        ],
    );
    check(
        "zip,big,none,dash,Mixed Case\n00123,123456789012345678901,,-,1e5\n",
        &[],
        &[
            ("zip", DataType::Utf8),
            ("big", DataType::Utf8),
            ("none", DataType::Utf8),
            ("dash", DataType::Utf8),
            ("mixed_case", DataType::Float64),
        ],
    );
    check(
        "1,a\n2,b\n",
        &[("header", "false")],
        &[("column_1", DataType::Int64), ("column_2", DataType::Utf8)],
    );
    check(
        "\"1.234,5\";01.02.2015\n",
        &[
            ("header", "false"),
            ("delimiter", ";"),
            ("thousands_separator", "."),
            ("decimal_point", ","),
            ("date_format", "%d.%m.%Y"),
            ("columns", "x,y"),
        ],
        &[("x", DataType::Float64), ("y", DataType::Date32)],
    );
}

#[test]
fn several_files_load_in_order_and_share_their_columns() {
    let target = schema(&[("a", DataType::Int64), ("b", DataType::Utf8)]);
    let inputs = vec![
        stream("1.csv", "a,b\n1,x\n"),
        stream("2.csv", ""),
        stream("3.csv", "b,A\ny,2\n"),
        stream("4.ndjson", "{\"a\":3}"),
    ];
    let batches = load(inputs, target, options(&[])).unwrap();
    assert_eq!(rows(&batches), [["1", "x"], ["2", "y"], ["3", "NULL"]]);
}

#[test]
fn batches_have_the_rows_asked_for() {
    let target = schema(&[("a", DataType::Int64)]);
    let text = (0..100).map(|n| format!("{n}\n")).collect::<String>();
    let settings = options(&[("header", "false"), ("batch_rows", "30")]);
    let batches = load(vec![stream("f.csv", text)], target.clone(), settings).unwrap();
    let sizes: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes, [30, 30, 30, 10]);
    let column = batches[3].column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    assert_eq!(column.value(9), 99);
    let one = load(vec![stream("f.csv", "a\n1\n\n2")], target, options(&[])).unwrap();
    assert_eq!(rows(&one), [["1"], ["NULL"], ["2"]]);
}

#[test]
fn latin1_and_custom_texts() {
    let target = schema(&[("a", DataType::Utf8), ("b", DataType::Boolean)]);
    let settings = options(&[("encoding", "latin1"), ("true_text", "ja"), ("false_text", "nein")]);
    let batches = load(vec![stream("f.csv", *b"a,b\nGr\xf6\xdfe,JA\nx,nein\n")], target, settings);
    assert_eq!(rows(&batches.unwrap()), [["Größe", "true"], ["x", "false"]]);
}

#[test]
fn orc_files_of_other_writers_infer_and_load() {
    let Some(corpus) = stoa_testkit::shared_dir("orc-corpus") else { return };
    for (name, expected) in [
        ("TestOrcFile.testSnappy.orc", 10_000),
        ("demo-12-zlib.orc", 1_920_800),
        ("TestOrcFile.emptyFile.orc", 0),
        ("TestOrcFile.testTimestamp.orc", 12),
        ("orc-file-11-format.orc", 7500),
    ] {
        let path = corpus.join(name);
        let schema = infer_schema(std::slice::from_ref(&path), &LoadOptions::default()).unwrap();
        let batches = load(vec![Input::Path(path)], schema, options(&[])).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), expected, "{name}");
    }
}

#[test]
fn json_nested_without_end_is_borne() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.ndjson");
    std::fs::write(&path, deep).unwrap();
    let inferred = infer_schema(std::slice::from_ref(&path), &LoadOptions::default()).unwrap();
    assert!(inferred.field(0).data_type().is_nested());
    let target = schema(&[("a", DataType::Utf8)]);
    assert_eq!(load(vec![Input::Path(path)], target, options(&[])).unwrap().len(), 1);
}

#[test]
fn nanoseconds_are_cut_towards_the_past_in_every_format() {
    // ORC has no points in the last second before 1970.
    let second = 1_000_000_000;
    let times = vec![-second - 1, -second - 1_500, -2 * second, 1_999, i64::MIN + 809];
    let times: Vec<Option<i64>> = times.into_iter().map(Some).chain([None]).collect();
    let unit = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let at: ArrayRef = Arc::new(TimestampNanosecondArray::from(times.clone()));
    let item = Arc::new(Field::new("item", unit.clone(), true));
    let offsets = OffsetBuffer::from_lengths([2, 0, 1, 0, 3, 0]);
    let list: ArrayRef = Arc::new(ListArray::new(item, offsets, at.clone(), None));
    let batch = RecordBatch::try_from_iter_with_nullable([("at", at, true), ("list", list, true)]);
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let list = DataType::List(Arc::new(Field::new("item", micros.clone(), true)));
    let target = schema(&[("at", micros), ("list", list)]);
    let folder = tempfile::tempdir().unwrap();
    for path in binary_files(&folder, &batch.unwrap()) {
        let input = Input::Path(path.clone());
        let batches = load(vec![input], target.clone(), options(&[])).unwrap();
        let at = batches[0].column(0).as_primitive::<TimestampMicrosecondType>();
        let expected = times.iter().map(|time| time.map(|nanos| nanos.div_euclid(1000)));
        assert!(at.iter().eq(expected.clone()), "{path:?}: {at:?}");
        let items = batches[0].column(1).as_list::<i32>().values();
        let items = items.as_primitive::<TimestampMicrosecondType>();
        assert!(items.iter().eq(expected), "{path:?}: {items:?}");
    }
}
