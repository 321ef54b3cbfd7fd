//! Which rows of a batch are left.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use roaring::RoaringTreemap;
use stoa_error::{Error, Result};

use super::DeleteFile;
use super::load;
use crate::Table;
use crate::schema::{self, FIELD_ID_KEY};

/// All that is deleted of one data file.
#[derive(Debug, Default)]
pub(crate) struct DeletedRows {
    positions: Option<Arc<RoaringTreemap>>,
    keys: Vec<EqualityKeys>,
}

impl DeletedRows {
    /// Reads what `deletes` say about the data file at `location`.
    pub(crate) async fn load(
        table: &Table,
        location: &str,
        deletes: &[Arc<DeleteFile>],
    ) -> Result<Self> {
        if deletes.is_empty() {
            return Ok(Self::default());
        }
        Ok(Self {
            positions: load::positions(table, location, deletes).await?,
            keys: load::keys(table, deletes).await?,
        })
    }

    /// How many rows of the first `rows` are left, where that needs no reading.
    pub(crate) fn rows_left(&self, rows: u64) -> Option<u64> {
        let deleted = self.positions.as_ref().map_or(0, |all| all.range_cardinality(0..rows));
        self.keys.is_empty().then(|| rows - deleted)
    }

    /// `schema` with the columns that have to be read to know which rows are left.
    pub(crate) fn with_key_columns(&self, schema: &SchemaRef) -> SchemaRef {
        let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
        for column in self.keys.iter().flat_map(|keys| &keys.columns.columns) {
            if !fields.iter().any(|field| id_of(field) == id_of(&column.top)) {
                fields.push(column.top.clone());
            }
        }
        match fields.len() == schema.fields().len() {
            true => schema.clone(),
            false => Arc::new(Schema::new(fields)),
        }
    }

    /// The rows of `batch` that are left; its first row has the number `first` in the file.
    pub(crate) fn apply(&self, first: u64, batch: RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut deleted = BooleanBufferBuilder::new(rows);
        deleted.append_n(rows, false);
        let end = first + rows as u64;
        for number in self.positions.iter().flat_map(|all| in_range(all, first, end)) {
            deleted.set_bit(usize::try_from(number - first).unwrap_or(usize::MAX), true);
        }
        for keys in &self.keys {
            keys.columns.for_each_key(&batch, |row, key| {
                if keys.sets.iter().any(|set| set.contains(key)) {
                    deleted.set_bit(row, true);
                }
            })?;
        }
        let deleted = deleted.finish();
        if deleted.count_set_bits() == 0 {
            return Ok(batch);
        }
        filter_record_batch(&batch, &BooleanArray::new(!&deleted, None)).map_err(|source| {
            Error::internal("deleted rows cannot be left out").with_source(source)
        })
    }
}

fn in_range(all: &RoaringTreemap, first: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
    let before = if first == 0 { 0 } else { all.rank(first - 1) };
    let count = all.range_cardinality(first..end);
    (before..before + count).filter_map(|index| all.select(index))
}

/// Values that delete the rows that have them.
#[derive(Debug)]
pub(super) struct EqualityKeys {
    columns: KeyColumns,
    sets: Vec<Arc<HashSet<Box<[u8]>>>>,
}

/// Sets of keys that are looked up one by one; more are put together first.
const SETS_MAX: usize = 4;

impl EqualityKeys {
    pub(super) fn new(columns: KeyColumns, sets: Vec<Arc<HashSet<Box<[u8]>>>>) -> Self {
        if sets.len() <= SETS_MAX {
            return Self { columns, sets };
        }
        let all = sets.iter().flat_map(|set| set.iter().cloned()).collect();
        Self { columns, sets: vec![Arc::new(all)] }
    }
}

/// The columns of equality deletes.
#[derive(Debug)]
pub(super) struct KeyColumns {
    columns: Vec<KeyColumn>,
    converter: RowConverter,
}

/// A column, maybe inside of structs.
#[derive(Debug)]
struct KeyColumn {
    /// The top-level column that it is in.
    top: FieldRef,
    /// Field ids from there down to it; empty for the top-level column itself.
    path: Vec<i32>,
    data_type: DataType,
}

impl KeyColumns {
    /// The columns `field_ids`, of any schema that `table` has or had.
    pub(super) fn of(table: &Table, field_ids: &[i32]) -> Result<Self> {
        let mut columns = Vec::with_capacity(field_ids.len());
        for id in field_ids {
            columns.push(key_column(table, *id)?);
        }
        let fields = columns.iter().map(|column| SortField::new(column.data_type.clone()));
        let converter = RowConverter::new(fields.collect()).map_err(|source| {
            Error::unsupported(format!(
                "table {}: equality deletes cannot be applied",
                table.ident()
            ))
            .with_source(source)
        })?;
        Ok(Self { columns, converter })
    }

