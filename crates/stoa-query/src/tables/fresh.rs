//! Fresh rows of a table as a plan, and small writes that become fresh rows.
//!
//! In: a table, rows. Out: a plan over the rows that are acknowledged but in no data file yet; or
//! rows in the commit log. **Invariant:** what one statement writes is one record of the log, so
//! that all of it appears at once, or nothing; what is too large for that is left to the caller,
//! which writes files.
//!
//! Not here: the log and the rows themselves (`stoa-ingest`).

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::ExecutionPlan;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use stoa_error::{Error, Result};
use stoa_ingest::{Durability, FreshRows, Ingest};
use stoa_table::Table;

use crate::tables::nested::{engine_schema, retype};
use crate::tables::transaction::Staging;
use stoa_semantics::errors::from_datafusion;

/// Rows of one statement that are worth files of their own, bytes in memory.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// A plan over fresh rows; `projection` as for a scan.
pub(crate) fn plan_fresh(
    fresh: &FreshRows,
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = engine_schema(fresh.schema());
    let as_engine = |batch: Result<RecordBatch>| {
        retype(batch?, &schema)
            .map_err(|e| Error::internal("fresh rows do not have their columns").with_source(e))
    };
    let batches = fresh.batches().map(as_engine).collect::<Result<Vec<_>>>()?;
    let plan = MemorySourceConfig::try_new_exec(&[batches], schema, projection.cloned());
    plan.map(|plan| plan as _).map_err(from_datafusion)
}

/// A plan over rows that have the table's columns, not all of them in the engine's types.
pub(crate) fn plan_batches(
    batches: &[RecordBatch],
    schema: &SchemaRef,
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let as_engine = |batch: &RecordBatch| {
        retype(batch.clone(), schema)
            .map_err(|e| Error::internal("rows do not have their columns").with_source(e))
    };
    let batches = batches.iter().map(as_engine).collect::<Result<Vec<_>>>()?;
    let schema = Arc::clone(schema);
    let plan = MemorySourceConfig::try_new_exec(&[batches], schema, projection.cloned());
    plan.map(|plan| plan as _).map_err(from_datafusion)
}

/// Rows on their way in.
type Batches = BoxStream<'static, Result<RecordBatch>>;

/// What became of a stream of rows.
pub(crate) enum Taken {
    /// So many are durable and visible.
    Written(u64),
    /// They are not few; nothing was written.
    TooMany(Batches),
}

/// Rows of one statement on their way into the log, or into the session's transaction block.
pub(crate) struct SmallWrite {
    place: Place,
    table: Table,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

/// Where a few rows go.
#[derive(Clone)]
pub(crate) enum Place {
    Log(Ingest),
    Block(Staging),
}

impl SmallWrite {
    pub(crate) fn new(place: Place, table: Table) -> Self {
        Self { place, table, batches: Vec::new(), bytes: 0 }
    }

    /// Whether a transaction block takes the rows.
    pub(crate) fn is_in_block(&self) -> bool {
        matches!(self.place, Place::Block(_))
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Takes rows; gives all rows back once they are too many for one record.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Option<Vec<RecordBatch>> {
        self.bytes += stoa_ingest::memory_bytes(&batch);
        self.batches.push(batch);
        (self.bytes > RECORD_BYTES_MAX).then(|| std::mem::take(&mut self.batches))
    }

    /// Takes all rows of a stream: writes them, or gives them back if they are too many for one
    /// record.
    ///
    /// # Errors
    /// The stream's, and those of [`Self::commit`]. Nothing is written then.
    pub(crate) async fn take(mut self, mut rows: Batches) -> Result<Taken> {
        while let Some(batch) = rows.try_next().await? {
            if let Some(batches) = self.push(batch) {
                let all = stream::iter(batches.into_iter().map(Ok)).chain(rows);
                return Ok(Taken::TooMany(all.boxed()));
            }
        }
        self.commit().await.map(Taken::Written)
    }

    /// Writes the rows; returns their number once they are durable and visible, or in the block.
    pub(crate) async fn commit(self) -> Result<u64> {
        let Some(first) = self.batches.first() else { return Ok(0) };
        let all = concat_batches(first.schema_ref(), &self.batches)
            .map_err(|e| Error::internal("cannot join the rows of a statement").with_source(e))?;
        match &self.place {
            Place::Log(ingest) => {
                let ack = ingest.append(&self.table, all, Durability::Table).await?;
                Ok(ack.rows)
            }
            Place::Block(staging) => {
                // What the log would refuse at COMMIT is refused now.
                let all = stoa_ingest::conform(&self.table, all)?;
                let rows = all.num_rows() as u64;
                staging.keep_rows(&self.table, all)?;
                Ok(rows)
            }
        }
    }
}
