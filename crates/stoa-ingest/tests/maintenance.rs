//! Background maintenance: flushes make many files, and they do not stay many.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Home, by_hand, ids, rows};
use stoa_ingest::{Durability, Maintenance, MaintenanceOptions};
use stoa_orc::Predicate;
use stoa_table::{ExpireOptions, Table};

async fn files(table: &Table) -> usize {
    let table = table.reload().await.unwrap();
    table.plan_scan(&Predicate::always()).await.unwrap().files.len()
}

/// Has one round over all tables, and waits until it is over. (None begins by itself here.)
async fn one_round(maintenance: &Maintenance) {
    let rounds = maintenance.status().rounds;
    maintenance.wake();
    while maintenance.status().rounds == rounds {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_flushes_become_few_files_and_little_history() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    for flush in 0..12 {
        let first = flush * 100;
        ingest.append(&table, rows(first..first + 100), Durability::Synced).await.unwrap();
        ingest.flush_now(&table).await.unwrap();
    }
    ingest.append(&table, rows(1200..1300), Durability::Synced).await.unwrap();
    assert_eq!(files(&table).await, 24);

    let at_once = ExpireOptions {
        age_max: Some(Duration::ZERO),
        retain_last: Some(1),
        age_min: Duration::ZERO,
        ..ExpireOptions::default()
    };
    let options = MaintenanceOptions {
        interval: Duration::from_secs(1 << 20),
        expire: at_once,
        expire_interval: Duration::ZERO,
        orphan_interval: Duration::ZERO,
        ..MaintenanceOptions::default()
    };
    let maintenance = Maintenance::start(home.warehouse.clone(), options);
    one_round(&maintenance).await;
    assert!(files(&table).await <= 4, "{}", files(&table).await);
    let status = maintenance.status();
    assert!(status.compactions >= 2 && status.snapshots_expired >= 12, "{status:?}");
    assert!(status.compacted_rows >= 1200 && status.files_deleted > 0, "{status:?}");
    assert_eq!((status.failures, status.now), (0, None));
    maintenance.stop().await.unwrap();

    assert_eq!(ids(&ingest, "t").await, (0..1300).collect::<Vec<_>>());
    let flushed = ingest.flush_now(&table).await.unwrap();
    assert_eq!(flushed.check().await.unwrap().problems, []);
    ingest.close(true).await.unwrap();
    let (ingest, report) = home.open(by_hand()).await;
    assert_eq!(report.rows, 0);
    assert_eq!(ids(&ingest, "t").await, (0..1300).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_looked_after_is_in_the_status() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    let retention = [("stoa.retention".to_owned(), "1 day".to_owned())].into();
    let table = table.alter(vec![stoa_table::TableChange::SetProperties(retention)]).await.unwrap();
    ingest.append(&table, rows(0..10), Durability::Synced).await.unwrap();
    ingest.flush_now(&table).await.unwrap();
    let options =
        MaintenanceOptions { interval: Duration::from_secs(1 << 20), ..Default::default() };
    let maintenance = Maintenance::start(home.warehouse.clone(), options);
    one_round(&maintenance).await;
    let errors = maintenance.status().errors;
    assert!(errors["public.t"].contains("not partitioned by time"), "{errors:?}");
    home.warehouse.drop_table(table.ident(), true).await.unwrap();
    maintenance.stop().await.unwrap();
}
