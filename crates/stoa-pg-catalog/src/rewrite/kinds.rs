//! What drivers ask of domains and composite types, of which no column and no parameter is here.
//!
//! `CASE WHEN t.typtype = 'd' THEN (SELECT …) END` looks for the type behind a domain, and for the columns of a
//! composite type where it says `'c'`. The subqueries are of kinds that the engine cannot join; their answer is NULL.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, Expr, Query, SelectItem, SetExpr, Value, VisitorMut,
};

use super::expression;

pub(super) struct Kinds;

impl VisitorMut for Kinds {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(null) = asked_of_kind(expr).and_then(null_like) {
            *expr = null;
        }
        ControlFlow::Continue(())
    }
}

/// The query of such a CASE, which has no other branch that gives a value.
fn asked_of_kind(expr: &Expr) -> Option<&Query> {
    let Expr::Case { operand: None, conditions, else_result, .. } = expr else { return None };
    let gives_nothing = else_result.as_deref().is_none_or(|other| is_text(other, &[]));
    match conditions.as_slice() {
        [CaseWhen { condition, result: Expr::Subquery(query) }]
            if gives_nothing && tests_kind(condition) =>
        {
            Some(query)
        }
        _ => None,
    }
}

/// Whether an expression is `typtype = 'd'` or `typtype = 'c'`.
fn tests_kind(condition: &Expr) -> bool {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return false };
    let name = match &**left {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    name.is_some_and(|name| name.value.eq_ignore_ascii_case("typtype"))
        && is_text(right, &["d", "c"])
}

/// Whether an expression is one of these texts; NULL if there are none.
fn is_text(expr: &Expr, texts: &[&str]) -> bool {
    let Expr::Value(value) = expr else { return false };
    match &value.value {
        Value::SingleQuotedString(text) => texts.contains(&text.as_str()),
        Value::Null => texts.is_empty(),
        _ => false,
    }
}

/// NULL of the type that a query's column has.
fn null_like(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [SelectItem::UnnamedExpr(column)] = select.projection.as_slice() else { return None };
    let null = match column {
        Expr::Function(call) if call.to_string().starts_with("array_agg(") => {
            match call.to_string().contains(&format!("::{}", DataType::Text)) {
                true => "CAST(NULL AS TEXT[])".to_owned(),
                false => format!("{}()", crate::oids::NAME),
            }
        }
        _ => "CAST(NULL AS INT)".to_owned(),
    };
    expression(&null)
}
