//! Rows put into groups before the head puts them into its own.
//!
//! ```text
//! GROUP BY date_trunc('week', day), sum(clicks) FILTER (WHERE device = 'm')    head: sums of sums
//!         rows of the table, one by one                       ─►  core: GROUP BY day, device, sum(clicks)
//! ```
//! In: an aggregation that is no core, over rows of one table, perhaps joined with others. Out: the same over the
//! groups of a core, which has as keys all columns that are used otherwise than in a sum, a count, a least or a greatest
//! value. **Invariants:** a sum of sums, a sum of counts and a least of least values are those of the rows, also where
//! a join repeats or drops groups, because all rows of a group meet the same partners. A sum that overflows in
//! a core is the planner's to judge. Sums of floating-point numbers, which depend on the order, are not computed so.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column as Named, DFSchema, JoinType, ScalarValue, TableReference};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::logical_plan::builder::build_join_schema;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate as AggregateNode, AggregateUDF, Case, Expr, ExprSchemable, Filter, Join, LogicalPlan,
    Projection, cast, lit, when,
};
use stoa_report::{Aggregate, Function, Item, ValueKind, kind_of};

use super::core::{Cores, FoundCore, Source, has_subqueries, unaliased, widened};
use super::leaf;

/// Digits of sums of decimals in cores.
const DIGITS_MAX: u8 = 38;

/// What a core computes per group, for the head to go on with.
#[derive(Clone)]
struct Partial {
    function: Function,
    /// `None`: of rows.
    column: Option<Named>,
    name: String,
}

/// What an aggregation needs of its rows.
struct Needs {
    sum: Arc<AggregateUDF>,
    keys: BTreeSet<Named>,
    partials: Vec<Partial>,
}

