//! Prepared statements and the values bound to them.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use futures::TryStreamExt;
use parking_lot::Mutex;
use stoa_error::{Error, Result};
use stoa_query::{
    BatchesIn, Kept, Prepared, ScalarValue, from_datafusion, number_parameters, plain_schema,
};

use crate::bound::Bound;
use crate::client::Client;
use crate::metadata::described;
use crate::query::{self, Query};

/// Bytes of the values that are bound at once.
pub(crate) const BOUND_BYTES_MAX: usize = 64 << 20;

/// A statement that a client prepared.
pub(crate) struct PreparedStatement {
    client: Arc<Client>,
    prepared: Prepared,
    /// Columns of its rows; `None` for a statement without rows.
    schema: Option<SchemaRef>,
    /// Values for the next execution.
    bound: Mutex<Arc<Bound>>,
    /// What it counts for under its handle.
    _kept: Option<Kept>,
}

impl PreparedStatement {
    /// Plans the one statement in `sql`.
    ///
    /// # Errors
    /// Those of parsing and planning; more than one statement (42601).
    pub(crate) async fn new(client: Arc<Client>, sql: &str) -> Result<Self> {
        let mut statements = client.session.parse(&number_parameters(sql)).await?;
        let statement = match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => statement,
            _ => {
                return Err(Error::invalid(
                    "cannot insert multiple commands into a prepared statement",
                )
                .with_sqlstate("42601")
                .with_hint("prepare them one by one"));
            }
        };
        let prepared = client.session.prepare(statement, Vec::new()).await?;
        let schema = prepared.schema().map(|schema| described(&schema));
        Ok(Self { client, prepared, schema, bound: Mutex::default(), _kept: None })
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.prepared.bytes()
    }

    /// Notes what it counts for from here on.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self._kept = Some(kept);
    }

    /// Whose it is.
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Its text.
    pub(crate) fn sql(&self) -> &str {
        self.prepared.statement().text()
    }

    /// Values for the next execution.
    pub(crate) fn bound(&self) -> Arc<Bound> {
        Arc::clone(&self.bound.lock())
    }

    /// Columns of its rows; none for a statement without rows.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone().unwrap_or_else(|| SchemaRef::new(Schema::empty()))
    }

    /// A column for each parameter. Values of other types are cast, so that times can be announced in
    /// the milliseconds that the JDBC driver sends, whatever unit it was told.
    pub(crate) fn parameter_schema(&self) -> SchemaRef {
        let types = self.prepared.parameter_types().iter().enumerate();
        let fields = types.map(|(index, data_type)| {
            Field::new(format!("${}", index + 1), in_milliseconds(data_type), true)
        });
        plain_schema(&Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Takes the values for the next execution.
    ///
    /// # Errors
    /// A number of columns that is not that of parameters (08P01); too many values (54000, 53200).
    pub(crate) async fn bind(&self, schema: &Schema, batches: BatchesIn) -> Result<()> {
        // Those before go first.
        *self.bound.lock() = Arc::default();
        let rows = self.rows(schema, batches).await?;
        let bytes = rows.iter().flatten().map(ScalarValue::size).sum();
        let kept = self.client.session.keep(bytes)?;
        *self.bound.lock() = Arc::new(Bound::new(rows, kept));
        Ok(())
    }

    /// The query that runs with the values bound, which stay bound.
    pub(crate) fn query(&self) -> Option<Query> {
        let schema = self.schema.clone()?;
        let bound = self.bound();
        Some(Query::new(Arc::clone(&self.client), self.prepared.clone(), bound, schema))
    }

    /// Runs it once for each row of values, each time as a statement of its own; returns how many
    /// rows it changed.
    ///
    /// # Errors
    /// The first error; the runs before it have taken effect.
    pub(crate) async fn run(&self, schema: &Schema, batches: BatchesIn) -> Result<u64> {
        let session = &self.client.session;
        let mut rows = self.rows(schema, batches).await?;
        if schema.fields().is_empty() {
            // The values were bound by a call before this one, or there are no parameters.
            rows.clone_from(&self.bound.lock().rows);
        }
        if rows.is_empty() && schema.fields().is_empty() {
            return query::changed_rows(session, &self.prepared, Vec::new()).await;
        }
        let mut changed = 0;
        for values in rows {
            changed += query::changed_rows(session, &self.prepared, values).await?;
        }
        Ok(changed)
    }

    async fn rows(&self, schema: &Schema, batches: BatchesIn) -> Result<Vec<Vec<ScalarValue>>> {
        let (wanted, given) = (self.prepared.parameter_types().len(), schema.fields().len());
        if given != 0 && given != wanted {
            let message =
                format!("the statement takes {wanted} parameters, but {given} were given");
            return Err(Error::invalid(message).with_sqlstate("08P01"));
        }
        let mut batches = batches;
        let mut bytes = 0;
        let mut rows = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            bytes += batch.get_array_memory_size();
            if bytes > BOUND_BYTES_MAX {
                return Err(too_many_values());
            }
            if given > 0 {
                values_of(&batch, &mut rows)?;
            }
        }
        Ok(rows)
    }
}

pub(crate) fn too_many_values() -> Error {
    Error::invalid(format!("more than {BOUND_BYTES_MAX} bytes of values are bound"))
        .with_sqlstate("54000")
        .with_hint("to bring many rows in, use an ingest, as adbc_ingest does")
}

fn in_milliseconds(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Time64(_) => DataType::Time32(TimeUnit::Millisecond),
        other => other.clone(),
    }
}

fn values_of(batch: &RecordBatch, rows: &mut Vec<Vec<ScalarValue>>) -> Result<()> {
    for row in 0..batch.num_rows() {
        let values = batch.columns().iter().map(|column| {
            ScalarValue::try_from_array(column.as_ref(), row).map_err(from_datafusion)
        });
        rows.push(values.collect::<Result<_>>()?);
    }
    Ok(())
}
