//! Which snapshots this process has in hand.
//!
//! Every [`crate::Table`] pins the snapshot that it shows, from when it is opened until the last clone
//! is dropped. A scan holds its table, so what it reads is pinned for as long as it runs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// The pins of a warehouse.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<HashMap<(Uuid, i64), usize>>);

/// One snapshot in hand, until this is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    pins: Arc<Pins>,
    key: (Uuid, i64),
}

impl Pins {
    /// Pins `snapshot` of `table`.
    pub(crate) fn pin(self: &Arc<Self>, table: Uuid, snapshot: i64) -> Pin {
        let key = (table, snapshot);
        *self.0.lock().entry(key).or_default() += 1;
        Pin { pins: self.clone(), key }
    }

    /// The snapshots of `table` that are pinned.
    pub(crate) fn of(&self, table: Uuid) -> HashSet<i64> {
        let pins = self.0.lock();
        pins.keys().filter(|(of, _)| *of == table).map(|(_, snapshot)| *snapshot).collect()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.pins.0.lock();
        if let Some(count) = pins.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.key);
            }
        }
    }
}
