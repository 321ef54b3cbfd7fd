//! Cores of a plan: its largest parts that are reports.
//!
//! In: an optimised plan with places for values. Out: the cores, and the plan with a leaf in place of each. A core is
//! an aggregation of columns over the rows of one table that meet some conditions, or such rows themselves, for the
//! head to compute on.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column as NamedColumn, DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, Cast};
use datafusion::logical_expr::{
    Aggregate as AggregateNode, AggregateUDF, Expr, ExprSchemable, Filter, LogicalPlan, TableScan,
    utils::{conjunction, split_conjunction},
};
use stoa_orc::FIELD_ID_KEY;
use stoa_report::{Aggregate, Column, Function, Item, ValueKind, kind_of};

use super::Core;
use super::conditions::{Found, Operands};
use super::leaf;
use crate::access::Caller;
use crate::reuse::report::{ReportShape, ShapeCondition, fits, function_of};
use crate::reuse::template::TableForm;
use crate::tables::external;
use crate::tables::table::{StoaTable, stoa_table};

/// Cores that a statement may have.
const CORES_MAX: usize = 16;

/// The cores found so far.
pub(super) struct Cores<'a> {
    operands: Operands<'a>,
    found: Vec<FoundCore>,
    /// The engine's sum.
    sum: Option<Arc<AggregateUDF>>,
}

/// A core, whose parameters are not all known yet.
pub(super) struct FoundCore {
    shape: ReportShape,
    /// Field ids of the columns that the scan reads.
    read: Vec<i32>,
    /// With whose rights, if not with those of whoever asks.
    reader: Option<Arc<Caller>>,
}

impl<'a> Cores<'a> {
    /// None yet, of a plan whose parameters have these `types`.
    pub(super) fn new(types: &'a [DataType], sum: Option<Arc<AggregateUDF>>) -> Self {
        Self { operands: Operands { types, constants: Vec::new() }, found: Vec::new(), sum }
    }

    /// The engine's sum.
    pub(super) fn sum(&self) -> Option<Arc<AggregateUDF>> {
        self.sum.clone()
    }

