//! `INSERT … ON CONFLICT`: a MERGE on the table's key, which is its identifier fields.

use datafusion::catalog::TableProvider;
use datafusion::sql::parser::Statement as EngineStatement;
use stoa_error::Result;
use stoa_sql::upsert::{Target, table_of, write_as_merge};

use crate::session::Session;
use crate::statements::show::sql_type;
use crate::tables::external::refuse_rows;

/// The MERGE that an `INSERT … ON CONFLICT` means; `None` for any other statement.
///
/// # Errors
/// Those of the catalog, and of [`write_as_merge`].
pub(crate) async fn upsert(
    session: &Session,
    statement: &EngineStatement,
) -> Result<Option<EngineStatement>> {
    let Some(name) = table_of(statement) else { return Ok(None) };
    let table = session.data.table(&session.table_ident(name)?).await?;
    session.caller.must_know(&table.table)?;
    refuse_rows(&table.table)?;
    let schema = TableProvider::schema(&table);
    let columns: Vec<(String, String)> = schema
        .fields()
        .iter()
        .map(|field| (field.name().clone(), sql_type(field.data_type())))
        .collect();
    let key = table.table.identifiers();
    write_as_merge(statement, &Target { key: &key, columns: &columns }).map(Some)
}
