//! Places for the answers of cores in the plan of a head.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchemaRef, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use stoa_error::Error;
use stoa_semantics::errors::to_datafusion;

/// A leaf with the columns of what it stands for.
pub(super) fn plan(number: usize, schema: &DFSchemaRef) -> LogicalPlan {
    let table = LeafTable { number, schema: Arc::clone(schema.inner()) };
    LogicalPlan::TableScan(TableScan {
        table_name: TableReference::bare(format!("core {number}")),
        source: provider_as_source(Arc::new(table)),
        projection: None,
        projected_schema: Arc::clone(schema),
        filters: Vec::new(),
        fetch: None,
        statistics_requests: BTreeSet::new(),
    })
}

/// The answer of a core, as a table.
#[derive(Debug)]
struct LeafTable {
    number: usize,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for LeafTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn EngineSession,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(LeafExec::new(self.number, Arc::clone(&self.schema))))
    }
}

/// The answer of a core, as an operator. It is not executed: the head has its batch.
#[derive(Debug)]
pub(super) struct LeafExec {
    pub(super) number: usize,
    properties: Arc<PlanProperties>,
}

impl LeafExec {
    fn new(number: usize, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { number, properties: Arc::new(properties) }
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", super::explain::LEAF, self.number)
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &str {
        "ReportExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> EngineResult<SendableRecordBatchStream> {
        Err(to_datafusion(Error::internal("the answer of a report is no operator's")))
    }
}
