//! Aggregates as values that depend on the row around them by more than equality:
//! `(SELECT count(*) FROM o WHERE o.at < t.at)`. The engine joins such a subquery on what is equal, and knows no other
//! way.
//!
//! ```text
//! keys    the values of t.at that there are, each once
//! values  keys LEFT JOIN o ON o.at < key, GROUP BY key: count(*) FILTER (WHERE there is an o)
//! result  t LEFT JOIN values ON t.at IS NOT DISTINCT FROM key
//! ```
//! **Invariants:** a key without rows has the value that the aggregate has for none; a node gives the columns it gave.
//! What is not of this form is left to `by_keys` and to the engine. Keys are not floating-point (0.0 and -0.0
//! are one of them), and the rows around the subquery are not random, as they are read twice.

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema, JoinType, NullEquality, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    Subquery, lit,
};

use super::marks::Below;
use super::predicates::Names;

/// An aggregate without groups over rows that are chosen by the row around the subquery.
struct PerRow<'a> {
    /// What is computed of the aggregates, the last step first.
    steps: Vec<&'a Projection>,
    aggregate: &'a Aggregate,
    /// Conditions on the rows that refer to the row around the subquery.
    chosen_by: Vec<Expr>,
    /// The rows that these conditions choose from.
    rows: LogicalPlan,
}

impl<'a> PerRow<'a> {
    /// `None` for what is of another form.
    fn of(subquery: &'a LogicalPlan) -> Result<Option<Self>> {
        let (mut plan, mut steps) = (subquery, Vec::new());
        let aggregate = loop {
            plan = match plan {
                LogicalPlan::Projection(step) => {
                    steps.push(step);
                    &step.input
                }
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
                LogicalPlan::Aggregate(of) if of.group_expr.is_empty() => break of,
                _ => return Ok(None),
            };
        };
        let (mut plan, mut conditions) = (aggregate.input.as_ref(), Vec::new());
        while let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan {
            conditions.extend(split_conjunction_owned(predicate.clone()));
            plan = input;
        }
        if !plan.all_out_ref_exprs().is_empty() || steps.is_empty() {
            return Ok(None);
        }
        let (mut chosen_by, mut rows) = (Vec::new(), LogicalPlanBuilder::from(plan.clone()));
        for condition in conditions {
            match condition.contains_outer() {
                true if has_subquery(&condition)? => return Ok(None),
                true => chosen_by.push(condition),
                false => rows = rows.filter(condition)?,
            }
        }
        Ok(Some(Self { steps, aggregate, chosen_by, rows: rows.build()? }))
    }

    /// Whether the engine can join it: the row around it is compared for equality only.
    fn is_only_equal(&self) -> bool {
        let is_equality = |condition: &Expr| match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                left.contains_outer() != right.contains_outer()
            }
            _ => false,
        };
        let computed = self.steps.iter().flat_map(|step| &step.expr);
        let has_outer =
            |mut exprs: Box<dyn Iterator<Item = &Expr> + '_>| exprs.any(Expr::contains_outer);
        self.chosen_by.iter().all(is_equality)
            && !has_outer(Box::new(computed))
            && !has_outer(Box::new(self.aggregate.aggr_expr.iter()))
    }

    /// The values for all `keys`, which are called by the columns of the row around the subquery.
    fn values(
        &self,
        keys: LogicalPlan,
        key_of: &HashMap<Column, Column>,
        there: &str,
    ) -> Result<LogicalPlan> {
        let mut columns: Vec<Expr> =
            self.rows.schema().columns().into_iter().map(Expr::Column).collect();
        columns.push(lit(true).alias(there));
        let rows = LogicalPlanBuilder::from(self.rows.clone()).project(columns)?.build()?;
        let keyed = |expr: &Expr| with_keys(expr.clone(), key_of);
        let mut conditions = self.chosen_by.iter().map(keyed).collect::<Result<Vec<_>>>()?;
        if conditions.is_empty() {
            // Only what is computed is about the row: each one is joined with all rows.
            conditions.push(lit(true));
        }
        let key_columns: Vec<Expr> =
            keys.schema().columns().into_iter().map(Expr::Column).collect();
        let is_there = Expr::Column(Column::new_unqualified(there)).is_true();
        let aggregates = self.aggregate.aggr_expr.iter().zip(self.aggregate.schema.fields());
        let aggregates = aggregates
            .map(|(expr, field)| Ok(only_where(keyed(expr)?, &is_there)?.alias(field.name())));
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        let mut values = LogicalPlanBuilder::from(keys)
            .join_on(rows, JoinType::Left, conditions)?
            .aggregate(key_columns.clone(), aggregates)?;
        for step in self.steps.iter().rev() {
            let exprs = step.expr.iter().zip(step.schema.fields()).map(|(expr, field)| {
                let with_keys = keyed(expr)?;
                Ok(if expr.contains_outer() { with_keys.alias(field.name()) } else { with_keys })
            });
            let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
            exprs.extend(key_columns.iter().cloned());
            values = values.project(exprs)?;
        }
        values.build()
    }
}

