//! DELETE and UPDATE of rows that meet a condition.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    DmlStatement, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, cast, when,
};
use stoa_error::{Error, Result};

use super::{Files, RowChange};
use crate::tables::table::{StoaTable, stoa_table};
use stoa_semantics::errors::from_datafusion;

/// The table of a statement, as it is named there, and the condition on its rows.
struct Selected {
    table: StoaTable,
    rows: LogicalPlan,
    condition: Option<Expr>,
}

impl Selected {
    fn of(input: &LogicalPlan, table: &StoaTable) -> Result<Self> {
        let (rows, condition) = match input {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                (input, Some(name_lists(predicate.clone())?))
            }
            other => (&Arc::new(other.clone()), None),
        };
        if !is_one_table(rows) {
            return Err(Error::unsupported(
                "DELETE and UPDATE with LIMIT, or with rows of other tables, are not supported",
            )
            .with_hint("use a subquery in WHERE, or MERGE INTO"));
        }
        Ok(Self { table: table.clone(), rows: rows.as_ref().clone(), condition })
    }

    fn conditions(&self) -> Vec<Expr> {
        self.condition.clone().map(split_conjunction_owned).unwrap_or_default()
    }

    /// The rows of `files`.
    fn all(&self, files: Files) -> EngineResult<LogicalPlan> {
        let restricted = Arc::new(self.table.clone().only(files));
        let replace = |node| match node {
            LogicalPlan::TableScan(mut scan) => {
                scan.source = provider_as_source(Arc::clone(&restricted) as _);
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            other => Ok(Transformed::no(other)),
        };
        self.rows.clone().transform_up(replace).map(|replaced| replaced.data)
    }

    /// Those of them that meet the condition.
    fn matching(&self, files: Files) -> EngineResult<LogicalPlan> {
        let rows = LogicalPlanBuilder::from(self.all(files)?);
        match &self.condition {
            Some(condition) => rows.filter(condition.clone())?.build(),
            None => rows.build(),
        }
    }
}

/// Gives the column of each `IN (SELECT …)` a plain name: the engine cannot plan an unnamed
/// expression there below a NOT.
fn name_lists(condition: Expr) -> Result<Expr> {
    let named = condition.transform_up(|expr| {
        let Expr::InSubquery(mut list) = expr else { return Ok(Transformed::no(expr)) };
        let query = list.subquery.subquery.as_ref().clone();
        let columns = query.schema().columns().into_iter();
        let columns: Vec<Expr> =
            columns.map(|column| Expr::Column(column).alias("listed")).collect();
        let query = LogicalPlanBuilder::from(query).project(columns)?.build()?;
        list.subquery = list.subquery.with_plan(Arc::new(query));
        Ok(Transformed::yes(Expr::InSubquery(list)))
    });
    named.map(|named| named.data).map_err(from_datafusion)
}

/// Whether a plan is a table, by whatever name.
fn is_one_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => stoa_table(&scan.source).is_some(),
        LogicalPlan::SubqueryAlias(alias) => is_one_table(&alias.input),
        _ => false,
    }
}

/// `DELETE FROM table WHERE condition`.
pub(super) struct Delete {
    rows: Selected,
    condition: Expr,
}

impl Delete {
    /// `None` without a condition: all rows go.
    pub(super) fn of(dml: &DmlStatement, table: &StoaTable) -> Result<Option<Self>> {
        let rows = Selected::of(&dml.input, table)?;
        Ok(rows.condition.clone().map(|condition| Self { rows, condition }))
    }
}

impl RowChange for Delete {
    fn conditions(&self) -> Vec<Expr> {
        self.rows.conditions()
    }

    fn changed(&self, files: Files) -> EngineResult<LogicalPlan> {
        self.rows.matching(files)
    }

    fn rewritten(&self, files: Files) -> EngineResult<LogicalPlan> {
        // A condition that is NULL deletes nothing.
        let stays = Expr::IsNotTrue(Box::new(self.condition.clone()));
        LogicalPlanBuilder::from(self.rows.all(files)?).filter(stays)?.build()
    }

    fn returned(&self, files: Files) -> EngineResult<Option<LogicalPlan>> {
        self.rows.matching(files).map(Some)
    }
}

/// `UPDATE table SET column = value WHERE condition`.
pub(super) struct Update {
    rows: Selected,
    /// One per column: the new value, named as the column.
    values: Vec<Expr>,
}

impl Update {
    pub(super) fn of(dml: &DmlStatement, table: &StoaTable) -> Result<Self> {
        let LogicalPlan::Projection(Projection { expr, input, .. }) = dml.input.as_ref() else {
            return Err(Error::internal("UPDATE is planned without its values"));
        };
        let rows = Selected::of(input, table)?;
        let old = rows.rows.schema().columns();
        if old.len() != expr.len() {
            return Err(Error::internal("UPDATE is planned with other columns than the table's"));
        }
        let types = rows.rows.schema().fields().iter().map(|field| field.data_type().clone());
        let values = expr.iter().zip(old).zip(types).map(|((new, old), data_type)| {
            let name = old.name.clone();
            let new = new.clone().unalias();
            let old = Expr::Column(old);
            if new == old {
                return Ok(new.alias(name));
            }
            // The engine casts what it takes for another type, and takes a CASE for the type of its first
            // branch. Without a cast, the old values of rows that stay would become of its real type, too.
            let new = cast(new, data_type);
            let value = match &rows.condition {
                Some(condition) => {
                    let met = Expr::IsTrue(Box::new(condition.clone()));
                    when(met, new).otherwise(old)?
                }
                None => new,
            };
            Ok(value.alias(name))
        });
        let values = values.collect::<EngineResult<_>>().map_err(from_datafusion)?;
        Ok(Self { rows, values })
    }
}

impl RowChange for Update {
    fn conditions(&self) -> Vec<Expr> {
        self.rows.conditions()
    }

    fn changed(&self, files: Files) -> EngineResult<LogicalPlan> {
        self.rows.matching(files)
    }

    fn rewritten(&self, files: Files) -> EngineResult<LogicalPlan> {
        LogicalPlanBuilder::from(self.rows.all(files)?).project(self.values.clone())?.build()
    }

    fn returned(&self, files: Files) -> EngineResult<Option<LogicalPlan>> {
        let rows = LogicalPlanBuilder::from(self.rows.matching(files)?);
        rows.project(self.values.clone())?.build().map(Some)
    }
}
