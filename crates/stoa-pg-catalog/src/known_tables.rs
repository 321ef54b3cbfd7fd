//! Which tables the functions of a session know of.
//!
//! They are read before a statement is planned or executed that calls one of these functions: a function cannot wait
//! for the catalog itself.

use std::sync::Arc;

use parking_lot::RwLock;
use stoa_error::Result;

use crate::relations::Relations;
use crate::server::Asker;

/// The tables that the functions of a session know of.
#[derive(Debug, Default)]
pub struct KnownTables {
    /// All that there are, whoever asks.
    all: RwLock<Arc<Relations>>,
    /// Those of which whoever asks may know.
    own: RwLock<Arc<Relations>>,
}

impl KnownTables {
    /// Reads which tables there are now; `all` may know everything, `own` is who asks, unless he may do so, too.
    ///
    /// # Errors
    /// The catalog's.
    pub async fn learn(&self, all: &dyn Asker, own: Option<&dyn Asker>) -> Result<()> {
        let relations = Arc::new(Relations::read(all, &[], true).await?);
        let seen = match own {
            Some(own) => Arc::new(Relations::read(own, &[], true).await?),
            None => Arc::clone(&relations),
        };
        *self.all.write() = relations;
        *self.own.write() = seen;
        Ok(())
    }

    pub(super) fn all(&self) -> Arc<Relations> {
        Arc::clone(&self.all.read())
    }

    pub(super) fn own(&self) -> Arc<Relations> {
        Arc::clone(&self.own.read())
    }
}
