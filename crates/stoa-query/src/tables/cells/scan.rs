//! A scan of cells as a plan: both views of a table read in the same way and differ in the rows that
//! they make of the cells.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as EngineResult;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use futures::stream::BoxStream;
use futures::{StreamExt, TryFutureExt, TryStreamExt};
use stoa_catalog::TableIdent;
use stoa_cells::CellTables;
use stoa_error::Result;
use stoa_hql::CellStream;
use stoa_hql::scan::ScanSpec;

use stoa_semantics::errors::to_datafusion;

/// What makes rows of cells.
pub(super) type ToRows =
    Box<dyn Fn(CellStream) -> BoxStream<'static, Result<RecordBatch>> + Send + Sync>;

/// One scan.
pub(super) struct CellScan {
    pub(super) cells: CellTables,
    pub(super) ident: TableIdent,
    /// Columns of the rows.
    pub(super) schema: SchemaRef,
    /// None where no row can pass the filters.
    pub(super) spec: Option<ScanSpec>,
    pub(super) to_rows: ToRows,
}

impl CellScan {
    /// The plan, with at most `limit` rows.
    pub(super) fn plan(self, limit: Option<usize>) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let schema = Arc::clone(&self.schema);
        let plan =
            StreamingTableExec::try_new(schema, vec![Arc::new(self)], None, [], false, limit);
        Ok(Arc::new(plan?))
    }
}

impl std::fmt::Debug for CellScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CellScan").field("ident", &self.ident).finish_non_exhaustive()
    }
}

impl PartitionStream for CellScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let cells = open(self.cells.clone(), self.ident.clone(), self.spec.clone());
        let rows = (self.to_rows)(cells.try_flatten_stream().boxed()).map_err(to_datafusion);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

/// The cells of a scan; none where there is nothing to read.
async fn open(cells: CellTables, ident: TableIdent, spec: Option<ScanSpec>) -> Result<CellStream> {
    match spec {
        Some(spec) => cells.scan_ident(&ident, spec).await,
        None => Ok(futures::stream::empty().boxed()),
    }
}
