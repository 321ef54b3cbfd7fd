//! An optimised plan with places for values.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as EngineResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Cast, InList};
use datafusion::logical_expr::{EmptyRelation, Expr, FetchType, LogicalPlan, Operator};
use stoa_catalog::TableIdent;
use stoa_error::Result;
use stoa_table::Table;
use uuid::Uuid;

use super::lists::{self, Lists};
use crate::reuse::composite::Composite;
use crate::reuse::results::{self, Asked, ResultKey, TableVersion};
use crate::tables::data::Data;
use crate::tables::table::{StoaTable, only_reads_tables, stoa_table};
use crate::tables::view::ViewUse;
use stoa_semantics::errors::from_datafusion;
use stoa_semantics::parameters::{fit, fold_cast, index_of};

/// A plan that was optimised before its values are known.
#[derive(Debug)]
pub(crate) struct PlanTemplate {
    plan: LogicalPlan,
    types: Vec<DataType>,
    /// The tables it reads, as they were when it was made.
    tables: Vec<PlannedTable>,
    /// Namespace and options of the session that it was made for.
    context: Arc<str>,
    /// The views whose queries are in it.
    views: Arc<[ViewUse]>,
    /// The same as reports, if it can be computed from some.
    composite: Option<Arc<Composite>>,
}

/// What a plan takes for granted of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableForm {
    pub(crate) ident: TableIdent,
    pub(crate) uuid: Uuid,
    pub(crate) schema_id: i32,
}

/// A table of a plan.
#[derive(Debug)]
struct PlannedTable {
    form: TableForm,
    /// Whether it is read with the rights of whoever executes the plan, and not with those of a view's owner.
    is_callers: bool,
}

impl TableForm {
    /// Whether the table is still the one that it was, with the same columns.
    pub(crate) async fn is_current(&self, data: &Data) -> bool {
        let snapshot = data.snapshot(&self.ident).await;
        snapshot.is_ok_and(|snapshot| self.is_of(&snapshot.table))
    }

    /// Whether `table` is the one that it was, with the same columns.
    pub(crate) fn is_of(&self, table: &Table) -> bool {
        table.uuid() == self.uuid && table.schema_id() == self.schema_id
    }
}

impl PlanTemplate {
    /// The template of `plan`, whose parameters have these `types` and which has the queries of `views`; `None` where its values must be
    /// seen to plan it well, or where it reads other things than tables.
    pub(crate) async fn of(
        plan: &LogicalPlan,
        types: &[DataType],
        views: Arc<[ViewUse]>,
        state: &SessionState,
        context: Arc<str>,
    ) -> Option<Self> {
        let is_plain = results::is_repeatable(plan) && only_reads_tables(plan).ok()?;
        if !is_plain {
            return None;
        }
        // What is wrong with it, planning in full says.
        let plan = without_casts(state.optimize(plan).ok()?, types).ok()?;
        let tables = tables_of(&plan).ok()?;
        let compares = values_are_compared(&plan).ok()?;
        if !compares {
            return None;
        }
        let composite = Composite::of(&plan, types, state).await.map(Arc::new);
        Some(Self { plan, types: types.to_vec(), tables, context, views, composite })
    }

    /// The views whose queries are in it. Who uses the plan asks whether they are still the same, and may be read.
    pub(crate) fn views(&self) -> &Arc<[ViewUse]> {
        &self.views
    }

    /// The same as reports, if it can be computed from some.
    pub(crate) fn composite(&self) -> Option<&Arc<Composite>> {
        self.composite.as_ref()
    }

    /// The values as their places want them; `None` where one is of another type.
    pub(crate) fn fitting(&self, values: &[ScalarValue]) -> Option<Vec<ScalarValue>> {
        (values.len() == self.types.len()).then(|| fitting(values, &self.types)).flatten()
    }

    /// Whether it was made for sessions like this.
    pub(crate) fn is_of(&self, context: &str) -> bool {
        *self.context == *context
    }

    /// Whether its tables are still as they were.
    pub(crate) async fn is_current(&self, data: &Data) -> bool {
        for table in &self.tables {
            if !table.form.is_current(data).await {
                return false;
            }
        }
        true
    }

    /// The tables that it reads for whoever executes it, as they were when it was made.
    pub(crate) fn callers_tables(&self) -> impl Iterator<Item = &TableForm> {
        self.tables.iter().filter(|table| table.is_callers).map(|table| &table.form)
    }

    /// Whether it reads any table.
    pub(crate) fn reads_tables(&self) -> bool {
        !self.tables.is_empty()
    }

    /// What an answer now depends on; `None` where a table is another one.
    pub(crate) async fn result_key(&self, data: &Data, asked: &Asked) -> Option<ResultKey> {
        let mut versions = BTreeSet::new();
        for PlannedTable { form: known, .. } in &self.tables {
            let snapshot = data.snapshot(&known.ident).await.ok()?;
            let fresh = match snapshot.fresh.is_empty() {
                true => (0, 0),
                false => (snapshot.fresh.rows(), snapshot.fresh.end_position()),
            };
            if !known.is_of(&snapshot.table) {
                return None;
            }
            versions.insert(TableVersion::new(snapshot.table.metadata_location(), fresh));
        }
        Some(ResultKey::new(asked.clone(), versions))
    }

