//! Texts with places for their literals, parsed.

use datafusion::sql::parser::{DFParserBuilder, Statement as EngineStatement};
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use stoa_sql::fingerprint::Fingerprint;

/// The syntax tree of a text with places for its literals.
pub(crate) fn parse_places(fingerprint: &Fingerprint<'_>) -> Option<Statement> {
    let dialect = PostgreSqlDialect {};
    let mut parser =
        DFParserBuilder::new(fingerprint.text.as_str()).with_dialect(&dialect).build().ok()?;
    let parsed = parser.parse_statement().ok()?;
    match parsed {
        EngineStatement::Statement(statement) => Some(*statement),
        _ => None,
    }
}
