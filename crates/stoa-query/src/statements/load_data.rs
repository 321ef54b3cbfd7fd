//! `LOAD DATA INPATH 'path' [OVERWRITE] INTO TABLE name [PARTITION (…)]`: files of the server into a table.
//!
//! In: a file, or a directory whose files are all read but those that Hive does not see (`_…`, `.…`). Formats are told
//! by names or first bytes, columns by their names, as for `COPY`. The files stay where they are.
//!
//! Not here: the rows that go with OVERWRITE (`dispatch`), which files may be named (`access::file_access`).

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use futures::StreamExt;
use futures::stream::BoxStream;
use stoa_error::{Error, Result};
use stoa_load::{Input, LoadOptions};
use stoa_sql::{LoadDataStatement, PartitionSpec};
use stoa_table::Table;

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::load::{append, reader_stream};
use crate::statements::partitions;

/// Adds the rows of the files to the table.
///
/// # Errors
/// 42501 for who is no superuser, and for files that may not be named; those of `COPY`.
pub(crate) async fn run(
    session: &Session,
    load: &LoadDataStatement,
    guard: &QueryGuard,
) -> Result<Completion> {
    session.caller.must_be_superuser("read files of the server")?;
    let table = session.data.warehouse().table(&session.table_ident(&load.table)?).await?;
    crate::tables::external::refuse_rows(&table)?;
    let partition = partitions::whole(&table, &load.partition)?;
    let inputs = inputs(session, &load.path)?;
    let file_columns = columns_without(&table, &partition);
    let reader = stoa_load::open(inputs, Arc::clone(&file_columns), LoadOptions::default())?;
    let batches = with_values(reader_stream(reader)?, &table, &partition)?;
    let schema = table.schema();
    let rows = append(session, table, schema, batches, guard).await?;
    Ok(Completion { rows, ..Completion::of("LOAD DATA") })
}

/// The DELETE of the rows that go; `None` where none do.
///
/// # Errors
/// As [`run`], of the table and its partition.
pub(crate) async fn overwritten(
    session: &Session,
    load: &LoadDataStatement,
) -> Result<Option<String>> {
    if !load.overwrites {
        return Ok(None);
    }
    session.caller.must_be_superuser("read files of the server")?;
    let table = session.data.warehouse().table(&session.table_ident(&load.table)?).await?;
    partitions::delete(&table, &load.partition).map(Some)
}

/// The files, in the order of their names.
fn inputs(session: &Session, path: &str) -> Result<Vec<Input>> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    if let Some((scheme, _)) = path.split_once("://") {
        return Err(Error::unsupported(format!("LOAD DATA from {scheme}:// is not supported"))
            .with_hint("name files of the server, or use `stoa load`"));
    }
    let access = &session.engine_options().file_access;
    let files = access.files_of(path)?;
    if files.is_empty() {
        return Err(Error::not_found(format!("there are no files in {path}"))
            .with_sqlstate("58P01")
            .with_hint("files whose names begin with _ or . are not read"));
    }
    Ok(files.into_iter().map(Input::Path).collect())
}

fn columns_without(table: &Table, partition: &PartitionSpec) -> SchemaRef {
    let schema = table.schema();
    let is_file = |name: &str| !partition.iter().any(|term| term.column == name);
    let fields = schema.fields().iter().filter(|field| is_file(field.name()));
    Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
}

/// Batches with the columns of the table, of which the partition's have its values.
fn with_values(
    batches: BoxStream<'static, Result<RecordBatch>>,
    table: &Table,
    partition: &PartitionSpec,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    if partition.is_empty() {
        return Ok(batches);
    }
    let schema = table.schema();
    let value = |field: &Arc<arrow::datatypes::Field>| {
        let term = partition.iter().find(|term| term.column == *field.name());
        let value = term.map(|term| match &term.value {
            Some(text) => ScalarValue::try_from_string(text.clone(), field.data_type()),
            None => ScalarValue::try_from(field.data_type()),
        });
        value.transpose().map_err(stoa_semantics::errors::from_datafusion)
    };
    let values: Vec<Option<ScalarValue>> =
        schema.fields().iter().map(value).collect::<Result<_>>()?;
    Ok(Box::pin(batches.map(move |batch| {
        let batch = batch?;
        let mut read = batch.columns().iter();
        let column = |value: &Option<ScalarValue>| match value {
            Some(value) => value
                .to_array_of_size(batch.num_rows())
                .map_err(stoa_semantics::errors::from_datafusion),
            None => read.next().cloned().ok_or_else(|| Error::internal("a file has lost a column")),
        };
        let columns = values.iter().map(column).collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|e| Error::internal("cannot add the values of a partition").with_source(e))
    })))
}
