//! The second part of `WITH RECURSIVE`, marked, so that the type of each of its columns is known.
//!
//! The engine casts what the second part gives to the types of the first; afterwards, nobody can tell such a cast from
//! one that was written. In: a parsed statement. Out: the same, each item of the second part within a call:
//!
//! ```text
//! WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 0.5 FROM r)  ─►  … SELECT row_of_recursion(n + 0.5) FROM r)
//! ```
//! Names are those of the first part. What the call means, and which types are refused, is in `stoa-semantics`
//! (`recursion`).

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, ObjectNamePart, Query, SelectItem, SetExpr, Statement, Value, VisitorMut,
};
use stoa_error::{Error, Result};

use crate::reread;
use crate::walk::{WalkMut, walk_relations};

/// Name of the call.
pub const ROW_OF_RECURSION: &str = "row_of_recursion";

/// Marks the items of the second parts.
///
/// # Errors
/// ORDER BY, LIMIT or OFFSET behind the second part (0A000).
pub(super) fn mark(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Marking) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Marking;

impl VisitorMut for Marking {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let Some(with) = query.with.as_mut().filter(|with| with.recursive) else {
            return ControlFlow::Continue(());
        };
        for table in &mut with.cte_tables {
            let part = part_of_whole(&table.query);
            let SetExpr::SetOperation { right, .. } = table.query.body.as_mut() else { continue };
            let name = &table.alias.name;
            let reads_itself = walk_relations(right.as_ref(), |relation| {
                let is_own = matches!(
                    relation.0.as_slice(),
                    [ObjectNamePart::Identifier(own)] if own.value.eq_ignore_ascii_case(&name.value)
                );
                if is_own { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .is_break();
            if !reads_itself {
                continue;
            }
            if let Some(word) = part {
                let message = format!("{word} in a recursive query is not implemented");
                let hint = "write it in the query that reads the rows";
                return ControlFlow::Break(Error::unsupported(message).with_hint(hint));
            }
            let SetExpr::Select(select) = right.as_mut() else { continue };
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                    && !makes_rows(expr)
                    && let Err(error) = mark_item(expr)
                {
                    return ControlFlow::Break(error);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// What stands behind both parts and is about the rows of both, which are never there all at once.
fn part_of_whole(query: &Query) -> Option<&'static str> {
    let has_limit = query.limit_clause.is_some() || query.fetch.is_some();
    match (&query.order_by, has_limit) {
        (Some(_), _) => Some("ORDER BY"),
        (None, true) => Some("LIMIT or OFFSET"),
        (None, false) if !query.locks.is_empty() => Some("FOR UPDATE/SHARE"),
        (None, false) => None,
    }
}

/// Whether an item may be several rows.
fn makes_rows(expr: &Expr) -> bool {
    let Expr::Function(call) = expr else { return false };
    let Some(ObjectNamePart::Identifier(name)) = call.name.0.last() else { return false };
    let name = name.value.to_lowercase();
    name == "unnest"
        || ["generate_", "regexp_", "string_to_", "json_", "jsonb_"]
            .iter()
            .any(|family| name.starts_with(family))
}

fn mark_item(expr: &mut Expr) -> Result<()> {
    let item = std::mem::replace(expr, Expr::value(Value::Null));
    *expr = reread::call(ROW_OF_RECURSION, vec![item])
        .map_err(|e| Error::internal("a row of a recursion is not written").with_source(e))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, expected: &str) {
        let mut statement = reread::statement(sql).unwrap();
        mark(&mut statement).unwrap();
        assert_eq!(statement.to_string(), expected);
    }

    #[test]
    fn only_what_reads_its_own_rows_is_marked() {
        check(
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 0.5 FROM r) SELECT * FROM r",
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT row_of_recursion(n + 0.5) FROM r) SELECT * FROM r",
        );
        let other = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT 2 FROM t) SELECT * FROM r";
        check(other, other);
        let plain = "WITH r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r";
        check(plain, plain);
    }
}
