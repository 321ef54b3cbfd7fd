//! The leaves of a plan that is spread.
//!
//! Scans of files are cut into one for each daemon. All other leaves stay on the daemon that has the statement: rows
//! that are in no file yet, system tables, values. Such a leaf is a [`HereExec`]. Mostly it keeps everything up to the
//! next exchange of rows on one daemon. Under a UNION ALL with a scan of files, as rows in no file yet are, it does
//! not: the first task, which is that daemon's, has its rows, and the others have none.
//!
//! **Invariant:** a leaf is divided among tasks only where it is divided among plan partitions already, so that the
//! planner has put exchanges where an operator needs all rows.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::EmptyRecordBatchStream;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};

use crate::tables::scan::OrcScanExec;

/// A leaf whose rows are on this daemon only.
pub(super) struct HereExec {
    /// The leaf; none where it is another daemon's.
    inner: Option<Arc<dyn ExecutionPlan>>,
    /// Whether other daemons may read the other parts of its UNION ALL.
    is_shared: bool,
    properties: Arc<PlanProperties>,
}

impl HereExec {
    fn of(inner: Arc<dyn ExecutionPlan>, is_shared: bool) -> Self {
        // What is known of its rows stays known; the rest is as of a leaf without rows.
        let properties = PlanProperties::new(
            inner.properties().eq_properties.clone(),
            Partitioning::UnknownPartitioning(inner.properties().partitioning.partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { inner: Some(inner), is_shared, properties: Arc::new(properties) }
    }

    /// What another daemon has of such a leaf: no rows.
    pub(super) fn nothing(schema: SchemaRef, partitions: usize) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { inner: None, is_shared: false, properties: Arc::new(properties) }
    }

    /// Whether other daemons may read the other parts of its UNION ALL.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Plan partitions.
    pub(super) fn partitions(&self) -> usize {
        self.properties.partitioning.partition_count()
    }
}

/// `plan` with all leaves that other daemons cannot read marked as such.
///
/// # Errors
/// Those of the operators, which have other inputs then.
pub(super) fn with_leaves_marked(
    plan: &Arc<dyn ExecutionPlan>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    marked(plan, false)
}

fn marked(plan: &Arc<dyn ExecutionPlan>, in_union: bool) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let children = plan.children();
    if children.is_empty() {
        return Ok(match can_be_sent(plan) {
            true => Arc::clone(plan),
            false => Arc::new(HereExec::of(Arc::clone(plan), in_union)),
        });
    }
    let in_union = match plan.is::<UnionExec>() {
        true => unites_scan(plan),
        false => in_union && works_row_by_row(plan.as_ref()),
    };
    let marked: Vec<_> =
        children.into_iter().map(|child| marked(child, in_union)).collect::<EngineResult<_>>()?;
    if plan.is::<UnionExec>() {
        // As it is made of bytes: with the same names of columns in all inputs.
        return UnionExec::try_new(marked);
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(marked, options)
}

fn can_be_sent(leaf: &Arc<dyn ExecutionPlan>) -> bool {
    leaf.downcast_ref::<OrcScanExec>().is_some_and(|scan| scan.encode().is_some())
}

/// Whether a UNION ALL has rows of leaves only, one of which is a scan that is cut.
fn unites_scan(union: &Arc<dyn ExecutionPlan>) -> bool {
    let leaves: Option<Vec<_>> = union.children().into_iter().map(only_leaf).collect();
    leaves.is_some_and(|leaves| leaves.into_iter().any(is_cut))
}

fn only_leaf(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    match plan.children().as_slice() {
        [] => Some(plan),
        [input] if works_row_by_row(plan.as_ref()) => only_leaf(input),
        _ => None,
    }
}

/// Whether the operator makes of each row what it makes of it whichever others there are.
fn works_row_by_row(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<ProjectionExec>() || plan.is::<FilterExec>() || plan.is::<CooperativeExec>()
}

/// Whether a leaf is a scan that is cut into one for each daemon.
pub(super) fn is_cut(leaf: &Arc<dyn ExecutionPlan>) -> bool {
    let partitions = leaf.properties().partitioning.partition_count();
    partitions > 1 && can_be_sent(leaf)
}

/// As it is there, so that a plan and what is decoded of its bytes can be compared.
impl fmt::Debug for HereExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HereExec").field("properties", &self.properties).finish()
    }
}

impl DisplayAs for HereExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Some(inner) => inner.fmt_as(kind, f),
            None => f.write_str("HereExec: rows of another daemon"),
        }
    }
}

impl ExecutionPlan for HereExec {
    fn name(&self) -> &str {
        self.inner.as_ref().map_or("HereExec", |inner| inner.name())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        match &self.inner {
            Some(inner) => inner.execute(partition, context),
            None => Ok(Box::pin(EmptyRecordBatchStream::new(self.schema()))),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.inner.as_ref().and_then(|inner| inner.metrics())
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> EngineResult<Arc<Statistics>> {
        match &self.inner {
            Some(inner) => inner.statistics_from_inputs(input_stats, args),
            None => Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
        }
    }
}
