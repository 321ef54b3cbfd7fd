//! Queries of views, which sessions of both languages read: where sessions of HiveQL give a function another meaning by
//! the type of its operand, the query says so.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, VisitMut, VisitorMut,
};

use crate::made::call;

/// Has `sum` take texts as doubles in any session.
pub(crate) fn for_all_sessions(query: &mut Query) {
    let _ = query.visit(&mut Sums);
}

struct Sums;

impl VisitorMut for Sums {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && function.name.to_string() == "sum"
        {
            take_numbers(function);
        }
        ControlFlow::Continue(())
    }
}

fn take_numbers(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg
            && matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
        {
            *expr = call("hive_number", vec![expr.clone()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, translate};

    #[test]
    fn sums_of_views_take_texts_in_any_session() {
        let translated =
            translate("create view v as select sum(a) s, sum(a + 1) t from x", Options::default());
        let wanted = "CREATE VIEW \"v\" AS SELECT sum(hive_number(a)) AS s, \
             sum(hive_number(hive_add(a, 1))) AS t FROM x";
        assert_eq!(translated.unwrap(), wanted);
    }
}
