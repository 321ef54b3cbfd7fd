//! `SET (a, b) = …`, which is written as an assignment to each column.
//!
//! ```text
//! SET (a, b) = (1, DEFAULT)                      SET a = 1, b = DEFAULT
//! SET (a, b) = (SELECT s.x, s.y FROM s WHERE …)  SET a = (SELECT s.x FROM s WHERE …), b = (SELECT s.y FROM s WHERE …)
//! SET (a, b) = (SELECT * FROM s)                 SET a = (SELECT r.c1 FROM (SELECT * FROM s) AS r (c1, c2)), …
//! ```
//! Of UPDATE, of MERGE and of ON CONFLICT DO UPDATE. A query runs once for each column, so one that draws random numbers
//! draws them for each.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, MergeAction, ObjectName, OnConflictAction, OnInsert, Query, Select, SelectItem,
    SetExpr, Statement, TableFactor,
};
use stoa_error::{Error, Result};

use crate::walk::walk_expressions;
use crate::{extent, reread, row_functions};

/// Writes out all such assignments of a statement.
///
/// # Errors
/// 42601 where there are more or fewer values than columns, 0A000 where no row is assigned, 54000 where the queries would be too
/// long.
pub(super) fn write_out(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Update(update) => spread(&mut update.assignments),
        Statement::Insert(insert) => match &mut insert.on {
            Some(OnInsert::OnConflict(conflict)) => match &mut conflict.action {
                OnConflictAction::DoUpdate(update) => spread(&mut update.assignments),
                OnConflictAction::DoNothing => Ok(()),
            },
            _ => Ok(()),
        },
        Statement::Merge(merge) => {
            merge.clauses.iter_mut().try_for_each(|clause| match &mut clause.action {
                MergeAction::Update(update) => spread(&mut update.assignments),
                MergeAction::Insert(_) | MergeAction::Delete { .. } => Ok(()),
            })
        }
        _ => Ok(()),
    }
}

fn spread(assignments: &mut Vec<Assignment>) -> Result<()> {
    let is_row = |assignment: &Assignment| matches!(assignment.target, AssignmentTarget::Tuple(_));
    if !assignments.iter().any(is_row) {
        return Ok(());
    }
    let mut written = Vec::with_capacity(assignments.len() + 1);
    for Assignment { target, value } in std::mem::take(assignments) {
        match target {
            AssignmentTarget::Tuple(columns) => written.extend(one_by_one(columns, value)?),
            target @ AssignmentTarget::ColumnName(_) => written.push(Assignment { target, value }),
        }
    }
    *assignments = written;
    Ok(())
}

fn one_by_one(columns: Vec<ObjectName>, value: Expr) -> Result<impl Iterator<Item = Assignment>> {
    let values = match value {
        Expr::Tuple(values) => values,
        Expr::Subquery(query) => values_of_query(&query, columns.len())?,
        other => row_of(other)?,
    };
    if values.len() != columns.len() {
        let message = "number of columns does not match number of values";
        return Err(Error::invalid(message).with_sqlstate("42601"));
    }
    let assigned = columns.into_iter().zip(values);
    Ok(assigned
        .map(|(column, value)| Assignment { target: AssignmentTarget::ColumnName(column), value }))
}

/// The values of `ROW(…)`.
fn row_of(value: Expr) -> Result<Vec<Expr>> {
    let not_a_row = || {
        Error::unsupported(
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        )
        .with_hint("write SET (a, b) = (value, value), or SET a = value")
    };
    let Expr::Function(function) = value else { return Err(not_a_row()) };
    let FunctionArguments::List(list) = function.args else { return Err(not_a_row()) };
    if !function.name.to_string().eq_ignore_ascii_case("row") || !list.clauses.is_empty() {
        return Err(not_a_row());
    }
    let value = |argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Ok(value),
        _ => Err(not_a_row()),
    };
    list.args.into_iter().map(value).collect()
}

/// A query of one column for each of `width` columns.
fn values_of_query(query: &Query, width: usize) -> Result<Vec<Expr>> {
    extent::refuse_copies(width * query.to_string().len())?;
    if let Some(select) = parts_apart(query) {
        let part = |item: &SelectItem| {
            let select = Select { projection: vec![item.clone()], ..select.clone() };
            let body = Box::new(SetExpr::Select(Box::new(select)));
            Expr::Subquery(Box::new(Query { body, ..query.clone() }))
        };
        return Ok(select.projection.iter().map(part).collect());
    }
    let names: Vec<String> = (1..=width).map(|number| format!("c{number}")).collect();
    let names = names.join(", ");
    (1..=width).map(|number| column_of_query(query, number, &names)).collect()
}

/// The column of a number, from 1, of a query whose columns are to have these names.
fn column_of_query(query: &Query, number: usize, names: &str) -> Result<Expr> {
    let unread = || Error::internal("the query of a row is not read");
    let text = format!("SELECT c{number} FROM (SELECT 1) AS r ({names})");
    let mut outer = reread::query(&text).map_err(|error| unread().with_source(error))?;
    let SetExpr::Select(select) = outer.body.as_mut() else { return Err(unread()) };
    let relation = select.from.first_mut().map(|table| &mut table.relation);
    let Some(TableFactor::Derived { subquery, .. }) = relation else { return Err(unread()) };
    **subquery = query.clone();
    Ok(Expr::Subquery(Box::new(outer)))
}

