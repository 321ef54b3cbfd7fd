//! About how many bytes a statement takes that is kept prepared.
//!
//! In: a prepared statement. Out: an estimate, made of what its plan consists of, not measured. It is rather too
//! large: what becomes of the plan later (a template, a plan for tables that changed) is counted from the start.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::prepare::{Prepared, Way};

/// A statement, and what every protocol keeps of it.
const STATEMENT_BYTES: usize = 4 << 10;
/// A node of a plan, without its columns and expressions.
const NODE_BYTES: usize = 1 << 10;
/// A column of a node, with its names.
const COLUMN_BYTES: usize = 200;
/// A part of an expression.
const EXPRESSION_BYTES: usize = 300;
/// As many plans as there may be of one statement: as it was planned, as a template, anew.
const PLANS: usize = 3;
/// A plan that was not made yet.
const PLAN_BYTES: usize = 16 << 10;
/// Bytes of a syntax tree for each byte of text.
const TREE_FACTOR: usize = 64;

impl Prepared {
    /// About how many bytes it takes for as long as somebody has it.
    pub fn bytes(&self) -> usize {
        let text = self.statement.text.len();
        let own = match &self.way {
            Way::Own => text.saturating_mul(TREE_FACTOR),
            Way::Report(..) | Way::Lifted(..) => PLAN_BYTES.saturating_add(text),
            Way::Plan(planned) | Way::Explain(_, planned) => {
                of_plan(&planned.plan).saturating_mul(PLANS).saturating_add(text)
            }
        };
        own.saturating_add(STATEMENT_BYTES).saturating_add(text)
    }
}

fn of_plan(plan: &LogicalPlan) -> usize {
    let mut bytes = 0_usize;
    // The walks themselves cannot fail.
    let _ = plan.apply_with_subqueries(|node| {
        let columns = node.schema().fields().len().saturating_mul(COLUMN_BYTES);
        bytes = bytes.saturating_add(NODE_BYTES).saturating_add(columns);
        if let LogicalPlan::Values(values) = node {
            let cells = values.values.iter().map(Vec::len).sum::<usize>();
            bytes = bytes.saturating_add(cells.saturating_mul(EXPRESSION_BYTES));
            return Ok(TreeNodeRecursion::Continue);
        }
        node.apply_expressions(|expr| {
            expr.apply(|_| {
                bytes = bytes.saturating_add(EXPRESSION_BYTES);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    bytes
}
