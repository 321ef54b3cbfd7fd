//! Functions that return rows where no rows can be.
//!
//! In: a parsed statement. Out: the same; `generate_series` within the expressions of a SELECT list is
//! `unnest(generate_series(…))`, since the engine has a list there. Everywhere else but in FROM, functions that return
//! rows are refused with PostgreSQL's words: the engine would take the whole list for one value.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, GroupByExpr, OrderBy, OrderByKind, Query, Select,
    SelectItem, SetExpr, Statement, Value, VisitorMut,
};
use stoa_error::{Error, Result};

use crate::calls::{call, named};
use crate::walk::WalkMut;

/// The functions.
pub(super) const NAMES: &[&str] = &[
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "json_each_text",
    "json_object_keys",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_object_keys",
    "jsonb_path_query",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "unnest",
];

/// Writes or refuses them.
///
/// # Errors
/// 0A000 where no rows can be.
pub(super) fn settle(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Clauses) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Clauses;

impl VisitorMut for Clauses {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            for value in values.rows.iter_mut().flat_map(|row| row.content.iter_mut()) {
                refuse(value, "VALUES")?;
            }
        }
        let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
            return ControlFlow::Continue(());
        };
        for key in keys {
            refuse(&mut key.expr, "ORDER BY")?;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                expr.walk_mut(&mut InItem::new(None))?;
            }
        }
        if let Some(condition) = &mut select.selection {
            refuse(condition, "WHERE")?;
        }
        if let Some(condition) = &mut select.having {
            refuse(condition, "HAVING")?;
        }
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            for key in keys {
                refuse(key, "GROUP BY")?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Refuses functions that return rows, but for those in queries within.
fn refuse(expr: &mut Expr, place: &'static str) -> ControlFlow<Error> {
    expr.walk_mut(&mut InItem::new(Some((Construct::Clause(place), 0))))
}

#[derive(Clone, Copy)]
enum Construct {
    Clause(&'static str),
    Aggregate,
    Window,
}

impl Construct {
    fn refusal(self) -> Error {
        let (said, hint) = match self {
            Self::Clause(place @ ("GROUP BY" | "ORDER BY")) => (
                format!("set-returning functions are not supported in {place}"),
                "give it a name in the SELECT list, and use that",
            ),
            Self::Clause(place) => (
                format!("set-returning functions are not allowed in {place}"),
                "move the function into FROM",
            ),
            Self::Aggregate => (
                "aggregate function calls cannot contain set-returning function calls".to_owned(),
                "move the function into FROM",
            ),
            Self::Window => (
                "window function calls cannot contain set-returning function calls".to_owned(),
                "move the function into FROM",
            ),
        };
        Error::unsupported(said).with_hint(hint)
    }
}

/// One expression, without the queries in it.
struct InItem {
    /// The outermost construct that has no rows, and the level of the expression that it is.
    within: Option<(Construct, usize)>,
    /// The expressions around: whether each is `unnest(…)`, as in a statement that was written here before.
    around: Vec<bool>,
    /// Queries around.
    queries: usize,
}

impl InItem {
    fn new(within: Option<(Construct, usize)>) -> Self {
        Self { within, around: Vec::new(), queries: 0 }
    }
}

impl VisitorMut for InItem {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let is_unnest = matches!(expr, Expr::Function(function) if is_named(function, "unnest"));
        self.around.push(is_unnest);
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        if let (Some((construct, _)), true) = (self.within, returns_rows(expr)) {
            return ControlFlow::Break(construct.refusal());
        }
        let construct = match expr {
            Expr::Case { .. } => Construct::Clause("CASE"),
            Expr::Function(function) if is_named(function, "coalesce") => {
                Construct::Clause("COALESCE")
            }
            Expr::Function(function) if function.over.is_some() => Construct::Window,
            Expr::Function(function) if is_aggregate(function) => Construct::Aggregate,
            _ => return ControlFlow::Continue(()),
        };
        self.within = self.within.or(Some((construct, self.around.len())));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.within.is_some_and(|(_, depth)| depth == self.around.len()) {
            self.within = None;
        }
        self.around.pop();
        let is_list = self.around.last().is_some_and(|is_unnest| *is_unnest);
        let is_series =
            matches!(expr, Expr::Function(function) if is_named(function, "generate_series"));
        if self.queries == 0 && is_series && !is_list {
            let series = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = call("unnest", vec![series]);
        }
        ControlFlow::Continue(())
    }
}

fn is_named(function: &Function, name: &str) -> bool {
    named(&function.name).as_deref() == Some(name)
}

fn returns_rows(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let has_arguments = matches!(function.args, FunctionArguments::List(_));
    has_arguments && named(&function.name).is_some_and(|name| NAMES.contains(&name.as_str()))
}

/// The aggregates that PostgreSQL has.
const AGGREGATES: &[&str] = &[
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "every",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "max",
    "min",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

pub(super) fn is_aggregate(function: &Function) -> bool {
    named(&function.name).is_some_and(|name| AGGREGATES.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reread;

    fn settled(sql: &str) -> Result<String> {
        let mut statement = reread::statement(sql).unwrap();
        settle(&mut statement)?;
        let once = statement.to_string();
        settle(&mut statement)?;
        assert_eq!(statement.to_string(), once);
        Ok(once)
    }

    #[test]
    fn series_in_a_list_are_rows_once() {
        assert_eq!(
            settled("SELECT generate_series(1, 3) + 1, a FROM t").unwrap(),
            "SELECT unnest(generate_series(1, 3)) + 1, a FROM t"
        );
        let other = "SELECT (SELECT max(g) FROM generate_series(1, 2) AS s (g)) FROM t";
        assert_eq!(settled(other).unwrap(), other);
    }

    #[test]
    fn rows_are_refused_where_there_can_be_none() {
        for sql in [
            "SELECT max(unnest(a)) FROM t",
            "SELECT sum(x + generate_series(1, 2)) OVER () FROM t",
            "SELECT CASE WHEN a THEN generate_series(1, 2) END FROM t",
            "SELECT a FROM t WHERE generate_series(1, 2) = a",
            "SELECT a FROM t ORDER BY unnest(b)",
            "VALUES (1), (generate_series(1, 2))",
        ] {
            assert_eq!(settled(sql).unwrap_err().sqlstate(), "0A000", "{sql}");
        }
        let within = "SELECT max((SELECT count(*) FROM UNNEST(a))) FROM t";
        assert_eq!(settled(within).unwrap(), within);
    }
}
