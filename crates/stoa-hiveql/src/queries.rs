//! Hive's queries as Stoa's: names of columns, order of NULLs, lateral views, grouping sets.
//!
//! **Invariant:** parts are rewritten before what they are in.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, Ident, JoinConstraint, JoinOperator, LimitClause,
    OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectFlavor, SelectItem,
    SetExpr, SetOperator, TableFactor, Value, VisitMut, VisitorMut,
};
use sqlparser::tokenizer::TokenWithSpan;
use stoa_error::{Error, Result};

use crate::cursor::query_of;
use crate::expressions;
use crate::lateral_views;
use crate::made::{call, cast};
use crate::nulls::order_nulls;
use crate::options::Options;
use crate::{scripts, views};

/// A query as Stoa's SQL.
///
/// # Errors
/// As [`crate::translate`].
pub(crate) fn translated(tokens: &[TokenWithSpan], options: Options) -> Result<String> {
    let mut query = query_of(tokens)?;
    rewrite(&mut query, options.nulls_last)?;
    Ok(query.to_string())
}

/// The query of a view as Stoa's SQL.
///
/// # Errors
/// As [`crate::translate`].
pub(crate) fn translated_view(tokens: &[TokenWithSpan], options: Options) -> Result<String> {
    let mut query = query_of(tokens)?;
    rewrite(&mut query, options.nulls_last)?;
    views::for_all_sessions(&mut query);
    Ok(query.to_string())
}

/// Rewrites a query, or any other part of a statement.
///
/// # Errors
/// 0A000 for what Stoa has not.
pub(crate) fn rewrite(part: &mut impl VisitMut, nulls_last: bool) -> Result<()> {
    match part.visit(&mut Rewriter { nulls_last }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Rewriter {
    /// `hive.default.nulls.last`
    nulls_last: bool,
}

fn flow(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Rewriter {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        flow(expressions::rewrite(expr))
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        flow(before(query, self.nulls_last))
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        flow(self.query(query))
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Error> {
        flow(relation(table))
    }
}

fn unsupported(what: &str, hint: &str) -> Error {
    Error::unsupported(format!("{what} is not supported in HiveQL")).with_hint(hint)
}

fn relation(table: &mut TableFactor) -> Result<()> {
    match table {
        TableFactor::Table { sample: Some(_), .. }
        | TableFactor::Derived { sample: Some(_), .. } => {
            Err(unsupported("TABLESAMPLE", "use WHERE rand() < 0.1, or LIMIT"))
        }
        TableFactor::Table { version: Some(_), .. } => Err(unsupported(
            "FOR SYSTEM_TIME and FOR SYSTEM_VERSION",
            "SET stoa.dialect=postgres, and read docs/sql.md on time travel",
        )),
        TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } => {
            // PostgreSQL's words need AS before an alias.
            if let Some(alias) = alias {
                alias.explicit = true;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What has to be done before the parts are rewritten: names of columns come from what was written.
fn before(query: &mut Query, nulls_last: bool) -> Result<()> {
    name_columns(&mut query.body);
    scripts::take_order(&mut query.body, nulls_last)
}

/// Columns without a name are `_c0`, `_c1`, … by their places.
fn name_columns(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            for (at, item) in select.projection.iter_mut().enumerate() {
                name_column(at, item);
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            name_columns(left);
            name_columns(right);
        }
        _ => {}
    }
}

fn name_column(at: usize, item: &mut SelectItem) {
    let SelectItem::UnnamedExpr(expr) = item else { return };
    let name = match expr {
        Expr::Identifier(name) => match name.value.as_str() {
            "grouping__id" => "grouping__id".to_owned(),
            "current_date" | "current_timestamp" | "current_user" => format!("_c{at}"),
            _ => return,
        },
        Expr::CompoundIdentifier(_) => return,
        Expr::Function(function) if lateral_views::is_rows(function) => return,
        Expr::Function(function) if scripts::is_script(function) => return,
        Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
            Some(sqlparser::ast::AccessExpr::Dot(Expr::Identifier(field))) => field.value.clone(),
            _ => format!("_c{at}"),
        },
        _ => format!("_c{at}"),
    };
    let expr = std::mem::replace(expr, Expr::value(Value::Null));
    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
}

impl Rewriter {
    fn query(&self, query: &mut Query) -> Result<()> {
        self.body(&mut query.body)?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            sorted_by(select, &mut query.order_by)?;
        }
        if let Some(order) = &mut query.order_by {
            let OrderByKind::Expressions(keys) = &mut order.kind else {
                return Err(unsupported("ORDER BY ALL", "name the columns"));
            };
            keys.iter_mut().for_each(|key| order_nulls(&mut key.options, self.nulls_last));
        }
        if let Some(LimitClause::OffsetCommaLimit { offset, limit }) = &query.limit_clause {
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(limit.clone()),
                offset: Some(sqlparser::ast::Offset {
                    value: offset.clone(),
                    rows: sqlparser::ast::OffsetRows::None,
                }),
                limit_by: Vec::new(),
            });
        }
        Ok(())
    }

    fn body(&self, body: &mut SetExpr) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::SetOperation { op, left, right, .. } => {
                if *op == SetOperator::Minus {
                    *op = SetOperator::Except;
                }
                self.body(left)?;
                self.body(right)
            }
            _ => Ok(()),
        }
    }

    fn select(&self, select: &mut Select) -> Result<()> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            return Err(Error::invalid("a query needs SELECT").with_sqlstate("42601"));
        }
        select.flavor = SelectFlavor::Standard;
        select.optimizer_hints.clear();
        if let Some(over) = &select.qualify {
            return Err(unsupported(
                &format!("QUALIFY {over}"),
                "filter the window function in an outer query",
            ));
        }
        for from in &mut select.from {
            for join in &mut from.joins {
                join_without_condition(&mut join.join_operator);
            }
        }
        for window in &mut select.named_window {
            if let sqlparser::ast::NamedWindowExpr::WindowSpec(spec) = &mut window.1 {
                spec.order_by
                    .iter_mut()
                    .for_each(|key| order_nulls(&mut key.options, self.nulls_last));
            }
        }
        lateral_views::write(select)?;
        group(select)?;
        scripts::write(select)
    }
}

