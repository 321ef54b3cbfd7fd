//! `system.stores`: what each store was asked for since the start.

use stoa_store::{StoreTotals, StoreUsage};

use super::rows::Rows;
use crate::engine::Engine;

/// One row per store that was opened.
pub(super) fn stores(engine: &Engine) -> Rows {
    let all = engine.warehouse().stores().usage();
    let of = || all.iter();
    let total = |of: fn(&StoreTotals) -> u64| all.iter().map(move |used| Some(of(&used.totals)));
    Rows::of(all.len())
        .text("store", of().map(|used| Some(used.store.as_str())))
        .int("gets", total(|t| t.reads))
        .int("heads", total(|t| t.heads))
        .int("puts", total(|t| t.writes))
        .int("lists", total(|t| t.lists))
        .int("deletes", total(|t| t.deletes))
        .int("requests", total(StoreTotals::requests))
        .int("retries", total(|t| t.retries))
        .int("hedges", of().map(|used| Some(used.hedges)))
        .int("errors", total(|t| t.errors))
        .int("bytes_read", total(|t| t.bytes_read))
        .int("bytes_written", total(|t| t.bytes_written))
        .float("wait_ms", of().map(|used| Some(wait_ms(used))))
        .float("cost_usd", of().map(|used| Some(used.dollars)))
}

/// Time until answers began, summed over requests.
fn wait_ms(used: &StoreUsage) -> f64 {
    used.totals.wait_us as f64 / 1000.0
}