impl Cores<'_> {
    /// An aggregation over the groups of a core; `None` where it needs each row.
    pub(super) fn pregrouped(&mut self, aggregate: &AggregateNode) -> Option<LogicalPlan> {
        let mut needs = Needs { sum: self.sum()?, keys: BTreeSet::new(), partials: Vec::new() };
        for key in &aggregate.group_expr {
            needs.use_as_key(key)?;
        }
        let schema = aggregate.input.schema();
        let computed = aggregate.aggr_expr.iter().map(|expr| needs.aggregate(expr, schema));
        let computed: Vec<Expr> = computed.collect::<Option<_>>()?;
        let input = self.groups_below(&aggregate.input, needs.keys, &needs.partials)?;
        let keys = aggregate.group_expr.clone();
        let above = AggregateNode::try_new(Arc::new(input), keys, computed).ok()?;
        let above = Arc::new(LogicalPlan::Aggregate(above));
        // By the names and types that the head knows.
        let columns = aggregate.schema.iter().zip(above.schema().columns()).map(
            |((qualifier, field), column)| {
                let column = Expr::Column(column);
                let is_other = column.get_type(above.schema()).ok()? != *field.data_type();
                let column =
                    if is_other { cast(column, field.data_type().clone()) } else { column };
                let column = match field.is_nullable() || !is_integer(field) {
                    true => column,
                    // A count of no groups is 0.
                    false => when(column.clone().is_null(), lit(0_i64)).otherwise(column).ok()?,
                };
                Some(column.alias_qualified(qualifier.cloned(), field.name()))
            },
        );
        let columns: Vec<Expr> = columns.collect::<Option<_>>()?;
        Projection::try_new(columns, above).map(LogicalPlan::Projection).ok()
    }

    /// The rows of `plan` in groups by `keys`, with what the core of them computes.
    fn groups_below(
        &mut self,
        plan: &LogicalPlan,
        keys: BTreeSet<Named>,
        partials: &[Partial],
    ) -> Option<LogicalPlan> {
        if let Some(mut source) = Source::new(plan) {
            let before = self.mark();
            if let Some(positions) = source.positions(plan, self.operands()) {
                return self.grouped_leaf(plan, source, &positions, keys, partials);
            }
            self.back_to(before);
        }
        match plan {
            LogicalPlan::Projection(projection) => self.below_columns(projection, keys, partials),
            LogicalPlan::Filter(filter) => {
                let mut keys = keys;
                keys.extend(filter.predicate.column_refs().into_iter().cloned());
                let input = self.groups_below(&filter.input, keys, partials)?;
                let plain = !has_subqueries(&filter.predicate);
                let above = Filter::try_new(filter.predicate.clone(), Arc::new(input));
                above.map(LogicalPlan::Filter).ok().filter(|_| plain)
            }
            LogicalPlan::Join(join) => self.below_join(join, keys, partials),
            _ => None,
        }
    }

    fn below_columns(
        &mut self,
        projection: &Projection,
        keys: BTreeSet<Named>,
        partials: &[Partial],
    ) -> Option<LogicalPlan> {
        let schema = &projection.schema;
        let (mut columns, mut inner) = (Vec::new(), BTreeSet::new());
        for (expr, column) in projection.expr.iter().zip(schema.columns()) {
            if keys.contains(&column) {
                (!has_subqueries(expr)).then_some(())?;
                inner.extend(expr.column_refs().into_iter().cloned());
                columns.push(expr.clone());
            }
        }
        let below = |partial: &Partial| {
            let column = match &partial.column {
                Some(column) => {
                    let at = schema.maybe_index_of_column(column)?;
                    Some(unaliased(projection.expr.get(at)?).try_as_col()?.clone())
                }
                None => None,
            };
            Some(Partial { column, ..partial.clone() })
        };
        let below = partials.iter().map(below).collect::<Option<Vec<_>>>()?;
        let input = self.groups_below(&projection.input, inner, &below)?;
        let computed = partials.iter().map(|partial| Expr::Column(partial.named()));
        columns.extend(computed);
        Projection::try_new(columns, Arc::new(input)).map(LogicalPlan::Projection).ok()
    }

    fn below_join(
        &mut self,
        join: &Join,
        mut keys: BTreeSet<Named>,
        partials: &[Partial],
    ) -> Option<LogicalPlan> {
        let conditions = join.on.iter().flat_map(|(left, right)| [left, right]);
        for condition in conditions.chain(&join.filter) {
            (!has_subqueries(condition)).then_some(())?;
            keys.extend(condition.column_refs().into_iter().cloned());
        }
        let is_of = |schema: &DFSchema| {
            let mut columns = partials.iter().filter_map(|partial| partial.column.as_ref());
            columns.all(|column| schema.has_column(column))
        };
        let keys_of = |schema: &DFSchema| {
            keys.iter().filter(|key| schema.has_column(key)).cloned().collect::<BTreeSet<_>>()
        };
        let (left, right) = match join.join_type {
            JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti
                if is_of(join.left.schema()) && !join.null_aware =>
            {
                let keys = keys_of(join.left.schema());
                (self.groups_below(&join.left, keys, partials)?, self.head_of(&join.right)?)
            }
            JoinType::Inner | JoinType::Right if is_of(join.right.schema()) => {
                let left = self.head_of(&join.left)?;
                let keys = keys_of(join.right.schema());
                (left, self.groups_below(&join.right, keys, partials)?)
            }
            _ => return None,
        };
        let schema = build_join_schema(left.schema(), right.schema(), &join.join_type).ok()?;
        let (left, right, schema) = (Arc::new(left), Arc::new(right), Arc::new(schema));
        Some(LogicalPlan::Join(Join { left, right, schema, ..join.clone() }))
    }

    /// A core that groups the rows of `plan`, below the conditions that it cannot judge.
    fn grouped_leaf(
        &mut self,
        plan: &LogicalPlan,
        mut source: Source,
        positions: &[usize],
        mut keys: BTreeSet<Named>,
        partials: &[Partial],
    ) -> Option<LogicalPlan> {
        let rest = conjunction(source.take_rest());
        if let Some(rest) = &rest {
            (!has_subqueries(rest)).then_some(())?;
            keys.extend(rest.column_refs().into_iter().cloned());
        }
        let schema = plan.schema();
        let (mut group_by, mut fields) = (Vec::new(), Vec::new());
        for (position, (at, column)) in positions.iter().zip(schema.columns().iter().enumerate()) {
            if !keys.contains(column) {
                continue;
            }
            let key = source.column(*position)?;
            (source.kind(key)? != ValueKind::Float).then_some(())?;
            group_by.push(key);
            let (qualifier, field) = schema.qualified_field(at);
            fields.push((qualifier.cloned(), Arc::clone(field)));
        }
        if group_by.len() < keys.len() {
            return None;
        }
        let mut aggregates = Vec::new();
        for Partial { function, column, name } in partials {
            let column = match column {
                Some(column) => {
                    let at = schema.maybe_index_of_column(column)?;
                    Some(source.column(*positions.get(at)?)?)
                }
                None => None,
            };
            let of = column.and_then(|column| source.type_of(column));
            let field =
                Field::new(name, partial_type(*function, of)?, *function != Function::Count);
            fields.push((None::<TableReference>, Arc::new(field)));
            aggregates.push(Aggregate { function: *function, column });
        }
        let keys = group_by.iter().copied().map(Item::Column);
        let items = keys.chain((0..aggregates.len()).map(Item::Aggregate)).collect();
        let answer = Arc::new(DFSchema::new_with_metadata(fields, HashMap::new()).ok()?);
        let schema = answer.as_arrow().clone();
        let core: FoundCore = source.into_core(true, group_by, aggregates, items, schema);
        let leaf = leaf::plan(self.add(core)?, &answer);
        match rest {
            Some(rest) => Filter::try_new(rest, Arc::new(leaf)).map(LogicalPlan::Filter).ok(),
            None => Some(leaf),
        }
    }
}

