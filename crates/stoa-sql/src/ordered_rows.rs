//! `SELECT string_agg(x, ',') FROM (SELECT x FROM t ORDER BY y) AS o`: the rows come in the order of the subquery. The engine
//! forgets it, since no operator asks for it; here the aggregate does.
//!
//! In: a parsed statement. Out: the same with the keys of the subquery's ORDER BY in the aggregates whose answers depend on an
//! order and that have none. Keys that the subquery does not show are added to what it shows, by a name that nobody writes.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    DuplicateTreatment, Expr, FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr,
    OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableFactor, Value,
    VisitorMut,
};

use crate::normalise;
use crate::walk::WalkMut;

/// Aggregates whose answers depend on the order of rows.
const ORDERED: [&str; 5] = ["array_agg", "json_agg", "jsonb_agg", "json_object_agg", "string_agg"];

/// Names of keys that are added.
const HIDDEN: &str = "stoa order";

/// Whether a column is a key that was added here.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with(HIDDEN)
}

/// Gives aggregates over an ordered subquery its order.
pub(super) fn keep_order(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        ordered(select);
        ControlFlow::Continue(())
    }
}

fn ordered(select: &mut Select) -> Option<()> {
    let mut calls = Aggregates { depth: 0, order: &[], found: false };
    let _ = select.projection.walk_mut(&mut calls);
    let _ = select.having.walk_mut(&mut calls);
    let has_star = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let [from] = select.from.as_mut_slice() else { return None };
    let TableFactor::Derived { subquery, alias: Some(alias), lateral: false, .. } =
        &mut from.relation
    else {
        return None;
    };
    if !calls.found || has_star || !from.joins.is_empty() {
        return None;
    }
    let keys = keys_of(subquery, alias)?;
    let mut calls = Aggregates { depth: 0, order: &keys, found: false };
    let _ = select.projection.walk_mut(&mut calls);
    let _ = select.having.walk_mut(&mut calls);
    Some(())
}

/// The keys of a subquery's order, as columns of its alias; adds those that it does not show.
fn keys_of(query: &mut Query, alias: &TableAlias) -> Option<Vec<OrderByExpr>> {
    let OrderByKind::Expressions(keys) = &query.order_by.as_ref()?.kind else { return None };
    let shown: Vec<Option<Ident>> = match query.body.as_ref() {
        SetExpr::Select(select) => select.projection.iter().map(name_of).collect(),
        _ => return None,
    };
    let mut outer = Vec::with_capacity(keys.len());
    let mut added = Vec::new();
    for key in keys {
        let place = match &key.expr {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => number.parse::<usize>().ok()?.checked_sub(1),
                _ => return None,
            },
            Expr::Identifier(name) => {
                let name = normalise(name);
                let is_named =
                    |shown: &Option<Ident>| shown.as_ref().is_some_and(|s| normalise(s) == name);
                shown.iter().position(is_named)
            }
            _ => None,
        };
        let column = match place {
            Some(place) => match alias.columns.get(place) {
                Some(column) => column.name.clone(),
                None => shown.get(place).cloned().flatten()?,
            },
            // A star may show it, or not.
            None if !alias.columns.is_empty() => return None,
            None => {
                let name = Ident::with_quote('"', format!("{HIDDEN} {}", added.len() + 1));
                added.push(SelectItem::ExprWithAlias {
                    expr: key.expr.clone(),
                    alias: name.clone(),
                });
                name
            }
        };
        let expr = Expr::CompoundIdentifier(vec![alias.name.clone(), column]);
        outer.push(OrderByExpr { expr, ..key.clone() });
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if !added.is_empty() && select.distinct.is_some() {
        return None;
    }
    select.projection.append(&mut added);
    Some(outer)
}

fn name_of(item: &SelectItem) -> Option<Ident> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().cloned(),
        _ => None,
    }
}

/// Finds the aggregates of a query, but not of those within it, and orders them.
struct Aggregates<'a> {
    depth: usize,
    order: &'a [OrderByExpr],
    found: bool,
}

impl VisitorMut for Aggregates<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = call.name.0.last().and_then(|part| part.as_ident()).map(normalise);
        let is_meant = self.depth == 0
            && call.over.is_none()
            && name.is_some_and(|name| ORDERED.contains(&name.as_str()));
        if let FunctionArguments::List(list) = &mut call.args
            && is_meant
            && list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
            && !list.clauses.iter().any(|c| matches!(c, FunctionArgumentClause::OrderBy(_)))
        {
            self.found = true;
            if !self.order.is_empty() {
                list.clauses.push(FunctionArgumentClause::OrderBy(self.order.to_vec()));
            }
        }
        ControlFlow::Continue(())
    }
}
