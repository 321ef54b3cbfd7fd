//! Which columns have been scanned: what is scanned again is worth keeping.

use std::collections::HashSet;

use parking_lot::Mutex;
use uuid::Uuid;

/// Columns that are remembered; beyond them all are forgotten.
const COLUMNS_MAX: usize = 1 << 16;

/// Columns that have been scanned, by table and field id.
#[derive(Debug, Default)]
pub(crate) struct SeenColumns(Mutex<HashSet<(Uuid, i32)>>);

impl SeenColumns {
    /// Whether all these columns have been scanned before; from now on they have.
    pub(crate) fn again(&self, table: Uuid, fields: impl Iterator<Item = i32>) -> bool {
        let mut seen = self.0.lock();
        if seen.len() > COLUMNS_MAX {
            seen.clear();
        }
        fields.filter(|field| seen.insert((table, *field))).count() == 0
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