impl Needs {
    /// Whatever columns `expr` has must be keys.
    fn use_as_key(&mut self, expr: &Expr) -> Option<()> {
        (!has_subqueries(expr)).then_some(())?;
        self.keys.extend(expr.column_refs().into_iter().cloned());
        Some(())
    }

    /// The same aggregate over groups.
    fn aggregate(&mut self, expr: &Expr, schema: &DFSchema) -> Option<Expr> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = unaliased(expr) else {
            return None;
        };
        if !params.order_by.is_empty() || params.null_treatment.is_some() {
            return None;
        }
        if let Some(filter) = &params.filter {
            self.use_as_key(filter)?;
        }
        let over = |func: &Arc<AggregateUDF>, argument: Expr| {
            let params = AggregateFunctionParams { args: vec![argument], ..params.clone() };
            Some(Expr::AggregateFunction(AggregateFunction { func: Arc::clone(func), params }))
        };
        let [argument] = params.args.as_slice() else { return None };
        let sum = Arc::clone(&self.sum);
        match (func.name(), params.distinct, argument) {
            ("count", false, Expr::Literal(value, _)) if !value.is_null() => {
                over(&sum, self.partial(Function::Count, None))
            }
            ("count", false, Expr::Column(column)) => {
                over(&sum, self.partial(Function::Count, Some(column)))
            }
            ("min" | "max", _, Expr::Column(column)) if is_ordered(column, schema)? => {
                let least = func.name() == "min";
                let function = if least { Function::Min } else { Function::Max };
                over(func, self.partial(function, Some(column)))
            }
            // Values that come more than once count once.
            ("min" | "max", _, _) | ("count", true, _) => {
                self.use_as_key(argument)?;
                Some(unaliased(expr).clone())
            }
            ("sum", false, argument) => {
                let sums = self.linear(argument, schema)?;
                // That of `integer` has another function than that of its sums.
                let of = argument.get_type(schema).ok()?;
                over(if of.is_integer() { &sum } else { func }, sums)
            }
            _ => None,
        }
    }

    /// An expression whose sum is the same over the sums of its columns: a column, or one of several, as keys say.
    fn linear(&mut self, expr: &Expr, schema: &DFSchema) -> Option<Expr> {
        match widened(expr, schema) {
            Expr::Column(column) => {
                let of = schema.qualified_field_from_column(column).ok()?.1.data_type();
                let adds = of.is_integer() || matches!(of, DataType::Decimal128(..));
                adds.then(|| self.partial(Function::Sum, Some(column)))
            }
            Expr::Literal(value, _) if value.is_null() || is_zero(value) => {
                let of = partial_type(Function::Sum, Some(&value.data_type()))?;
                Some(Expr::Literal(value.cast_to(&of).ok()?, None))
            }
            Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
                let mut cases = Vec::with_capacity(when_then_expr.len());
                for (condition, value) in when_then_expr {
                    self.use_as_key(condition)?;
                    cases.push((condition.clone(), Box::new(self.linear(value, schema)?)));
                }
                let otherwise = match else_expr {
                    Some(value) => Some(Box::new(self.linear(value, schema)?)),
                    None => None,
                };
                let case = Case { expr: None, when_then_expr: cases, else_expr: otherwise };
                Some(Expr::Case(case))
            }
            _ => None,
        }
    }

    fn partial(&mut self, function: Function, column: Option<&Named>) -> Expr {
        let is_same =
            |partial: &&Partial| partial.function == function && partial.column.as_ref() == column;
        if let Some(known) = self.partials.iter().find(is_same) {
            return Expr::Column(known.named());
        }
        let name = format!("partial {}", self.partials.len());
        let partial = Partial { function, column: column.cloned(), name };
        let named = partial.named();
        self.partials.push(partial);
        Expr::Column(named)
    }
}

impl Partial {
    fn named(&self) -> Named {
        Named::new_unqualified(self.name.clone())
    }
}

/// The type of what a core computes over a column of a type; `None` where it does not.
fn partial_type(function: Function, of: Option<&DataType>) -> Option<DataType> {
    match (function, of) {
        (Function::Count, _) => Some(DataType::Int64),
        (Function::Sum, Some(DataType::Decimal128(_, scale))) => {
            Some(DataType::Decimal128(DIGITS_MAX, *scale))
        }
        (Function::Sum, Some(of)) if of.is_integer() => Some(DataType::Int64),
        (Function::Min | Function::Max, Some(of)) => Some(of.clone()),
        _ => None,
    }
}

/// Whether reports find the least value of a column.
fn is_ordered(column: &Named, schema: &DFSchema) -> Option<bool> {
    let of = schema.qualified_field_from_column(column).ok()?.1.data_type();
    Some(!matches!(kind_of(of), None | Some(ValueKind::Float)))
}

fn is_integer(field: &Field) -> bool {
    *field.data_type() == DataType::Int64
}

fn is_zero(value: &ScalarValue) -> bool {
    ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero == *value)
}
