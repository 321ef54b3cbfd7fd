//! Rows as they come in, as rows of the table: its columns, its types, its constraints.
//!
//! **Invariant:** rows that pass can be flushed: the table can be written, and each row has
//! partition and sort values. A row that cannot would keep all later ones from being flushed.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::Field;
use stoa_error::{Error, Result};
use stoa_table::{Limits, Table};

use crate::keys;

/// The rows of `batch` (the table's columns in the table's order) in the table's exact types.
///
/// # Errors
/// `Invalid` for the wrong number of columns (42601), values that do not fit (22003) or are too long
/// (22001), NULL in a NOT NULL column (23502), values that have no partition value.
pub fn conform(table: &Table, batch: RecordBatch) -> Result<RecordBatch> {
    let schema = table.schema();
    let conformed = match Arc::ptr_eq(batch.schema_ref(), &schema) {
        true => batch,
        false => {
            check_width(table, &batch)?;
            let columns = batch.columns().iter().zip(schema.fields());
            let columns = columns
                .map(|(column, field)| conform_column(table, column, field))
                .collect::<Result<Vec<_>>>()?;
            RecordBatch::try_new(schema, columns).map_err(|source| {
                Error::invalid(format!("rows do not fit table {}", table.ident()))
                    .with_source(source)
            })?
        }
    };
    let conformed = Limits::of(conformed.schema_ref()).apply(table.ident(), conformed)?;
    keys::check(table, &conformed)?;
    Ok(conformed)
}

fn check_width(table: &Table, batch: &RecordBatch) -> Result<()> {
    let (wanted, found) = (table.schema().fields().len(), batch.num_columns());
    if wanted == found {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "table {} has {wanted} columns, the rows have {found}",
        table.ident()
    ))
    .with_sqlstate("42601"))
}

fn conform_column(table: &Table, column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let cast = match column.data_type() == field.data_type() {
        true => column.clone(),
        false => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(column, field.data_type(), &options).map_err(|source| {
                Error::invalid(format!(
                    "column \"{}\" of table {}: a value of type {} does not fit {}",
                    field.name(),
                    table.ident(),
                    column.data_type(),
                    field.data_type()
                ))
                .with_sqlstate("22003")
                .with_source(source)
            })?
        }
    };
    if !field.is_nullable() && cast.logical_null_count() > 0 {
        return Err(Error::invalid(format!(
            "null value in column \"{}\" of table {} violates not-null constraint",
            field.name(),
            table.ident()
        ))
        .with_sqlstate("23502")
        .with_hint("give the column a value in every row"));
    }
    Ok(cast)
}
