//! `WITH t AS (INSERT … RETURNING …) SELECT …`, which changes tables and reads what was changed.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Query, SetExpr, Statement, Visitor};
use stoa_error::{Error, Result};

use crate::walk::Walk;

/// Refuses such statements.
///
/// # Errors
/// 0A000.
pub(super) fn refuse(statement: &Statement) -> Result<()> {
    match statement.walk(&mut InQueries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(word) => Err(Error::unsupported(format!("{word} in WITH is not supported"))
            .with_hint(
                "run it before, with RETURNING, in the same transaction; or keep its rows in a temporary table",
            )),
    }
}

struct InQueries;

impl Visitor for InQueries {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let Some(with) = &query.with else { return ControlFlow::Continue(()) };
        for table in &with.cte_tables {
            let word = match table.query.body.as_ref() {
                SetExpr::Insert(_) => "INSERT",
                SetExpr::Update(_) => "UPDATE",
                SetExpr::Delete(_) => "DELETE",
                SetExpr::Merge(_) => "MERGE",
                _ => continue,
            };
            return ControlFlow::Break(word);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reread;

    #[test]
    fn changes_in_with_are_told_by_their_word() {
        let refused = |sql: &str| refuse(&reread::statement(sql).unwrap());
        for word in ["INSERT INTO t VALUES (1)", "UPDATE t SET a = 1", "DELETE FROM t"] {
            let sql = format!("WITH c AS ({word} RETURNING a) SELECT * FROM c");
            let error = refused(&sql).unwrap_err();
            assert_eq!(error.sqlstate(), "0A000");
            assert!(word.starts_with(error.message().split(' ').next().unwrap()), "{error:?}");
        }
        assert!(refused("WITH c AS (SELECT 1) SELECT * FROM c").is_ok());
    }
}
