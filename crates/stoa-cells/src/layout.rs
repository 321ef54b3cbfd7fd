//! How cells lie in a table: its columns, its properties, and batches from one form to the other.
//!
//! | column | Iceberg | holds |
//! |---|---|---|
//! | `row` | string | the row key, if it is UTF-8 |
//! | `family` | int | the family's id, 0–255 |
//! | `qualifier` | binary | the column qualifier |
//! | `timestamp` | long | nanoseconds since 1970-01-01 UTC |
//! | `value` | binary | the value |
//! | `kind` | int | 255 for a value, 0–3 for markers |
//! | `row_bytes` | binary | a row key that is not UTF-8; then `row` is NULL |
//! | `revision` | long | when the cell was written, where its timestamp was given by hand, else NULL |
//!
//! Rows are strings because ORC keeps minima and maxima of strings but not of binary columns: files,
//! stripes and row groups are left out by row in every engine. Row keys that are no text come last in
//! a file, in a column of their own, so that nothing is refused and ordinary tables pay nothing.
//!
//! Sorted by `row` (NULL last), `row_bytes`, `family`, `qualifier`, `timestamp` from newest to
//! oldest, `kind`, and the highest `revision` first. Within the rows that are text, and within those
//! that are not, this is the order of cells.
//!
//! Not here: which cells are seen (`stoa-hql`), names (`names`).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, Result};
use stoa_hql::batch::{FAMILY, KIND, QUALIFIER, ROW, TIMESTAMP, VALUE};
use stoa_hql::{CellBatch, CellColumns, TableSchema};
use stoa_table::{FIELD_ID_KEY, SortTerm, Table, TableSpec, Transform};

/// Table property that says what kind of table it is; [`KIND_CELLS`] for tables of cells.
pub const KIND_PROPERTY: &str = "stoa.kind";
/// The value of [`KIND_PROPERTY`] of tables of cells.
pub const KIND_CELLS: &str = "cells";
/// Table property with the [`TableSchema`] as JSON.
pub const SCHEMA_PROPERTY: &str = "stoa.cells.schema";
/// Name of the column with row keys that are not UTF-8.
pub const ROW_BYTES: &str = "row_bytes";
/// Name of the column that tells when a cell with a given timestamp was written.
pub const REVISION: &str = "revision";

/// Properties of new tables beside their schema: stripes small enough that many files can be read at a
/// time, blocks and row groups small enough for single rows, and a bloom filter over rows. Row keys have
/// no dictionary: who looks for one row would read the keys of a whole stripe.
const DEFAULTS: [(&str, &str); 6] = [
    ("write.orc.stripe-size-bytes", "4194304"),
    ("stoa.orc.compression-block-bytes", "32768"),
    ("stoa.orc.dictionary", "never"),
    ("stoa.orc.row-index-stride", "2000"),
    ("stoa.orc.compression-level", "1"),
    ("write.orc.bloom.filter.columns", ROW),
];

/// A table to be made for cells of `schema`.
pub(crate) fn spec(schema: &TableSchema) -> Result<TableSpec> {
    let field = |name: &str, kind, nullable| Field::new(name, kind, nullable);
    let columns = Schema::new(vec![
        field(ROW, DataType::Utf8, true),
        field(FAMILY, DataType::Int32, false),
        field(QUALIFIER, DataType::Binary, false),
        field(TIMESTAMP, DataType::Int64, false),
        field(VALUE, DataType::Binary, false),
        field(KIND, DataType::Int32, false),
        field(ROW_BYTES, DataType::Binary, true),
        field(REVISION, DataType::Int64, true),
    ]);
    let defaults = DEFAULTS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let mut properties: BTreeMap<String, String> = defaults.collect();
    properties.insert(KIND_PROPERTY.to_owned(), KIND_CELLS.to_owned());
    properties.insert(SCHEMA_PROPERTY.to_owned(), schema_text(schema)?);
    Ok(TableSpec { sort_by: order(), properties, ..TableSpec::new(Arc::new(columns)) })
}

fn order() -> Vec<SortTerm> {
    let term = |column: &str, descending, nulls_first| SortTerm {
        column: column.to_owned(),
        transform: Transform::Identity,
        descending,
        nulls_first,
    };
    vec![
        term(ROW, false, false),
        term(ROW_BYTES, false, true),
        term(FAMILY, false, true),
        term(QUALIFIER, false, true),
        term(TIMESTAMP, true, false),
        term(KIND, false, true),
        term(REVISION, true, false),
    ]
}

/// The property that keeps `schema`.
pub(crate) fn schema_text(schema: &TableSchema) -> Result<String> {
    serde_json::to_string(schema)
        .map_err(|source| Error::internal("a schema cannot be written as JSON").with_source(source))
}

