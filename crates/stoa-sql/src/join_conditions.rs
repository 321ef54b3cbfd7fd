//! `a JOIN b` without a condition: the engine reads it as all pairs of rows.

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    JoinConstraint, JoinOperator, Select, TableFactor, TableWithJoins, Visitor,
};
use stoa_error::{Error, Result};

use crate::walk::Walk;

/// Refuses joins for which it is not said which rows belong together, as PostgreSQL does.
///
/// # Errors
/// 42601 for such a join.
pub(super) fn refuse_without_condition(statement: &EngineStatement, text: &str) -> Result<()> {
    let is_join = |window: &[u8]| window.eq_ignore_ascii_case(b"join");
    if !text.as_bytes().windows(4).any(is_join) {
        return Ok(());
    }
    let visited = match statement {
        EngineStatement::Statement(statement) => statement.walk(&mut Joins),
        EngineStatement::Explain(explain) => {
            return refuse_without_condition(&explain.statement, text);
        }
        _ => return Ok(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(joined) => {
            let said = format!("the join with {joined} has no condition");
            Err(Error::invalid(said)
                .with_sqlstate("42601")
                .with_hint("add ON or USING; for all pairs of rows write CROSS JOIN"))
        }
    }
}

struct Joins;

impl Visitor for Joins {
    /// What is joined.
    type Break = String;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        select.from.iter().try_for_each(check)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => check(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn check(from: &TableWithJoins) -> ControlFlow<String> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    for join in &from.joins {
        if let Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on)
        | FullOuter(on) = &join.join_operator
            && matches!(on, JoinConstraint::None)
        {
            return ControlFlow::Break(join.relation.to_string());
        }
    }
    ControlFlow::Continue(())
}
