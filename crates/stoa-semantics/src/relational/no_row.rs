//! A query as a value is NULL where it has no row, whatever its column may be: `(SELECT 1 WHERE false)`. The engine has it
//! as never NULL where its column is: a constant, `count(*)`, a column that is NOT NULL.
//!
//! ```text
//! (SELECT a FROM t WHERE k = 1)  ─►  (SELECT or_null(a) AS a FROM (SELECT a FROM t WHERE k = 1))
//! ```
//! Queries about the row around them become outer joins, whose columns can be NULL.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};

/// The name of the function in plans.
const OR_NULL: &str = "or_null";

/// Makes the columns of such queries ones that can be NULL.
pub(super) fn made_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_changed = false;
    let plan = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            if !expr.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_))))? {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            Ok(expr.transform_up(nullable)?.update_data(|expr| name.restore(expr)))
        })?;
        is_changed |= node.transformed;
        match is_changed {
            true => node.data.recompute_schema().map(Transformed::yes),
            false => Ok(node),
        }
    });
    Ok(plan?.data)
}

fn nullable(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarSubquery(query) if may_be_empty(&query) => {
            let (qualifier, field) = query.subquery.schema().qualified_field(0);
            let column = Expr::Column(Column::from((qualifier, field)));
            let made = Expr::ScalarFunction(ScalarFunction::new_udf(
                Arc::new(ScalarUDF::new_from_impl(OrNull::new())),
                vec![column],
            ))
            .alias_qualified(qualifier.cloned(), field.name());
            let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(query.subquery));
            let subquery = Arc::new(rows.project([made])?.build()?);
            Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery, ..query })))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Whether a query, which is said never to be NULL, has no row for certain data.
fn may_be_empty(query: &Subquery) -> bool {
    let is_never_null = |plan: &LogicalPlan| {
        let fields = plan.schema().fields();
        fields.len() == 1 && !fields[0].is_nullable()
    };
    if !query.outer_ref_columns.is_empty() || !is_never_null(&query.subquery) {
        return false;
    }
    let mut plan = &*query.subquery;
    loop {
        plan = match plan {
            LogicalPlan::Projection(of) => &of.input,
            LogicalPlan::SubqueryAlias(of) => &of.input,
            LogicalPlan::Sort(of) if of.fetch.is_none() => &of.input,
            LogicalPlan::Aggregate(of) => return !of.group_expr.is_empty(),
            LogicalPlan::EmptyRelation(of) => return !of.produce_one_row,
            LogicalPlan::Values(of) => return of.values.is_empty(),
            _ => return true,
        };
    }
}

/// A value as it is, which may be NULL. It is volatile for the engine not to compute constants beforehand, which are never
/// NULL; whoever asks whether a statement is gets another answer ([`volatility`]).
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrNull {
    signature: Signature,
}

impl OrNull {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for OrNull {
    fn name(&self) -> &str {
        OR_NULL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields {
            [field] => Ok(Arc::new(field.as_ref().clone().with_nullable(true))),
            _ => plan_err!("{OR_NULL} takes one value"),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.pop() {
            Some(value) => Ok(value),
            None => plan_err!("{OR_NULL} takes one value"),
        }
    }
}

/// When a call may give another value.
pub fn volatility(call: &ScalarFunction) -> Volatility {
    match call.func.name() {
        OR_NULL => Volatility::Immutable,
        _ => call.func.signature().volatility,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{lit, scalar_subquery};

    use super::*;

    #[test]
    fn a_query_as_a_value_may_have_no_row() {
        let one = || LogicalPlanBuilder::empty(true);
        let value_of = |rows: LogicalPlanBuilder| {
            let query = rows.project([lit(1).alias("x")]).unwrap().build().unwrap();
            let value = scalar_subquery(Arc::new(query));
            one().project([value]).unwrap().build().unwrap()
        };
        let none = value_of(one().filter(lit(false)).unwrap());
        assert!(!none.schema().field(0).is_nullable());
        let made = made_nullable(none.clone()).unwrap();
        assert!(made.schema().field(0).is_nullable());
        assert_eq!(made.schema().field(0).name(), none.schema().field(0).name());
        assert_eq!(made_nullable(made.clone()).unwrap(), made);
        let always = value_of(one());
        assert_eq!(made_nullable(always.clone()).unwrap(), always);
    }
}
