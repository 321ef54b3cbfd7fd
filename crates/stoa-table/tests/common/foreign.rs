//! Another engine, as far as tests need one: writes data files and delete files of any format, and
//! commits them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, MAIN_BRANCH,
    ManifestFile, ManifestList, ManifestListWriter, ManifestWriterBuilder, Operation, Snapshot,
    Struct, Summary, TableMetadata, TableMetadataBuilder,
};
use object_store::ObjectStoreExt;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use roaring::RoaringTreemap;
use stoa_orc::{Predicate, Writer, WriterOptions};
use stoa_table::{FIELD_ID_KEY, FileFormat, RowOptions, Table};

/// Formats that rows can be in.
pub const FORMATS: [FileFormat; 3] = [FileFormat::Orc, FileFormat::Parquet, FileFormat::Avro];

/// The metadata of `table`, parsed anew.
pub fn metadata(table: &Table) -> TableMetadata {
    serde_json::from_slice(&bytes_of(table.metadata_location())).unwrap()
}

fn bytes_of(location: &str) -> Vec<u8> {
    std::fs::read(location.strip_prefix("file://").unwrap()).unwrap()
}

fn put(location: &str, bytes: &[u8]) {
    let path = std::path::Path::new(location.strip_prefix("file://").unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Makes `version` the current version of the table.
pub async fn swap(table: &Table, version: TableMetadata) -> Table {
    let location = format!("{}/metadata/{}.metadata.json", table.location(), unique());
    put(&location, &serde_json::to_vec(&version).unwrap());
    let catalog = table.warehouse().catalog();
    catalog.swap(table.ident(), table.metadata_location(), &location).await.unwrap();
    table.reload().await.unwrap()
}

pub async fn upgrade(table: &Table) -> Table {
    let builder = TableMetadataBuilder::new_from_metadata(metadata(table), None);
    let builder = builder.upgrade_format_version(FormatVersion::V3).unwrap();
    swap(table, builder.build().unwrap().metadata).await
}

fn unique() -> String {
    stoa_env::random::uuid().to_string()
}

/// Commits `files`, data and deletes mixed, of the table's partition spec, as one snapshot.
pub async fn commit(table: &Table, files: Vec<DataFile>) -> Table {
    let metadata = metadata(table);
    let version = metadata.format_version();
    let id = (stoa_env::random::u64() >> 1) as i64;
    let mut manifests: Vec<ManifestFile> = Vec::new();
    if let Some(parent) = metadata.current_snapshot() {
        let list = bytes_of(parent.manifest_list());
        let list = ManifestList::parse_with_version(&list, version).unwrap();
        manifests.extend(list.consume_entries());
    }
    let (data, deletes): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.content_type() == DataContentType::Data);
    let added_rows: u64 = data.iter().map(DataFile::record_count).sum();
    let mut totals = HashMap::from([("total-delete-files".to_owned(), "1".to_owned())]);
    totals.insert("engine-name".to_owned(), "another".to_owned());
    for (of_deletes, files) in [(false, data), (true, deletes)] {
        if files.is_empty() {
            continue;
        }
        let memory = FileIO::new_with_memory();
        let output = memory.new_output("memory://x").unwrap();
        let schema = metadata.current_schema().clone();
        let spec = metadata.default_partition_spec().as_ref().clone();
        let builder = ManifestWriterBuilder::new(output, Some(id), schema, spec);
        let mut writer = match (version, of_deletes) {
            (FormatVersion::V3, false) => builder.build_v3_data(),
            (FormatVersion::V3, true) => builder.build_v3_deletes(),
            (_, false) => builder.build_v2_data(),
            (_, true) => builder.build_v2_deletes(),
        };
        for file in files {
            writer.add_file(file, -1).unwrap();
        }
        let mut entry = writer.write_manifest_file().await.unwrap();
        let bytes = memory.new_input("memory://x").unwrap().read().await.unwrap();
        entry.manifest_path = format!("{}/metadata/{}.avro", table.location(), unique());
        entry.manifest_length = bytes.len() as i64;
        put(&entry.manifest_path, &bytes);
        manifests.push(entry);
    }
    let memory = FileIO::new_with_memory();
    let file = memory.new_output("memory://x").unwrap().writer().await.unwrap();
    let (parent, sequence) = (metadata.current_snapshot_id(), metadata.next_sequence_number());
    let next_row = metadata.next_row_id();
    let mut list = match version {
        FormatVersion::V3 => ManifestListWriter::v3(file, id, parent, sequence, Some(next_row)),
        _ => ManifestListWriter::v2(file, id, parent, sequence),
    };
    list.add_manifests(manifests.into_iter()).unwrap();
    list.close().await.unwrap();
    let location = format!("{}/metadata/snap-{id}.avro", table.location());
    put(&location, &memory.new_input("memory://x").unwrap().read().await.unwrap());
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(parent)
        .with_sequence_number(sequence)
        .with_timestamp_ms(stoa_env::clock::unix_ms().max(metadata.last_updated_ms()))
        .with_manifest_list(location)
        .with_summary(Summary { operation: Operation::Overwrite, additional_properties: totals })
        .with_schema_id(metadata.current_schema_id());
    let snapshot = match version {
        FormatVersion::V3 => snapshot.with_row_range(next_row, added_rows).build(),
        _ => snapshot.build(),
    };
    let builder = TableMetadataBuilder::new_from_metadata(metadata, None);
    let builder = builder.set_branch_snapshot(snapshot, MAIN_BRANCH).unwrap();
    swap(table, builder.build().unwrap().metadata).await
}

/// Writes `batch` to a new file of the table; what a manifest says of it, unpartitioned.
pub fn write(table: &Table, format: FileFormat, batch: &RecordBatch) -> DataFileBuilder {
    let bytes = match format {
        FileFormat::Orc => orc(batch),
        FileFormat::Parquet => parquet(batch),
        FileFormat::Avro => avro(batch),
        FileFormat::Puffin => panic!("rows are not in Puffin files"),
    };
    let location = format!("{}/data/{}.{}", table.location(), unique(), format.name());
    put(&location, &bytes);
    let mut file = DataFileBuilder::default();
    file.content(DataContentType::Data)
        .file_path(location)
        .file_format(match format {
            FileFormat::Orc => DataFileFormat::Orc,
            FileFormat::Parquet => DataFileFormat::Parquet,
            FileFormat::Avro => DataFileFormat::Avro,
            FileFormat::Puffin => DataFileFormat::Puffin,
        })
        .record_count(batch.num_rows() as u64)
        .file_size_in_bytes(bytes.len() as u64)
        .partition_spec_id(metadata(table).default_partition_spec_id())
        .partition(Struct::empty());
    file
}

/// Deletes of rows by file and number.
pub fn positions(table: &Table, format: FileFormat, rows: &[(&str, i64)]) -> DataFileBuilder {
    let field = |name: &str, data_type, id: i32| {
        let id = HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]);
        Field::new(name, data_type, false).with_metadata(id)
    };
    let schema = Arc::new(Schema::new(vec![
        field("file_path", DataType::Utf8, 2_147_483_546),
        field("pos", DataType::Int64, 2_147_483_545),
    ]));
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)));
    let batch = RecordBatch::try_new(schema, vec![paths, numbers]).unwrap();
    let mut file = write(table, format, &batch);
    file.content(DataContentType::PositionDeletes);
    file
}