/// The rows below a node with the value of the subquery; `None` where it is not of this kind.
pub(super) fn join_value(
    below: &Below<'_>,
    subquery: &Subquery,
    names: &mut Names,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let around = below.unchanged;
    let mut outer: Vec<Column> = Vec::new();
    for expr in &subquery.outer_ref_columns {
        match expr {
            Expr::OuterReferenceColumn(_, column) if !outer.contains(column) => {
                outer.push(column.clone());
            }
            _ => {}
        }
    }
    let can_be_key =
        |column: &Column| around.schema().data_type(column).is_ok_and(|kind| !kind.is_floating());
    if outer.is_empty() || !outer.iter().all(can_be_key) || !around.all_out_ref_exprs().is_empty() {
        return Ok(None);
    }
    let Some(per_row) = PerRow::of(&subquery.subquery)? else { return Ok(None) };
    if per_row.is_only_equal() || is_volatile(around)? {
        return Ok(None);
    }
    let (keys_name, values_name) = (names.next("keys"), names.next("values"));
    let named = |table: &str, place: usize| {
        Column::new(Some(TableReference::bare(table.to_owned())), format!("key_{place}"))
    };
    let keys = outer
        .iter()
        .enumerate()
        .map(|(place, column)| Expr::Column(column.clone()).alias(named(&keys_name, place).name));
    let keys = LogicalPlanBuilder::from(around.clone())
        .project(keys)?
        .distinct()?
        .alias(keys_name.as_str())?
        .build()?;
    let key_of = outer.iter().enumerate();
    let key_of = key_of.map(|(place, column)| (column.clone(), named(&keys_name, place))).collect();
    let values = per_row.values(keys, &key_of, &names.next("there"))?;
    let value = Expr::Column(Column::from(values.schema().qualified_field(0)));
    let mut columns: Vec<Expr> = (0..outer.len())
        .map(|place| {
            let key = named(&keys_name, place);
            Expr::Column(key.clone()).alias(key.name)
        })
        .collect();
    columns.push(value.alias("value"));
    let values =
        LogicalPlanBuilder::from(values).project(columns)?.alias(values_name.as_str())?.build()?;
    let keys: Vec<Column> = (0..outer.len()).map(|place| named(&values_name, place)).collect();
    let joined = LogicalPlanBuilder::from(below.joined.clone())
        .join_detailed(values, JoinType::Left, (outer, keys), None, NullEquality::NullEqualsNull)?
        .build()?;
    let value = Column::new(Some(TableReference::bare(values_name)), "value");
    Ok(Some((joined, Expr::Column(value))))
}

/// An expression with keys for the columns of the row around the subquery.
fn with_keys(expr: Expr, key_of: &HashMap<Column, Column>) -> Result<Expr> {
    let replaced = expr.transform_up(|expr| match &expr {
        Expr::OuterReferenceColumn(_, column) => Ok(match key_of.get(column) {
            Some(key) => Transformed::yes(Expr::Column(key.clone())),
            None => Transformed::no(expr),
        }),
        _ => Ok(Transformed::no(expr)),
    })?;
    Ok(replaced.data)
}

/// Aggregates of the rows for which `condition` holds.
pub(super) fn only_where(expr: Expr, condition: &Expr) -> Result<Expr> {
    let filtered = expr.transform_up(|expr| match expr {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let condition = condition.clone();
            params.filter = Some(Box::new(match params.filter {
                Some(filter) => filter.and(condition),
                None => condition,
            }));
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(filtered.data)
}

pub(super) fn has_subquery(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        ))
    })
}

/// Whether the rows of a plan may be others when they are computed again.
pub(super) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.expressions().iter().any(Expr::is_volatile);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
