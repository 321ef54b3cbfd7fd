//! Results in the Arrow types that every client reads: no views, no dictionaries.
//!
//! In: columns as the engine has them. Out: the same values in plain types.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use stoa_error::{Error, Result};

/// `schema` in plain types, nested ones too.
pub fn plain_schema(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// `batch` with the columns that were announced: in number those of `schema`, in type what casts to
/// them without a loss.
///
/// # Errors
/// `Unsupported` (0A000) where the columns are others than `schema` says; a value that is not one of
/// the type that was announced (22003).
pub fn plain_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        return Err(changed());
    }
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => exactly(column, field.data_type()),
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|source| changed().with_source(source))
}

/// A column in another type, each value the same.
fn exactly(column: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |column: &ArrayRef, to: &DataType| {
        cast_with_options(column, to, &strict).map_err(|source| changed().with_source(source))
    };
    let result = cast(column, to)?;
    let own = column.data_type();
    if own.is_numeric() && to.is_numeric() && cast(&result, own)?.as_ref() != column.as_ref() {
        return Err(Error::invalid("a value does not fit the type that was described")
            .with_sqlstate("22003")
            .with_hint("cast the statement's parameters"));
    }
    Ok(result)
}

fn changed() -> Error {
    Error::unsupported("the result has other columns than were described")
        .with_hint("prepare the statement again, or cast its parameters")
}

fn plain_field(field: &FieldRef) -> Field {
    field.as_ref().clone().with_data_type(plain_type(field.data_type()))
}

fn plain_type(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| Arc::new(plain_field(field));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item) | DataType::ListView(item) => DataType::List(inner(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(inner(item))
        }
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(inner(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, DictionaryArray, Int64Array, StringArray, StringViewArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn views_and_dictionaries_become_plain() {
        let words: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        let views = StringViewArray::from(vec!["x", "a longer text than fits inline", "y"]);
        let schema = Schema::new(vec![
            Field::new("word", words.data_type().clone(), false),
            Field::new("view", DataType::Utf8View, false),
        ]);
        let batch = RecordBatch::try_new(
            Arc::new(schema.clone()),
            vec![Arc::new(words), Arc::new(views.clone())],
        );
        let told = plain_schema(&schema);
        let plain = plain_batch(&batch.unwrap(), &told).unwrap();
        assert_eq!(plain.column(0).as_ref(), &StringArray::from(vec!["a", "b", "a"]));
        assert_eq!(plain.column(1).data_type(), &DataType::Utf8);

        let other = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let numbers = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_new(Arc::new(other), vec![numbers]).unwrap();
        assert_eq!(plain_batch(&batch, &told).unwrap_err().sqlstate(), "0A000");
    }
}
