//! Queries over catalog tables that have no rows here.
//!
//! There are no foreign keys, triggers, policies, publications and the like. A query that
//! needs a row of theirs has no rows, so that whatever else it says need not be planned: clients'
//! queries over these tables use what the engine lacks more than any others.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Catalog tables without rows.
pub(super) const EMPTY: [&str; 23] = [
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_enum",
    "pg_event_trigger",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_inherits",
    "pg_largeobject",
    "pg_partitioned_table",
    "pg_policy",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_rewrite",
    "pg_sequence",
    "pg_statistic_ext",
    "pg_subscription",
    "pg_subscription_rel",
    "pg_trigger",
    "pg_user_mapping",
    "pg_user_mappings",
    "pg_statistic_ext_data",
];

pub(super) struct Empty;

impl VisitorMut for Empty {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if query.with.is_none() && empty_body(&query.body) {
            make_empty(&mut query.body);
            query.order_by = None;
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query has no rows, and can be written so.
fn empty_query(query: &Query) -> bool {
    query.with.is_none() && empty_body(&query.body)
}

fn empty_body(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => empty_select(select) && has_plain_columns(select),
        SetExpr::SetOperation { left, right, .. } => empty_body(left) && empty_body(right),
        SetExpr::Query(query) => empty_query(query),
        _ => false,
    }
}

fn empty_select(select: &Select) -> bool {
    let asks_for_others = select.selection.as_ref().is_some_and(wants_other_constraints);
    asks_for_others || select.from.iter().any(empty_from)
}

/// Whether a condition leaves nothing that there is: `contype = 'f'`, `contype IN ('c', 'f')`, `typtype = 'd'`.
fn wants_other_constraints(condition: &Expr) -> bool {
    let is_type = |expr: &Expr| match expr {
        Expr::Identifier(name) => name.value.eq_ignore_ascii_case("contype"),
        Expr::CompoundIdentifier(parts) => {
            parts.last().is_some_and(|name| name.value.eq_ignore_ascii_case("contype"))
        }
        _ => false,
    };
    let is_other = |expr: &Expr| {
        let text = expr.to_string();
        text.starts_with('\'') && !text.starts_with("'p'")
    };
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            wants_other_constraints(left) || wants_other_constraints(right)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let is_domain = column_name(left) == "typtype" && right.to_string() == "'d'";
            is_domain || (is_type(left) && is_other(right))
        }
        Expr::InList { expr, list, negated: false } => is_type(expr) && list.iter().all(is_other),
        Expr::Nested(inner) => wants_other_constraints(inner),
        _ => false,
    }
}

fn empty_from(from: &TableWithJoins) -> bool {
    let mut empty = empty_factor(&from.relation);
    for join in &from.joins {
        let joined = empty_factor(&join.relation);
        empty = match &join.join_operator {
            JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::CrossJoin(on) => {
                let none = matches!(on, JoinConstraint::On(on) if wants_other_constraints(on));
                empty || joined || none
            }
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => empty,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => joined,
            _ => return false,
        };
    }
    empty
}

fn empty_factor(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: None, .. } => is_empty_table(name),
        TableFactor::Derived { subquery, .. } => empty_query(subquery),
        TableFactor::NestedJoin { table_with_joins, .. } => empty_from(table_with_joins),
        _ => false,
    }
}

fn is_empty_table(name: &ObjectName) -> bool {
    let mut parts = name.0.iter().rev().filter_map(|part| part.as_ident());
    let table = parts.next().map(|ident| ident.value.to_ascii_lowercase());
    let schema = parts.next().map(|ident| ident.value.to_ascii_lowercase());
    let in_catalog = schema.is_none_or(|schema| schema == "pg_catalog");
    in_catalog && table.is_some_and(|table| EMPTY.contains(&table.as_str()))
}

/// Columns whose names are known, and no aggregate, which gives a row even from nothing.
fn has_plain_columns(select: &Select) -> bool {
    select.projection.iter().all(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => !aggregates(expr),
        _ => false,
    })
}

fn aggregates(expr: &Expr) -> bool {
    const AGGREGATES: [&str; 8] =
        ["count", "sum", "min", "max", "avg", "array_agg", "string_agg", "bool_or"];
    match expr {
        Expr::Function(function) => function
            .name
            .0
            .last()
            .and_then(|part| part.as_ident())
            .is_some_and(|name| AGGREGATES.contains(&name.value.to_ascii_lowercase().as_str())),
        Expr::BinaryOp { left, right, .. } => aggregates(left) || aggregates(right),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => aggregates(expr),
        _ => false,
    }
}

fn make_empty(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            if let Some(empty) = empty_text(select).and_then(|text| parse_body(&text)) {
                *body = empty;
            }
        }
        SetExpr::SetOperation { left, .. } => {
            let mut first = left.as_ref().clone();
            make_empty(&mut first);
            *body = first;
        }
        SetExpr::Query(query) => make_empty(&mut query.body),
        _ => {}
    }
}

/// The same columns without rows. Names that occur twice are told apart by a number.
fn empty_text(select: &Select) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for item in &select.projection {
        let name = match item {
            SelectItem::UnnamedExpr(expr) => column_name(expr),
            SelectItem::ExprWithAlias { alias, .. } => plain(alias),
            _ => return None,
        };
        let mut unique = name.clone();
        let mut number = 1;
        while names.contains(&unique) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        names.push(unique);
    }
    let columns =
        names.iter().map(|name| format!("CAST(NULL AS TEXT) AS \"{}\"", name.replace('"', "\"\"")));
    Some(format!("SELECT {} WHERE false", columns.collect::<Vec<_>>().join(", ")))
}

/// The name PostgreSQL gives a column without an alias.
pub(super) fn column_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => plain(ident),
        Expr::CompoundIdentifier(parts) => parts.last().map(plain).unwrap_or_default(),
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident());
            name.map_or_else(|| "?column?".to_owned(), |ident| ident.value.to_ascii_lowercase())
        }
        Expr::Cast { expr, .. } | Expr::Nested(expr) => column_name(expr),
        Expr::Case { .. } => "case".to_owned(),
        _ => "?column?".to_owned(),
    }
}

/// Lower case unless quoted, as other parts of the statement will refer to it.
fn plain(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

fn parse_body(text: &str) -> Option<SetExpr> {
    match Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?.pop()? {
        Statement::Query(query) => Some(*query.body),
        _ => None,
    }
}
