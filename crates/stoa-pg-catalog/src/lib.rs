//! PostgreSQL's system catalog, and `information_schema`: what `\d`, DBeaver and JDBC's metadata calls
//! read.
//!
//! In: a [`Server`], which knows tables, settings and who asks. Out: tables and functions under
//! `pg_catalog`, the tables of `information_schema`, and statements of clients rewritten to what the
//! engine can plan.
//!
//! ```text
//!  text ─► parse ─► rewritten statement ─► plan ─► pg_catalog, information_schema
//!                                                   │ built when they are read
//!                             Server ─► Asker ◄─────┘ tables, as whoever asks may know them
//! ```
//!
//! What differs from server to server (relations, columns, schemas, comments, settings) is built here
//! when a query runs, so that it is never stale; what every PostgreSQL has alike (types, functions,
//! operators) comes from the crate `datafusion-pg-catalog`.
//!
//! **Invariants:** the OID of a relation depends on names only; all sessions and all daemons give it
//! the same. Nothing is told of a table, nor of a column, of which the [`Asker`] does not say that it
//! may be.
//!
//! Not here: where tables are, what a role may do (`stoa-access`), sessions and their settings.

mod asking;
mod batch;
mod contents;
mod definitions;
mod functions;
mod information_columns;
mod information_keys;
mod information_schema;
mod keys;
mod known_tables;
mod oids;
mod provider;
mod relations;
mod rewrite;
mod rights;
mod roles;
mod server;
mod system_tables;
#[cfg(test)]
mod tests;
mod texts;
mod type_info;

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use stoa_error::{Error, Result};
use stoa_semantics::errors::from_datafusion;

pub use asking::asks_about_tables;
pub use definitions::set_tables;
pub use functions::{set_settings, set_temporary_schema, set_user};
pub use known_tables::KnownTables;
pub use rewrite::{lists_names, parse};
pub use rights::set_rights;
pub use server::{
    Asker, Role, Running, Server, SessionSettings, Setting, TableDetails, TableInfo, Told,
};

/// Name of the schema of the system catalog.
const PG_CATALOG: &str = "pg_catalog";

/// Name of the SQL standard's schema.
const INFORMATION_SCHEMA: &str = "information_schema";

/// Adds `pg_catalog` and `information_schema` to the database `database` of `ctx`.
///
/// # Errors
/// Those of a catalog that takes no schemas; `Internal` where there is no such database.
pub fn install(ctx: &SessionContext, database: &str, server: &Arc<dyn Server>) -> Result<()> {
    datafusion_pg_catalog::setup_pg_catalog(ctx, database, EmptyContextProvider)
        .map_err(|error| from_datafusion(*error))?;
    let catalog =
        ctx.catalog(database).ok_or_else(|| Error::internal(format!("no catalog {database}")))?;
    let common = catalog
        .schema(PG_CATALOG)
        .ok_or_else(|| Error::internal("pg_catalog was not registered"))?;
    let schema = provider::PgCatalog::new(database, Arc::clone(server), common);
    catalog.register_schema(PG_CATALOG, Arc::new(schema)).map_err(from_datafusion)?;
    functions::register(ctx, database, server);
    definitions::register(ctx);
    texts::register(ctx);
    oids::register(ctx);
    let schema = information_schema::InformationSchema::new(database, Arc::clone(server), &catalog);
    catalog.register_schema(INFORMATION_SCHEMA, Arc::new(schema)).map_err(from_datafusion)?;
    Ok(())
}
