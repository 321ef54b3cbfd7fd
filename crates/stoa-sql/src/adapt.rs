//! Small differences between PostgreSQL's SQL and the engine's, mended in the parsed statement.

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, Query, SelectItem, SetExpr, TableFactor, Value, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result, Subject};

use crate::array_queries::aggregate_items;
use crate::calls::{named, write_as_others};
use crate::distinct_from::mend_distinct_from;
use crate::not_exists::mend_not_exists;
use crate::operators::{refuse_repeated_assignments, write_operator_as_call};
use crate::ordered_rows::keep_order;
use crate::recursive_terms;
use crate::row_values::compare_row_values;
use crate::rows_in_queries::look_for_rows;
use crate::slices;
use crate::special_times;
use crate::using_joins::write_out_shared;
use crate::volatile_with;
use crate::walk::{WalkMut, walk_expressions_mut};
use crate::whole_tables;
use crate::windows::write_out_named_windows;
use crate::{changing_with, grouping_sets, having, hypothetical_sets};

/// Numbers with an exponent are doubles: `1e300`. All others with a point are decimals.
pub(super) fn exponents_are_doubles(statement: &mut EngineStatement, text: &str) {
    let has_exponent = text.as_bytes().windows(2).any(|pair| {
        matches!(pair[1], b'e' | b'E') && (pair[0].is_ascii_digit() || pair[0] == b'.')
    });
    if has_exponent && let Some(statement) = parsed(statement) {
        let _ = walk_expressions_mut(statement, |expr| {
            if let Expr::Value(value) = expr
                && let Value::Number(digits, _) = &value.value
                && digits.contains(['e', 'E'])
                && let Some(double) = double_of(digits)
            {
                *expr = double;
            }
            ControlFlow::<()>::Continue(())
        });
    }
}

fn double_of(digits: &str) -> Option<Expr> {
    let text = format!("CAST('{digits}' AS DOUBLE PRECISION)");
    Parser::new(&PostgreSqlDialect {}).try_with_sql(&text).ok()?.parse_expr().ok()
}

/// The words of `TRUNCATE [ONLY] name [*] [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]` that change nothing here:
/// no table inherits from another, or refers to another. Says whether numbers begin again.
pub(super) fn truncate_one_table(statement: &mut EngineStatement) -> bool {
    let Some(ast::Statement::Truncate(truncate)) = parsed(statement) else { return false };
    truncate.cascade = None;
    truncate.table_names.iter_mut().for_each(|target| target.only = false);
    truncate.identity.take() == Some(ast::TruncateIdentityOption::Restart)
}

/// The tables of a TRUNCATE of several, or of one with more to do; the engine empties one.
pub(super) fn truncated_together(
    statement: &mut EngineStatement,
    restarts: bool,
) -> Option<Vec<ObjectName>> {
    let Some(ast::Statement::Truncate(truncate)) = parsed(statement) else { return None };
    let is_plain =
        truncate.partitions.is_none() && !truncate.if_exists && truncate.on_cluster.is_none();
    let names = || truncate.table_names.iter().map(|target| target.name.clone()).collect();
    (is_plain && (restarts || truncate.table_names.len() > 1)).then(names)
}

/// VALUES outside of FROM is `SELECT * FROM (VALUES …)`: what stands in FROM is planned with PostgreSQL's types
/// (`stoa-semantics`, `values`). The rows of `INSERT … VALUES` stay, they have the types of the table's columns.
pub(super) fn values_as_relations(statement: &mut EngineStatement, text: &str) {
    let is_values = |window: &[u8]| window.eq_ignore_ascii_case(b"values");
    if !text.as_bytes().windows(6).any(is_values) {
        return;
    }
    let mut values = ValuesInFrom { is_kept: false };
    let _ = match parsed(statement) {
        Some(ast::Statement::Insert(insert)) => {
            let Some(source) = &mut insert.source else { return };
            values.is_kept = matches!(*source.body, SetExpr::Values(_));
            source.walk_mut(&mut values)
        }
        Some(other) => other.walk_mut(&mut values),
        None => return,
    };
}

/// Whether a query is nothing but VALUES.
pub fn is_only_values(query: &Query) -> bool {
    matches!(&*query.body, SetExpr::Values(values) if !values.value_keyword)
        && query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
}

struct ValuesInFrom {
    /// Whether the next query is VALUES that stay where they are.
    is_kept: bool,
}

impl VisitorMut for ValuesInFrom {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { subquery, .. } = table {
            self.is_kept = is_only_values(subquery);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if !std::mem::take(&mut self.is_kept) {
            put_into_from(&mut query.body);
        }
        ControlFlow::Continue(())
    }
}

