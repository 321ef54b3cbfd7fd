//! The tables that are written, and those that were.

use std::sync::Arc;

use parking_lot::Mutex;
use stoa_error::{Error, Result};

use super::ledger::Ledger;
use crate::write::{ServerAddress, WritePath, columns_sql};

/// What a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rows,
    Cells,
}

/// A table and what should be in it.
#[derive(Debug)]
pub(crate) struct TortureTable {
    pub kind: Kind,
    pub name: String,
    pub ledger: Mutex<Ledger>,
}

/// Tables by kind and generation: `busy_0`, `calm_0`, `cells_0`, …
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub active: Vec<Arc<TortureTable>>,
    pub retired: Vec<Arc<TortureTable>>,
    /// How many servers had ended when the active ones were made.
    pub made_at: u32,
    generation: u32,
}

/// Tables of rows with their properties. Rows of `busy` are flushed all the time; those of `calm`
/// stay in the log over many restarts.
const KINDS: [(&str, &str); 2] = [
    (
        "busy",
        "'stoa.flush-rows' = '1500', 'stoa.flush-age-ms' = '100', \
         'history.expire.max-snapshot-age-ms' = '1'",
    ),
    ("calm", "'stoa.flush-rows' = '1000000'"),
];

impl TortureTable {
    /// The ways in.
    pub(crate) fn paths(&self) -> &'static [WritePath] {
        match self.kind {
            Kind::Rows => &WritePath::ROWS,
            Kind::Cells => &[WritePath::Hql],
        }
    }
}

impl Tables {
    /// Makes new tables for the writers; those that they had are only checked from now on.
    ///
    /// # Errors
    /// Unavailable where the server does not make them.
    pub(crate) async fn renew(&mut self, address: &ServerAddress) -> Result<()> {
        let client = address.postgres().await?;
        let mut made = Vec::new();
        // A name is used once, even if it is not known what became of it.
        let generation = self.generation;
        self.generation += 1;
        for (kind, properties) in KINDS {
            let name = format!("{kind}_{generation}");
            let statement = format!(
                "CREATE TABLE IF NOT EXISTS {name} ({}) PARTITIONED BY (truncate(200, day)) \
                 ORDER BY (account) TBLPROPERTIES ({properties})",
                columns_sql()
            );
            // A made-up error may hit it, after which it may be there or not.
            let mut made_it = client.batch_execute(&statement).await;
            if made_it.is_err() {
                made_it = client.batch_execute(&statement).await;
            }
            made_it.map_err(|e| {
                Error::unavailable(format!("table {name} cannot be made"))
                    .with_detail(e.as_db_error().map_or_else(|| e.to_string(), ToString::to_string))
                    .with_source(e)
            })?;
            made.push(TortureTable { kind: Kind::Rows, name, ledger: Mutex::default() });
        }
        let name = format!("cells_{generation}");
        if address.hql(&format!("CREATE TABLE {name} (c)")).await.is_err() {
            let _ = address.hql(&format!("DROP TABLE IF EXISTS {name}")).await;
            address.hql(&format!("CREATE TABLE {name} (c)")).await?;
        }
        made.push(TortureTable { kind: Kind::Cells, name, ledger: Mutex::default() });
        let made = made.into_iter().map(Arc::new).collect();
        self.retired.append(&mut std::mem::replace(&mut self.active, made));
        Ok(())
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<TortureTable>> {
        self.active.iter().chain(&self.retired)
    }
}
