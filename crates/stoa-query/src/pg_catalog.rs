//! PostgreSQL's system catalog: what `\d`, DBeaver and JDBC's metadata calls read.
//!
//! In: the warehouse. Out: tables and functions under `pg_catalog`, and statements of clients
//! rewritten to what the engine can plan.
//!
//! What differs from warehouse to warehouse (relations, columns, schemas, comments) is built here
//! when a query runs, so that it is never stale; what every PostgreSQL has alike (types,
//! functions, operators) comes from the crate `datafusion-pg-catalog`.
//!
//! **Invariant:** the OID of a relation depends on its name only; all sessions and all daemons
//! give it the same.

mod batch;
mod functions;
mod provider;
mod relations;
mod rewrite;
mod rights;
mod system_tables;
mod type_info;

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use stoa_error::{Error, Result};
use stoa_table::Warehouse;

use crate::error::from_datafusion;

pub(crate) use functions::set_user;
pub(crate) use rewrite::{lists_names, parse};
pub(crate) use rights::{KnownTables, asks_for_rights, set_rights};

/// Adds `pg_catalog` to the database `catalog_name` of `ctx`.
pub(crate) fn install(
    ctx: &SessionContext,
    catalog_name: &str,
    warehouse: &Warehouse,
) -> Result<()> {
    datafusion_pg_catalog::setup_pg_catalog(ctx, catalog_name, EmptyContextProvider)
        .map_err(|error| from_datafusion(*error))?;
    let catalog = ctx
        .catalog(catalog_name)
        .ok_or_else(|| Error::internal(format!("no catalog {catalog_name}")))?;
    let common = catalog
        .schema(provider::PG_CATALOG)
        .ok_or_else(|| Error::internal("pg_catalog was not registered"))?;
    let schema = provider::PgCatalog::new(warehouse.clone(), common);
    catalog.register_schema(provider::PG_CATALOG, Arc::new(schema)).map_err(from_datafusion)?;
    functions::register(ctx, catalog_name);
    Ok(())
}
