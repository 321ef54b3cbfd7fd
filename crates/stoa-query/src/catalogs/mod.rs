//! Catalogs that clients read as tables: what `stoa-pg-catalog` and `stoa-system` have to know of the
//! engine, and of who asks.
//!
//! **Invariant:** no table, and no column, is told of to a caller that may not know it.

pub(crate) mod pg;
pub(crate) mod system;

use std::sync::{Arc, OnceLock, Weak};

use datafusion::catalog::CatalogProvider;
use datafusion::prelude::SessionContext;
use stoa_error::Result;
use stoa_semantics::errors::from_datafusion;
use stoa_system::{SYSTEM, SystemSchema};
use stoa_table::Warehouse;

use crate::engine::{DATABASE, Engine};
use crate::tables::catalog::StoaCatalog;

/// Adds `pg_catalog`, `information_schema` and `system` to the database of `context`, which is `catalog`;
/// `engine` is set when the engine is there.
pub(crate) fn install(
    context: &SessionContext,
    catalog: &Arc<StoaCatalog>,
    warehouse: &Warehouse,
    engine: &Arc<OnceLock<Weak<Engine>>>,
) -> Result<()> {
    stoa_pg_catalog::install(context, DATABASE, &pg::server(warehouse, engine))?;
    let schema = SystemSchema::new(system::server(engine));
    catalog.register_schema(SYSTEM, Arc::new(schema)).map_err(from_datafusion)?;
    Ok(())
}
