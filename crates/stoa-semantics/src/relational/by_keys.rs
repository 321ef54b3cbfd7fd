//! Subqueries about the row around them that the engine cannot join: with LIMIT, with an aggregate in LATERAL, within
//! a query in FROM, or as a value that is no aggregate.
//!
//! ```text
//! keys    the values that the subquery names of the row around it, each once
//! rows    the subquery for all keys at once: each operator hands the keys on
//!           LIMIT n            ─► the first n rows of each key, by row_number
//!           an aggregate of all rows ─► one row of each key, also where there are no rows
//!           (others)           ─► over rows of one key: GROUP BY, PARTITION BY, DISTINCT and joins with the keys
//! result  t [LEFT] JOIN rows ON t.… IS NOT DISTINCT FROM key
//! ```
//! After T. Neumann and A. Kemper, Unnesting Arbitrary Queries (BTW 2015).
//! **Invariants:** a node gives the columns it gave. A value of several rows is an error (21000), as in PostgreSQL, also
//! where nobody would have looked at it. Keys are not floating-point (0.0 and -0.0 are one of them), and the rows
//! around the subquery are not random, as they are read twice. What is not of this form stays as it is.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ExprSchema, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Distinct, Expr, ExprFunctionExt, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, Projection, SortExpr, Subquery, SubqueryAlias, Union, Window, binary_expr,
    lit,
};
use datafusion::logical_expr::{Operator, expr::WindowFunction};
use stoa_error::Error;

use super::laterals::{lateral_body, named_as};
use super::marks::{Below, computes_values, replace_by_joins};
use super::per_row::{self, has_subquery, is_volatile, only_where};
use super::predicates::Names;
use crate::call::{Operation, call, columns};
use crate::errors::to_datafusion;

/// Puts joins below a node for each subquery about the row in its expressions whose value the engine cannot join.
pub(super) fn join_values(
    node: LogicalPlan,
    names: &mut Names,
) -> Result<Transformed<LogicalPlan>> {
    if !computes_values(&node) && !matches!(node, LogicalPlan::Filter(_)) {
        return Ok(Transformed::no(node));
    }
    replace_by_joins(node, &mut |below, expr| match expr {
        Expr::ScalarSubquery(subquery) => match per_row::join_value(below, subquery, names)? {
            None => join_value(below, subquery, names),
            joined => Ok(joined),
        },
        _ => Ok(None),
    })
}

/// The rows below a node with the value of a subquery; `None` where it is not of this kind.
fn join_value(
    below: &Below<'_>,
    subquery: &Subquery,
    names: &mut Names,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let plan = subquery.subquery.as_ref();
    let rows = rows_at_most(plan);
    if rows == Some(1) && is_joined_by_engine(plan) {
        return Ok(None);
    }
    let Some(keys) = Keys::of(below.unchanged, plan, names)? else { return Ok(None) };
    let Some(rows_of_keys) = keys.rows(plan, names)? else { return Ok(None) };
    let value = Column::from(rows_of_keys.schema().qualified_field(0));
    let own_keys = keys.columns_of(&rows_of_keys)?;
    let mut builder = LogicalPlanBuilder::from(rows_of_keys);
    let value = match rows {
        Some(1) => Expr::Column(value),
        _ => {
            let group: Vec<Expr> = own_keys.iter().cloned().map(Expr::Column).collect();
            let first = first_value(Expr::Column(value), Vec::new()).alias("first");
            builder = builder.aggregate(group, [first, count(lit(1_i64)).alias("rows")])?;
            let column = |name: &str| Expr::Column(Column::new_unqualified(name));
            call(Single, vec![column("first"), column("rows")])
        }
    };
    let table = names.next("value");
    let mut items = vec![value.alias("value")];
    let own_keys = keys.columns_of(&builder.clone().build()?)?;
    items.extend(own_keys.into_iter().map(Expr::Column));
    let values = builder.project(items)?.alias(table.as_str())?.build()?;
    let own_keys = keys.columns_of(&values)?;
    let joined = LogicalPlanBuilder::from(below.joined.clone())
        .join_detailed(
            values,
            JoinType::Left,
            (keys.outer.clone(), own_keys),
            None,
            NullEquality::NullEqualsNull,
        )?
        .build()?;
    let value = Column::new(Some(table), "value");
    Ok(Some((joined, Expr::Column(value))))
}

