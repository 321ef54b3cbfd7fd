//! What statements took of caches and object stores, in JSON.

use serde_json::{Map, Value, json};
use stoa_query::Spent;

fn members(spent: &Spent) -> Map<String, Value> {
    let totals = &spent.store.totals;
    let store = json!({
        "gets": totals.reads,
        "heads": totals.heads,
        "puts": totals.writes,
        "lists": totals.lists,
        "deletes": totals.deletes,
        "retries": totals.retries,
        "bytes_read": totals.bytes_read,
        "bytes_written": totals.bytes_written,
        "cost_usd": spent.store.dollars,
    });
    let all = [
        ("chunk_hits", json!(spent.chunk_hits)),
        ("chunk_misses", json!(spent.chunk_misses)),
        ("hit_ratio", json!(spent.hit_ratio())),
        ("hedges", json!(spent.hedges)),
        ("store", store),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `object` with these members.
pub(crate) fn with_members(mut object: Value, spent: &Spent) -> Value {
    if let Value::Object(own) = &mut object {
        own.extend(members(spent));
    }
    object
}
