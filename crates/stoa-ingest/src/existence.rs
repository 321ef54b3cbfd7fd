//! Whether a table is still there when its new rows are acknowledged.
//!
//! Names are resolved when a statement begins; until its rows are durable the table may be dropped,
//! replaced or renamed, also by another process. The catalog is asked for the table's pointer, which
//! it remembers for as long as nobody has changed anything.
//!
//! **Invariant:** a table is known by its uuid. One that was renamed is still there.

use stoa_error::{ErrorKind, Result};
use stoa_table::Table;

use crate::error::{dropped, replaced, unknown};
use crate::inner::Inner;
use crate::locate::locate;
use crate::tables::TableState;

impl Inner {
    /// Checks that `table` is in the catalog, under whatever name; forgets its rows if not.
    ///
    /// # Errors
    /// `NotFound` (42P01), or `Conflict` (40001) where another table has the name now;
    /// `Unavailable` (08007) where the catalog cannot tell.
    pub(crate) async fn check_exists(&self, state: &TableState, table: &Table) -> Result<()> {
        let ident = table.ident();
        if let Ok(pointer) = self.warehouse.catalog().pointer(ident).await
            && (pointer == table.metadata_location() || state.was_at(&pointer))
        {
            return Ok(());
        }
        let found = locate(&self.warehouse, state.uuid(), &state.ident()).await;
        if let Some(found) = found.map_err(|source| unknown(ident, source))? {
            state.found(&found);
            return Ok(());
        }
        self.forget(state).await;
        Err(match self.warehouse.catalog().pointer(ident).await {
            Err(error) if error.kind() == ErrorKind::NotFound => dropped(ident),
            _ => replaced(ident),
        })
    }
}
