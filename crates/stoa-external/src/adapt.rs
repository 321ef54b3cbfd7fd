//! Arrays as a file has them to arrays as the table has them.
//!
//! What a file holds in another type is converted as Hive converts it: a value that does not fit is NULL. Types
//! between which there is no conversion are an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    new_null_array,
};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use stoa_error::{Error, Place, Result};

/// How columns of `wanted` are found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// By name, whatever its case.
    Name,
    /// The files' columns are `_col0`, `_col1`, …: by place.
    Place,
}

impl Matching {
    /// How columns of an ORC file are found: Hive wrote some without their names.
    pub(crate) fn of(schema: &Schema) -> Self {
        let is_nameless = |(at, field): (usize, &FieldRef)| *field.name() == format!("_col{at}");
        match schema.fields().iter().enumerate().all(is_nameless) {
            true => Self::Place,
            false => Self::Name,
        }
    }

    /// The places in a file of the columns `wanted`, which are at `places` among those of the table's files.
    pub(crate) fn find(
        self,
        file: &Schema,
        wanted: &Schema,
        places: &[usize],
    ) -> Vec<Option<usize>> {
        let find = |(field, place): (&FieldRef, &usize)| match self {
            Self::Place => Some(*place).filter(|place| *place < file.fields().len()),
            Self::Name => named(file.fields(), field.name()),
        };
        wanted.fields().iter().zip(places).map(find).collect()
    }
}

fn named(fields: &[FieldRef], name: &str) -> Option<usize> {
    let exact = fields.iter().position(|field| field.name() == name);
    exact.or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
}

/// A batch of `schema` from a file's arrays; `from` says which of `arrays` each column is, `None` is NULL.
pub(crate) fn batch(
    schema: &SchemaRef,
    from: &[Option<usize>],
    arrays: &[ArrayRef],
    rows: usize,
) -> Result<RecordBatch> {
    let column = |(field, at): (&FieldRef, &Option<usize>)| match at.and_then(|at| arrays.get(at)) {
        Some(array) => adapt(array, field),
        None => Ok(new_null_array(field.data_type(), rows)),
    };
    let columns = schema.fields().iter().zip(from).map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|e| Error::corrupt("a file's rows are not those of the table").with_source(e))
}

fn adapt(array: &ArrayRef, to: &Field) -> Result<ArrayRef> {
    if array.data_type() == to.data_type() {
        return Ok(Arc::clone(array));
    }
    let made = |made: std::result::Result<ArrayRef, arrow_schema::ArrowError>| {
        made.map_err(|e| cannot(array.data_type(), to).with_source(e))
    };
    match (array.data_type(), to.data_type()) {
        (DataType::Struct(own), DataType::Struct(wanted)) => {
            let array = array.as_struct();
            let column = |field: &FieldRef| match named(own, field.name()) {
                Some(at) => adapt(array.column(at), field),
                None => Ok(new_null_array(field.data_type(), array.len())),
            };
            let columns = wanted.iter().map(column).collect::<Result<Vec<_>>>()?;
            let nulls = array.nulls().cloned();
            let of = StructArray::try_new_with_length(wanted.clone(), columns, nulls, array.len());
            made(of.map(|of| Arc::new(of) as ArrayRef))
        }
        (DataType::List(_), DataType::List(item)) => {
            let array = array.as_list::<i32>();
            let values = adapt(array.values(), item)?;
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            let of = ListArray::try_new(Arc::clone(item), offsets, values, nulls);
            made(of.map(|of| Arc::new(of) as ArrayRef))
        }
        (DataType::Map(..), DataType::Map(entries, sorted)) => {
            map(array.as_map(), entries, *sorted)
        }
        (own, wanted) if !own.is_nested() && !wanted.is_nested() && can_cast_types(own, wanted) => {
            let options = CastOptions { safe: true, ..CastOptions::default() };
            made(cast_with_options(array, wanted, &options))
        }
        (own, _) => Err(cannot(own, to)),
    }
}

/// Whether all values of the file's type are values of the table's.
pub(crate) fn fits(own: &DataType, wanted: &DataType) -> bool {
    let bytes = |of: &DataType| of.is_signed_integer().then(|| of.primitive_width()).flatten();
    own == wanted || bytes(own).zip(bytes(wanted)).is_some_and(|(own, wanted)| own <= wanted)
}

fn map(array: &MapArray, entries: &FieldRef, sorted: bool) -> Result<ArrayRef> {
    let wrong = || cannot(array.data_type(), entries);
    let DataType::Struct(pair) = entries.data_type() else { return Err(wrong()) };
    let [key, value] = pair.as_ref() else { return Err(wrong()) };
    let columns = vec![adapt(array.keys(), key)?, adapt(array.values(), value)?];
    let pairs =
        StructArray::try_new(pair.clone(), columns, None).map_err(|e| wrong().with_source(e))?;
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    let of = MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, sorted);
    of.map(|of| Arc::new(of) as ArrayRef).map_err(|e| wrong().with_source(e))
}

fn cannot(own: &DataType, to: &Field) -> Error {
    Error::unsupported(format!("the file has {own}, the table {}", to.data_type()))
        .with_sqlstate("42804")
        .with_hint("define the table with the types of its files")
        .at(Place::Field(to.name().clone()))
}

/// A narrower type than the one in which a column's values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// An integer of two bytes: others are NULL.
    Short,
    /// A text of so many characters: further ones are cut off.
    Characters(usize),
}

/// `array` within a limit.
pub(crate) fn limited(array: ArrayRef, limit: Option<Limit>) -> ArrayRef {
    match limit {
        Some(Limit::Short) if *array.data_type() == DataType::Int32 => {
            let fits = |value: i32| i16::try_from(value).is_ok();
            let values = array.as_primitive::<Int32Type>();
            if values.iter().flatten().all(fits) {
                return array;
            }
            let values = values.iter().map(|value| value.filter(|value| fits(*value)));
            Arc::new(values.collect::<arrow_array::Int32Array>())
        }
        Some(Limit::Characters(most)) if *array.data_type() == DataType::Utf8 => {
            let cut = |text: &str| text.char_indices().nth(most).map(|(at, _)| at);
            let values = array.as_string::<i32>();
            if values.iter().flatten().all(|text| cut(text).is_none()) {
                return array;
            }
            let values =
                values.iter().map(|text| text.map(|text| &text[..cut(text).unwrap_or(text.len())]));
            Arc::new(values.collect::<arrow_array::StringArray>())
        }
        _ => array,
    }
}
