//! Making a template of a statement that was planned.

use datafusion::sql::parser::{DFParserBuilder, Statement as EngineStatement};
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;

use super::fingerprint::Fingerprint;
use super::recognise::{recognise, table_of};
use super::shape::ReportShape;
use super::templates::ReportStatement;
use crate::cells;
use crate::session::{Prepared, Session};

/// Remembers the form of a statement, and gives it back as a report if it is one.
pub(crate) async fn learn(session: &Session, prepared: &Prepared) -> Option<ReportStatement> {
    let (engine, context) = (&session.engine, session.options_context());
    let text = prepared.statement().text();
    if !session.takes_short_path() || engine.templates.is_known(&context, text) {
        return None;
    }
    let statement = Fingerprint::of(text).and_then(|fingerprint| parse_places(&fingerprint));
    let table = match statement.as_ref().and_then(table_of) {
        Some(name) => {
            let ident = session.table_ident(name).ok()?;
            engine.catalog.snapshot(&ident).await.ok().map(|snapshot| snapshot.table)
        }
        None => None,
    };
    // A table of cells shows other columns than it has.
    let table = table.filter(|table| cells::refuse_rows(table).is_ok());
    engine.templates.learn(&context, text, |fingerprint| -> Option<ReportShape> {
        let literals = &fingerprint.literals;
        let types = prepared.parameter_types();
        recognise(statement.as_ref()?, literals, table.as_ref()?, prepared.schema()?, types)
    })
}

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
