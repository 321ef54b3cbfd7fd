//! `TABLESAMPLE`: some of a table's rows, chosen at random.
//!
//! In: a statement as it was parsed. Out: the same, with `t TABLESAMPLE BERNOULLI (10)` as a subquery that keeps each row with
//! that probability. `SYSTEM`, by which PostgreSQL takes whole pages, is the same here.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Statement, TableAlias, TableFactor, TableSample, TableSampleKind, TableSampleUnit,
    VisitorMut,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use crate::walk::WalkMut;

/// Writes samples as subqueries.
///
/// # Errors
/// What is none of PostgreSQL's forms, and seeds (0A000).
pub(super) fn write_as_queries(statement: &mut Statement, text: &str) -> Result<()> {
    let is_sample = |window: &[u8]| window.eq_ignore_ascii_case(b"sample");
    if !text.as_bytes().windows(6).any(is_sample) {
        return Ok(());
    }
    match statement.walk_mut(&mut Samples) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Samples;

impl VisitorMut for Samples {
    type Break = Error;

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Error> {
        match sampled(table) {
            Ok(Some(query)) => *table = query,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

fn sampled(table: &mut TableFactor) -> Result<Option<TableFactor>> {
    let TableFactor::Table { name, alias, sample, .. } = table else { return Ok(None) };
    let Some(taken) = sample.take() else { return Ok(None) };
    let (TableSampleKind::BeforeTableAlias(taken) | TableSampleKind::AfterTableAlias(taken)) =
        taken;
    let percent = percent_of(*taken)?;
    let last = name.0.last().and_then(|part| part.as_ident()).cloned();
    let alias = alias.take().or_else(|| {
        last.map(|name| TableAlias { explicit: true, name, columns: Vec::new(), at: None })
    });
    let text = format!("SELECT * FROM {name} WHERE random() * 100 < ({percent})");
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&text);
    let query = parsed.and_then(|mut parser| parser.parse_query());
    let subquery = query.map_err(|_| unsupported("of such a table"))?;
    Ok(Some(TableFactor::Derived { lateral: false, subquery, alias, sample: None }))
}

/// Of a hundred rows, how many.
fn percent_of(sample: TableSample) -> Result<Expr> {
    if sample.seed.is_some() {
        return Err(unsupported("with REPEATABLE")
            .with_detail("rows are computed on several threads, in no certain order")
            .with_hint("choose rows by a column, for instance by hashing it"));
    }
    if sample.bucket.is_some() || sample.offset.is_some() {
        return Err(unsupported("by buckets").with_hint("write TABLESAMPLE BERNOULLI (percent)"));
    }
    match sample.quantity {
        Some(quantity) if matches!(quantity.unit, None | Some(TableSampleUnit::Percent)) => {
            checked(quantity.value)
        }
        _ => Err(unsupported("of a number of rows")
            .with_hint("write TABLESAMPLE BERNOULLI (percent), or ORDER BY random() LIMIT n")),
    }
}

fn checked(percent: Expr) -> Result<Expr> {
    let is_wrong = |text: &str| text.parse().is_ok_and(|part: f64| !(0.0..=100.0).contains(&part));
    match is_wrong(&percent.to_string()) {
        true => {
            Err(Error::invalid("sample percentage must be between 0 and 100")
                .with_sqlstate("2202H"))
        }
        false => Ok(percent),
    }
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("TABLESAMPLE {what} is not supported"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Result<String> {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        let mut statement = statements.remove(0);
        write_as_queries(&mut statement, text)?;
        Ok(statement.to_string())
    }

    #[test]
    fn samples_are_subqueries() {
        assert_eq!(
            written("SELECT a FROM s.t TABLESAMPLE BERNOULLI (10) WHERE a > 1").unwrap(),
            "SELECT a FROM (SELECT * FROM s.t WHERE random() * 100 < (10)) AS t WHERE a > 1"
        );
        assert_eq!(written("SELECT 1 AS sample").unwrap(), "SELECT 1 AS sample");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, sqlstate) in [
            ("SELECT 1 FROM t TABLESAMPLE SYSTEM (10) REPEATABLE (3)", "0A000"),
            ("SELECT 1 FROM t TABLESAMPLE BERNOULLI (101)", "2202H"),
        ] {
            assert_eq!(written(text).unwrap_err().sqlstate(), sqlstate, "{text}");
        }
    }
}
