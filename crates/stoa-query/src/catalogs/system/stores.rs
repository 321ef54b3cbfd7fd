//! `system.stores`: what each store was asked for since the start.

use stoa_figures::Store;
use stoa_store::StoreUsage;

use crate::engine::Engine;

/// One row per store that was opened.
pub(super) fn stores(engine: &Engine) -> Vec<Store> {
    engine.warehouse().stores().usage().iter().map(store).collect()
}

fn store(used: &StoreUsage) -> Store {
    let totals = &used.totals;
    Store {
        store: used.store.clone(),
        gets: totals.reads,
        heads: totals.heads,
        puts: totals.writes,
        lists: totals.lists,
        deletes: totals.deletes,
        retries: totals.retries,
        hedges: used.hedges,
        errors: totals.errors,
        bytes_read: totals.bytes_read,
        bytes_written: totals.bytes_written,
        wait_ms: totals.wait_us as f64 / 1000.0,
        cost_usd: used.dollars,
    }
}
