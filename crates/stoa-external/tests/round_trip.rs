//! Files that are written are read again, in every format, in parts, compressed and partitioned.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_external::{
    DataFile, Definition, FileFormat, FilePart, HiveWriter, ReadOptions, Rows, Serde, WriteTarget,
    files, partitions,
};
use stoa_orc::Predicate;
use stoa_store::{Location, Stores};

fn definition(directory: &Path, format: FileFormat, serde: Serde) -> Definition {
    Definition {
        location: format!("file://{}", directory.display()),
        format,
        serde,
        serde_properties: Default::default(),
        header_lines: 0,
        is_shared: false,
        dropped: Vec::new(),
    }
}

fn location(definition: &Definition) -> Location {
    Stores::new().resolve(&definition.location).unwrap()
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("day", DataType::Utf8, true),
    ]))
}

fn batch(ids: std::ops::Range<i64>) -> RecordBatch {
    let name = |id: i64| (id % 5 != 0).then(|| format!("name \"{id}\", ü"));
    let day = |id: i64| (id % 3 != 0).then(|| format!("2024-01/0{}", id % 3));
    let names: StringArray = ids.clone().map(name).collect();
    let days: StringArray = ids.clone().map(day).collect();
    let ids: Int64Array = ids.map(Some).collect();
    RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(names), Arc::new(days)]).unwrap()
}

fn target(definition: &Definition, overwrites: bool) -> WriteTarget {
    WriteTarget {
        location: location(definition),
        definition: definition.clone(),
        schema: schema(),
        partition_columns: vec![2],
        overwrites,
        replaced: Vec::new(),
    }
}

async fn write(definition: &Definition, ids: std::ops::Range<i64>, overwrites: bool) {
    let mut writer = HiveWriter::new(target(definition, overwrites)).unwrap();
    writer.write(&batch(ids.clone())).await.unwrap();
    assert_eq!(writer.commit().await.unwrap(), ids.count() as u64);
}

fn options(wanted: Vec<usize>) -> ReadOptions {
    ReadOptions {
        columns: Arc::new(schema().project(&[0, 1]).unwrap()),
        wanted,
        limits: Vec::new(),
        predicate: Predicate::always(),
        batch_rows: 100,
    }
}

async fn rows(
    location: &Location,
    definition: &Definition,
    part: &FilePart,
    options: &ReadOptions,
) -> Vec<RecordBatch> {
    let mut rows = Rows::open(location, definition, part, options).await.unwrap();
    let mut all = Vec::new();
    while let Some(batch) = rows.next().await.unwrap() {
        assert!(batch.num_rows() <= 100);
        all.push(batch);
    }
    all
}

/// Ids, names and partition values, in the order of ids.
async fn all_rows(definition: &Definition) -> Vec<(i64, Option<String>, Option<String>)> {
    let location = location(definition);
    let mut all = Vec::new();
    for partition in partitions(&location, &["day".to_owned()], &|all, _| Ok(all)).await.unwrap() {
        for file in files(&location, &partition.path).await.unwrap() {
            let parts = FilePart::parts_of(&file, definition.format, 512);
            for part in 0..parts {
                let part = FilePart { file: file.clone(), part, parts };
                for batch in rows(&location, definition, &part, &options(vec![0, 1])).await {
                    let ids =
                        batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().clone();
                    let names =
                        batch.column(1).as_any().downcast_ref::<StringArray>().unwrap().clone();
                    for row in 0..batch.num_rows() {
                        let name = names.is_valid(row).then(|| names.value(row).to_owned());
                        all.push((ids.value(row), name, partition.values[0].clone()));
                    }
                }
            }
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn rows_come_back_from_all_formats() {
    for (format, serde) in [
        (FileFormat::Text, Serde::Delimited),
        (FileFormat::Sequence, Serde::Delimited),
        (FileFormat::Orc, Serde::Delimited),
        (FileFormat::Parquet, Serde::Delimited),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let definition = definition(&directory.path().join("t"), format, serde);
        write(&definition, 0..1000, false).await;
        write(&definition, 1000..2000, false).await;
        let read = all_rows(&definition).await;
        assert_eq!(read.len(), 2000, "{format:?}");
        for (at, (id, name, day)) in read.iter().enumerate() {
            let at = at as i64;
            assert_eq!(*id, at);
            assert_eq!(*name, (at % 5 != 0).then(|| format!("name \"{at}\", ü")), "{format:?}");
            assert_eq!(*day, (at % 3 != 0).then(|| format!("2024-01/0{}", at % 3)));
        }
        // Whole directories were made by then, and nothing hidden is left.
        let names = std::fs::read_dir(directory.path().join("t")).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(
            names,
            ["day=2024-01%2F01", "day=2024-01%2F02", "day=__HIVE_DEFAULT_PARTITION__"]
        );
        // Overwriting replaces those partitions into which rows come.
        write(&definition, 1..2, true).await;
        let left = all_rows(&definition).await;
        assert_eq!(left.iter().filter(|(id, _, _)| id % 3 == 1).count(), 1);
        assert_eq!(left.iter().filter(|(id, _, _)| id % 3 != 1).count(), 1333);
    }
}

#[tokio::test]
async fn what_is_given_up_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let definition = definition(&directory.path().join("t"), FileFormat::Text, Serde::Delimited);
    write(&definition, 0..10, false).await;
    let mut writer = HiveWriter::new(target(&definition, true)).unwrap();
    writer.write(&batch(0..100)).await.unwrap();
    writer.abort().await;
    assert_eq!(all_rows(&definition).await.len(), 10);
    let mut writer = HiveWriter::new(target(&definition, true)).unwrap();
    let bad = StringArray::from(vec!["two\nlines"]);
    let one: Arc<dyn Array> = Arc::new(Int64Array::from(vec![1]));
    let day: Arc<dyn Array> = Arc::new(StringArray::from(vec!["x"]));
    let bad = RecordBatch::try_new(schema(), vec![one, Arc::new(bad), day]).unwrap();
    let error = writer.write(&bad).await.unwrap_err();
    assert_eq!(error.sqlstate(), "22P04", "{error}");
    writer.abort().await;
    let hidden = std::fs::read_dir(directory.path().join("t")).unwrap();
    let hidden = hidden
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0);
    assert_eq!(all_rows(&definition).await.len(), 10);
}

#[tokio::test]
async fn lines_are_each_in_one_part() {
    for ending in ["\n", "\r\n", "\r"] {
        for ends_last in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let lines: Vec<String> =
                (0..200).map(|n| format!("{n}\u{1}{}", "x".repeat(n % 7))).collect();
            let mut text = lines.join(ending);
            if ends_last {
                text.push_str(ending);
            }
            std::fs::write(directory.path().join("f"), &text).unwrap();
            let definition = definition(directory.path(), FileFormat::Text, Serde::Delimited);
            let location = location(&definition);
            let file = files(&location, &location.path).await.unwrap().remove(0);
            for parts in [1, 2, 3, 7, 100, 1500] {
                let mut ids = Vec::new();
                for part in 0..parts {
                    let part = FilePart { file: file.clone(), part, parts };
                    for batch in rows(&location, &definition, &part, &options(vec![0])).await {
                        let column = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
                        ids.extend(column.values().iter().copied());
                    }
                }
                assert_eq!(ids, (0..200).collect::<Vec<i64>>(), "{ending:?} {parts}");
            }
        }
    }
}