/// The schema of a table of cells; none if the table is of another kind.
///
/// # Errors
/// [`Corrupt`](stoa_error::ErrorKind::Corrupt) if the table says that it holds cells, but its schema
/// cannot be read.
pub fn schema_of(table: &Table) -> Result<Option<Arc<TableSchema>>> {
    if table.property(KIND_PROPERTY) != Some(KIND_CELLS) {
        return Ok(None);
    }
    let corrupt = |what: &str| {
        Error::corrupt(format!("table {}: {what}", table.ident()))
            .with_hint(format!("restore its property {SCHEMA_PROPERTY}"))
    };
    let text = table.property(SCHEMA_PROPERTY).ok_or_else(|| corrupt("it has no HQL schema"))?;
    let schema: TableSchema = serde_json::from_str(text)
        .map_err(|source| corrupt("its HQL schema cannot be read").with_source(source))?;
    Ok(Some(Arc::new(schema)))
}

/// The columns of one table.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    schema: SchemaRef,
}

impl Layout {
    /// The columns of `table`.
    ///
    /// # Errors
    /// [`Corrupt`](stoa_error::ErrorKind::Corrupt) if they are not those of a table of cells.
    pub(crate) fn of(table: &Table) -> Result<Self> {
        let schema = table.schema();
        let wanted = spec(&TableSchema::default())?.schema;
        let alike = |field: &Arc<Field>| {
            let found = schema.field_with_name(field.name());
            found.is_ok_and(|found| found.data_type() == field.data_type())
        };
        if schema.fields().len() == wanted.fields().len() && wanted.fields().iter().all(alike) {
            return Ok(Self { schema });
        }
        Err(Error::corrupt(format!("table {} has not the columns of cells", table.ident()))
            .with_hint("restore the columns that it was made with"))
    }

    /// All columns with their field ids.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The field id of a column.
    pub(crate) fn id(&self, column: &str) -> Result<i32> {
        let field = self.schema.field_with_name(column).ok();
        let id = field.and_then(|field| field.metadata().get(FIELD_ID_KEY)?.parse().ok());
        id.ok_or_else(|| Error::internal(format!("column {column} of cells has no field id")))
    }

    /// Cells as rows of the table.
    pub(crate) fn to_rows(&self, cells: &CellBatch) -> Result<RecordBatch> {
        let columns = cells.columns();
        let (text, bytes) = split_rows(columns.rows)?;
        let column = |field: &Arc<Field>| -> Result<ArrayRef> {
            Ok(match field.name().as_str() {
                ROW => text.clone(),
                ROW_BYTES => bytes.clone(),
                FAMILY => Arc::new(columns.families.clone()),
                QUALIFIER => Arc::new(columns.qualifiers.clone()),
                TIMESTAMP => Arc::new(columns.timestamps.clone()),
                VALUE => Arc::new(columns.values.clone()),
                KIND => Arc::new(columns.kinds.clone()),
                REVISION => match &columns.revisions {
                    Some(revisions) => Arc::new(given(revisions, &columns.timestamps)),
                    None => new_null_array(&DataType::Int64, text.len()),
                },
                other => return Err(Error::internal(format!("cells have no column {other}"))),
            })
        };
        let arrays = self.schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|source| Error::internal("cells do not fit their table").with_source(source))
    }
}

/// Row keys as text and as bytes: each is NULL in one of both.
fn split_rows(rows: BinaryArray) -> Result<(ArrayRef, ArrayRef)> {
    let none = new_null_array(&DataType::Binary, rows.len());
    let (offsets, data, _) = rows.clone().into_parts();
    if let Ok(text) = StringArray::try_new(offsets, data, None) {
        return Ok((Arc::new(text), none));
    }
    let texts = || rows.iter().map(|row| std::str::from_utf8(row?).ok());
    let text: StringArray = texts().collect();
    let bytes: BinaryArray =
        rows.iter().zip(texts()).map(|(row, text)| row.filter(|_| text.is_none())).collect();
    Ok((Arc::new(text), Arc::new(bytes)))
}

/// Rows of a table as cells. `row_bytes` and `revision` may be left out where they are all NULL, and
/// `value` where nobody wants it.
///
/// # Errors
/// [`Corrupt`](stoa_error::ErrorKind::Corrupt) if they are no cells.
pub(crate) fn to_cells(batch: &RecordBatch) -> Result<CellBatch> {
    let column = |name: &str| {
        batch.column_by_name(name).ok_or_else(|| corrupt(&format!("they have no column {name}")))
    };
    let binary = |name: &str| -> Result<BinaryArray> {
        let array = column(name)?.as_binary_opt::<i32>();
        array.cloned().ok_or_else(|| corrupt(&format!("column {name} is not binary")))
    };
    let integers = |name: &str| {
        let array = column(name)?.as_primitive_opt::<Int32Type>();
        array.cloned().ok_or_else(|| corrupt(&format!("column {name} holds no integers")))
    };
    let longs = |name: &str| {
        let array = column(name)?.as_primitive_opt::<Int64Type>();
        array.cloned().ok_or_else(|| corrupt(&format!("column {name} holds no long integers")))
    };
    let timestamps = longs(TIMESTAMP)?;
    let revisions = match batch.column_by_name(REVISION) {
        Some(array) if array.null_count() < array.len() => {
            Some(filled(&longs(REVISION)?, &timestamps))
        }
        _ => None,
    };
    let values = match batch.column_by_name(VALUE) {
        Some(_) => binary(VALUE)?,
        None => BinaryArray::new_repeated(b"", batch.num_rows()),
    };
    CellBatch::of_columns(CellColumns {
        rows: join_rows(column(ROW)?, batch.column_by_name(ROW_BYTES))?,
        families: integers(FAMILY)?,
        qualifiers: binary(QUALIFIER)?,
        timestamps,
        values,
        kinds: integers(KIND)?,
        revisions,
    })
}

