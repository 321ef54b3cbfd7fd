//! Statements of clients that read the system catalog, rewritten to what the engine can plan.
//!
//! ```text
//!  text ─► literals ('t'::regclass) ─► names (casts and functions that look names up) ─► empty (what has no rows here) ─► keys ─► kinds (domains)
//!       ─► subqueries (ARRAY(…), scalar ones) ─► columns (names twice) ─► rules shared with
//!          others who run PostgreSQL's clients on this engine
//! ```
//!
//! Not here: statements that do not read the system catalog; they are planned as they are.

mod columns;
mod empty;
mod keys;
mod kinds;
mod literals;
mod names;
mod signs;
mod subqueries;

use std::sync::LazyLock;

use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::{Expr, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use datafusion_pg_catalog::sql::rules::{
    AliasDuplicatedProjectionRewrite, CurrentUserVariableToSessionUserFunctionCall,
    FixArrayLiteral, FixVersionColumnName, PrependUnqualifiedPgTableName,
    ResolveUnqualifiedIdentifier, RewriteArrayAnyAllOperation, RewritePgCatalogOperator,
    RewriteRegCastToSubquery, SqlStatementRewriteRule, StripCallableQualifier, StripCollate,
};
use stoa_error::Result;

use stoa_sql::Bounded;
use stoa_sql::walk::WalkMut;

/// The shared rules, in the order their crate applies them.
static RULES: LazyLock<Vec<Box<dyn SqlStatementRewriteRule>>> = LazyLock::new(shared_rules);

fn shared_rules() -> Vec<Box<dyn SqlStatementRewriteRule>> {
    vec![
        Box::new(AliasDuplicatedProjectionRewrite),
        Box::new(ResolveUnqualifiedIdentifier),
        Box::new(RewriteArrayAnyAllOperation),
        Box::new(PrependUnqualifiedPgTableName),
        Box::new(StripCallableQualifier),
        Box::new(FixArrayLiteral),
        Box::new(CurrentUserVariableToSessionUserFunctionCall),
        Box::new(StripCollate),
        Box::new(RewritePgCatalogOperator),
        Box::new(RewriteRegCastToSubquery::new()),
        Box::new(FixVersionColumnName),
    ]
}

static WHOLE_TEXTS: LazyLock<PostgresCompatibilityParser> =
    LazyLock::new(PostgresCompatibilityParser::new);

/// Parses a statement that reads the system catalog, rewritten; `None` for all others, which then
/// take the plain way. Cheap for those: it stands before every report.
///
/// # Errors
/// Literals that name a type that does not exist (42704). A syntax error is left to the plain way, which tells its place.
pub fn parse(text: &str) -> Result<Option<Statement>> {
    if !signs::may_be_in(text) {
        return Ok(None);
    }
    let dialect = Bounded::new(PostgreSqlDialect {}, text.len());
    let Ok(mut statements) = Parser::parse_sql(&dialect, text) else {
        return Ok(None);
    };
    let (Some(statement @ Statement::Query(_)), true) = (statements.pop(), statements.is_empty())
    else {
        return Ok(None);
    };
    if signs::splits_search_path(&statement) {
        let whole = WHOLE_TEXTS.parse(text).ok().and_then(|mut parsed| parsed.pop());
        return Ok(Some(whole.unwrap_or(statement)));
    }
    signs::are_in(&statement).then(|| rewrite(statement)).transpose()
}

/// Whether a statement reads the lists of names, which must be up to date then.
pub fn lists_names(statement: &EngineStatement) -> bool {
    match statement {
        EngineStatement::Statement(statement) => signs::are_in(&**statement),
        EngineStatement::Explain(explain) => lists_names(&explain.statement),
        _ => false,
    }
}

fn rewrite(mut statement: Statement) -> Result<Statement> {
    stoa_sql::column_names::name_columns(&mut statement);
    literals::look_up(&mut statement)?;
    let _ = statement.walk_mut(&mut names::Names);
    let _ = statement.walk_mut(&mut empty::Empty);
    let _ = statement.walk_mut(&mut keys::Keys);
    let _ = statement.walk_mut(&mut kinds::Kinds);
    let _ = statement.walk_mut(&mut subqueries::Subqueries);
    let _ = statement.walk_mut(&mut columns::Columns);
    Ok(RULES.iter().fold(statement, |statement, rule| rule.rewrite(statement)))
}

/// An expression from its text; `None` where it does not parse.
fn expression(text: &str) -> Option<Expr> {
    Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?.parse_expr().ok()
}

#[cfg(test)]
mod tests;
