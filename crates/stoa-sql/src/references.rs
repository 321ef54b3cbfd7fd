//! How often a statement reads what its WITH names, written out.
//!
//! The engine plans a WITH query anew wherever it is named: `b AS (SELECT * FROM a, a), c AS (SELECT … FROM b, b)`
//! and so on double with each name, and a few lines of text would become a plan of any size. So what they
//! come to is counted before anything is planned.
//!
//! **Invariant:** counting takes one pass over the statement, whatever it comes to.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{ObjectName, Query, Statement, Visitor};
use stoa_error::{Error, ErrorKind, Result};

use crate::normalise;
use crate::walk::Walk;

/// Tables and queries that a statement may come to.
const REFERENCES_MAX: u64 = 4096;

/// Refuses a statement that comes to too much.
///
/// # Errors
/// 54000 where it does.
pub(super) fn check(statement: &EngineStatement, text: &str) -> Result<()> {
    // Without a name for a query, none is read twice.
    if !text.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"with")) {
        return Ok(());
    }
    let Some(statement) = inner(statement) else { return Ok(()) };
    match statement.walk(&mut References::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::new(
            ErrorKind::Exhausted,
            "the statement is too complex: its WITH queries read each other too often",
        )
        .with_sqlstate("54000")
        .with_detail(format!("written out, it reads more than {REFERENCES_MAX} tables and queries"))
        .with_hint("keep a part of it in a table: CREATE TABLE … AS")),
    }
}

fn inner(statement: &EngineStatement) -> Option<&Statement> {
    match statement {
        EngineStatement::Statement(statement) => Some(statement),
        EngineStatement::Explain(explain) => inner(&explain.statement),
        _ => None,
    }
}

/// The queries around the place that is looked at.
#[derive(Default)]
struct References {
    queries: Vec<Open>,
    /// Queries of a WITH that come next, by their address, with their names.
    named: HashMap<usize, String>,
}

/// A query of which the end has not been seen.
struct Open {
    /// Its name in a WITH.
    name: Option<String>,
    references: u64,
    /// What the names of its own WITH come to.
    names: HashMap<String, u64>,
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query) as usize
}

impl References {
    /// Counts more in the innermost query.
    fn add(&mut self, references: u64) -> ControlFlow<()> {
        let Some(open) = self.queries.last_mut() else { return ControlFlow::Continue(()) };
        open.references = open.references.saturating_add(references);
        match open.references > REFERENCES_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for References {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let name = self.named.remove(&address(query));
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.named.insert(address(&cte.query), normalise(&cte.alias.name));
        }
        self.queries.push(Open { name, references: 1, names: HashMap::new() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        let Some(ended) = self.queries.pop() else { return ControlFlow::Continue(()) };
        match (ended.name, self.queries.last_mut()) {
            (Some(name), Some(outer)) => {
                outer.names.insert(name, ended.references);
                ControlFlow::Continue(())
            }
            _ => self.add(ended.references),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = match relation.0.as_slice() {
            [part] => part.as_ident().map(normalise),
            _ => None,
        };
        let known = name.and_then(|name| {
            self.queries.iter().rev().find_map(|open| open.names.get(&name).copied())
        });
        self.add(known.unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;

    fn sqlstate(text: &str) -> Option<&'static str> {
        let statement = parse_query(text).unwrap();
        check(&statement, text).err().map(|error| {
            assert_eq!(error.sqlstate(), "54000", "{text}");
            "54000"
        })
    }

    fn doubled(times: usize) -> String {
        let named = (1..=times).map(|n| format!("q{n} AS (SELECT 1 FROM q{0} a, Q{0} b)", n - 1));
        let named: Vec<String> = named.collect();
        format!("WITH q0 AS (SELECT 1), {} SELECT count(*) FROM q{times}", named.join(", "))
    }

    #[test]
    fn what_doubles_is_refused_before_it_is_planned() {
        assert_eq!(sqlstate(&doubled(8)), None);
        for times in [12, 30, 500] {
            assert_eq!(sqlstate(&doubled(times)), Some("54000"), "{times}");
            assert_eq!(sqlstate(&format!("EXPLAIN {}", doubled(times))), Some("54000"));
            // Also where nothing reads it, and within a subquery.
            let unread = doubled(times).replace(&format!("FROM q{times}"), "FROM t");
            assert_eq!(sqlstate(&unread), Some("54000"));
            assert_eq!(sqlstate(&format!("SELECT ({})", doubled(times))), Some("54000"));
        }
    }

    #[test]
    fn many_names_and_many_tables_are_answered() {
        let chain: Vec<String> =
            (1..1000).map(|n| format!("q{n} AS (SELECT * FROM q{})", n - 1)).collect();
        let chain = format!("WITH q0 AS (SELECT 1), {} SELECT * FROM q999", chain.join(", "));
        assert_eq!(sqlstate(&chain), None);
        let unions = ["SELECT x FROM t"; 200].join(" UNION ALL ");
        assert_eq!(sqlstate(&format!("WITH q AS (SELECT 1) {unions}")), None);
        // A name means the nearest query of that name, or a table in a schema.
        let nearest = "WITH q AS (SELECT 1) \
                       SELECT * FROM q, public.q, (WITH q AS (SELECT 2) SELECT * FROM q) s";
        assert_eq!(sqlstate(nearest), None);
        let own = "WITH RECURSIVE q AS (SELECT 1 UNION ALL SELECT * FROM q) SELECT * FROM q";
        assert_eq!(sqlstate(own), None);
    }
}
