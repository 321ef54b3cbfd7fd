//! Incoming batches as batches of the table's exact Arrow types, within the limits of its declared types.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{Field, SchemaRef};
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};

use crate::Limits;

/// Casts batches to a table's schema, and checks NOT NULL.
pub(super) struct Converter {
    table: TableIdent,
    schema: SchemaRef,
    /// `None` where rows keep to them.
    limits: Option<Limits>,
}

impl Converter {
    /// `within_limits` says that the rows are those of the table, or were checked before.
    pub(super) fn new(table: TableIdent, schema: SchemaRef, within_limits: bool) -> Self {
        let limits = (!within_limits).then(|| Limits::of(&schema));
        Self { table, schema, limits }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of `batch` in the table's types, within the limits that are declared for them.
    pub(super) fn convert(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = self.cast(batch)?;
        match &self.limits {
            Some(limits) => limits.apply(&self.table, batch),
            None => Ok(batch),
        }
    }

    fn cast(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if Arc::ptr_eq(batch.schema_ref(), &self.schema) {
            return Ok(batch);
        }
        let wanted = self.schema.fields();
        if batch.num_columns() != wanted.len() {
            return Err(Error::invalid(format!(
                "table {} has {} columns, the rows have {}",
                self.table,
                wanted.len(),
                batch.num_columns()
            ))
            .with_sqlstate("42601"));
        }
        let columns = batch
            .columns()
            .iter()
            .zip(wanted)
            .map(|(column, field)| self.column(column, field))
            .collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(self.schema.clone(), columns).map_err(|source| {
            Error::invalid(format!("rows do not fit table {}", self.table)).with_source(source)
        })
    }

    fn column(&self, column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
        let place = || format!("table {}, column {:?}", self.table, field.name());
        let cast = if column.data_type() == field.data_type() {
            column.clone()
        } else {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(column, field.data_type(), &options).map_err(|source| {
                Error::invalid(format!(
                    "{}: a value of type {} does not fit {}",
                    place(),
                    column.data_type(),
                    field.data_type()
                ))
                .with_sqlstate("22003")
                .with_source(source)
            })?
        };
        if !field.is_nullable() && cast.logical_null_count() > 0 {
            return Err(Error::invalid(format!("{}: NULL in a column that is NOT NULL", place()))
                .with_sqlstate("23502"));
        }
        Ok(cast)
    }
}