/// The query as one whose columns can be had one without the others: nothing else in it depends on which they are. Without
/// GROUP BY, one column with an aggregate makes one row, of the others, too.
fn parts_apart(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let is_plain = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_));
    let groups_by_name = match &select.group_by {
        GroupByExpr::Expressions(groups, _) => groups.iter().any(|group| !is_expression(group)),
        GroupByExpr::All(_) => true,
    };
    let has_groups =
        !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let calls_nothing = select.having.is_none() && !select.projection.iter().any(has_call);
    let aggregates = select.projection.iter().all(is_aggregate);
    let apart = query.order_by.is_none()
        && select.distinct.is_none()
        && select.into.is_none()
        && !groups_by_name
        && (has_groups || calls_nothing || aggregates)
        && select.projection.iter().all(is_plain);
    apart.then_some(select)
}

fn has_call(item: &SelectItem) -> bool {
    let SelectItem::UnnamedExpr(expr) = item else { return true };
    walk_expressions(expr, |expr| match expr {
        Expr::Function(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Whether the item is an aggregate of all rows, and nothing else.
fn is_aggregate(item: &SelectItem) -> bool {
    let SelectItem::UnnamedExpr(Expr::Function(function)) = item else { return false };
    function.over.is_none() && row_functions::is_aggregate(function)
}

/// Whether `GROUP BY` such a thing is not the number of a column.
fn is_expression(group: &Expr) -> bool {
    !matches!(group, Expr::Value(_) | Expr::Nested(_))
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    fn written(text: &str) -> Result<String> {
        let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap().swap_remove(0);
        write_out(&mut statement).map(|()| statement.to_string())
    }

    #[test]
    fn each_column_gets_its_value() {
        for (text, expected) in [
            ("UPDATE t SET (a, b) = (1, DEFAULT), c = 3", "UPDATE t SET a = 1, b = DEFAULT, c = 3"),
            ("UPDATE t SET (a) = ROW(1)", "UPDATE t SET a = 1"),
            ("UPDATE t SET (a, b) = row(b, a)", "UPDATE t SET a = b, b = a"),
            (
                "UPDATE t SET (a, b) = (SELECT x, max(y) FROM s WHERE s.k = t.k GROUP BY x)",
                "UPDATE t SET a = (SELECT x FROM s WHERE s.k = t.k GROUP BY x), \
                 b = (SELECT max(y) FROM s WHERE s.k = t.k GROUP BY x)",
            ),
            (
                "UPDATE t SET (a, b) = (SELECT * FROM s ORDER BY 1 LIMIT 1)",
                "UPDATE t SET a = (SELECT c1 FROM (SELECT * FROM s ORDER BY 1 LIMIT 1) AS r (c1, c2)), \
                 b = (SELECT c2 FROM (SELECT * FROM s ORDER BY 1 LIMIT 1) AS r (c1, c2))",
            ),
            (
                "UPDATE t SET (a, b) = (SELECT max(x), min(y) FROM s)",
                "UPDATE t SET a = (SELECT max(x) FROM s), b = (SELECT min(y) FROM s)",
            ),
            (
                "UPDATE t SET (a, b) = (SELECT max(x), 'q' FROM s)",
                "UPDATE t SET a = (SELECT c1 FROM (SELECT max(x), 'q' FROM s) AS r (c1, c2)), \
                 b = (SELECT c2 FROM (SELECT max(x), 'q' FROM s) AS r (c1, c2))",
            ),
            (
                "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET (b, c) = (excluded.b, 1)",
                "INSERT INTO t VALUES (1) ON CONFLICT(a) DO UPDATE SET b = excluded.b, c = 1",
            ),
            (
                "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET (b, c) = (s.b, 1)",
                "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = s.b, c = 1",
            ),
        ] {
            assert_eq!(written(text).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_row_of_as_many_values_is_refused() {
        for (text, sqlstate) in [
            ("UPDATE t SET (a, b) = (1, 2, 3)", "42601"),
            ("UPDATE t SET (a, b) = ROW(1)", "42601"),
            ("UPDATE t SET (a, b) = (SELECT 1)", "42601"),
            ("UPDATE t SET (a) = (1)", "0A000"),
            ("UPDATE t SET (a, b) = 5", "0A000"),
            ("UPDATE t SET (a, b) = f(1, 2)", "0A000"),
        ] {
            assert_eq!(written(text).unwrap_err().sqlstate(), sqlstate, "{text}");
        }
    }

    /// Each column has its own copy of the query.
    #[test]
    fn copies_of_a_long_query_are_refused() {
        let columns = vec!["a"; 2_000].join(", ");
        let text = format!(
            "UPDATE t SET ({columns}) = (SELECT {columns} FROM s WHERE x = '{}')",
            "y".repeat(10_000)
        );
        assert_eq!(written(&text).unwrap_err().sqlstate(), "54000");
    }
}
