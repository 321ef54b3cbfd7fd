//! What statistics and names rule out is not read. Answers are compared with DuckDB's in `clients/s3`.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use stoa_external::{
    Definition, FileFormat, FilePart, Limit, PrunedGroups, ReadOptions, Rows, Serde, files,
    partitions,
};
use stoa_orc::{ColumnRef, CompareOp, FIELD_ID_KEY, Literal, Predicate};
use stoa_store::{Location, Stores};

const GROUPS: i64 = 10;
const GROUP_ROWS: i64 = 1000;

fn field(name: &str, id: i32, data_type: DataType) -> Field {
    let metadata = [(FIELD_ID_KEY.to_owned(), id.to_string())];
    Field::new(name, data_type, true).with_metadata(metadata.into())
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![field("id", 1, DataType::Int64), field("name", 2, DataType::Utf8)]))
}

/// Ids that ascend, and names but in the group 3.
fn batch() -> RecordBatch {
    let ids = 0..GROUPS * GROUP_ROWS;
    let name = |id: i64| (id / GROUP_ROWS != 3).then(|| format!("n{id:05}"));
    let names: StringArray = ids.clone().map(name).collect();
    let ids: Int64Array = ids.map(Some).collect();
    RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(names)]).unwrap()
}

fn write(directory: &Path, format: FileFormat) {
    let bytes = match format {
        FileFormat::Parquet => {
            let properties = WriterProperties::builder();
            let properties = properties.set_max_row_group_row_count(Some(GROUP_ROWS as usize));
            let mut writer =
                ArrowWriter::try_new(Vec::new(), schema(), Some(properties.build())).unwrap();
            writer.write(&batch()).unwrap();
            writer.into_inner().unwrap()
        }
        _ => {
            let options =
                stoa_orc::WriterOptions::default().with_row_index_stride(GROUP_ROWS as u32);
            let mut writer = stoa_orc::Writer::new(&schema(), options).unwrap();
            writer.write(&batch()).unwrap();
            writer.finish().unwrap();
            writer.take_output().to_vec()
        }
    };
    std::fs::write(directory.join("f"), bytes).unwrap();
}

fn location(directory: &Path) -> Location {
    Stores::new().resolve(&format!("file://{}", directory.display())).unwrap()
}

/// How many rows are read, and what was left out.
async fn read(directory: &Path, format: FileFormat, predicate: Predicate) -> (usize, PrunedGroups) {
    let options = ReadOptions {
        columns: schema(),
        wanted: vec![1],
        limits: Vec::new(),
        predicate,
        batch_rows: 100,
    };
    read_with(directory, format, options).await
}

async fn read_with(
    directory: &Path,
    format: FileFormat,
    options: ReadOptions,
) -> (usize, PrunedGroups) {
    let location = location(directory);
    let definition = Definition {
        location: location.literal_of(&location.path),
        format,
        serde: Serde::Delimited,
        serde_properties: Default::default(),
        header_lines: 0,
        is_shared: false,
        dropped: Vec::new(),
    };
    let file = files(&location, &location.path).await.unwrap().remove(0);
    let part = FilePart { file, part: 0, parts: 1 };
    let mut rows = Rows::open(&location, &definition, &part, &options).await.unwrap();
    let mut count = 0;
    while let Some(batch) = rows.next().await.unwrap() {
        assert_eq!(batch.num_columns(), options.wanted.len());
        count += batch.num_rows();
    }
    assert!(rows.read_counts().bytes_read > 0);
    (count, rows.pruned())
}

fn compare(id: i32, op: CompareOp, value: Literal) -> Predicate {
    Predicate::Compare { column: ColumnRef::Field(id), op, value }
}

