//! Statements of clients that read the system catalog, rewritten to what the engine can plan.

use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::Statement;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use stoa_error::{Error, Result};

/// What a statement contains (lower case) if it takes this way.
const SIGNS: [&str; 10] = [
    "pg_",
    "information_schema",
    "regclass",
    "regtype",
    "regproc",
    "current_user",
    "current_schema",
    "current_catalog",
    "session_user",
    "version()",
];

static PARSER: LazyLock<PostgresCompatibilityParser> =
    LazyLock::new(PostgresCompatibilityParser::new);

/// Parses a statement that reads the system catalog, rewritten; `None` for all others, which then
/// take the plain way. Cheap for those: it stands before every report.
///
/// # Errors
/// Syntax (42601).
pub(crate) fn parse(text: &str) -> Result<Option<Statement>> {
    let lower = text.to_ascii_lowercase();
    if !SIGNS.iter().any(|sign| lower.contains(sign)) {
        return Ok(None);
    }
    let Ok(mut statements) = PARSER.parse(text) else {
        // The plain way tells the place of the error.
        return Ok(None);
    };
    match (statements.pop(), statements.is_empty()) {
        (Some(statement @ Statement::Query(_)), true) => Ok(Some(statement)),
        (Some(_), true) | (None, _) => Ok(None),
        (Some(_), false) => {
            Err(Error::invalid("there is more than one statement").with_sqlstate("42601"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_take_the_plain_way() {
        assert!(parse("SELECT account, sum(clicks) FROM report GROUP BY account").unwrap().is_none());
        assert!(parse("SELECT relname FROM pg_class").unwrap().is_some());
        assert!(parse("SELECT pg_ FROM").unwrap().is_none());
    }
}