/// `a JOIN b` without ON is a cross join.
fn join_without_condition(join: &mut JoinOperator) {
    if let JoinOperator::Join(JoinConstraint::None) | JoinOperator::Inner(JoinConstraint::None) =
        join
    {
        *join = JoinOperator::CrossJoin(JoinConstraint::None);
    }
}

/// `SORT BY` sorts as `ORDER BY` does: one reducer is one order that Hive may give. `DISTRIBUTE BY` says only where
/// rows are computed.
fn sorted_by(select: &mut Select, order: &mut Option<OrderBy>) -> Result<()> {
    let clustered = std::mem::take(&mut select.cluster_by);
    let clustered = clustered.into_iter().map(|expr| OrderByExpr {
        expr,
        options: OrderByOptions::default(),
        with_fill: None,
    });
    let keys: Vec<OrderByExpr> =
        std::mem::take(&mut select.sort_by).into_iter().chain(clustered).collect();
    select.distribute_by.clear();
    if !keys.is_empty() {
        if order.is_some() {
            return Err(
                Error::invalid("ORDER BY and SORT BY exclude each other").with_sqlstate("42601")
            );
        }
        *order = Some(OrderBy { kind: OrderByKind::Expressions(keys), interpolate: None });
    }
    Ok(())
}

/// `WITH ROLLUP`, `WITH CUBE`, `GROUPING SETS` behind the keys, and `GROUPING__ID`.
fn group(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(keys, modifiers) = &mut select.group_by else {
        return Err(unsupported("GROUP BY ALL", "name the columns"));
    };
    let singles = |keys: &[Expr]| keys.iter().map(|key| vec![key.clone()]).collect::<Vec<_>>();
    let mut named: Vec<Expr> = keys.clone();
    match modifiers.as_slice() {
        [] => {
            if let [Expr::Rollup(sets) | Expr::Cube(sets)] = keys.as_slice() {
                named = sets.concat();
            }
        }
        [GroupByWithModifier::Rollup] => *keys = vec![Expr::Rollup(singles(keys))],
        [GroupByWithModifier::Cube] => *keys = vec![Expr::Cube(singles(keys))],
        [GroupByWithModifier::GroupingSets(sets)] => *keys = vec![sets.clone()],
        _ => return Err(unsupported("this GROUP BY", "use GROUPING SETS, ROLLUP or CUBE")),
    }
    let is_grouped = !modifiers.is_empty()
        || keys
            .iter()
            .any(|key| matches!(key, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_)));
    modifiers.clear();
    let id = match is_grouped {
        true => cast(call("grouping", named), "bigint"),
        false => cast(crate::made::number(0), "bigint"),
    };
    let mut place = |expr: &mut Expr| {
        if matches!(expr, Expr::Identifier(name) if name.value == "grouping__id") {
            *expr = id.clone();
        }
    };
    for item in &mut select.projection {
        if let SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) = item {
            everywhere(expr, &mut place);
        }
    }
    if let Some(having) = &mut select.having {
        everywhere(having, &mut place);
    }
    Ok(())
}

fn everywhere(expr: &mut Expr, change: &mut impl FnMut(&mut Expr)) {
    let _ = sqlparser::ast::visit_expressions_mut(expr, |expr| {
        change(expr);
        ControlFlow::<()>::Continue(())
    });
}
