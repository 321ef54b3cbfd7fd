//! PostgreSQL's system catalog: what `\d`, DBeaver and JDBC's metadata calls read.
//!
//! In: the engine's catalog. Out: tables and functions under `pg_catalog`, and statements of
//! clients rewritten to what the engine can plan.

use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast;
use stoa_error::Result;

/// Adds `pg_catalog` to the database `catalog_name` of `ctx`.
pub(crate) fn install(_ctx: &SessionContext, _catalog_name: &str) -> Result<()> {
    Ok(())
}

/// Parses a statement that reads the system catalog, rewritten; `None` for all others, which then
/// take the plain way. Must be cheap for those: it stands before every report.
pub(crate) fn parse(_text: &str) -> Result<Option<ast::Statement>> {
    Ok(None)
}