#[tokio::test]
async fn groups_that_cannot_match_are_not_read() {
    let all = (GROUPS * GROUP_ROWS) as usize;
    let group = GROUP_ROWS as usize;
    let text = |text: &str| Literal::String(text.to_owned());
    let cases = [
        (Predicate::always(), all),
        (compare(1, CompareOp::Eq, Literal::Int(5_500)), group),
        (compare(1, CompareOp::Lt, Literal::Int(2_000)), 2 * group),
        (compare(1, CompareOp::GtEq, Literal::Int(9_999)), group),
        (compare(1, CompareOp::Gt, Literal::Int(9_999)), 0),
        (compare(2, CompareOp::Eq, text("n07001")), group),
        // Those without names are left out by any comparison.
        (compare(2, CompareOp::GtEq, text("")), all - group),
        (Predicate::IsNull(ColumnRef::Field(2)), group),
        (Predicate::IsNotNull(ColumnRef::Field(2)), all - group),
        (
            Predicate::Or(vec![
                compare(1, CompareOp::Eq, Literal::Int(1)),
                compare(2, CompareOp::Eq, text("n09999")),
            ]),
            2 * group,
        ),
        // A column that nobody knows.
        (compare(9, CompareOp::Eq, Literal::Int(1)), all),
    ];
    for format in [FileFormat::Parquet, FileFormat::Orc] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), format);
        for (predicate, expected) in &cases {
            let (rows, pruned) = read(directory.path(), format, predicate.clone()).await;
            let left_out = match format {
                FileFormat::Parquet => pruned.stripes_pruned,
                // All of them in one stripe, which is left out as a whole if none is left.
                _ if pruned.stripes_pruned == 1 => GROUPS as u64,
                _ => pruned.row_groups_pruned,
            };
            let in_groups = all - left_out as usize * group;
            assert_eq!(in_groups, *expected, "{format:?} {predicate:?}: {pruned:?}");
            match format {
                FileFormat::Parquet => assert_eq!(rows, in_groups, "{predicate:?}"),
                // Rows that do not match are left out of row groups, too.
                _ => assert!(rows <= in_groups, "{predicate:?}"),
            }
        }
    }
}

/// A value that does not fit the table's type is NULL, which no statistics of the file tell.
#[tokio::test]
async fn nulls_of_values_that_do_not_fit_are_not_left_out() {
    let narrow: SchemaRef = Arc::new(Schema::new(vec![
        field("id", 1, DataType::Int32),
        field("name", 2, DataType::Utf8),
    ]));
    for format in [FileFormat::Parquet, FileFormat::Orc] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), format);
        for limits in [Vec::new(), vec![Some(Limit::Short), Some(Limit::Characters(2))]] {
            let read = async |predicate| {
                let options = ReadOptions {
                    columns: narrow.clone(),
                    wanted: vec![0, 1],
                    limits: limits.clone(),
                    predicate,
                    batch_rows: 1000,
                };
                read_with(directory.path(), format, options).await.0
            };
            let all = (GROUPS * GROUP_ROWS) as usize;
            assert_eq!(read(Predicate::IsNull(ColumnRef::Field(1))).await, all, "{format:?}");
            // Names are cut off to `n0`.
            let cut = compare(2, CompareOp::Eq, Literal::String("n0".to_owned()));
            let expected = match (format, limits.is_empty()) {
                (_, true) => 0,
                // All but the group without names.
                (FileFormat::Parquet, false) => all - GROUP_ROWS as usize,
                (_, false) => all,
            };
            assert_eq!(read(cut).await, expected, "{format:?} {limits:?}");
        }
    }
}

#[tokio::test]
async fn directories_that_are_left_out_are_not_looked_into() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["y=2023/m=1", "y=2024/m=1", "y=2024/m=2", "y=2024/other", "else/m=1"] {
        std::fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    let asked = Mutex::new(Vec::new());
    let keep = |level: Vec<stoa_external::Partition>, depth: usize| {
        asked.lock().extend(level.iter().map(|partition| (depth, partition.name.clone())));
        Ok(level.into_iter().filter(|one| one.values[0].as_deref() == Some("2024")).collect())
    };
    let columns = ["y".to_owned(), "m".to_owned()];
    let found = partitions(&location(directory.path()), &columns, &keep).await.unwrap();
    let names: Vec<&str> = found.iter().map(|partition| partition.name.as_str()).collect();
    assert_eq!(names, ["y=2024/m=1", "y=2024/m=2"]);
    let mut asked = asked.into_inner();
    asked.sort();
    let asked: Vec<(usize, &str)> =
        asked.iter().map(|(depth, name)| (*depth, name.as_str())).collect();
    assert_eq!(asked, [(1, "y=2023"), (1, "y=2024"), (2, "y=2024/m=1"), (2, "y=2024/m=2")]);
}