/// Deletes of rows that have the values of a row of `batch`, whose columns have field ids.
pub fn equality(table: &Table, format: FileFormat, batch: &RecordBatch) -> DataFileBuilder {
    let id = |field: &Arc<Field>| field.metadata()[FIELD_ID_KEY].parse().unwrap();
    let ids: Vec<i32> = batch.schema().fields().iter().map(id).collect();
    let mut file = write(table, format, batch);
    file.content(DataContentType::EqualityDeletes).equality_ids(Some(ids));
    file
}

/// Deletion vectors of data files, all in one Puffin file.
pub fn vectors(table: &Table, rows: &[(&str, Vec<u64>)]) -> Vec<DataFile> {
    let location = format!("{}/data/{}.puffin", table.location(), unique());
    let mut bytes = b"PFA1".to_vec();
    let mut places = Vec::new();
    for (data_file, rows) in rows {
        let rows: RoaringTreemap = rows.iter().copied().collect();
        let mut body = vec![0xd1, 0xd3, 0x39, 0x64];
        rows.serialize_into(&mut body).unwrap();
        let mut sum = flate2::Crc::new();
        sum.update(&body);
        let start = bytes.len();
        bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend(body);
        bytes.extend(sum.sum().to_be_bytes());
        places.push(((*data_file).to_owned(), start, bytes.len() - start, rows.len()));
    }
    // Nobody reads the footer of a Puffin file for the sake of a deletion vector.
    put(&location, &bytes);
    let file = |(data_file, offset, length, rows): (String, usize, usize, u64)| {
        DataFileBuilder::default()
            .content(DataContentType::PositionDeletes)
            .file_path(location.clone())
            .file_format(DataFileFormat::Puffin)
            .record_count(rows)
            .file_size_in_bytes(bytes.len() as u64)
            .partition_spec_id(metadata(table).default_partition_spec_id())
            .partition(Struct::empty())
            .referenced_data_file(Some(data_file))
            .content_offset(Some(offset as i64))
            .content_size_in_bytes(Some(length as i64))
            .build()
            .unwrap()
    };
    places.into_iter().map(file).collect()
}