/// Whether rows have the columns of cells.
pub(crate) fn is_cells(rows: &RecordBatch) -> bool {
    let columns = [ROW, ROW_BYTES, FAMILY, QUALIFIER, TIMESTAMP, VALUE, KIND, REVISION];
    columns.iter().all(|column| rows.column_by_name(column).is_some())
}

/// Whether all row keys are text.
pub(crate) fn all_text(rows: &RecordBatch) -> bool {
    rows.column_by_name(ROW).is_some_and(|rows| rows.null_count() == 0)
}

/// The revisions of cells whose timestamps were given by hand.
fn given(revisions: &Int64Array, timestamps: &Int64Array) -> Int64Array {
    let (revisions, timestamps) = (revisions.values(), timestamps.values());
    let own = BooleanBuffer::collect_bool(revisions.len(), |at| revisions[at] != timestamps[at]);
    Int64Array::new(revisions.clone(), Some(NullBuffer::new(own)))
}

/// The revisions, with the timestamps where there are none.
fn filled(revisions: &Int64Array, timestamps: &Int64Array) -> Int64Array {
    if revisions.null_count() == 0 {
        return revisions.clone();
    }
    let pairs = revisions.iter().zip(timestamps.values());
    pairs.map(|(revision, timestamp)| revision.unwrap_or(*timestamp)).collect()
}

fn join_rows(text: &ArrayRef, bytes: Option<&ArrayRef>) -> Result<BinaryArray> {
    let text = text.as_string_opt::<i32>().ok_or_else(|| corrupt("column row is no text"))?;
    if text.null_count() == 0 {
        let (offsets, data, _) = text.clone().into_parts();
        return BinaryArray::try_new(offsets, data, None)
            .map_err(|source| corrupt("column row is broken").with_source(source));
    }
    let bytes = bytes.and_then(|bytes| bytes.as_binary_opt::<i32>());
    let bytes = bytes.ok_or_else(|| corrupt("a row key is NULL"))?;
    let pairs = text.iter().zip(bytes.iter());
    Ok(pairs.map(|(text, bytes)| text.map(str::as_bytes).or(bytes)).collect())
}

fn corrupt(what: &str) -> Error {
    Error::corrupt(format!("rows of a table of cells are no cells: {what}"))
}

#[cfg(test)]
mod tests {
    use stoa_hql::{CellBatchBuilder, CellRef};

    use super::*;

    fn layout() -> Layout {
        Layout { schema: spec(&TableSchema::default()).unwrap().schema }
    }

    fn check(cells: &CellBatch) -> RecordBatch {
        let rows = layout().to_rows(cells).unwrap();
        let back = to_cells(&rows).unwrap();
        assert!(cells.iter().eq(back.iter()));
        rows
    }

    #[test]
    fn cells_come_back_as_they_were() {
        let mut builder = CellBatchBuilder::new();
        builder.push(CellRef::insert("zürich".as_bytes(), 1, b"q", 5, b"\xff")).unwrap();
        let text = builder.finish();
        let rows = check(&text);
        assert_eq!(rows.column_by_name(ROW_BYTES).unwrap().null_count(), 1);
        assert_eq!(rows.column_by_name(REVISION).unwrap().null_count(), 1);

        builder.append(&text, 0..1, false).unwrap();
        let given = CellRef { revision: 9, ..CellRef::insert(b"\xc3(", 2, b"\xff", 5, b"v") };
        builder.push(given).unwrap();
        let rows = check(&builder.finish());
        assert_eq!(rows.column_by_name(ROW).unwrap().null_count(), 1);
        assert_eq!(rows.column_by_name(ROW_BYTES).unwrap().null_count(), 1);
        assert_eq!(rows.column_by_name(REVISION).unwrap().null_count(), 1);
    }

    #[test]
    fn rows_that_are_no_cells_are_refused() {
        let mut builder = CellBatchBuilder::new();
        builder.push(CellRef::insert(b"r", 1, b"q", 5, b"v")).unwrap();
        let rows = layout().to_rows(&builder.finish()).unwrap();
        assert!(to_cells(&rows.project(&[0, 1, 2]).unwrap()).is_err());
        let mut columns = rows.columns().to_vec();
        columns[0] = new_null_array(&DataType::Utf8, 1);
        let without_row = RecordBatch::try_new(rows.schema(), columns).unwrap();
        assert!(to_cells(&without_row).is_err());
    }
}
