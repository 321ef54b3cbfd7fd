//! The tables that are written, and those that were.

use std::sync::Arc;

use parking_lot::Mutex;
use stoa_error::{Error, Result};
use tokio_postgres::Client;

use super::ledger::Ledger;
use crate::write::columns_sql;

/// A table and what should be in it.
#[derive(Debug)]
pub(crate) struct TortureTable {
    pub name: String,
    pub ledger: Mutex<Ledger>,
}

/// Tables by kind and generation: `busy_0`, `calm_0`, …
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub active: Vec<Arc<TortureTable>>,
    pub retired: Vec<Arc<TortureTable>>,
    /// How many servers had ended when the active ones were made.
    pub made_at: u32,
    generation: u32,
}

/// Kinds of tables with their properties. Rows of `busy` are flushed all the time; those of `calm`
/// stay in the log over many restarts.
const KINDS: [(&str, &str); 2] = [
    (
        "busy",
        "'stoa.flush-rows' = '1500', 'stoa.flush-age-ms' = '100', \
         'history.expire.max-snapshot-age-ms' = '1'",
    ),
    ("calm", "'stoa.flush-rows' = '1000000'"),
];

impl Tables {
    /// Makes new tables for the writers; those that they had are only checked from now on.
    ///
    /// # Errors
    /// Unavailable where the server does not make them.
    pub(crate) async fn renew(&mut self, client: &Client) -> Result<()> {
        let mut made = Vec::new();
        // A name is used once, even if it is not known what became of it.
        let generation = self.generation;
        self.generation += 1;
        for (kind, properties) in KINDS {
            let name = format!("{kind}_{generation}");
            let statement = format!(
                "CREATE TABLE {name} ({}) PARTITIONED BY (truncate(200, day)) \
                 ORDER BY (account) TBLPROPERTIES ({properties})",
                columns_sql()
            );
            client.batch_execute(&statement).await.map_err(|e| {
                Error::unavailable(format!("table {name} cannot be made"))
                    .with_detail(e.as_db_error().map_or_else(|| e.to_string(), ToString::to_string))
                    .with_source(e)
            })?;
            made.push(Arc::new(TortureTable { name, ledger: Mutex::default() }));
        }
        self.retired.append(&mut std::mem::replace(&mut self.active, made));
        Ok(())
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<TortureTable>> {
        self.active.iter().chain(&self.retired)
    }
}
