//! Which columns have been scanned: what is scanned again is worth keeping.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use parking_lot::Mutex;
use uuid::Uuid;

/// Columns that are remembered; beyond them all are forgotten.
const COLUMNS_MAX: usize = 1 << 16;

/// Columns that have been scanned, by table and field id, with the number of the statement that was the first; `None` once
/// another one has scanned them.
#[derive(Debug, Default)]
pub(crate) struct SeenColumns(Mutex<HashMap<(Uuid, i32), Option<u64>>>);

impl SeenColumns {
    /// Whether all these columns have been scanned by other statements than `statement`; from now on they have been by this
    /// one. That a statement scans a table twice says nothing about the next one.
    pub(crate) fn again(
        &self,
        table: Uuid,
        fields: impl Iterator<Item = i32>,
        statement: u64,
    ) -> bool {
        let mut seen = self.0.lock();
        if seen.len() > COLUMNS_MAX {
            seen.clear();
        }
        let is_new = |field| match seen.entry((table, field)) {
            Entry::Vacant(unseen) => {
                unseen.insert(Some(statement));
                true
            }
            Entry::Occupied(seen) if *seen.get() == Some(statement) => true,
            Entry::Occupied(mut seen) => {
                seen.insert(None);
                false
            }
        };
        fields.map(is_new).filter(|is_new| *is_new).count() == 0
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
