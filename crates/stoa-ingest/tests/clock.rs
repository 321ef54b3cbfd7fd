//! A wall clock that was ahead, and is set right.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{by_hand, ident, ids, open_ingest, rows, spec};
use stoa_env::Env;
use stoa_ingest::Durability;
use stoa_table::{ExpireOptions, TableChange, Warehouse, WarehouseOptions};

/// Versions without a new snapshot could not be written then, or not be read afterwards.
#[tokio::test]
async fn tables_are_changed_and_read_after_the_clock_was_set_back() {
    let directory = tempfile::tempdir().unwrap();
    let url = stoa_store::parse_location(directory.path().to_str().unwrap()).unwrap();
    let (env, world) = Env::simulated(1);
    let warehouse = Warehouse::open_in(&env, &WarehouseOptions::new(url.clone())).await.unwrap();
    warehouse.create_table(&ident("t"), spec()).await.unwrap();
    let log = tempfile::tempdir().unwrap();
    let (ingest, _) = open_ingest(log.path(), &warehouse, by_hand()).await;
    world.jump_forwards(Duration::from_secs(24 * 60 * 60));
    for first in [0, 10] {
        let table = warehouse.table(&ident("t")).await.unwrap();
        ingest.append(&table, rows(first..first + 10), Durability::Synced).await.unwrap();
        ingest.flush_now(&table).await.unwrap();
    }

    world.jump_backwards(Duration::from_secs(24 * 60 * 60));
    for text in ["100", "200"] {
        let table = warehouse.table(&ident("t")).await.unwrap();
        let set = [("stoa.flush-rows".to_owned(), text.to_owned())].into();
        table.alter(vec![TableChange::SetProperties(set)]).await.unwrap();
    }
    let at_once = ExpireOptions {
        age_max: Some(Duration::ZERO),
        retain_last: Some(1),
        age_min: Duration::ZERO,
        ..ExpireOptions::default()
    };
    world.jump_forwards(Duration::from_secs(2 * 24 * 60 * 60));
    let table = warehouse.table(&ident("t")).await.unwrap();
    assert_eq!(table.expire_snapshots(&at_once).await.unwrap().snapshots, 1);

    let again = Warehouse::open(&url).await.unwrap();
    let table = again.table(&ident("t")).await.unwrap();
    assert_eq!(table.property("stoa.flush-rows"), Some("200"));
    assert_eq!(table.snapshots().len(), 1);
    assert_eq!(ids(&ingest, "t").await, (0..20).collect::<Vec<_>>());
}
