//! A program in a logical plan, and how it becomes an operator.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use stoa_error::Error;
use stoa_script::Spec;
use stoa_semantics::errors::to_datafusion;

use super::exec::ScriptExec;

/// Rows through a program.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ScriptNode {
    command: String,
    spec: Spec,
    rows: LogicalPlan,
    schema: DFSchemaRef,
}

impl ScriptNode {
    pub(super) fn new(command: String, spec: Spec, rows: LogicalPlan) -> Result<Self> {
        let schema = DFSchema::try_from(schema_of(&spec).as_ref().clone())?;
        Ok(Self { command, spec, rows, schema: Arc::new(schema) })
    }
}

/// The program that a node of a plan is, if it is one.
pub(super) fn script(node: &dyn UserDefinedLogicalNode) -> Option<&ScriptNode> {
    node.as_any().downcast_ref()
}

/// The columns that come back: texts.
pub(super) fn schema_of(spec: &Spec) -> SchemaRef {
    let field = |at: usize| Field::new(format!("c{at}"), DataType::Utf8, true);
    Arc::new(Schema::new((0..spec.columns).map(field).collect::<Vec<_>>()))
}

impl PartialOrd for ScriptNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.command.cmp(&other.command) {
            Ordering::Equal if self.spec == other.spec => self.rows.partial_cmp(&other.rows),
            Ordering::Equal => None,
            order => Some(order),
        }
    }
}

impl UserDefinedLogicalNodeCore for ScriptNode {
    fn name(&self) -> &str {
        "Script"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.rows]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script: {} [{}]", self.command, self.spec)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let rows = inputs.into_iter().next();
        let rows = rows.ok_or_else(|| to_datafusion(Error::internal("a program lost its rows")))?;
        let (command, spec) = (self.command.clone(), self.spec.clone());
        Ok(Self { command, spec, rows, schema: Arc::clone(&self.schema) })
    }
}

/// The engine's planner, which knows programs, too.
#[derive(Debug)]
pub(super) struct ScriptPlanner;

#[async_trait]
impl QueryPlanner for ScriptPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Self)]);
        planner.create_physical_plan(logical_plan, session).await
    }
}

#[async_trait]
impl ExtensionPlanner for ScriptPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _planning: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [rows]) = (script(node), physical_inputs) else {
            return Ok(None);
        };
        let exec = ScriptExec::new(&node.command, node.spec.clone(), Arc::clone(rows));
        Ok(Some(Arc::new(exec)))
    }
}