/// A join with LATERAL rows as one with the rows of all keys.
pub(super) fn join_lateral(
    node: LogicalPlan,
    names: &mut Names,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &node else { return Ok(Transformed::no(node)) };
    let is_known = matches!(join.join_type, JoinType::Inner | JoinType::Left);
    let Some(body) = lateral_body(&join.right).filter(|_| is_known) else {
        return Ok(Transformed::no(node));
    };
    if is_plain(&body) {
        return Ok(Transformed::no(node));
    }
    let Some(keys) = Keys::of(&join.left, &body, names)? else { return Ok(Transformed::no(node)) };
    let Some(rows) = keys.rows(&body, names)? else { return Ok(Transformed::no(node)) };
    let own_keys = keys.columns_of(&rows)?;
    let mut conditions = join.on.iter().map(|(left, right)| match join.null_equality {
        NullEquality::NullEqualsNothing => left.clone().eq(right.clone()),
        NullEquality::NullEqualsNull => is_same(left.clone(), right.clone()),
    });
    let on = conditions.by_ref().chain(join.filter.clone()).reduce(Expr::and);
    let joined = LogicalPlanBuilder::from(join.left.as_ref().clone())
        .join_detailed(
            rows,
            join.join_type,
            (keys.outer.clone(), own_keys),
            on,
            NullEquality::NullEqualsNull,
        )?
        .project(join.schema.columns().into_iter().map(Expr::Column))?
        .build()?;
    Ok(Transformed::yes(joined))
}

/// The most rows that a plan gives for one row around it, if that is known.
fn rows_at_most(plan: &LogicalPlan) -> Option<usize> {
    match plan {
        LogicalPlan::Projection(projection) => rows_at_most(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => rows_at_most(&alias.input),
        LogicalPlan::Sort(sort) => rows_at_most(&sort.input),
        LogicalPlan::Filter(filter) => rows_at_most(&filter.input),
        LogicalPlan::Aggregate(of) if of.group_expr.is_empty() => Some(1),
        LogicalPlan::EmptyRelation(_) => Some(1),
        LogicalPlan::Limit(limit) => match limit.fetch.as_deref() {
            Some(Expr::Literal(rows, _)) if *rows == 1_i64.into() || *rows == 0_i64.into() => {
                Some(1)
            }
            _ => rows_at_most(&limit.input),
        },
        _ => None,
    }
}

/// Whether the engine joins a value itself: an aggregate of rows that a condition chooses.
fn is_joined_by_engine(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_joined_by_engine(&projection.input),
        LogicalPlan::Sort(sort) => is_joined_by_engine(&sort.input),
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            chosen_rows(&aggregate.input).all_out_ref_exprs().is_empty()
        }
        LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}

fn chosen_rows(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Filter(filter) => chosen_rows(&filter.input),
        plan => plan,
    }
}

/// Whether LATERAL rows are nothing but rows that a condition chooses; the engine joins these.
fn is_plain(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_plain(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_plain(&alias.input),
        LogicalPlan::Filter(filter) => is_plain(&filter.input),
        LogicalPlan::EmptyRelation(_) => true,
        plan => plan.all_out_ref_exprs().is_empty(),
    }
}

fn is_same(left: Expr, right: Expr) -> Expr {
    binary_expr(left, Operator::IsNotDistinctFrom, right)
}

/// What a subquery names of the row around it.
struct Keys {
    /// As the row around it has them.
    outer: Vec<Column>,
    /// As the rows of the subquery have them; no other column is called so.
    names: Vec<String>,
    /// Each once.
    plan: LogicalPlan,
}