#[tokio::test]
async fn compressed_and_hidden_files_are_known_by_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"id\x01name\n1\x01a\n").unwrap();
    let mut bytes = gzip.finish().unwrap();
    let mut more = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    more.write_all(b"2\x01b\n").unwrap();
    bytes.extend(more.finish().unwrap());
    std::fs::write(directory.path().join("a.gz"), &bytes).unwrap();
    std::fs::write(directory.path().join("_hidden"), "9\u{1}x\n").unwrap();
    std::fs::write(directory.path().join(".hidden"), "9\u{1}x\n").unwrap();
    std::fs::write(directory.path().join("empty"), "").unwrap();
    let mut definition = definition(directory.path(), FileFormat::Text, Serde::Delimited);
    definition.header_lines = 1;
    let location = location(&definition);
    let found = files(&location, &location.path).await.unwrap();
    assert_eq!(found.len(), 1);
    let part = FilePart { file: found[0].clone(), part: 0, parts: 1 };
    let read = rows(&location, &definition, &part, &options(vec![1, 0])).await;
    assert_eq!(read[0].num_rows(), 2);
    assert_eq!(read[0].column(1).as_any().downcast_ref::<Int64Array>().unwrap().values(), &[1, 2]);
    // Cut off.
    std::fs::write(directory.path().join("a.gz"), &bytes[..bytes.len() - 4]).unwrap();
    let file = DataFile { bytes: bytes.len() as u64 - 4, ..found[0].clone() };
    let part = FilePart { file, part: 0, parts: 1 };
    let mut rows = Rows::open(&location, &definition, &part, &options(vec![0])).await.unwrap();
    let error = loop {
        match rows.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a file that is cut off was read"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), stoa_error::ErrorKind::Corrupt);
}

#[tokio::test]
async fn bytes_that_are_no_such_file_are_errors() {
    for (format, bytes) in [
        (FileFormat::Orc, &b"this is no ORC file"[..]),
        (FileFormat::Parquet, b"this is no Parquet file"),
        (FileFormat::Sequence, b"SEQ\x06\x7fnot a class name"),
        (FileFormat::Sequence, b"SEQ"),
        (FileFormat::Sequence, b"text"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), bytes).unwrap();
        let definition = definition(directory.path(), format, Serde::Delimited);
        let location = location(&definition);
        let file = files(&location, &location.path).await.unwrap().remove(0);
        let part = FilePart { file, part: 0, parts: 1 };
        let error = Rows::open(&location, &definition, &part, &options(vec![0])).await.unwrap_err();
        assert!(error.to_string().contains("/f"), "{error}");
    }
}

#[tokio::test]
async fn types_of_files_become_those_of_the_table() {
    let directory = tempfile::tempdir().unwrap();
    let file_schema = Arc::new(Schema::new(vec![
        Field::new("_col0", DataType::Utf8, true),
        Field::new("_col1", DataType::Int32, true),
    ]));
    let texts: Arc<dyn Array> = Arc::new(StringArray::from(vec![Some("7"), Some("x"), None]));
    let numbers: Arc<dyn Array> = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_new(file_schema.clone(), vec![texts, numbers]).unwrap();
    let mut writer = stoa_orc::Writer::new(&file_schema, Default::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    std::fs::write(directory.path().join("f"), writer.take_output()).unwrap();
    let definition = definition(directory.path(), FileFormat::Orc, Serde::Delimited);
    let location = location(&definition);
    let file = files(&location, &location.path).await.unwrap().remove(0);
    let part = FilePart { file, part: 0, parts: 1 };
    let read = rows(&location, &definition, &part, &options(vec![1, 0])).await;
    let ids = read[0].column(1).as_any().downcast_ref::<Int64Array>().unwrap();
    assert_eq!(ids.iter().collect::<Vec<_>>(), [Some(7), None, None]);
    assert_eq!(read[0].column(0).as_any().downcast_ref::<StringArray>().unwrap().value(2), "3");
    let none = rows(&location, &definition, &part, &options(vec![])).await;
    assert_eq!(none.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
}
