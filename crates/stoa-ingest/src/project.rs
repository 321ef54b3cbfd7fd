//! Rows of an older schema as rows of the current one, by field id (Iceberg: column projection).
//!
//! Renamed columns keep their values, dropped ones go, added ones are NULL, promoted ones are
//! widened; the same inside structs, lists and maps.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, SchemaRef};
use stoa_error::{Error, Result};
use stoa_table::FIELD_ID_KEY;

/// `batch` with the columns of `schema`; both carry field ids.
///
/// # Errors
/// `Internal` where a value cannot become one of the current type, which Iceberg's rules for
/// changing a schema exclude.
pub(crate) fn project(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let failed = |source: ArrowError| {
        Error::internal("rows of an older schema do not fit the current one").with_source(source)
    };
    let from = batch.schema();
    let columns = fields(from.fields(), batch.columns(), schema.fields(), batch.num_rows());
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(schema.clone(), columns, &options))
        .map_err(failed)
}

/// The columns `to`, made from `arrays` with the fields `from`, all of length `rows`.
fn fields(
    from: &Fields,
    arrays: &[ArrayRef],
    to: &Fields,
    rows: usize,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let by_id: HashMap<&str, (&FieldRef, &ArrayRef)> = from
        .iter()
        .zip(arrays)
        .filter_map(|(field, array)| Some((id(field)?, (field, array))))
        .collect();
    to.iter()
        .map(|field| match id(field).and_then(|id| by_id.get(id)) {
            Some((_, array)) => value(array, field.data_type()),
            None => Ok(new_null_array(field.data_type(), rows)),
        })
        .collect()
}

fn value(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), to) {
        (from, to) if from == to => Ok(array.clone()),
        (DataType::Struct(from), DataType::Struct(to)) => {
            let array = array.as_struct();
            structure(from, array, to, array.nulls().cloned()).map(|array| Arc::new(array) as _)
        }
        (DataType::List(_), DataType::List(element)) => {
            let list: &ListArray = array.as_list();
            let values = value(list.values(), element.data_type())?;
            let offsets = list.offsets().clone();
            let list = ListArray::try_new(element.clone(), offsets, values, list.nulls().cloned());
            list.map(|list| Arc::new(list) as _)
        }
        (DataType::Map(_, _), DataType::Map(entries, sorted)) => {
            let map: &MapArray = array.as_map();
            let pairs = value(&(Arc::new(map.entries().clone()) as _), entries.data_type())?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            let pairs = pairs.as_struct().clone();
            let map = MapArray::try_new(entries.clone(), offsets, pairs, nulls, *sorted);
            map.map(|map| Arc::new(map) as _)
        }
        (_, to) => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, to, &options)
        }
    }
}

fn structure(
    from: &Fields,
    array: &StructArray,
    to: &Fields,
    nulls: Option<NullBuffer>,
) -> Result<StructArray, ArrowError> {
    let columns = fields(from, array.columns(), to, array.len())?;
    StructArray::try_new(to.clone(), columns, nulls)
}

fn id(field: &Field) -> Option<&str> {
    field.metadata().get(FIELD_ID_KEY).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, Int64Array, StringArray};
    use arrow_schema::Schema;

    use super::*;

    fn field(id: u32, name: &str, data_type: DataType) -> Field {
        let metadata = HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]);
        Field::new(name, data_type, true).with_metadata(metadata)
    }

    fn schema(fields: Vec<Field>) -> SchemaRef {
        Arc::new(Schema::new(fields))
    }

    #[test]
    fn columns_are_found_by_id_and_widened() {
        let old = schema(vec![
            field(1, "a", DataType::Int32),
            field(2, "b", DataType::Utf8),
            field(3, "c", DataType::Int64),
        ]);
        let batch = RecordBatch::try_new(
            old,
            vec![
                Arc::new(Int32Array::from(vec![Some(1), None])),
                Arc::new(StringArray::from(vec!["x", "y"])),
                Arc::new(Int64Array::from(vec![5, 6])),
            ],
        )
        .unwrap();
        // b is renamed and moved, a widened, c dropped and another c added.
        let new = schema(vec![
            field(2, "z", DataType::Utf8),
            field(1, "a", DataType::Int64),
            field(4, "c", DataType::Int64),
        ]);
        let expected = RecordBatch::try_new(
            new.clone(),
            vec![
                Arc::new(StringArray::from(vec!["x", "y"])),
                Arc::new(Int64Array::from(vec![Some(1), None])),
                Arc::new(Int64Array::from(vec![None, None])),
            ],
        )
        .unwrap();
        assert_eq!(project(&batch, &new).unwrap(), expected);
    }

    #[test]
    fn fields_inside_of_columns_too() {
        let structure = |fields: Vec<Field>| {
            let inner = field(2, "element", DataType::Struct(fields.into()));
            schema(vec![field(1, "list", DataType::List(Arc::new(inner)))])
        };
        let old = structure(vec![field(3, "x", DataType::Int32)]);
        let new = structure(vec![field(4, "y", DataType::Utf8), field(3, "x", DataType::Int64)]);
        let list_of = |schema: &SchemaRef, columns: Vec<ArrayRef>| {
            let DataType::List(element) = schema.field(0).data_type() else { panic!("no list") };
            let DataType::Struct(fields) = element.data_type() else { panic!("no struct") };
            let values = StructArray::new(fields.clone(), columns, None);
            let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
            let list = ListArray::new(element.clone(), offsets, Arc::new(values), None);
            RecordBatch::try_new(schema.clone(), vec![Arc::new(list)]).unwrap()
        };
        let before = list_of(&old, vec![Arc::new(Int32Array::from(vec![1, 2, 3]))]);
        let after = list_of(
            &new,
            vec![
                Arc::new(StringArray::from(vec![None::<&str>; 3])),
                Arc::new(Int64Array::from(vec![1, 2, 3])),
            ],
        );
        assert_eq!(project(&before, &new).unwrap(), after);
    }
}