fn put_into_from(body: &mut SetExpr) {
    match body {
        SetExpr::Values(_) => {
            let parser =
                Parser::new(&PostgreSqlDialect {}).try_with_sql("SELECT * FROM (VALUES (1))");
            let Ok(mut query) = parser.and_then(|mut parser| parser.parse_query()) else { return };
            if let Some(rows) = rows_in_from(&mut query.body) {
                std::mem::swap(rows, body);
                *body = *query.body;
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            put_into_from(left);
            put_into_from(right);
        }
        _ => {}
    }
}

fn rows_in_from(body: &mut SetExpr) -> Option<&mut SetExpr> {
    let SetExpr::Select(select) = body else { return None };
    match &mut select.from.first_mut()?.relation {
        TableFactor::Derived { subquery, .. } => Some(subquery.body.as_mut()),
        _ => None,
    }
}

/// Whether a statement inserts rows of plain literals, in which nothing is to be adapted. They may be many, and each
/// walk over them takes time.
pub(super) fn inserts_literals(statement: &EngineStatement) -> bool {
    let EngineStatement::Statement(statement) = statement else { return false };
    let ast::Statement::Insert(insert) = statement.as_ref() else { return false };
    let is_bare = insert.on.is_none()
        && insert.returning.is_none()
        && insert.partitioned.is_none()
        && insert.assignments.is_empty();
    let Some(source) = insert.source.as_deref().filter(|_| is_bare) else { return false };
    let is_bare = source.with.is_none()
        && source.order_by.is_none()
        && source.limit_clause.is_none()
        && source.fetch.is_none();
    let SetExpr::Values(values) = source.body.as_ref() else { return false };
    is_bare && values.rows.iter().flat_map(|row| &row.content).all(is_literal)
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => matches!(**expr, Expr::Value(_)),
        _ => false,
    }
}

/// What PostgreSQL means by a text that the parser, or the engine, takes otherwise.
///
/// # Errors
/// Windows that PostgreSQL refuses.
pub(super) fn as_postgresql(statement: &mut EngineStatement) -> Result<()> {
    let Some(statement) = parsed(statement) else { return Ok(()) };
    mend_distinct_from(statement);
    mend_not_exists(statement);
    aggregate_items(statement)?;
    look_for_rows(statement)?;
    compare_row_values(statement)?;
    write_out_shared(statement)?;
    whole_tables::write_schemas(statement);
    keep_order(statement);
    recursive_terms::mark(statement)?;
    volatile_with::check(statement)?;
    changing_with::refuse(statement)?;
    grouping_sets::refuse_equal_keys(statement)?;
    having::make_one_group(statement);
    let _ = statement.walk_mut(&mut FetchAsLimit);
    let _ = statement.walk_mut(&mut PlacesOfDistinctOn);
    refuse_repeated_assignments(statement)?;
    let written = walk_expressions_mut(statement, |expr| {
        if let Err(error) = slices::write_as_call(expr) {
            return ControlFlow::Break(error);
        }
        if let Err(error) = hypothetical_sets::write_as_counts(expr) {
            return ControlFlow::Break(error);
        }
        if let Expr::Function(call) = expr {
            if let Err(error) = refuse_seeds(call) {
                return ControlFlow::Break(error);
            }
            name_as_the_engine_does(call);
        }
        write_operator_as_call(expr);
        if let Some(written) = special_times::written(expr) {
            *expr = written;
        }
        write_as_others(expr);
        values_as_query(expr);
        member_of_row(expr);
        compare_with_only_item(expr);
        cast_date_part(expr);
        ControlFlow::Continue(())
    });
    if let ControlFlow::Break(error) = written {
        return Err(error);
    }
    write_out_named_windows(statement)
}

/// `(VALUES (1))`, which the parser takes for a call of `VALUES`, is a query.
fn values_as_query(expr: &mut Expr) {
    let Expr::Nested(inner) = expr else { return };
    let Expr::Function(call) = inner.as_ref() else { return };
    if named(&call.name).as_deref() != Some("values") {
        return;
    }
    let text = format!("SELECT * FROM ({inner})");
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&text);
    if let Ok(query) = parsed.and_then(|mut parser| parser.parse_query()) {
        *expr = Expr::Subquery(query);
    }
}

/// `(t).a` is `t.a`.
fn member_of_row(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    let Expr::Nested(inner) = root.as_ref() else { return };
    let Expr::Identifier(table) = inner.as_ref() else { return };
    let [ast::AccessExpr::Dot(Expr::Identifier(member))] = access_chain.as_slice() else { return };
    *expr = Expr::CompoundIdentifier(vec![table.clone(), member.clone()]);
}

