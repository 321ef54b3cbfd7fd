//! Composite reports: statements of which a part, or several, are reports, and the rest computes on their answers.
//!
//! ```text
//!  optimised plan with places          cores: reports of one table each        (crate::reuse::report)
//!  for values (crate::reuse::template) ─┤
//!                                      head: all that is above them, compiled once per form
//!
//!  per call: values bound ─► cores answered as reports ─► batches ─► head ─► one batch
//! ```
//! In: the optimised plan of a template. Out: a [`Composite`], or `None` where a scan is in no core, or an operator
//! above the cores is none that [`Head`] has.
//!
//! **Invariants:** the head has the expressions, the functions and the order of operations of the engine's own
//! physical plan; only what moves batches between operators is left out. Whatever goes wrong in a core's or the
//! head's computation is not told: the statement is planned, and the planner's answer or error is the answer.
//! A core asks for rights on exactly those columns that the scan in its place reads.
//!
//! A subquery of one value that depends on no row around it is a head of its own, whose value has a place in the others.
//!
//! Not here: running the cores (`dispatch`), their execution (`stoa-report`).

mod conditions;
mod core;
pub(crate) mod explain;
mod head;
mod leaf;
mod pregroup;
mod scalars;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use stoa_catalog::TableIdent;
use stoa_report::{Memory, Report};

use core::Cores;

use super::report::{ReportShape, Values};
use super::template::TableForm;
use crate::access::Caller;
pub(crate) use head::Head;

/// After a form was beyond the bounds of reports, so many of its statements are planned at once before one is tried
/// again.
const PLANNED_AFTER_BEYOND: u32 = 15;

/// A statement as reports, and what computes on their answers.
pub(crate) struct Composite {
    cores: Vec<Core>,
    /// The tables that they read, each once, and their names.
    tables: Vec<TableForm>,
    idents: Vec<TableIdent>,
    /// Values that all statements of the form have; they come after the parameters.
    constants: Vec<ScalarValue>,
    head: Arc<Head>,
    /// The heads of subqueries of one value; these come behind the values of the call.
    scalars: Arc<[Head]>,
    /// Statements that are to be planned because one before them was beyond the bounds of reports.
    passed_over: AtomicU32,
}

/// A part of a plan that is a report.
pub(crate) struct Core {
    pub(crate) shape: Arc<ReportShape>,
    /// The number of its table among those of the composite.
    pub(crate) table: usize,
    /// Field ids of the columns that the scan reads.
    pub(crate) read: Vec<i32>,
    /// With whose rights, if not with those of whoever asks: those of a view's owner.
    pub(crate) reader: Option<Arc<Caller>>,
}

impl Composite {
    /// The composite report that an optimised plan is, with parameters of these `types`.
    pub(crate) async fn of(
        plan: &LogicalPlan,
        types: &[DataType],
        state: &SessionState,
    ) -> Option<Self> {
        let sum = state.aggregate_functions().get("sum").cloned();
        let mut found = Cores::new(types, sum);
        let (main, subqueries) = scalars::taken_out(plan, types.len()).ok()?;
        let above = found.head_of(&main)?;
        let (of_main, schema) = (found.len(), Arc::clone(plan.schema().inner()));
        let mut heads = Vec::with_capacity(subqueries.len());
        for subquery in &subqueries {
            let before = found.len();
            let above = found.head_of(subquery)?;
            heads.push((above, Arc::clone(subquery.schema().inner()), found.len() - before));
        }
        let (cores, tables, constants) = found.finished();
        let mut scalars = Vec::with_capacity(heads.len());
        for (above, schema, cores) in heads {
            scalars.push(Head::of(above, schema, cores, types, state).await?);
        }
        let of_scalars = subqueries.iter().map(|subquery| scalars::type_of(subquery));
        let types: Vec<DataType> = types.iter().cloned().chain(of_scalars).collect();
        let head = Arc::new(Head::of(above, schema, of_main, &types, state).await?);
        let idents = tables.iter().map(|table| table.ident.clone()).collect();
        let (scalars, passed_over) = (scalars.into(), AtomicU32::new(0));
        Some(Self { cores, tables, idents, constants, head, scalars, passed_over })
    }

    /// The reports that it consists of.
    pub(crate) fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// The tables that they read, each once.
    pub(crate) fn tables(&self) -> &[TableForm] {
        &self.tables
    }

    /// The names of the tables, in the same order.
    pub(crate) fn idents(&self) -> &[TableIdent] {
        &self.idents
    }

    /// What computes on their answers.
    pub(crate) fn head(&self) -> &Arc<Head> {
        &self.head
    }

    /// Computes the answer from those of the cores, with the values of the call; `None` where an expression fails,
    /// which the planner tells.
    pub(crate) fn compute(
        &self,
        cores: &[RecordBatch],
        values: &Arc<[ScalarValue]>,
        memory: &dyn Memory,
    ) -> Option<RecordBatch> {
        if self.scalars.is_empty() {
            return self.head.compute(cores, values, memory).ok();
        }
        let mut all = values.to_vec();
        for scalar in &*self.scalars {
            all.push(scalars::value_of(&scalar.compute(cores, values, memory).ok()?)?);
        }
        self.head.compute(cores, &all.into(), memory).ok()
    }

    /// The reports with their values; `None` where the planner must see them.
    pub(crate) fn bind(&self, values: &[ScalarValue]) -> Option<Vec<Report>> {
        let parameters: Vec<ScalarValue> = values.iter().chain(&self.constants).cloned().collect();
        let values = Values { literals: &[], parameters: &parameters };
        self.cores.iter().map(|core| core.shape.bind(&values)).collect()
    }

    /// Whether it is worth a try: not shortly after one that was beyond a bound.
    pub(crate) fn is_tried(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.passed_over.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Notes that one was beyond a bound of reports.
    pub(crate) fn note_beyond(&self) {
        self.passed_over.store(PLANNED_AFTER_BEYOND, Ordering::Relaxed);
    }
}

impl fmt::Debug for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composite").field("cores", &self.cores.len()).finish_non_exhaustive()
    }
}
