//! HAVING without GROUP BY and without an aggregate: all rows are one group, whose only columns are constants.
//!
//! ```text
//! SELECT 1 FROM t HAVING 1 < 2  ─►  SELECT 1 FROM t HAVING (1 < 2) AND count(*) >= 0
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Select, Statement, Value, VisitorMut,
};

use crate::calls::call;
use crate::row_functions::is_aggregate;
use crate::walk::{WalkMut, walk_expressions};

/// Gives such conditions an aggregate, by which the engine knows that there is one group.
pub(super) fn make_one_group(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut InSelects);
}

struct InSelects;

impl VisitorMut for InSelects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let is_grouped = match &select.group_by {
            GroupByExpr::Expressions(keys, sets) => !keys.is_empty() || !sets.is_empty(),
            GroupByExpr::All(_) => true,
        };
        if is_grouped || select.having.is_none() || has_aggregate(select) {
            return ControlFlow::Continue(());
        }
        if let Some(condition) = select.having.take() {
            select.having = Some(Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(condition))),
                op: BinaryOperator::And,
                right: Box::new(any_count()),
            });
        }
        ControlFlow::Continue(())
    }
}

/// `count(*) >= 0`.
fn any_count() -> Expr {
    let mut count = call("count", Vec::new());
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut count {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)];
    }
    let zero = Expr::value(Value::Number("0".into(), false));
    Expr::BinaryOp { left: Box::new(count), op: BinaryOperator::GtEq, right: Box::new(zero) }
}

fn has_aggregate(select: &Select) -> bool {
    let is_one = |expr: &Expr| match expr {
        Expr::Function(function) if is_aggregate(function) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    walk_expressions(&select.having, is_one).is_break()
        || walk_expressions(&select.projection, is_one).is_break()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reread;

    #[test]
    fn a_condition_of_constants_is_of_one_group() {
        for (sql, expected) in [
            ("SELECT 1 FROM t HAVING 1 < 2", "SELECT 1 FROM t HAVING (1 < 2) AND count(*) >= 0"),
            ("SELECT sum(a) FROM t HAVING true", "SELECT sum(a) FROM t HAVING true"),
            ("SELECT a FROM t GROUP BY a HAVING true", "SELECT a FROM t GROUP BY a HAVING true"),
        ] {
            let mut statement = reread::statement(sql).unwrap();
            make_one_group(&mut statement);
            assert_eq!(statement.to_string(), expected);
        }
    }
}