    /// Where conditions have their values.
    pub(super) fn operands(&mut self) -> &mut Operands<'a> {
        &mut self.operands
    }

    /// Adds a core and gives its number; `None` where there are too many.
    pub(super) fn add(&mut self, core: FoundCore) -> Option<usize> {
        (self.found.len() < CORES_MAX).then(|| {
            self.found.push(core);
            self.found.len() - 1
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// How much was found, to go back to.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.found.len(), self.operands.constants.len())
    }

    /// Forgets what was found since.
    pub(super) fn back_to(&mut self, (cores, constants): (usize, usize)) {
        self.found.truncate(cores);
        self.operands.constants.truncate(constants);
    }

    /// The plan with leaves in place of its cores; `None` where not all scans are in cores, or values would be
    /// needed above them.
    pub(super) fn head_of(&mut self, plan: &LogicalPlan) -> Option<LogicalPlan> {
        let before = self.mark();
        if let Some(leaf) = self.core(plan) {
            return Some(leaf);
        }
        self.back_to(before);
        if let LogicalPlan::Aggregate(aggregate) = plan {
            if let Some(above) = self.pregrouped(aggregate) {
                return Some(above);
            }
            self.back_to(before);
        }
        let is_known = match plan {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::SubqueryAlias(_) => true,
            LogicalPlan::EmptyRelation(nothing) => nothing.produce_one_row,
            _ => false,
        };
        if !is_known || !is_plain(plan) {
            return None;
        }
        let mut fine = true;
        let above = plan.clone().map_children(|child| {
            let head = self.head_of(&child);
            fine &= head.is_some();
            Ok(Transformed::yes(head.unwrap_or(child)))
        });
        above.ok().map(|above| above.data).filter(|_| fine)
    }

    /// The cores, their tables, and the constants that come after the parameters.
    pub(super) fn finished(self) -> (Vec<Core>, Vec<TableForm>, Vec<ScalarValue>) {
        let Operands { types, constants } = self.operands;
        let all = types.iter().cloned().chain(constants.iter().map(ScalarValue::data_type));
        let parameter_types: Vec<DataType> = all.collect();
        let mut tables: Vec<TableForm> = Vec::new();
        let core = |FoundCore { shape, read, reader }: FoundCore| {
            let known = tables.iter().position(|known| *known == shape.table);
            let table = known.unwrap_or(tables.len());
            if known.is_none() {
                tables.push(shape.table.clone());
            }
            let parameter_types = parameter_types.clone();
            let shape = Arc::new(ReportShape { parameter_types, ..shape });
            Core { shape, table, read, reader }
        };
        (self.found.into_iter().map(core).collect(), tables, constants)
    }

    /// The leaf in place of `plan`, if that is a core, perhaps below the conditions that it cannot judge.
    fn core(&mut self, plan: &LogicalPlan) -> Option<LogicalPlan> {
        let (core, rest) = match plan {
            LogicalPlan::Aggregate(aggregate) => self.groups(aggregate).map(|core| (core, None)),
            LogicalPlan::Projection(_) => self.rows(plan).filter(|(_, rest)| rest.is_none()),
            LogicalPlan::Filter(_) | LogicalPlan::TableScan(_) => self.rows(plan),
            _ => None,
        }?;
        let leaf = leaf::plan(self.add(core)?, plan.schema());
        match rest {
            None => Some(leaf),
            Some(rest) => Filter::try_new(rest, Arc::new(leaf)).map(LogicalPlan::Filter).ok(),
        }
    }

    /// An aggregation as a core.
    fn groups(&mut self, aggregate: &AggregateNode) -> Option<FoundCore> {
        let mut source = Source::new(&aggregate.input)?;
        let positions = source.positions(&aggregate.input, &mut self.operands)?;
        if !source.rest.is_empty() {
            return None;
        }
        let schema = aggregate.input.schema();
        let mut group_by = Vec::with_capacity(aggregate.group_expr.len());
        for key in &aggregate.group_expr {
            let column = source.column(*positions.get(index_in(schema, key)?)?)?;
            // Which floating-point numbers are one group, the engine says.
            (source.kind(column)? != ValueKind::Float).then_some(())?;
            group_by.push(column);
        }
        let mut items: Vec<Item> = group_by.iter().copied().map(Item::Column).collect();
        let mut aggregates: Vec<Aggregate> = Vec::new();
        for expr in &aggregate.aggr_expr {
            let aggregate = source.aggregate(expr, schema, &positions)?;
            let known = aggregates.iter().position(|one| *one == aggregate);
            items.push(Item::Aggregate(known.unwrap_or(aggregates.len())));
            if known.is_none() {
                aggregates.push(aggregate);
            }
        }
        let answer = plain_schema(aggregate.schema.as_arrow());
        let has_types = items
            .iter()
            .zip(answer.fields())
            .all(|(item, field)| fits(*item, &source.columns, &aggregates, field.data_type()));
        let fits_all = has_types && items.len() == answer.fields().len();
        fits_all.then(|| source.into_core(true, group_by, aggregates, items, answer))
    }

    /// Rows as a core, and the condition that it cannot judge.
    fn rows(&mut self, plan: &LogicalPlan) -> Option<(FoundCore, Option<Expr>)> {
        let mut source = Source::new(plan)?;
        let positions = source.positions(plan, &mut self.operands)?;
        let rest = conjunction(source.take_rest());
        if rest.as_ref().is_some_and(has_subqueries) {
            return None;
        }
        let columns = positions.into_iter().map(|position| source.column(position));
        let items = columns.map(|column| column.map(Item::Column)).collect::<Option<Vec<_>>>()?;
        let answer = plain_schema(plan.schema().as_arrow());
        let has_types = items.iter().zip(answer.fields()).all(|(item, field)| match item {
            Item::Column(column) => source.columns[*column].data_type == *field.data_type(),
            Item::Aggregate(_) => false,
        });
        let shape =
            has_types.then(|| source.into_core(false, Vec::new(), Vec::new(), items, answer));
        Some((shape?, rest))
    }
}

/// The rows of a table that meet some conditions.
pub(super) struct Source {
    table: StoaTable,
    /// Columns of the table, as it has them.
    schema: Arc<Schema>,
    columns: Vec<Column>,
    conditions: Vec<ShapeCondition>,
    /// Conditions that no report can judge.
    rest: Vec<Expr>,
    /// Positions of the columns that the scan reads.
    read: Vec<usize>,
}

impl Source {
    /// Of the scan that `plan` has below columns and conditions.
    pub(super) fn new(plan: &LogicalPlan) -> Option<Self> {
        let mut node = plan;
        let scan = loop {
            match node {
                LogicalPlan::TableScan(scan) => break scan,
                LogicalPlan::Projection(projection) => node = &projection.input,
                LogicalPlan::Filter(filter) => node = &filter.input,
                LogicalPlan::SubqueryAlias(alias) => node = &alias.input,
                _ => return None,
            }
        };
        let table = stoa_table(&scan.source)?;
        let is_plain =
            table.scans_all() && !table.has_own() && external::refuse_rows(&table.table).is_ok();
        let schema = table.table.schema();
        is_plain.then(|| Self {
            table,
            schema,
            columns: Vec::new(),
            conditions: Vec::new(),
            rest: Vec::new(),
            read: Vec::new(),
        })
    }

    /// The positions in the table of the columns that `plan` gives.
    pub(super) fn positions(
        &mut self,
        plan: &LogicalPlan,
        operands: &mut Operands<'_>,
    ) -> Option<Vec<usize>> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::SubqueryAlias(alias) => {
                let positions = self.positions(&alias.input, operands)?;
                // Above, its columns have other names.
                self.rest.is_empty().then_some(positions)
            }
            LogicalPlan::Projection(projection) => {
                let below = self.positions(&projection.input, operands)?;
                let schema = projection.input.schema();
                let column = |expr| below.get(index_in(schema, expr)?).copied();
                let positions = projection.expr.iter().map(column).collect::<Option<Vec<_>>>()?;
                self.rest.is_empty().then_some(positions)
            }
            LogicalPlan::Filter(filter) => {
                let positions = self.positions(&filter.input, operands)?;
                let schema = Arc::clone(filter.input.schema());
                for condition in split_conjunction(&filter.predicate) {
                    self.condition(condition, &schema, &positions, operands)?;
                }
                Some(positions)
            }
            _ => None,
        }
    }

    fn scan(&mut self, scan: &TableScan) -> Option<Vec<usize>> {
        let all = || (0..self.schema.fields().len()).collect();
        let positions: Vec<usize> = scan.projection.clone().unwrap_or_else(all);
        self.read.clone_from(&positions);
        for filter in &scan.filters {
            // What it skips by, a filter above judges again.
            for column in filter.column_refs() {
                self.read.push(self.schema.index_of(&column.name).ok()?);
            }
        }
        Some(positions)
    }

    /// Adds a condition, or leaves it for the head.
    fn condition(
        &mut self,
        condition: &Expr,
        schema: &DFSchema,
        positions: &[usize],
        operands: &mut Operands<'_>,
    ) -> Option<()> {
        let table = Arc::clone(&self.schema);
        let resolve = |expr: &Expr| {
            let position = *positions.get(index_in(schema, expr)?)?;
            let of = table.fields().get(position)?.data_type();
            // Floating point is not compared in reports.
            let is_judged = !matches!(kind_of(of)?, ValueKind::Float);
            is_judged.then(|| (position, of.clone()))
        };
        let before = operands.constants.len();
        match operands.conditions(condition, &resolve) {
            Some(found) => {
                for (position, test) in found as Vec<Found> {
                    let column = self.column(position)?;
                    self.conditions.push(ShapeCondition { column, test });
                }
            }
            None => {
                operands.constants.truncate(before);
                self.rest.push(condition.clone());
            }
        }
        Some(())
    }

    /// The index among the report's columns of a column of the table.
    pub(super) fn column(&mut self, position: usize) -> Option<usize> {
        if let Some(known) = self.columns.iter().position(|column| column.position == position) {
            return Some(known);
        }
        let field = self.schema.fields().get(position)?;
        kind_of(field.data_type())?;
        let field_id = field.metadata().get(FIELD_ID_KEY)?.parse().ok()?;
        self.columns.push(Column { position, field_id, data_type: field.data_type().clone() });
        Some(self.columns.len() - 1)
    }

    pub(super) fn kind(&self, column: usize) -> Option<ValueKind> {
        kind_of(self.type_of(column)?)
    }

    /// The type of one of the report's columns.
    pub(super) fn type_of(&self, column: usize) -> Option<&DataType> {
        self.columns.get(column).map(|column| &column.data_type)
    }

    /// The conditions that no report can judge.
    pub(super) fn take_rest(&mut self) -> Vec<Expr> {
        std::mem::take(&mut self.rest)
    }

    fn aggregate(
        &mut self,
        expr: &Expr,
        schema: &DFSchema,
        positions: &[usize],
    ) -> Option<Aggregate> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = unaliased(expr) else {
            return None;
        };
        let AggregateFunctionParams { args, distinct, filter, order_by, null_treatment } = params;
        let is_plain =
            !distinct && filter.is_none() && order_by.is_empty() && null_treatment.is_none();
        let [argument] = args.as_slice() else { return None };
        if !is_plain {
            return None;
        }
        let column = match argument {
            Expr::Literal(value, _) if !value.is_null() && func.name() == "count" => None,
            argument => {
                let argument = match func.name() {
                    "sum" | "avg" => widened(argument, schema),
                    _ => argument,
                };
                Some(self.column(*positions.get(index_in(schema, argument)?)?)?)
            }
        };
        let of = match column {
            Some(column) => Some(&self.columns.get(column)?.data_type),
            None => None,
        };
        let function: Function = function_of(func.name(), of)?;
        Some(Aggregate { function, column })
    }

    pub(super) fn into_core(
        self,
        grouped: bool,
        group_by: Vec<usize>,
        aggregates: Vec<Aggregate>,
        items: Vec<Item>,
        schema: Schema,
    ) -> FoundCore {
        let table = &self.table.table;
        let form = TableForm {
            ident: table.ident().clone(),
            uuid: table.uuid(),
            schema_id: table.schema_id(),
        };
        let read = self.read.into_iter().collect();
        let read = crate::access::fields_at(table, Some(&read));
        let shape = ReportShape {
            table: form,
            columns: self.columns,
            conditions: self.conditions,
            grouped,
            group_by,
            aggregates,
            items,
            schema: Arc::new(schema),
            order: Vec::new(),
            limit: None,
            offset: None,
            pinned: Vec::new(),
            parameter_types: Vec::new(),
        };
        FoundCore { shape, read, reader: self.table.reader().cloned() }
    }
}

