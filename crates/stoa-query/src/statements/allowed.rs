//! What the plan of a statement may be made of.
//!
//! In: a plan as the engine's planner made it. Out: nothing, or the error that says what is refused.
//!
//! The engine can plan more than a report server may do: writing files, making tables of files, setting
//! variables, also inside of EXPLAIN. What may be in a plan is listed here; all else is refused,
//! wherever it stands, before anything is executed.
//!
//! **Invariant:** a plan that passes reads tables and values, and changes at most the rows of one table.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement, WriteOp};
use stoa_error::{Error, Result};

use crate::scripts;
use stoa_semantics::errors::from_datafusion;

/// Refuses a plan with a node that is not listed, subqueries included.
///
/// # Errors
/// `Unsupported` (0A000), naming what is refused.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let explained = match plan {
        LogicalPlan::Explain(explain) => Some(explain.plan.as_ref()),
        LogicalPlan::Analyze(analyze) => Some(analyze.input.as_ref()),
        _ => None,
    };
    let top = explained.unwrap_or(plan);
    let (mut is_top, mut refused) = (true, None);
    top.apply_with_subqueries(|node| {
        let stands_at_top = std::mem::take(&mut is_top);
        let is_allowed = match node {
            LogicalPlan::Dml(dml) => stands_at_top && may_write(&dml.op, explained.is_some()),
            other => only_reads(other),
        };
        if is_allowed {
            return Ok(TreeNodeRecursion::Continue);
        }
        refused = Some(refusal(node, stands_at_top));
        Ok(TreeNodeRecursion::Stop)
    })
    .map_err(from_datafusion)?;
    refused.map_or(Ok(()), Err)
}

/// Whether rows may be changed this way; by a statement that is explained, they are only inserted.
fn may_write(op: &WriteOp, is_explained: bool) -> bool {
    match op {
        WriteOp::Insert(_) => true,
        WriteOp::Delete | WriteOp::Update | WriteOp::Truncate | WriteOp::MergeInto(_) => {
            !is_explained
        }
        _ => false,
    }
}

/// The nodes of queries.
fn only_reads(node: &LogicalPlan) -> bool {
    if let LogicalPlan::Extension(extension) = node {
        return scripts::is_script(extension);
    }
    matches!(
        node,
        LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::RecursiveQuery(_)
    )
}

fn refusal(node: &LogicalPlan, stands_at_top: bool) -> Error {
    let error = |what: &str, hint: &str| {
        Error::unsupported(format!("{what} is not supported")).with_hint(hint.to_owned())
    };
    match node {
        LogicalPlan::Copy(_) => error("COPY to a file", "use COPY … TO STDOUT"),
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(_)) => {
            error("CREATE EXTERNAL TABLE", "load the files with COPY … FROM or stoa load")
        }
        LogicalPlan::Statement(Statement::Prepare(_) | Statement::Execute(_)) => error(
            "PREPARE and EXECUTE as statements",
            "use the protocol's prepared statements, as drivers do",
        ),
        LogicalPlan::Dml(dml) if stands_at_top => {
            let command = dml.op.name().to_uppercase();
            error(&format!("EXPLAIN {command}"), "explain the query that finds its rows")
        }
        LogicalPlan::Dml(_) => {
            error("a query that changes rows", "change them with a statement of its own")
        }
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => {
            error("EXPLAIN within a statement", "explain the statement as a whole")
        }
        LogicalPlan::DescribeTable(_) => {
            error("EXPLAIN DESCRIBE", "DESCRIBE name shows the columns of a table")
        }
        _ => error("this statement", "docs/sql.md lists the statements"),
    }
}
