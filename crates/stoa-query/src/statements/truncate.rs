//! `TRUNCATE a, b, …`: several tables are emptied in one commit, or none.
//!
//! In: their names. Each is emptied as by a `TRUNCATE` of its own (`dml`), all in one transaction block: the session's,
//! or one that begins and ends with the statement.

use std::sync::Arc;

use datafusion::common::{DFSchema, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{DmlStatement, EmptyRelation, LogicalPlan, WriteOp};
use datafusion::sql::sqlparser::ast::ObjectName;
use futures::FutureExt;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_sql::identity::Identity;

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::dml;

/// Empties the tables.
///
/// # Errors
/// What is no table (42P01, 42809), rights (42501), and `Conflict` where others change the tables all the time; all
/// tables are as they were then.
pub(crate) async fn run(
    session: &Session,
    names: &[ObjectName],
    restarts: bool,
    guard: &QueryGuard,
) -> Result<Completion> {
    let mut tables: Vec<TableIdent> = Vec::with_capacity(names.len());
    for name in names {
        let ident = session.table_ident(name)?;
        if !tables.contains(&ident) {
            tables.push(ident);
        }
    }
    if restarts {
        refuse_identities(session, &tables).await?;
    }
    session.in_one_block(|| empty(session, &tables, guard).boxed()).await
}

/// Numbers of identity columns may be with several servers, each of which gives out its own.
async fn refuse_identities(session: &Session, tables: &[TableIdent]) -> Result<()> {
    for ident in tables {
        let table = session.data.warehouse().table(ident).await?;
        if table.defaults().values().any(|text| Identity::of_default(text).is_some()) {
            let message = format!("RESTART IDENTITY of table {ident} is not supported");
            return Err(Error::unsupported(message)
                .with_hint("TRUNCATE without it, or drop the table and make it again"));
        }
    }
    Ok(())
}

async fn empty(session: &Session, tables: &[TableIdent], guard: &QueryGuard) -> Result<Completion> {
    for ident in tables {
        let table = session.data.table(ident).await?;
        let name = TableReference::partial(ident.namespace.as_str(), ident.name.as_str());
        let nothing = EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) };
        let plan = LogicalPlan::Dml(DmlStatement::new(
            name,
            provider_as_source(Arc::new(table)),
            WriteOp::Truncate,
            Arc::new(LogicalPlan::EmptyRelation(nothing)),
        ));
        dml::run(session, plan, None, None, guard).await?;
    }
    Ok(Completion::of("TRUNCATE TABLE"))
}