impl Keys {
    /// `None` where they cannot be read for themselves.
    fn of(around: &LogicalPlan, plan: &LogicalPlan, names: &mut Names) -> Result<Option<Self>> {
        let mut outer: Vec<Column> = Vec::new();
        for expr in plan.all_out_ref_exprs() {
            match expr {
                Expr::OuterReferenceColumn(_, column) if !outer.contains(&column) => {
                    outer.push(column);
                }
                _ => {}
            }
        }
        let is_key = |column: &Column| {
            around.schema().data_type(column).is_ok_and(|of| !of.is_floating() && !of.is_nested())
        };
        let is_readable = !outer.is_empty()
            && outer.iter().all(is_key)
            && around.all_out_ref_exprs().is_empty()
            && !is_volatile(around)?
            && !is_volatile(plan)?;
        if !is_readable {
            return Ok(None);
        }
        let table = names.next("keys");
        let named: Vec<String> = (0..outer.len()).map(|place| format!("{table}_{place}")).collect();
        let keys = outer
            .iter()
            .zip(&named)
            .map(|(column, name)| Expr::Column(column.clone()).alias(name.clone()));
        let plan = LogicalPlanBuilder::from(around.clone()).project(keys)?.distinct()?.build()?;
        Ok(Some(Self { outer, names: named, plan }))
    }

    /// The keys under other names.
    fn renamed(&self, names: &[String]) -> Result<LogicalPlan> {
        let columns = self.columns_of(&self.plan)?.into_iter().zip(names);
        let columns = columns.map(|(column, name)| Expr::Column(column).alias(name.clone()));
        LogicalPlanBuilder::from(self.plan.clone()).project(columns)?.build()
    }

    /// The columns of a plan that hands them on.
    fn columns_of(&self, plan: &LogicalPlan) -> Result<Vec<Column>> {
        columns_called(&self.names, plan)
    }

    /// An expression over rows that have the keys.
    fn put_into(&self, expr: Expr, columns: &[Column]) -> Result<Expr> {
        let replaced = expr.transform_up(|expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => {
                let place = self.outer.iter().position(|outer| outer == column);
                Ok(match place {
                    Some(place) => Transformed::yes(Expr::Column(columns[place].clone())),
                    None => Transformed::no(expr),
                })
            }
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(replaced.data)
    }

    /// The rows of a plan for all keys: its columns, and the keys behind them. `None` for what is of another form.
    fn rows(&self, plan: &LogicalPlan, names: &mut Names) -> Result<Option<LogicalPlan>> {
        if plan.all_out_ref_exprs().is_empty() {
            let rows = LogicalPlanBuilder::from(plan.clone()).cross_join(self.plan.clone())?;
            return rows.build().map(Some);
        }
        for expr in plan.expressions() {
            if has_subquery(&expr)? && expr.contains_outer() {
                return Ok(None);
            }
        }
        match plan {
            LogicalPlan::Projection(projection) => {
                let Some(input) = self.rows(&projection.input, names)? else { return Ok(None) };
                let columns = self.columns_of(&input)?;
                let items = projection.expr.iter().zip(projection.schema.iter());
                let items = items.map(|(expr, (qualifier, field))| match expr.contains_outer() {
                    true => Ok(named_as(
                        self.put_into(expr.clone().unalias(), &columns)?,
                        qualifier,
                        field,
                    )),
                    false => Ok(expr.clone()),
                });
                let mut items = items.collect::<Result<Vec<_>>>()?;
                items.extend(columns.into_iter().map(Expr::Column));
                LogicalPlanBuilder::from(input).project(items)?.build().map(Some)
            }
            LogicalPlan::Filter(filter) => {
                let Some(input) = self.rows(&filter.input, names)? else { return Ok(None) };
                let columns = self.columns_of(&input)?;
                let predicate = self.put_into(filter.predicate.clone(), &columns)?;
                LogicalPlanBuilder::from(input).filter(predicate)?.build().map(Some)
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let Some(input) = self.rows(input, names)? else { return Ok(None) };
                LogicalPlanBuilder::from(input).alias(alias.clone())?.build().map(Some)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                let Some(input) = self.rows(&sort.input, names)? else { return Ok(None) };
                let order = self.order(&sort.expr, &input)?;
                LogicalPlanBuilder::from(input).sort(order)?.build().map(Some)
            }
            LogicalPlan::Subquery(lateral) => self.rows(&lateral.subquery, names),
            LogicalPlan::Limit(limit) => self.first_of_each(limit, names),
            LogicalPlan::Aggregate(aggregate) => self.aggregated(aggregate, names),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(input) = self.rows(input, names)? else { return Ok(None) };
                LogicalPlanBuilder::from(input).distinct()?.build().map(Some)
            }
            LogicalPlan::Window(window) => self.windows(window, names),
            LogicalPlan::Join(join) => self.joined(join, names),
            LogicalPlan::Unnest(unnest) => {
                let Some(input) = self.rows(&unnest.input, names)? else { return Ok(None) };
                let (lists, options) = (unnest.exec_columns.clone(), unnest.options.clone());
                let rows = LogicalPlanBuilder::from(input);
                let rows = rows.unnest_columns_with_options(lists, options)?.build()?;
                self.as_of(&unnest.schema.columns(), rows).map(Some)
            }
            LogicalPlan::Union(Union { inputs, .. }) => {
                let mut all: Option<LogicalPlanBuilder> = None;
                for input in inputs {
                    let Some(rows) = self.rows(input, names)? else { return Ok(None) };
                    all = Some(match all {
                        Some(before) => before.union(rows)?,
                        None => LogicalPlanBuilder::from(rows),
                    });
                }
                all.map(LogicalPlanBuilder::build).transpose()
            }
            _ => Ok(None),
        }
    }

