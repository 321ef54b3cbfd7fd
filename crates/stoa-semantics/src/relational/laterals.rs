//! Rows that are made of the values of a row beside them: `FROM t, unnest(t.list) AS x`, `jsonb_each(t.j)`,
//! `LATERAL (SELECT …)` of these. The engine knows joins of such rows with tables only.
//!
//! ```text
//! t JOIN LATERAL (projection of filter of unnest of projection of one row)
//!   ─► projection of filter of unnest of projection of t, each with the columns of t
//! t LEFT JOIN LATERAL … ON c
//!   ─► the same, but a row that is filtered out, or has no list, keeps its place without a mark
//!   ─► of the rows without mark, the first of each row of t that has no other
//! ```
//! **Invariants:** a join gives the columns it gave; what is computed for a row of a LEFT JOIN that is not there
//! cannot fail. What is not of this form stays as it is: the engine answers or refuses it.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, JoinType, NullEquality, NullHandling, ScalarValue, TableReference,
};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::bool_or;
use datafusion::functions_nested::expr_fn::cardinality;
use datafusion::functions_nested::make_array::make_array;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Filter, Join, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, Unnest,
    WindowFunctionDefinition, lit, when,
};

use super::per_row::has_subquery;
use super::predicates::Names;

/// Puts rows that are made of the left side's values on top of it.
pub(super) fn made_of_rows(
    node: LogicalPlan,
    names: &mut Names,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &node else { return Ok(Transformed::no(node)) };
    let is_outer = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left => true,
        _ => return Ok(Transformed::no(node)),
    };
    let Some(body) = lateral_body(&join.right) else { return Ok(Transformed::no(node)) };
    Ok(match Rows::of(join, is_outer, names).joined(join, &body)? {
        Some(joined) => Transformed::yes(joined),
        None => Transformed::no(node),
    })
}

/// What a LATERAL item of FROM is planned as.
fn lateral_body(right: &LogicalPlan) -> Option<LogicalPlan> {
    match right {
        LogicalPlan::Subquery(subquery) => Some(subquery.subquery.as_ref().clone()),
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let LogicalPlan::Subquery(subquery) = input.as_ref() else { return None };
            let body = Arc::clone(&subquery.subquery);
            SubqueryAlias::try_new(body, alias.clone()).ok().map(LogicalPlan::SubqueryAlias)
        }
        _ => None,
    }
}

/// The columns of the left side, under names of their own while the rows are made.
struct Rows {
    /// As they were.
    columns: Vec<Column>,
    names: Vec<Column>,
    /// For a LEFT JOIN: whether a row of the right side is there.
    there: Option<Column>,
    /// For a LEFT JOIN: the number of the row of the left side.
    number: Column,
}

impl Rows {
    fn of(join: &Join, is_outer: bool, names: &mut Names) -> Self {
        let columns = join.left.schema().columns();
        let prefix = names.next("left");
        let named = |what: &str| Column::new_unqualified(format!("{prefix}_{what}"));
        let names = (0..columns.len()).map(|place| named(&place.to_string())).collect();
        let there = is_outer.then(|| named("there"));
        Self { columns, names, there, number: named("number") }
    }

