//! WITH queries whose rows are other ones each time.
//!
//! PostgreSQL computes a WITH query once, however often it is read; the engine computes it anew each time. Where that
//! can be seen (`random()`, `gen_random_uuid()`), a query that is read more than once is refused.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, ObjectNamePart, Query, Statement, Visitor};
use stoa_error::{Error, Result};

use crate::calls::named;
use crate::normalise;
use crate::walk::{Walk, walk_expressions, walk_relations};

/// Functions that give another value each time.
const VOLATILE: &[&str] = &[
    "clock_timestamp",
    "gen_random_uuid",
    "nextval",
    "random",
    "random_normal",
    "timeofday",
    "uuid",
];

/// Refuses such queries.
///
/// # Errors
/// 0A000 for one that is read more than once.
pub(super) fn check(statement: &Statement) -> Result<()> {
    match statement.walk(&mut Checking) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Checking;

impl Visitor for Checking {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let Some(with) = &query.with else { return ControlFlow::Continue(()) };
        for table in &with.cte_tables {
            let name = normalise(&table.alias.name);
            if is_volatile(&table.query) && readers(query, &name) > 1 {
                let said = format!(
                    "WITH query \"{name}\" is read more than once, and its rows change each time"
                );
                let hint = "keep them in a table first: CREATE TEMP TABLE … AS …";
                return ControlFlow::Break(Error::unsupported(said).with_hint(hint));
            }
        }
        ControlFlow::Continue(())
    }
}

fn is_volatile(query: &Query) -> bool {
    walk_expressions(query, |expr| {
        let name = match expr {
            Expr::Function(function) => named(&function.name),
            _ => None,
        };
        match name.is_some_and(|name| VOLATILE.contains(&name.as_str())) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
    .is_break()
}

/// How often a name stands in FROM.
fn readers(query: &Query, name: &str) -> usize {
    let mut count = 0;
    let _ = walk_relations(query, |relation| {
        if let [ObjectNamePart::Identifier(own)] = relation.0.as_slice() {
            count += usize::from(normalise(own) == name);
        }
        ControlFlow::<()>::Continue(())
    });
    count
}
