//! Builds a batch column by column, for tables whose columns and rows are written in one place.

use std::sync::Arc;

use arrow::array::builder::{Int16Builder, Int32Builder, ListBuilder, StringBuilder};
use arrow::array::{
    Array, ArrayRef, BooleanArray, Float32Array, Int16Array, Int32Array, ListArray, RecordBatch,
    RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::error::Result as EngineResult;
use datafusion_pg_catalog::pg_catalog::oid_field::OID_ALIAS_KEY;

/// Field metadata that marks a text as PostgreSQL's one-byte `"char"`.
const CHAR_KEY: &str = "pg.char";

/// Field metadata that marks a list as `int2vector` or `oidvector`.
const VECTOR_KEY: &str = "pg.vector";

/// Columns of `rows` rows each.
pub(super) struct Batch {
    rows: usize,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Batch {
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, fields: Vec::new(), arrays: Vec::new() }
    }

    fn push(mut self, field: Field, array: impl Array + 'static) -> Self {
        self.fields.push(field);
        self.arrays.push(Arc::new(array));
        self
    }

    /// A column of OIDs; `kind` is `oid`, `regclass`, ….
    pub(super) fn oid(self, name: &str, kind: &str, values: impl Iterator<Item = i32>) -> Self {
        let field = Field::new(name, DataType::Int32, true)
            .with_metadata([(OID_ALIAS_KEY.to_owned(), kind.to_owned())].into());
        self.push(field, Int32Array::from_iter_values(values))
    }

    /// The same OID in all rows.
    pub(super) fn oid_const(self, name: &str, kind: &str, value: i32) -> Self {
        let rows = self.rows;
        self.oid(name, kind, std::iter::repeat_n(value, rows))
    }

    pub(super) fn int4(self, name: &str, values: impl Iterator<Item = i32>) -> Self {
        self.push(Field::new(name, DataType::Int32, true), Int32Array::from_iter_values(values))
    }

    pub(super) fn int4_const(self, name: &str, value: i32) -> Self {
        let rows = self.rows;
        self.int4(name, std::iter::repeat_n(value, rows))
    }

    pub(super) fn int2(self, name: &str, values: impl Iterator<Item = i16>) -> Self {
        self.push(Field::new(name, DataType::Int16, true), Int16Array::from_iter_values(values))
    }

    pub(super) fn int2_const(self, name: &str, value: i16) -> Self {
        let rows = self.rows;
        self.int2(name, std::iter::repeat_n(value, rows))
    }

    /// Lists of small numbers; an empty list is NULL.
    pub(super) fn int2_lists(self, name: &str, lists: impl Iterator<Item = Vec<i16>>) -> Self {
        let mut builder = ListBuilder::new(Int16Builder::new());
        for list in lists {
            list.iter().for_each(|number| builder.values().append_value(*number));
            builder.append(!list.is_empty());
        }
        let array: ListArray = builder.finish();
        self.push(Field::new(name, array.data_type().clone(), true), array)
    }

    /// `int2vector`s of small numbers, whose places clients count from 0.
    pub(super) fn int2_vectors(self, name: &str, lists: impl Iterator<Item = Vec<i16>>) -> Self {
        let mut batch = self.int2_lists(name, lists);
        if let Some(field) = batch.fields.last_mut() {
            field.set_metadata([(VECTOR_KEY.to_owned(), "int2vector".to_owned())].into());
        }
        batch
    }

    /// `oidvector`s of zeros.
    pub(super) fn zero_vectors(self, name: &str, lengths: impl Iterator<Item = usize>) -> Self {
        let mut builder = ListBuilder::new(Int32Builder::new());
        for length in lengths {
            builder.append_value(std::iter::repeat_n(Some(0), length));
        }
        let array: ListArray = builder.finish();
        let field = Field::new(name, array.data_type().clone(), true)
            .with_metadata([(VECTOR_KEY.to_owned(), "oidvector".to_owned())].into());
        self.push(field, array)
    }

    pub(super) fn float4(self, name: &str, values: impl Iterator<Item = f32>) -> Self {
        let array = Float32Array::from_iter_values(values);
        self.push(Field::new(name, DataType::Float32, true), array)
    }

    pub(super) fn bool(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        let array: BooleanArray = values.map(Some).collect();
        self.push(Field::new(name, DataType::Boolean, true), array)
    }

    pub(super) fn bool_const(self, name: &str, value: bool) -> Self {
        let rows = self.rows;
        self.bool(name, std::iter::repeat_n(value, rows))
    }

    pub(super) fn text<'a>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        let array: StringArray = values.collect();
        self.push(Field::new(name, DataType::Utf8, true), array)
    }

    pub(super) fn text_const(self, name: &str, value: Option<&str>) -> Self {
        let rows = self.rows;
        self.text(name, std::iter::repeat_n(value, rows))
    }

    /// A column of PostgreSQL's one-byte `"char"`.
    pub(super) fn char<'a>(self, name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        let field = Field::new(name, DataType::Utf8, true)
            .with_metadata([(CHAR_KEY.to_owned(), "char".to_owned())].into());
        let array: StringArray = values.map(Some).collect();
        self.push(field, array)
    }

    pub(super) fn char_const(self, name: &str, value: &str) -> Self {
        let rows = self.rows;
        self.char(name, std::iter::repeat_n(value, rows))
    }

    /// Lists of texts; an empty list is NULL.
    pub(super) fn text_lists<'a>(
        self,
        name: &str,
        lists: impl Iterator<Item = &'a [&'a str]>,
    ) -> Self {
        let mut builder = ListBuilder::new(StringBuilder::new());
        for list in lists {
            list.iter().for_each(|text| builder.values().append_value(text));
            builder.append(!list.is_empty());
        }
        let array: ListArray = builder.finish();
        self.push(Field::new(name, array.data_type().clone(), true), array)
    }

    /// Lists of texts, or NULL.
    pub(super) fn lists(
        self,
        name: &str,
        lists: impl Iterator<Item = Option<Vec<String>>>,
    ) -> Self {
        let mut builder = ListBuilder::new(StringBuilder::new());
        for list in lists {
            let is_valid = list.is_some();
            list.into_iter().flatten().for_each(|text| builder.values().append_value(text));
            builder.append(is_valid);
        }
        let array: ListArray = builder.finish();
        self.push(Field::new(name, array.data_type().clone(), true), array)
    }

    /// Moments in microseconds since 1970-01-01 UTC, or NULL.
    pub(super) fn instants(self, name: &str, values: impl Iterator<Item = Option<i64>>) -> Self {
        let array = TimestampMicrosecondArray::from_iter(values).with_timezone("UTC");
        self.push(Field::new(name, array.data_type().clone(), true), array)
    }

    /// A column of text arrays that are all NULL.
    pub(super) fn null_texts(self, name: &str) -> Self {
        let mut builder = ListBuilder::new(StringBuilder::new());
        (0..self.rows).for_each(|_| builder.append_null());
        let array: ListArray = builder.finish();
        self.push(Field::new(name, array.data_type().clone(), true), array)
    }

    pub(super) fn finish(self) -> EngineResult<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(self.fields));
        Ok(RecordBatch::try_new_with_options(schema, self.arrays, &options)?)
    }
}