/// `x IN (y)` is `x = y`, also in how their types come together.
fn compare_with_only_item(expr: &mut Expr) {
    let Expr::InList { expr: value, list, negated } = expr else { return };
    let [item] = list.as_mut_slice() else { return };
    if matches!(item, Expr::Subquery(_) | Expr::Tuple(_)) {
        return;
    }
    let taken = |part: &mut Expr| {
        let part = std::mem::replace(part, Expr::value(Value::Null));
        Box::new(Expr::Nested(Box::new(part)))
    };
    let op = if *negated { ast::BinaryOperator::NotEq } else { ast::BinaryOperator::Eq };
    let (left, right) = (taken(value), taken(item));
    *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
}

/// `date_part(field, value)` is the double of `extract(field FROM value)`, which the engine does not tell from it.
fn cast_date_part(expr: &mut Expr) {
    let Expr::Function(call) = expr else { return };
    let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_mut_slice() else { return };
    if name.value.eq_ignore_ascii_case("date_part") {
        // By another of its names it is not looked at again.
        *name = Ident::new("datepart");
        let call = std::mem::replace(expr, Expr::value(Value::Null));
        *expr = Expr::Cast {
            kind: ast::CastKind::Cast,
            expr: Box::new(call),
            data_type: ast::DataType::DoublePrecision,
            array: false,
            format: None,
        };
    }
}

/// Rows are computed on several threads: a seed would not make `random()` give the same numbers again.
fn refuse_seeds(call: &ast::Function) -> Result<()> {
    match named(&call.name).as_deref() {
        Some("setseed") => Err(Error::unsupported("setseed is not supported")
            .with_detail("rows are computed on several threads, in no certain order")
            .with_hint("derive the numbers from a column, for instance by hashing it")
            .about(Subject::OnlyCall("setseed".to_owned()))),
        _ => Ok(()),
    }
}

/// PostgreSQL's other names of functions that the engine has.
fn name_as_the_engine_does(call: &mut ast::Function) {
    const NAMES: [(&str, &str); 5] = [
        // The engine's own of these names take the first of equal elements only.
        ("array_remove", "array_remove_all"),
        ("array_replace", "array_replace_all"),
        ("ceiling", "ceil"),
        ("every", "bool_and"),
        ("variance", "var_samp"),
    ];
    if let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_mut_slice()
        && let Some((_, own)) =
            NAMES.iter().find(|(known, _)| name.value.eq_ignore_ascii_case(known))
    {
        *name = Ident::new(*own);
    }
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
struct FetchAsLimit;

impl VisitorMut for FetchAsLimit {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(ast::Fetch { with_ties: false, percent: false, quantity }) = &query.fetch else {
            return ControlFlow::Continue(());
        };
        let quantity =
            quantity.clone().unwrap_or_else(|| Expr::value(Value::Number("1".into(), false)));
        match &mut query.limit_clause {
            None => {
                query.limit_clause = Some(ast::LimitClause::LimitOffset {
                    limit: Some(quantity),
                    offset: None,
                    limit_by: Vec::new(),
                });
            }
            Some(ast::LimitClause::LimitOffset { limit: limit @ None, .. }) => {
                *limit = Some(quantity)
            }
            Some(_) => return ControlFlow::Continue(()),
        }
        query.fetch = None;
        ControlFlow::Continue(())
    }
}

/// `SELECT DISTINCT ON (a) a, b + 1 … ORDER BY a, 2` orders by `b + 1`; by a literal, nothing is ordered.
struct PlacesOfDistinctOn;

impl VisitorMut for PlacesOfDistinctOn {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let SetExpr::Select(select) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        let (Some(ast::Distinct::On(_)), Some(order)) = (&select.distinct, &mut query.order_by)
        else {
            return ControlFlow::Continue(());
        };
        if let ast::OrderByKind::Expressions(keys) = &mut order.kind {
            keys.retain_mut(|key| match column_at(&key.expr, &select.projection) {
                Some(Expr::Value(_)) => false,
                Some(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) | None => true,
                Some(computed) => {
                    key.expr = computed.clone();
                    true
                }
            });
            if keys.is_empty() {
                query.order_by = None;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The column that a number in ORDER BY means; `None` for other keys, and behind a `*`.
fn column_at<'a>(key: &Expr, columns: &'a [SelectItem]) -> Option<&'a Expr> {
    let Expr::Value(value) = key else { return None };
    let Value::Number(digits, _) = &value.value else { return None };
    let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
    let mut before = columns.get(..=place)?.iter().map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    before.try_fold(None, |_, expr| expr.map(Some)).flatten()
}

/// The statement of PostgreSQL's, if it is one; that which is explained.
pub(super) fn parsed(statement: &mut EngineStatement) -> Option<&mut ast::Statement> {
    match statement {
        EngineStatement::Statement(inner) => Some(inner),
        EngineStatement::Explain(explain) => parsed(&mut explain.statement),
        _ => None,
    }
}
