//! Subqueries that name a column of a query more than one level around them, which the engine cannot join, and those with an
//! aggregate that belongs to the query around them.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use stoa_error::Error;
use stoa_sql::array_queries::ROWS;

use crate::errors::to_datafusion;

/// Checks that each subquery names columns of itself and of the query next to it only.
///
/// # Errors
/// `Unsupported` (0A000), naming the column.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    within(plan, &mut Vec::new())
}

/// `around`: what the queries around this one read, the nearest last. The array of `ARRAY(SELECT t.a FROM u)` is the
/// subquery's, as nobody has written the aggregate that makes it.
fn within(plan: &LogicalPlan, around: &mut Vec<DFSchema>) -> Result<()> {
    let mut is_first = true;
    let mut arrays = Vec::new();
    plan.apply(|node| {
        // What stands in FROM as LATERAL reads what is beside it: the engine judges that.
        if matches!(node, LogicalPlan::Subquery(_)) && !is_first {
            return Ok(TreeNodeRecursion::Jump);
        }
        is_first = false;
        node.apply_expressions(|expr| {
            if let Expr::Alias(alias) = expr
                && alias.name == ROWS
            {
                arrays.push(alias.expr.schema_name().to_string());
            }
            expr.apply(|part| {
                match part {
                    Expr::OuterReferenceColumn(_, column) => is_near(column, around)?,
                    Expr::AggregateFunction(_)
                        if !around.is_empty()
                            && !arrays.contains(&part.schema_name().to_string()) =>
                    {
                        is_own(part)?;
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        node.apply_subqueries(|subquery| {
            around.push(merge_schema(&node.inputs()));
            let checked = within(subquery, around);
            around.pop();
            checked.map(|()| TreeNodeRecursion::Continue)
        })
    })
    .map(drop)
}

fn is_near(column: &Column, around: &[DFSchema]) -> Result<()> {
    let Some((nearest, others)) = around.split_last() else { return Ok(()) };
    if nearest.has_column(column) || !others.iter().any(|other| other.has_column(column)) {
        return Ok(());
    }
    let message = format!(
        "a subquery cannot name column \"{}\", which is of a query more than one level around it",
        column.flat_name()
    );
    let hint = "let the subquery in between read that table, too, or join instead of nesting";
    Err(to_datafusion(Error::unsupported(message).with_hint(hint)))
}

/// As SQL has it, an aggregate whose columns are all of the query around is computed there, over the rows of that query. The
/// engine would compute it over those of the subquery.
fn is_own(aggregate: &Expr) -> Result<()> {
    let (mut names_own, mut names_outer) = (false, false);
    aggregate.apply(|part| {
        match part {
            Expr::Column(_) => names_own = true,
            Expr::OuterReferenceColumn(..) => names_outer = true,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if names_own || !names_outer {
        return Ok(());
    }
    let message = "an aggregate of columns of the query around a subquery is not supported";
    let hint = "compute the aggregate in that query, and name its result in the subquery";
    Err(to_datafusion(Error::unsupported(message).with_hint(hint)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::logical_plan::table_scan;
    use datafusion::logical_expr::{LogicalPlanBuilder, col, exists, out_ref_col};

    use super::*;

    fn table(name: &str) -> LogicalPlanBuilder {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        table_scan(Some(name), &schema, None).unwrap()
    }

    fn rows_of(name: &str, of: &str, inner: Option<LogicalPlan>) -> LogicalPlan {
        let same = col(format!("{name}.x")).eq(out_ref_col(DataType::Int64, of));
        let mut rows = table(name).filter(same).unwrap();
        if let Some(inner) = inner {
            rows = rows.filter(exists(Arc::new(inner))).unwrap();
        }
        rows.build().unwrap()
    }

    #[test]
    fn columns_of_the_next_query_only_are_named() {
        let check_all = |inner: LogicalPlan| {
            let middle = rows_of("b", "a.x", Some(inner));
            let whole = table("a").filter(exists(Arc::new(middle))).unwrap().build().unwrap();
            check(&whole)
        };
        check_all(rows_of("c", "b.x", None)).unwrap();
        let error = check_all(rows_of("c", "a.x", None)).unwrap_err().to_string();
        assert!(error.contains("column \"a.x\""), "{error}");
        // What nobody has is not judged here.
        check_all(rows_of("c", "d.x", None)).unwrap();
    }
}
