//! WITH within the queries of WITH: the engine looks for the tables of each such query twice, so that one within
//! the other thirty times would be looked at 2³⁰ times.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Query, Statement, VisitorMut};
use stoa_error::{Error, Result};

use crate::walk::WalkMut;

/// Queries of WITH within each other.
const DEPTH_MAX: usize = 10;

/// Refuses what would take the engine's planner for ever.
///
/// # Errors
/// 54001.
pub(super) fn check(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Depths::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(Error::invalid(format!("more than {DEPTH_MAX} WITH clauses within each other"))
                .with_sqlstate("54001")
                .with_hint("write their queries one after another: WITH a AS (…), b AS (…)"))
        }
    }
}

#[derive(Default)]
struct Depths {
    /// In how many queries of WITH each of the queries around the next one stands.
    around: Vec<usize>,
    /// The same for queries of WITH that were not visited yet, by where they are.
    within: HashMap<usize, usize>,
}

impl VisitorMut for Depths {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let around = self.around.last().copied().unwrap_or(0);
        let depth = self.within.remove(&std::ptr::from_ref(query).addr()).unwrap_or(around);
        self.around.push(depth);
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.within.insert(std::ptr::from_ref(table.query.as_ref()).addr(), depth + 1);
        }
        match depth > DEPTH_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    fn is_taken(sql: &str) -> bool {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        check(&mut statements[0]).is_ok()
    }

    #[test]
    fn queries_of_with_may_not_be_too_deep() {
        let nested = |depth: usize| {
            (0..depth).fold("SELECT 1".to_owned(), |of, _| {
                format!("WITH w AS ({of}) SELECT * FROM (SELECT * FROM w) AS x")
            })
        };
        assert!(is_taken(&nested(DEPTH_MAX)));
        assert!(!is_taken(&nested(DEPTH_MAX + 1)));
        let listed: Vec<String> = (0..100).map(|n| format!("w{n} AS (SELECT 1)")).collect();
        assert!(is_taken(&format!("WITH {} SELECT 1", listed.join(", "))));
        // In the body they are looked at once.
        let body = (0..14).fold("SELECT 1".to_owned(), |of, _| {
            format!("WITH w AS (SELECT 2) SELECT * FROM ({of}) AS x")
        });
        assert!(is_taken(&body));
    }
}