fn orc(batch: &RecordBatch) -> Vec<u8> {
    let options = WriterOptions { row_index_stride: 10, ..WriterOptions::default() };
    let mut writer = Writer::new(&batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.take_output().to_vec()
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let few = WriterProperties::builder().set_max_row_group_row_count(Some(7)).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(few)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn avro(batch: &RecordBatch) -> Vec<u8> {
    use apache_avro::types::Value;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, Float64Type, Int32Type, Int64Type};
    let fields: Vec<serde_json::Value> = (batch.schema().fields().iter())
        .map(|field| {
            let plain = match field.data_type() {
                DataType::Utf8 => serde_json::json!("string"),
                DataType::Int32 => serde_json::json!("int"),
                DataType::Int64 => serde_json::json!("long"),
                DataType::Float64 => serde_json::json!("double"),
                DataType::Date32 => serde_json::json!({"type": "int", "logicalType": "date"}),
                other => panic!("{other} in Avro"),
            };
            let mut json = serde_json::json!({"name": field.name(), "type": ["null", plain]});
            if let Some(id) = field.metadata().get(FIELD_ID_KEY) {
                json["field-id"] = serde_json::json!(id.parse::<i32>().unwrap());
            }
            json
        })
        .collect();
    let json = serde_json::json!({"type": "record", "name": "table", "fields": fields});
    let schema = apache_avro::Schema::parse(&json).unwrap();
    let mut writer = apache_avro::Writer::new(&schema, Vec::new());
    for row in 0..batch.num_rows() {
        let value = |column: &ArrayRef| {
            let value = match column.data_type() {
                _ if column.is_null(row) => return Value::Union(0, Box::new(Value::Null)),
                DataType::Utf8 => Value::String(column.as_string::<i32>().value(row).into()),
                DataType::Int32 => Value::Int(column.as_primitive::<Int32Type>().value(row)),
                DataType::Int64 => Value::Long(column.as_primitive::<Int64Type>().value(row)),
                DataType::Float64 => Value::Double(column.as_primitive::<Float64Type>().value(row)),
                _ => Value::Date(column.as_primitive::<Date32Type>().value(row)),
            };
            Value::Union(1, Box::new(value))
        };
        let names = batch.schema();
        let names = names.fields().iter().map(|field| field.name().clone());
        let record = names.zip(batch.columns().iter().map(value)).collect();
        writer.append(Value::Record(record)).unwrap();
    }
    writer.into_inner().unwrap()
}

/// All rows that are left, each as text, sorted.
pub async fn rows(table: &Table) -> Vec<String> {
    rows_of(table, table.schema(), Predicate::always()).await
}

/// Rows with these columns, as [`rows`]; row groups that cannot match are left out.
pub async fn rows_of(table: &Table, schema: SchemaRef, predicate: Predicate) -> Vec<String> {
    let plan = table.plan_scan(&predicate).await.unwrap();
    let mut rows = Vec::new();
    for file in &plan.files {
        for (part, parts) in [(0, 2), (1, 2)] {
            let options = RowOptions {
                predicate: predicate.clone(),
                batch_rows: 4,
                part,
                parts,
                ..RowOptions::of(schema.clone())
            };
            let mut reader = table.read_rows(file, options).await.unwrap();
            while let Some(batch) = reader.next().await.unwrap() {
                rows.extend(super::texts(&batch));
            }
        }
    }
    rows.sort_unstable();
    rows
}

/// How many rows are left, without asking for any column.
pub async fn count(table: &Table) -> u64 {
    let plan = table.plan_scan(&Predicate::always()).await.unwrap();
    let mut rows = 0;
    for file in &plan.files {
        let nothing = Arc::new(Schema::empty());
        let mut reader = table.read_rows(file, RowOptions::of(nothing)).await.unwrap();
        while let Some(batch) = reader.next().await.unwrap() {
            rows += batch.num_rows() as u64;
        }
    }
    rows
}

/// Whether a file is still there.
pub async fn exists(table: &Table, location: &str) -> bool {
    let place = table.warehouse().stores().resolve(location).unwrap();
    place.store.head(&place.path).await.is_ok()
}
