//! Subqueries in expressions, brought to the forms the engine plans.
//!
//! `ARRAY(SELECT x …)` becomes `(SELECT array_agg(x) …)`. A correlated scalar subquery becomes an
//! aggregate, since the engine cannot know that it gives one row: `(SELECT max(x) …)`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Query, Select, SelectItem, SetExpr, TableFactor, Value, Visitor, VisitorMut,
};

use stoa_sql::array_queries::ARRAY_OR_EMPTY;
use stoa_sql::walk::Walk;

use super::expression;

pub(super) struct Subqueries;

impl VisitorMut for Subqueries {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if is_array_of_query(function) => {
                if let FunctionArguments::Subquery(query) = &function.args {
                    *expr = array_of(query).unwrap_or_else(null_array);
                }
            }
            Expr::Subquery(query) => {
                if let Some(whether) = take_outer_conditions(query) {
                    let value = std::mem::replace(expr, null());
                    *expr = only_if(whether, value);
                    // What is in it is looked at next.
                    return ControlFlow::Continue(());
                }
                if let Some(one_row) = aggregated(query, "max") {
                    *expr = nested(one_row);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn null() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

/// Takes the conditions of a subquery that are about the row around it alone.
fn take_outer_conditions(query: &mut Query) -> Option<Expr> {
    let select = simple_select(query)?;
    let own = own_names(select);
    let mut conditions = Vec::new();
    conjuncts(select.selection.as_ref()?, &mut conditions);
    let is_outer = |condition: &&Expr| {
        let mut finder = OwnNames { own: &own, found: false };
        let _ = condition.walk(&mut finder);
        !finder.found && names_outer(condition, &own)
    };
    let all = |conditions: Vec<&Expr>| {
        conditions.into_iter().cloned().reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        })
    };
    let (outer, others): (Vec<&Expr>, Vec<&Expr>) = conditions.into_iter().partition(is_outer);
    let (outer, others) = (all(outer)?, all(others));
    select.selection = others;
    Some(outer)
}

/// Finds names that are the subquery's own, or may be.
struct OwnNames<'a> {
    own: &'a HashSet<String>,
    found: bool,
}

impl Visitor for OwnNames<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.found |= match expr {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., qualifier, _] => self.own.contains(&qualifier.value.to_ascii_lowercase()),
                _ => true,
            },
            Expr::Identifier(_) | Expr::Subquery(_) | Expr::Exists { .. } => true,
            _ => false,
        };
        ControlFlow::Continue(())
    }
}

/// `CASE WHEN whether THEN value END`
fn only_if(whether: Expr, value: Expr) -> Expr {
    let Some(Expr::Case { mut conditions, case_token, end_token, .. }) =
        expression("CASE WHEN true THEN NULL END")
    else {
        return value;
    };
    if let Some(when) = conditions.first_mut() {
        (when.condition, when.result) = (whether, value);
    }
    Expr::Case { case_token, end_token, operand: None, conditions, else_result: None }
}

fn is_array_of_query(function: &Function) -> bool {
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|ident| ident.value.eq_ignore_ascii_case("array"))
}

fn null_array() -> Expr {
    let null = || Expr::Value(Value::Null.with_empty_span());
    expression("CAST(NULL AS TEXT[])").unwrap_or_else(null)
}

/// `None` for what reads rows of a function over outer columns, which cannot be planned.
fn array_of(query: &Query) -> Option<Expr> {
    let mut query = query.clone();
    let select = simple_select(&mut query)?;
    let reads_function = select.from.iter().any(|from| {
        let factors = std::iter::once(&from.relation);
        factors.chain(from.joins.iter().map(|join| &join.relation)).any(is_function)
    });
    if reads_function {
        return None;
    }
    let item = select.projection.first_mut()?;
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return None;
    };
    let aggregate = expression(&format!("array_agg({expr})"))?;
    *item = SelectItem::UnnamedExpr(aggregate);
    query.order_by = None;
    let mut array = expression(&format!("{ARRAY_OR_EMPTY}(NULL)"))?;
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut array
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) = list.args.first_mut()
    {
        *value = nested(query);
    }
    Some(array)
}