    fn order(&self, order: &[SortExpr], input: &LogicalPlan) -> Result<Vec<SortExpr>> {
        let columns = self.columns_of(input)?;
        let with_keys = |sort: &SortExpr| {
            Ok(SortExpr { expr: self.put_into(sort.expr.clone(), &columns)?, ..sort.clone() })
        };
        order.iter().map(with_keys).collect()
    }

    fn first_of_each(&self, limit: &Limit, names: &mut Names) -> Result<Option<LogicalPlan>> {
        if let LogicalPlan::Projection(projection) = limit.input.as_ref() {
            // What is selected of the first rows: the order may be by other columns.
            let first =
                LogicalPlan::Limit(Limit { input: Arc::clone(&projection.input), ..limit.clone() });
            let first = Projection::try_new(projection.expr.clone(), Arc::new(first))?;
            return self.rows(&LogicalPlan::Projection(first), names);
        }
        let (order, input) = match limit.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (sort.expr.as_slice(), &sort.input),
            _ => (&[][..], &limit.input),
        };
        let Some(input) = self.rows(input, names)? else { return Ok(None) };
        let columns = self.columns_of(&input)?;
        let order = self.order(order, &input)?;
        let number = names.next("number");
        let each_key = columns.iter().cloned().map(Expr::Column).collect();
        let numbered = row_number().partition_by(each_key);
        let numbered = if order.is_empty() { numbered } else { numbered.order_by(order) };
        let numbered = numbered.build()?.alias(number.clone());
        let own: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        let number = Expr::Column(Column::new_unqualified(number));
        let with_keys = |rows: &Option<Box<Expr>>| match rows {
            Some(rows) => self.put_into(rows.as_ref().clone(), &columns).map(Some),
            None => Ok(None),
        };
        let (skip, fetch) = (with_keys(&limit.skip)?, with_keys(&limit.fetch)?);
        let mut rows = LogicalPlanBuilder::from(input).window([numbered])?;
        if let Some(fetch) = fetch {
            let last = match &skip {
                Some(skip) => skip.clone() + fetch,
                None => fetch,
            };
            rows = rows.filter(number.clone().lt_eq(last))?;
        }
        if let Some(skip) = skip {
            rows = rows.filter(number.gt(skip))?;
        }
        rows.project(own)?.build().map(Some)
    }

    fn aggregated(&self, aggregate: &Aggregate, names: &mut Names) -> Result<Option<LogicalPlan>> {
        let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
        if aggregate.group_expr.iter().any(is_set) {
            return Ok(None);
        }
        let Some(input) = self.rows(&aggregate.input, names)? else { return Ok(None) };
        let fields: Vec<_> = aggregate.schema.iter().collect();
        let named = |expr: Expr, place: usize| {
            let (qualifier, field) = fields[place];
            named_as(expr, qualifier, field)
        };
        if !aggregate.group_expr.is_empty() {
            let columns = self.columns_of(&input)?;
            let own = |(place, expr): (usize, &Expr)| match expr.contains_outer() {
                true => Ok(named(self.put_into(expr.clone().unalias(), &columns)?, place)),
                false => Ok(expr.clone()),
            };
            let groups = aggregate.group_expr.iter().enumerate().map(own);
            let mut groups = groups.collect::<Result<Vec<_>>>()?;
            let before = groups.len();
            let values = aggregate.aggr_expr.iter().enumerate();
            let values = values.map(|(place, expr)| own((before + place, expr)));
            let values = values.collect::<Result<Vec<_>>>()?;
            groups.extend(columns.into_iter().map(Expr::Column));
            let rows = LogicalPlanBuilder::from(input).aggregate(groups, values)?.build()?;
            return self.as_of(&aggregate.schema.columns(), rows).map(Some);
        }
        let there = names.next("there");
        let mut marked: Vec<Expr> =
            input.schema().columns().into_iter().map(Expr::Column).collect();
        marked.push(lit(true).alias(there.clone()));
        let rows = LogicalPlanBuilder::from(input).project(marked)?.build()?;
        let table = names.next("all_keys");
        let all: Vec<String> =
            (0..self.names.len()).map(|place| format!("{table}_{place}")).collect();
        let keys = self.renamed(&all)?;
        let of_keys = columns_called(&all, &keys)?;
        let is_there = Expr::Column(Column::new_unqualified(there)).is_true();
        let values = aggregate.aggr_expr.iter().enumerate().map(|(place, expr)| {
            let with_keys = self.put_into(expr.clone().unalias(), &of_keys)?;
            Ok(named(only_where(with_keys, &is_there)?, place))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let of_rows = self.columns_of(&rows)?;
        let groups: Vec<Expr> = of_keys.iter().cloned().map(Expr::Column).collect();
        let rows = LogicalPlanBuilder::from(keys)
            .join_detailed(
                rows,
                JoinType::Left,
                (of_keys.clone(), of_rows),
                None,
                NullEquality::NullEqualsNull,
            )?
            .aggregate(groups, values)?
            .build()?;
        let mut items: Vec<Expr> =
            aggregate.schema.columns().into_iter().map(Expr::Column).collect();
        let keys = columns_called(&all, &rows)?.into_iter().zip(&self.names);
        items.extend(keys.map(|(column, name)| Expr::Column(column).alias(name.clone())));
        LogicalPlanBuilder::from(rows).project(items)?.build().map(Some)
    }

    fn windows(&self, window: &Window, names: &mut Names) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.rows(&window.input, names)? else { return Ok(None) };
        let columns = self.columns_of(&input)?;
        let before = window.input.schema().fields().len();
        let fields: Vec<_> = window.schema.iter().collect();
        let mut partitioned = Vec::with_capacity(window.window_expr.len());
        for (place, expr) in window.window_expr.iter().enumerate() {
            let Expr::WindowFunction(function) = self.put_into(expr.clone().unalias(), &columns)?
            else {
                return Ok(None);
            };
            let WindowFunction { fun, params } = *function;
            let mut partition_by = params.partition_by;
            partition_by.extend(columns.iter().cloned().map(Expr::Column));
            let params = WindowFunctionParams { partition_by, ..params };
            let (qualifier, field) = fields[before + place];
            let function = Expr::WindowFunction(Box::new(WindowFunction { fun, params }));
            partitioned.push(named_as(function, qualifier, field));
        }
        let rows = LogicalPlanBuilder::from(input).window(partitioned)?.build()?;
        self.as_of(&window.schema.columns(), rows).map(Some)
    }

    fn joined(&self, join: &Join, names: &mut Names) -> Result<Option<LogicalPlan>> {
        let is_inner = join.join_type == JoinType::Inner;
        if !is_inner && join.join_type != JoinType::Left {
            return Ok(None);
        }
        let names_outer = |plan: &LogicalPlan| !plan.all_out_ref_exprs().is_empty();
        let (of_left, of_right) = (names_outer(&join.left), names_outer(&join.right));
        // Without a condition, a side that names nothing is the same for all keys.
        let left_has_keys = of_left || !of_right || !is_inner;
        let right_has_keys = of_right;
        let left = match left_has_keys {
            true => self.rows(&join.left, names)?,
            false => Some(join.left.as_ref().clone()),
        };
        let right = match right_has_keys {
            true => self.rows(&join.right, names)?,
            false => Some(join.right.as_ref().clone()),
        };
        let (Some(left), Some(mut right)) = (left, right) else { return Ok(None) };
        let mut same_keys = Vec::new();
        if left_has_keys && right_has_keys {
            let table = names.next("right_keys");
            let renamed: Vec<String> =
                (0..self.names.len()).map(|place| format!("{table}_{place}")).collect();
            let mut items: Vec<Expr> =
                join.right.schema().columns().into_iter().map(Expr::Column).collect();
            let own = self.columns_of(&right)?.into_iter().zip(&renamed);
            items.extend(own.map(|(column, name)| Expr::Column(column).alias(name.clone())));
            right = LogicalPlanBuilder::from(right).project(items)?.build()?;
            let pairs = self.columns_of(&left)?.into_iter().zip(columns_called(&renamed, &right)?);
            same_keys
                .extend(pairs.map(|(one, other)| is_same(Expr::Column(one), Expr::Column(other))));
        }
        let columns = self.columns_of(if left_has_keys { &left } else { &right })?;
        let pairs = join.on.iter().map(|(left, right)| match join.null_equality {
            NullEquality::NullEqualsNothing => left.clone().eq(right.clone()),
            NullEquality::NullEqualsNull => is_same(left.clone(), right.clone()),
        });
        let conditions = pairs.chain(join.filter.clone()).map(|expr| self.put_into(expr, &columns));
        let mut conditions = conditions.collect::<Result<Vec<_>>>()?;
        conditions.extend(same_keys);
        let joined = LogicalPlanBuilder::from(left);
        let joined = match conditions.is_empty() {
            true => joined.cross_join(right)?,
            false => joined.join_on(right, join.join_type, conditions)?,
        };
        self.as_of(&join.schema.columns(), joined.build()?).map(Some)
    }

    /// The columns of a plan and the keys, in the order in which all hand them on.
    fn as_of(&self, columns: &[Column], rows: LogicalPlan) -> Result<LogicalPlan> {
        let mut items: Vec<Expr> = columns.iter().cloned().map(Expr::Column).collect();
        items.extend(self.columns_of(&rows)?.into_iter().map(Expr::Column));
        LogicalPlanBuilder::from(rows).project(items)?.build()
    }
}

fn columns_called(names: &[String], plan: &LogicalPlan) -> Result<Vec<Column>> {
    let column = |name: &String| {
        let (qualifier, field) = plan.schema().qualified_field_with_unqualified_name(name)?;
        Ok(Column::new(qualifier.cloned(), field.name()))
    };
    names.iter().map(column).collect()
}

/// The first operand, where the second is not more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Single;

impl Operation for Single {
    fn name(&self) -> &str {
        "single_row"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [value, counts] = columns.as_slice() else {
            return Err(crate::call::failure("42883", "two operands wanted"));
        };
        let counts = counts.as_primitive::<Int64Type>();
        if counts.iter().flatten().any(|rows| rows > 1) {
            let what = "more than one row returned by a subquery used as an expression";
            return Err(to_datafusion(
                Error::invalid(what)
                    .with_sqlstate("21000")
                    .with_hint("name one row by a condition, LIMIT 1 or an aggregate"),
            ));
        }
        Ok(Arc::clone(value))
    }
}