    /// Types of the values.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The plan with `values`; `None` where one is of another type than its place.
    ///
    /// # Errors
    /// Those of walking the plan.
    pub(crate) fn bind(&self, values: &[ScalarValue]) -> Result<Option<LogicalPlan>> {
        let Some(values) = self.fitting(values) else { return Ok(None) };
        if values.is_empty() {
            return Ok(Some(self.plan.clone()));
        }
        if !lists::have_types(&values, &self.types) {
            return Ok(None);
        }
        let lists = Lists::of(&values, &self.types);
        let put = |expr: Expr| match &expr {
            Expr::Placeholder(place) => {
                match index_of(&place.id).and_then(|index| values.get(index)) {
                    Some(value) => Ok(Transformed::yes(Expr::Literal(value.clone(), None))),
                    None => Ok(Transformed::no(expr)),
                }
            }
            _ => fold_cast(expr),
        };
        let plan = self.plan.clone();
        let bound = plan.transform_up_with_subqueries(|node| match holds_values(&node) {
            true => {
                let node = match &lists {
                    Some(lists) => {
                        node.map_expressions(|expr| expr.transform_up(|e| lists.put(e)))?
                    }
                    None => Transformed::no(node),
                };
                let put = |node: LogicalPlan| node.map_expressions(|expr| expr.transform_up(put));
                node.transform_data(put)?.transform_data(no_rows)
            }
            false => Ok(Transformed::no(node)),
        });
        bound.map(|bound| Some(bound.data)).map_err(from_datafusion)
    }
}

/// `LIMIT 0`, which an optimised plan does not have: its operators would look for the first rows of none.
fn no_rows(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    match &node {
        LogicalPlan::Limit(limit)
            if matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0)))) =>
        {
            let schema = Arc::clone(node.schema());
            let nothing = EmptyRelation { produce_one_row: false, schema };
            Ok(Transformed::yes(LogicalPlan::EmptyRelation(nothing)))
        }
        _ => Ok(Transformed::no(node)),
    }
}

/// The values as their places want them; `None` where one does not fit exactly.
pub(super) fn fitting(values: &[ScalarValue], types: &[DataType]) -> Option<Vec<ScalarValue>> {
    let of_type = |(value, wanted): (&ScalarValue, &DataType)| {
        if let (ScalarValue::List(list), false) = (value, matches!(wanted, DataType::List(_))) {
            return lists::fitting(list, wanted);
        }
        // Where no row matches, planning in full finds that nothing is to be read.
        if matches!(value, ScalarValue::List(_)) && !lists::has_value(value) {
            return None;
        }
        // A text is read as PostgreSQL reads it, which is planning's work.
        if value.data_type() == DataType::Utf8
            && matches!(
                wanted,
                DataType::Timestamp(..) | DataType::Binary | DataType::FixedSizeBinary(_)
            )
        {
            return None;
        }
        fit(value.clone(), wanted).ok().filter(|value| value.data_type() == *wanted)
    };
    values.iter().zip(types).map(of_type).collect()
}

/// Nodes in which values may be.
fn holds_values(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Filter(_) | LogicalPlan::TableScan(_) | LogicalPlan::Limit(_))
}

/// The plan without casts of places to the types that their values have anyway.
fn without_casts(plan: LogicalPlan, types: &[DataType]) -> EngineResult<LogicalPlan> {
    let uncast = |expr: Expr| match expr {
        Expr::Cast(Cast { expr, field }) => match expr.as_ref() {
            Expr::Placeholder(place)
                if index_of(&place.id).and_then(|index| types.get(index))
                    == Some(field.data_type()) =>
            {
                Ok(Transformed::yes(*expr))
            }
            _ => Ok(Transformed::no(Expr::Cast(Cast { expr, field }))),
        },
        expr => Ok(Transformed::no(expr)),
    };
    let bare = plan.transform_up_with_subqueries(|node| match holds_values(&node) {
        true => node.map_expressions(|expr| expr.transform_up(uncast)),
        false => Ok(Transformed::no(node)),
    });
    bare.map(|bare| bare.data)
}

/// Whether every place is compared with a column, or limits rows.
fn values_are_compared(plan: &LogicalPlan) -> EngineResult<bool> {
    let mut fine = true;
    plan.apply_with_subqueries(|node| {
        let (mut places, mut compared) = (0, 0);
        node.apply_expressions(|expr| {
            compared += usize::from(matches!(node, LogicalPlan::Limit(_)) && is_bound(expr));
            expr.apply(|expr| {
                places += usize::from(is_place(expr));
                compared += compared_places(expr);
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        fine &= places == compared && (places == 0 || holds_values(node));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(fine)
}

fn is_place(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(_))
}

/// A place, perhaps with a cast around it.
fn is_bound(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(Cast { expr, .. }) => is_place(expr),
        expr => is_place(expr),
    }
}

fn tables_of(plan: &LogicalPlan) -> EngineResult<Vec<PlannedTable>> {
    let mut tables: Vec<PlannedTable> = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(read) = stoa_table(&scan.source)
        {
            let (StoaTable { table, .. }, is_callers) = (&read, !read.has_reader());
            match tables.iter_mut().find(|known| known.form.ident == *table.ident()) {
                Some(known) => known.is_callers |= is_callers,
                None => {
                    let (uuid, schema_id) = (table.uuid(), table.schema_id());
                    let form = TableForm { ident: table.ident().clone(), uuid, schema_id };
                    tables.push(PlannedTable { form, is_callers });
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// How many places `expr` itself compares with a column.
fn compared_places(expr: &Expr) -> usize {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            let compares = is_column(left) && is_place(right) || is_place(left) && is_column(right);
            usize::from(compares)
        }
        Expr::Between(Between { expr, low, high, .. }) if is_column(expr) => {
            usize::from(is_bound(low)) + usize::from(is_bound(high))
        }
        Expr::InList(InList { expr, list, .. }) if is_column(expr) => {
            list.iter().filter(|item| is_bound(item)).count()
        }
        Expr::ScalarFunction(call) => usize::from(lists::any_of(call).is_some()),
        _ => 0,
    }
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}