    /// The top-level columns to be read.
    pub(super) fn schema(&self) -> SchemaRef {
        let mut fields: Vec<FieldRef> = Vec::new();
        for column in &self.columns {
            if !fields.iter().any(|field| id_of(field) == id_of(&column.top)) {
                // A delete file holds no more of a struct than it needs.
                fields.push(Arc::new(column.top.as_ref().clone().with_nullable(true)));
            }
        }
        Arc::new(Schema::new(fields))
    }

    /// Columns and their types, for the key of a cache.
    pub(super) fn text(&self) -> String {
        let column = |column: &KeyColumn| {
            let id = column.path.last().copied().or_else(|| id_of(&column.top)).unwrap_or_default();
            format!("{id} {}", column.data_type)
        };
        self.columns.iter().map(column).collect::<Vec<_>>().join(",")
    }

    /// Calls `see` with the key of each row of `batch`.
    pub(super) fn for_each_key(
        &self,
        batch: &RecordBatch,
        mut see: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let arrays: Vec<ArrayRef> =
            self.columns.iter().map(|column| column.array(batch)).collect::<Result<_>>()?;
        let keys = self.converter.convert_columns(&arrays).map_err(|source| {
            Error::internal("values cannot be compared with deletes").with_source(source)
        })?;
        keys.iter().enumerate().for_each(|(row, key)| see(row, key.as_ref()));
        Ok(())
    }
}

impl KeyColumn {
    fn array(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let missing = || {
            let name = self.top.name();
            Error::internal(format!("column {name:?} of equality deletes was not read"))
        };
        let wanted = id_of(&self.top);
        let schema = batch.schema_ref();
        let at = schema.fields().iter().position(|field| id_of(field) == wanted);
        let mut array = batch.column(at.ok_or_else(missing)?).clone();
        for id in &self.path {
            let parent = array.as_struct_opt().ok_or_else(missing)?;
            let at = parent.fields().iter().position(|field| id_of(field) == Some(*id));
            array = child_of(parent, at.ok_or_else(missing)?);
        }
        Ok(one_nan(array))
    }
}

/// A struct's child, NULL where the struct is.
fn child_of(parent: &StructArray, at: usize) -> ArrayRef {
    let child = parent.column(at);
    let nulls = NullBuffer::union(parent.nulls(), child.nulls());
    let data = child.to_data().into_builder().nulls(nulls).build();
    data.map(arrow_array::make_array).unwrap_or_else(|_| child.clone())
}

/// All NaNs are one.
fn one_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Arc::new(values.unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v }))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v }))
        }
        _ => array,
    }
}

/// Finds a column by field id: in the current schema, else in the newest one that has it.
fn key_column(table: &Table, id: i32) -> Result<KeyColumn> {
    let metadata = table.metadata();
    let mut older: Vec<_> = metadata.schemas_iter().collect();
    older.sort_by_key(|schema| std::cmp::Reverse(schema.schema_id()));
    let current = table.schema();
    let mut found = current.fields().iter().find_map(|top| find(top, id));
    for schema in older {
        if found.is_some() {
            break;
        }
        // A schema with types that cannot be read is no help.
        let Ok(fields) = schema::to_arrow(schema) else { continue };
        found = fields.fields().iter().find_map(|top| find(top, id));
    }
    found.ok_or_else(|| {
        Error::corrupt(format!(
            "table {}: equality deletes name a column that it never had",
            table.ident()
        ))
        .with_detail(format!("field id {id}"))
    })
}

fn find(top: &FieldRef, id: i32) -> Option<KeyColumn> {
    let mut path = Vec::new();
    let data_type = descend(top, id, &mut path)?;
    Some(KeyColumn { top: top.clone(), path, data_type })
}

/// The type of the field `id` in or under `field`; `path` gets the ids below `field`.
fn descend(field: &Field, id: i32, path: &mut Vec<i32>) -> Option<DataType> {
    if id_of(field) == Some(id) {
        return Some(field.data_type().clone());
    }
    let DataType::Struct(children) = field.data_type() else { return None };
    for child in children {
        path.push(id_of(child)?);
        if let Some(found) = descend(child, id, path) {
            return Some(found);
        }
        path.pop();
    }
    None
}

fn id_of(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}