    /// What each step hands on beside its own columns.
    fn carried(&self) -> impl Iterator<Item = Expr> + '_ {
        let more = self.there.as_ref().map(|_| Expr::Column(self.number.clone()));
        self.names.iter().cloned().map(Expr::Column).chain(more)
    }

    fn carried_with_mark(&self) -> Vec<Expr> {
        self.carried().chain(self.there.clone().map(Expr::Column)).collect()
    }

    fn joined(&self, join: &Join, body: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let left = join.left.as_ref();
        let named = |(column, name): (&Column, &Column)| {
            Expr::Column(column.clone()).alias(name.name.clone())
        };
        let mut columns: Vec<Expr> = self.columns.iter().zip(&self.names).map(named).collect();
        if let Some(there) = &self.there {
            columns.push(row_number().alias(self.number.name.clone()));
            columns.push(lit(true).alias(there.name.clone()));
        }
        // Numbers are a window's, which has to be below a projection.
        let first = match &self.there {
            None => LogicalPlanBuilder::from(left.clone()).project(columns)?,
            Some(_) => {
                let number = columns.remove(self.names.len());
                let mark = columns.remove(self.names.len());
                let mut with_number = columns.clone();
                with_number.push(Expr::Column(self.number.clone()));
                with_number.push(mark);
                LogicalPlanBuilder::from(left.clone()).window([number])?.project(with_number)?
            }
        };
        let Some(made) = self.over(body, &first.build()?)? else { return Ok(None) };
        let back = |column: &Column| -> Expr {
            match self.columns.iter().position(|other| other == column) {
                Some(place) => Expr::Column(self.names[place].clone()),
                None => Expr::Column(column.clone()),
            }
        };
        let mut condition: Option<Expr> = None;
        let pairs = join.on.iter().map(|(left, right)| match join.null_equality {
            NullEquality::NullEqualsNothing => left.clone().eq(right.clone()),
            NullEquality::NullEqualsNull => datafusion::logical_expr::binary_expr(
                left.clone(),
                datafusion::logical_expr::Operator::IsNotDistinctFrom,
                right.clone(),
            ),
        });
        for part in pairs.chain(join.filter.clone()) {
            if matches!(part, Expr::Literal(ScalarValue::Boolean(Some(true)), _)) {
                continue;
            }
            if has_subquery(&part)? {
                return Ok(None);
            }
            let part = part.transform_up(|expr| match &expr {
                Expr::Column(column) if self.columns.contains(column) => {
                    Ok(Transformed::yes(back(column)))
                }
                _ => Ok(Transformed::no(expr)),
            })?;
            condition = Some(match condition {
                Some(before) => before.and(part.data),
                None => part.data,
            });
        }
        let made = match (&self.there, condition) {
            (None, Some(condition)) => LogicalPlanBuilder::from(made).filter(condition)?.build()?,
            (None, None) => made,
            (Some(there), condition) => {
                let made = match condition {
                    Some(condition) => self.filtered(made, condition, there)?,
                    None => made,
                };
                self.with_one_row(made, there)?
            }
        };
        // As the join gives them.
        let own = body.schema().columns();
        let columns = join.schema.iter().enumerate().map(|(place, (qualifier, field))| {
            let expr = match place.checked_sub(self.columns.len()) {
                None => Expr::Column(self.names[place].clone()),
                Some(place) => match &self.there {
                    Some(there) => if_there(there, Expr::Column(own[place].clone()))?,
                    None => Expr::Column(own[place].clone()),
                },
            };
            Ok(named_as(expr, qualifier, field))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        LogicalPlanBuilder::from(made).project(columns)?.build().map(Some)
    }

    /// The rows of `body` on top of `first`; `None` for what is of another form.
    fn over(&self, body: &LogicalPlan, first: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        for expr in body.expressions() {
            if has_subquery(&expr)? {
                return Ok(None);
            }
        }
        let below = |input: &LogicalPlan| self.over(input, first);
        Ok(Some(match body {
            LogicalPlan::EmptyRelation(one) if one.produce_one_row => first.clone(),
            LogicalPlan::Projection(projection) => {
                let Some(input) = below(&projection.input)? else { return Ok(None) };
                let exprs = projection.expr.iter().zip(projection.schema.iter());
                let exprs = exprs.map(|(expr, (qualifier, field))| {
                    let is_plain = matches!(expr, Expr::Column(_) | Expr::Literal(..));
                    let expr = self.beside(expr.clone())?;
                    let expr = match &self.there {
                        Some(there) if !is_plain => if_there(there, expr)?,
                        _ => expr,
                    };
                    Ok(match &expr {
                        Expr::Column(_) => expr,
                        _ => named_as(expr, qualifier, field),
                    })
                });
                let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
                exprs.extend(self.carried_with_mark());
                LogicalPlanBuilder::from(input).project(exprs)?.build()?
            }
            LogicalPlan::Values(values) => {
                let rows = &values.values;
                let list = |(place, field): (usize, &Arc<Field>)| {
                    let cells = rows.iter().map(|row| self.beside(row[place].clone()));
                    Ok(make_array(cells.collect::<Result<Vec<_>>>()?).alias(field.name()))
                };
                let fields = values.schema.fields().iter().enumerate();
                let mut exprs = fields.map(list).collect::<Result<Vec<_>>>()?;
                exprs.extend(self.carried_with_mark());
                let lists = values.schema.columns();
                LogicalPlanBuilder::from(first.clone())
                    .project(exprs)?
                    .unnest_columns_with_options(lists, no_nulls())?
                    .build()?
            }
            LogicalPlan::Unnest(unnest) => {
                let Some(input) = below(&unnest.input)? else { return Ok(None) };
                self.unnested(unnest, input)?
            }
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let Some(input) = below(input)? else { return Ok(None) };
                let predicate = self.beside(predicate.clone())?;
                match &self.there {
                    Some(there) => self.filtered(input, predicate, there)?,
                    None => LogicalPlanBuilder::from(input).filter(predicate)?.build()?,
                }
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(input) = below(&alias.input)? else { return Ok(None) };
                let columns = alias.input.schema().columns().into_iter().zip(alias.schema.iter());
                let renamed = columns.map(|(column, (qualifier, field))| {
                    Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
                });
                let exprs: Vec<Expr> = renamed.chain(self.carried_with_mark()).collect();
                LogicalPlanBuilder::from(input).project(exprs)?.build()?
            }
            LogicalPlan::Subquery(inner) => return below(&inner.subquery),
            // Nobody asks for an order there.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => return below(&sort.input),
            _ => return Ok(None),
        }))
    }

    fn unnested(&self, unnest: &Unnest, input: LogicalPlan) -> Result<LogicalPlan> {
        let (lists, mut options) = (unnest.exec_columns.clone(), unnest.options.clone());
        let Some(there) = &self.there else {
            let builder = LogicalPlanBuilder::from(input);
            return builder.unnest_columns_with_options(lists, options)?.build();
        };
        let has_items = |list: &Column| cardinality(Expr::Column(list.clone())).gt(lit(0_u64));
        let any = lists.iter().map(has_items).reduce(Expr::or).unwrap_or_else(|| lit(false));
        let input = self.filtered(input, any, there)?;
        options.null_handling = NullHandling::PreserveAndExpandEmpty;
        LogicalPlanBuilder::from(input).unnest_columns_with_options(lists, options)?.build()
    }

    /// Rows lose their mark where a condition does not hold.
    fn filtered(&self, input: LogicalPlan, condition: Expr, there: &Column) -> Result<LogicalPlan> {
        let mark = Expr::Column(there.clone());
        let is_whole = if_there(there, condition)?;
        let mark = when(is_whole, mark).end()?.alias(there.name.clone());
        let columns = input.schema().columns().into_iter().map(|column| match column == *there {
            true => mark.clone(),
            false => Expr::Column(column),
        });
        let columns: Vec<Expr> = columns.collect();
        LogicalPlanBuilder::from(input).project(columns)?.build()
    }

    /// Rows with a mark, and one for each row of the left side that has none.
    fn with_one_row(&self, made: LogicalPlan, there: &Column) -> Result<LogicalPlan> {
        let (mark, number) = (Expr::Column(there.clone()), Expr::Column(self.number.clone()));
        let named = |what: &str| format!("{}_{what}", self.number.name);
        let first = row_number().partition_by(vec![number.clone()]);
        let first = first.order_by(vec![mark.clone().sort(true, false)]).build()?;
        let any = bool_or(mark.clone());
        let Expr::AggregateFunction(any) = any else {
            return datafusion::common::internal_err!("an aggregate is not one");
        };
        let any = WindowFunctionDefinition::AggregateUDF(any.func);
        let any = Expr::from(WindowFunction::new(any, vec![mark.clone()]));
        let any = any.partition_by(vec![number]).build()?;
        let (first, any) = (first.alias(named("first")), any.alias(named("any")));
        let column = |what: &str| Expr::Column(Column::new_unqualified(named(what)));
        let is_only = column("any").is_null().and(column("first").eq(lit(1_u64)));
        LogicalPlanBuilder::from(made)
            .window([first])?
            .window([any])?
            .filter(mark.is_not_null().or(is_only))?
            .build()
    }

    /// An expression with columns of the left side, where it refers to them.
    fn beside(&self, expr: Expr) -> Result<Expr> {
        let replaced = expr.transform_up(|expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => {
                Ok(match self.columns.iter().position(|other| other == column) {
                    Some(place) => Transformed::yes(Expr::Column(self.names[place].clone())),
                    None => Transformed::no(expr),
                })
            }
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(replaced.data)
    }
}

/// An expression as a column, with the mark that it has there.
fn named_as(expr: Expr, qualifier: Option<&TableReference>, field: &Field) -> Expr {
    let metadata = Some(FieldMetadata::from(field.metadata())).filter(|of| !of.is_empty());
    expr.alias_qualified_with_metadata(qualifier.cloned(), field.name(), metadata)
}

/// A value of a row that is there; NULL for others.
fn if_there(there: &Column, expr: Expr) -> Result<Expr> {
    when(Expr::Column(there.clone()).is_not_null(), expr).end()
}

fn no_nulls() -> datafusion::common::UnnestOptions {
    datafusion::common::UnnestOptions::new().with_null_handling(NullHandling::Drop)
}
