//! Nested columns, with and without field ids inside.
//!
//! The table layer marks every field with its Iceberg id, also those inside lists, structs and
//! maps. To the engine a list is equal to another only if its element field is, metadata and all,
//! so inside the engine nested fields carry none; they get theirs back where rows are written.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

/// `schema` without metadata on fields inside of columns; columns keep theirs.
pub(crate) fn engine_schema(schema: &Schema) -> SchemaRef {
    let column = |field: &FieldRef| {
        let data_type = without_metadata(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    Arc::new(Schema::new(schema.fields().iter().map(column).collect::<Vec<_>>()))
}

/// `batch` with the column types of `schema`, which differ in nested metadata only.
///
/// # Errors
/// A NULL in a column that has none by `schema`; types that differ in more.
pub(crate) fn retype(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        }
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

fn without_metadata(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| {
        let data_type = without_metadata(field.data_type());
        Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
    };
    match data_type {
        DataType::List(field) => DataType::List(inner(field)),
        DataType::LargeList(field) => DataType::LargeList(inner(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(inner(field), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(field, sorted) => DataType::Map(inner(field), *sorted),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn list_of(element: Field) -> SchemaRef {
        let list = DataType::List(Arc::new(element));
        Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("list", list, true),
        ]))
    }

    #[test]
    fn ids_inside_of_columns_go_and_come_back() {
        let plain = Field::new("element", DataType::Int64, true);
        let marked = plain.clone().with_metadata([("id".to_owned(), "3".to_owned())].into());
        let (plain, marked) = (list_of(plain), list_of(marked));
        assert_eq!(engine_schema(&marked), plain);

        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None])]);
        let list = cast(&list, plain.field(1).data_type()).unwrap();
        let ids = Arc::new(Int64Array::from(vec![7]));
        let batch = RecordBatch::try_new(Arc::clone(&plain), vec![ids, list]).unwrap();
        let there = retype(batch.clone(), &marked).unwrap();
        assert_eq!(there.schema(), marked);
        assert_eq!(retype(there, &plain).unwrap(), batch);
    }
}
