//! Delete files to what they delete.
//!
//! Content is cached per delete file: a scan of many data files reads each delete file once. Delete
//! files are never changed, so what is cached is never stale.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use roaring::RoaringTreemap;
use stoa_error::{Error, Place, Result};

use super::apply::{EqualityKeys, KeyColumns};
use super::vector;
use super::{DeleteFile, DeleteKind};
use crate::Table;
use crate::cache::Cache;
use crate::data::{FileRows, RowOptions};
use crate::schema::FIELD_ID_KEY;

/// Reserved field ids of position deletes (spec, "reserved field ids").
const FILE_PATH_ID: i32 = 2_147_483_546;
const POSITION_ID: i32 = 2_147_483_545;

/// What caches may hold, by estimate.
const POSITIONS_CACHE_BYTES: usize = 64 << 20;
const KEYS_CACHE_BYTES: usize = 128 << 20;

/// The longest deletion vector that is read.
const VECTOR_BYTES_MAX: u64 = 1 << 31;

/// Deleted row numbers by data file.
pub(super) type Positions = HashMap<String, RoaringTreemap>;

/// Content of delete files.
#[derive(Debug)]
pub(crate) struct DeleteCache {
    positions: Cache<Positions>,
    keys: Cache<HashSet<Box<[u8]>>>,
}

impl DeleteCache {
    pub(crate) fn new() -> Self {
        Self { positions: Cache::new(POSITIONS_CACHE_BYTES), keys: Cache::new(KEYS_CACHE_BYTES) }
    }
}

/// The rows of the data file at `location` that `deletes` name by number.
pub(super) async fn positions(
    table: &Table,
    location: &str,
    deletes: &[Arc<DeleteFile>],
) -> Result<Option<Arc<RoaringTreemap>>> {
    let mut all: Option<RoaringTreemap> = None;
    for delete in deletes.iter().filter(|d| !matches!(d.kind, DeleteKind::Equality { .. })) {
        let named = positions_in(table, delete).await?;
        if let Some(rows) = named.get(location) {
            match &mut all {
                Some(all) => *all |= rows,
                None => all = Some(rows.clone()),
            }
        }
    }
    Ok(all.map(Arc::new))
}

async fn positions_in(table: &Table, delete: &DeleteFile) -> Result<Arc<Positions>> {
    let cache = &table.warehouse().files().deletes().positions;
    let (location, offset) = delete.id();
    let key = format!("{offset}:{location}");
    if let Some(known) = cache.get(&key) {
        return Ok(known);
    }
    let positions = match &delete.kind {
        DeleteKind::Vector { data_file, offset, bytes } => {
            let rows = read_vector(delete, *offset, *bytes).await?;
            HashMap::from([(data_file.clone(), rows)])
        }
        _ => read_positions(table, delete).await?,
    };
    let cost = positions.iter().map(|(path, rows)| path.len() + 64 + rows.serialized_size()).sum();
    Ok(cache.put(&key, positions, cost))
}

async fn read_vector(delete: &DeleteFile, offset: u64, bytes: u64) -> Result<RoaringTreemap> {
    let DeleteFile { file, .. } = delete;
    let damaged = |what: &str| {
        Error::corrupt(format!(
            "{}: the deletion vector at byte {offset} is damaged",
            file.location
        ))
        .with_detail(what)
    };
    let end = offset.checked_add(bytes).filter(|_| bytes <= VECTOR_BYTES_MAX);
    let end = end.ok_or_else(|| damaged("its place is not in the file"))?;
    let blob = file.reader.read_one(&file.path, offset..end).await;
    let blob = blob.map_err(|error| file.failed(error))?;
    let rows = vector::decode(&blob).map_err(damaged)?;
    if rows.len() != file.rows {
        return Err(damaged("it names another number of rows than its manifest says").with_detail(
            format!("it names {} rows, its manifest says {}", rows.len(), file.rows),
        ));
    }
    Ok(rows)
}

async fn read_positions(table: &Table, delete: &DeleteFile) -> Result<Positions> {
    let field = |name: &str, data_type, id: i32| {
        let id = HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]);
        Field::new(name, data_type, false).with_metadata(id)
    };
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        field("file_path", DataType::Utf8, FILE_PATH_ID),
        field("pos", DataType::Int64, POSITION_ID),
    ]));
    let mut rows = FileRows::open(table, &delete.file, RowOptions::of(schema)).await?;
    let mut positions = Positions::new();
    while let Some((_, batch)) = rows.next().await? {
        let [paths, numbers] = batch.columns() else { return Err(not_understood(delete)) };
        let paths = paths.as_string::<i32>();
        let numbers = numbers.as_primitive::<Int64Type>();
        let mut at = 0;
        while at < batch.num_rows() {
            // Rows of one data file follow each other.
            let path = paths.value(at);
            let end = (at..batch.num_rows()).find(|row| paths.value(*row) != path);
            let end = end.unwrap_or(batch.num_rows());
            let named = match positions.get_mut(path) {
                Some(named) => named,
                None => positions.entry(path.to_owned()).or_default(),
            };
            for number in &numbers.values()[at..end] {
                named.insert(u64::try_from(*number).map_err(|_| not_understood(delete))?);
            }
            at = end;
        }
    }
    Ok(positions)
}

/// The keys of equality deletes among `deletes`, together for those on the same columns.
pub(super) async fn keys(table: &Table, deletes: &[Arc<DeleteFile>]) -> Result<Vec<EqualityKeys>> {
    let mut groups: HashMap<&[i32], Vec<&DeleteFile>> = HashMap::new();
    for delete in deletes {
        if let DeleteKind::Equality { field_ids } = &delete.kind {
            groups.entry(field_ids).or_default().push(delete);
        }
    }
    let mut all = Vec::with_capacity(groups.len());
    for (field_ids, deletes) in groups {
        let columns = KeyColumns::of(table, field_ids)?;
        let mut sets = Vec::with_capacity(deletes.len());
        for delete in deletes {
            sets.push(keys_in(table, delete, &columns).await?);
        }
        all.push(EqualityKeys::new(columns, sets));
    }
    Ok(all)
}

async fn keys_in(
    table: &Table,
    delete: &DeleteFile,
    columns: &KeyColumns,
) -> Result<Arc<HashSet<Box<[u8]>>>> {
    let cache = &table.warehouse().files().deletes().keys;
    let cache_key = format!("{}:{}", columns.text(), delete.file.location);
    if let Some(known) = cache.get(&cache_key) {
        return Ok(known);
    }
    let mut rows = FileRows::open(table, &delete.file, RowOptions::of(columns.schema())).await?;
    let mut keys: HashSet<Box<[u8]>> = HashSet::new();
    while let Some((_, batch)) = rows.next().await? {
        let batch: RecordBatch = batch;
        columns.for_each_key(&batch, |_, key| {
            if !keys.contains(key) {
                keys.insert(key.into());
            }
        })?;
    }
    let cost = keys.iter().map(|key| key.len() + 40).sum();
    Ok(cache.put(&cache_key, keys, cost))
}

fn not_understood(delete: &DeleteFile) -> Error {
    Error::corrupt("the position deletes are not valid").at(Place::file(&delete.file.location))
}
