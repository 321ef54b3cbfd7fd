//! `upper(x) OVER ()`: words that only aggregates and window functions take. The engine reads them and forgets them
//! beside any other function.

use std::ops::ControlFlow;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments,
};
use stoa_error::{Error, Result, Subject};

use stoa_sql::walk::walk_expressions;

/// Refuses calls whose words would have no effect.
///
/// # Errors
/// 42809 for `OVER`, `FILTER`, `DISTINCT` and `ORDER BY` where the function takes none, and for `count()`; 42601 for
/// `count(DISTINCT *)`.
pub(super) fn refuse(statement: &EngineStatement, state: &SessionState) -> Result<()> {
    let statement = match statement {
        EngineStatement::Statement(statement) => statement,
        EngineStatement::Explain(explain) => return refuse(&explain.statement, state),
        _ => return Ok(()),
    };
    let visited = walk_expressions(statement, |expr| match expr {
        Expr::Function(call) => match check(call, state) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        },
        _ => ControlFlow::Continue(()),
    });
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

fn check(call: &Function, state: &SessionState) -> Result<()> {
    let Some(ident) = call.name.0.last().and_then(|part| part.as_ident()) else { return Ok(()) };
    let name = stoa_sql::normalise(ident);
    let list = match &call.args {
        FunctionArguments::List(list) => Some(list),
        _ => None,
    };
    let wrong = |sqlstate: &'static str, said: String| {
        let error = Error::invalid(said).with_sqlstate(sqlstate);
        Err(error.about(Subject::OnlyCall(name.clone())))
    };
    if let Some(list) = list
        && name == "count"
    {
        if is_distinct(list) && list.args.iter().any(is_star) {
            return wrong("42601", "DISTINCT of * is not a list of values".to_owned());
        }
        if list.args.is_empty() {
            let said = "count(*) must be used to call a parameterless aggregate function";
            return wrong("42809", said.to_owned());
        }
    }
    let is_scalar = state.udf(&name).is_ok();
    if !is_scalar || state.udaf(&name).is_ok() || state.udwf(&name).is_ok() {
        return Ok(());
    }
    let word = match list {
        _ if call.over.is_some() => {
            let said = format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            );
            return wrong("42809", said);
        }
        _ if call.filter.is_some() => "FILTER",
        _ if !call.within_group.is_empty() => "WITHIN GROUP",
        Some(list) if is_distinct(list) => "DISTINCT",
        Some(list) if list.clauses.iter().any(is_order) => "ORDER BY",
        _ => return Ok(()),
    };
    wrong("42809", format!("{word} specified, but {name} is not an aggregate function"))
}

fn is_distinct(list: &FunctionArgumentList) -> bool {
    matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct))
}

fn is_star(arg: &FunctionArg) -> bool {
    matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Wildcard))
}

fn is_order(clause: &FunctionArgumentClause) -> bool {
    matches!(clause, FunctionArgumentClause::OrderBy(_))
}