/// In parentheses, which keeps a shared rule from taking a correlated subquery for one that cannot
/// be planned.
fn nested(query: Query) -> Expr {
    Expr::Nested(Box::new(Expr::Subquery(Box::new(query))))
}

fn is_function(factor: &TableFactor) -> bool {
    !matches!(
        factor,
        TableFactor::Table { args: None, .. } | TableFactor::Derived { lateral: false, .. }
    )
}

/// The one plain SELECT of one column that a query is.
fn simple_select(query: &mut Query) -> Option<&mut Select> {
    let plain = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    match query.body.as_mut() {
        SetExpr::Select(select)
            if plain
                && select.projection.len() == 1
                && select.distinct.is_none()
                && select.having.is_none()
                && matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty()) =>
        {
            Some(select.as_mut())
        }
        _ => None,
    }
}

/// The query with its column aggregated; `None` where it need not or cannot be.
fn aggregated(query: &Query, function: &str) -> Option<Query> {
    let mut query = query.clone();
    let select = simple_select(&mut query)?;
    if !is_correlated_by_equality(select) {
        return None;
    }
    let item = select.projection.first_mut()?;
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return None;
    };
    if contains_function_call(expr, &["max", "min", "count", "sum", "array_agg", "string_agg"]) {
        return None;
    }
    *item = SelectItem::UnnamedExpr(expression(&format!("{function}({expr})"))?);
    query.order_by = None;
    Some(query)
}

/// Whether some condition names an outer table, and each that does is `inner = outer`.
fn is_correlated_by_equality(select: &Select) -> bool {
    let own = own_names(select);
    let mut conditions = Vec::new();
    if let Some(selection) = &select.selection {
        conjuncts(selection, &mut conditions);
    }
    let outer: Vec<&&Expr> = conditions.iter().filter(|c| names_outer(c, &own)).collect();
    let equality = |condition: &&&Expr| {
        matches!(condition, Expr::BinaryOp { left, op: BinaryOperator::Eq, right }
            if names_outer(left, &own) != names_outer(right, &own))
    };
    !outer.is_empty() && outer.iter().all(equality)
}

fn conjuncts<'a>(expr: &'a Expr, found: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, found);
            conjuncts(right, found);
        }
        Expr::Nested(inner) => conjuncts(inner, found),
        other => found.push(other),
    }
}

/// Names by which the subquery's own tables can be referred to.
fn own_names(select: &Select) -> HashSet<String> {
    let mut names = HashSet::new();
    for from in &select.from {
        let joined = from.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&from.relation).chain(joined) {
            let (alias, name) = match factor {
                TableFactor::Table { alias, name, .. } => {
                    (alias, name.0.last().and_then(|part| part.as_ident()))
                }
                TableFactor::Derived { alias, .. } => (alias, None),
                _ => continue,
            };
            let name = alias.as_ref().map(|alias| &alias.name).or(name);
            names.extend(name.map(|ident| ident.value.to_ascii_lowercase()));
        }
    }
    names
}

fn names_outer(expr: &Expr, own: &HashSet<String>) -> bool {
    let mut finder = OuterNames { own, found: false };
    let _ = expr.walk(&mut finder);
    finder.found
}

struct OuterNames<'a> {
    own: &'a HashSet<String>,
    found: bool,
}

impl Visitor for OuterNames<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [.., qualifier, _] = parts.as_slice()
            && !self.own.contains(&qualifier.value.to_ascii_lowercase())
        {
            self.found = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

fn contains_function_call(expr: &Expr, names: &[&str]) -> bool {
    match expr {
        Expr::Function(function) => function
            .name
            .0
            .last()
            .and_then(|part| part.as_ident())
            .is_some_and(|ident| names.contains(&ident.value.to_ascii_lowercase().as_str())),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => contains_function_call(expr, names),
        _ => false,
    }
}
