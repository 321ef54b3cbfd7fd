//! Products of decimals keep their type while a plan is simplified.
//!
//! The engine takes `x * 0` for the zero that is written there, and `x % 1` for a zero of the type of `x`, where `x`
//! cannot be NULL. With decimals the product has another type than both: what is compared with it then has operands
//! of two types, which is an error. A cast to the type that the product has stands around it meanwhile.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The rule that simplifies, with products whose type is said.
pub(super) struct TypedProducts(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for TypedProducts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl OptimizerRule for TypedProducts {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut plan = plan;
        if any_product(&plan) {
            let schema = schema_of(&plan)?;
            let names = NamePreserver::new(&plan);
            plan = plan
                .map_expressions(|expr| {
                    let name = names.save(&expr);
                    Ok(typed(expr, &schema)?.update_data(|expr| name.restore(expr)))
                })?
                .data;
        }
        self.0.rewrite(plan, config)
    }
}

fn any_product(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walk = plan.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(is_product(part)))?;
        Ok(TreeNodeRecursion::Continue)
    });
    found && walk.is_ok()
}

/// Whether the engine may take one of the operands for the whole.
fn is_product(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return false };
    match op {
        Operator::Multiply => is_decimal(left) || is_decimal(right),
        Operator::Modulo => is_decimal(right),
        _ => false,
    }
}

fn is_decimal(expr: &Expr) -> bool {
    use ScalarValue::{Decimal32, Decimal64, Decimal128, Decimal256};
    matches!(
        expr,
        Expr::Literal(Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..), _)
    )
}

/// The columns that the expressions of a node are about.
fn schema_of(plan: &LogicalPlan) -> Result<DFSchema> {
    match plan {
        // Its filters are about all columns of the table, not only those that it gives.
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())
        }
        _ => Ok(merge_schema(&plan.inputs())),
    }
}

fn typed(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| match part {
        part if is_product(&part) => match part.get_type(schema) {
            Ok(of) => Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(part), of)))),
            // Of columns that are not in sight here: it stays as it is.
            Err(_) => Ok(Transformed::no(part)),
        },
        // Those of the last time.
        Expr::Cast(outer) => match *outer.expr {
            Expr::Cast(inner) if inner.field == outer.field && is_product(&inner.expr) => {
                Ok(Transformed::yes(Expr::Cast(inner)))
            }
            of => Ok(Transformed::no(Expr::Cast(Cast { expr: Box::new(of), ..outer }))),
        },
        part => Ok(Transformed::no(part)),
    })
}