/// The index of the column that `expr` is, perhaps by another name.
fn index_in(schema: &DFSchema, expr: &Expr) -> Option<usize> {
    let column: &NamedColumn = unaliased(expr).try_as_col()?;
    schema.maybe_index_of_column(column)
}

/// The whole number that a cast makes wider: sums and means of it are the same.
pub(super) fn widened<'e>(expr: &'e Expr, schema: &DFSchema) -> &'e Expr {
    let Expr::Cast(Cast { expr: inner, field }) = expr else { return expr };
    let is_wider = matches!(
        field.data_type(),
        DataType::Int64 | DataType::Decimal128(_, 0..) | DataType::Decimal256(_, 0..)
    );
    match is_wider && inner.get_type(schema).is_ok_and(|of| of.is_integer()) {
        true => inner,
        false => expr,
    }
}

pub(super) fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        expr => expr,
    }
}

/// The columns of an answer, which may lack values wherever.
fn plain_schema(schema: &Schema) -> Schema {
    Schema::new(schema.fields().iter().cloned().collect::<Vec<Arc<Field>>>())
}

/// Whether the expressions of a node are computed from its input alone, and those of a limit are known.
fn is_plain(plan: &LogicalPlan) -> bool {
    let mut plain = true;
    let walked = plan.apply_expressions(|expr| {
        plain &= !has_subqueries(expr);
        let is_limit = matches!(plan, LogicalPlan::Limit(_));
        plain &= !is_limit || matches!(expr, Expr::Literal(..));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.is_ok() && plain
}

/// Whether an expression needs more than its input and values.
pub(super) fn has_subqueries(expr: &Expr) -> bool {
    let is_more = |expr: &Expr| {
        let more = matches!(
            expr,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::ScalarSubquery(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarVariable(..)
        );
        Ok(more)
    };
    expr.exists(is_more).unwrap_or(true)
}
