//! Rows for a table that is dropped, replaced or renamed before they are acknowledged: an error, or
//! they are in that table. Whoever does it: this process or another one on the same catalog.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{Home, by_hand, ident, ids, open_warehouse, rows, schema};
use stoa_env::failpoint::{Action, Failpoints};
use stoa_error::ErrorKind;
use stoa_ingest::{Durability, Ingest};
use stoa_table::{Table, TableSpec, Warehouse};

/// What happens to table `t` while a client holds on to the version that it saw.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Dropped,
    DroppedAndMade,
    Replaced,
    Renamed,
    RenamedAndMade,
}

use Fate::{Dropped, DroppedAndMade, Renamed, RenamedAndMade, Replaced};

const FATES: [Fate; 5] = [Dropped, DroppedAndMade, Replaced, Renamed, RenamedAndMade];

impl Fate {
    async fn befalls(self, warehouse: &Warehouse) {
        let (t, u) = (ident("t"), ident("u"));
        match self {
            Dropped | DroppedAndMade => warehouse.drop_table(&t, true).await.unwrap(),
            Renamed | RenamedAndMade => warehouse.rename_table(&t, &u).await.unwrap(),
            Replaced => {
                let old = warehouse.table(&t).await.unwrap();
                let spec = TableSpec::new(schema());
                let staged = warehouse.stage_replacement(&old, spec).await.unwrap();
                staged.writer(Default::default()).unwrap().commit().await.unwrap();
            }
        }
        if matches!(self, DroppedAndMade | RenamedAndMade) {
            warehouse.create_table(&t, TableSpec::new(schema())).await.unwrap();
        }
    }

    /// What an append to the old table must come to.
    async fn check(self, ingest: &Ingest, appended: stoa_error::Result<stoa_ingest::Ack>) {
        match self {
            Dropped => {
                let error = appended.unwrap_err();
                assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::NotFound, "42P01"));
                assert!(error.message().contains("public.t was dropped"), "{error:?}");
            }
            DroppedAndMade | Replaced => {
                let error = appended.unwrap_err();
                assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Conflict, "40001"));
                assert!(error.message().contains("another one made"), "{error:?}");
                assert!(ids(ingest, "t").await.is_empty());
            }
            Renamed | RenamedAndMade => {
                assert_eq!(appended.unwrap().rows, 3);
                assert_eq!(ids(ingest, "u").await, [0, 1, 2]);
                if self == RenamedAndMade {
                    assert!(ids(ingest, "t").await.is_empty());
                }
            }
        }
    }
}

struct Case {
    home: Home,
    ingest: Ingest,
    /// The same catalog as another process has it open.
    other: Warehouse,
    table: Table,
}

impl Case {
    async fn new() -> Self {
        let home = Home::new().await;
        let (ingest, _) = home.open(by_hand()).await;
        let other = open_warehouse(home.directory.path()).await;
        let table = home.table("t").await;
        Self { home, ingest, other, table }
    }

    fn warehouse(&self, elsewhere: bool) -> &Warehouse {
        if elsewhere { &self.other } else { &self.home.warehouse }
    }
}

#[tokio::test]
async fn rows_that_come_after_it() {
    for fate in FATES {
        for elsewhere in [false, true] {
            let case = Case::new().await;
            fate.befalls(case.warehouse(elsewhere)).await;
            let appended = case.ingest.append(&case.table, rows(0..3), Durability::Table).await;
            fate.check(&case.ingest, appended).await;
        }
    }
}

#[tokio::test]
async fn rows_that_are_durable_but_not_acknowledged_yet() {
    for fate in FATES {
        for elsewhere in [false, true] {
            let case = Case::new().await;
            let points = Failpoints::new();
            points.arm("append.durable", Action::Pause);
            let appending =
                points.scope(case.ingest.append(&case.table, rows(0..3), Durability::Table));
            let meanwhile = async {
                points.reached("append.durable").await;
                fate.befalls(case.warehouse(elsewhere)).await;
                points.release("append.durable");
            };
            let (appended, ()) = tokio::join!(appending, meanwhile);
            fate.check(&case.ingest, appended).await;
        }
    }
}

#[tokio::test]
async fn what_is_refused_is_not_there_after_a_restart_either() {
    let Case { home, ingest, table, .. } = Case::new().await;
    home.warehouse.drop_table(table.ident(), true).await.unwrap();
    let again = home.table("t").await;
    ingest.append(&table, rows(0..3), Durability::Table).await.unwrap_err();
    ingest.append(&again, rows(3..5), Durability::Table).await.unwrap();
    assert_eq!(ids(&ingest, "t").await, [3, 4]);
    assert_eq!(ingest.status().fresh_bytes, ingest_bytes(&ingest));
    ingest.close(false).await.unwrap();
    drop(ingest);
    let (ingest, report) = home.open(by_hand()).await;
    assert_eq!((report.rows, report.records_dropped), (2, 1));
    assert_eq!(ids(&ingest, "t").await, [3, 4]);
}

/// The room that the tables' fresh rows take: what refused rows had is free again.
fn ingest_bytes(ingest: &Ingest) -> usize {
    ingest.status().tables.iter().map(|table| table.fresh_bytes).sum()
}

/// Writers with versions of any age, beside somebody who drops, makes and renames all the time: what
/// was acknowledged for a table that is there in the end is there once, and what was begun after a
/// table's drop had returned was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once() {
    let Case { home, ingest, other, table } = Case::new().await;
    let current = std::sync::Arc::new(parking_lot::Mutex::new(table));
    let gone = std::sync::Arc::new(parking_lot::Mutex::new(BTreeSet::new()));
    let mut writers = Vec::new();
    for writer in 0..4_i64 {
        let (ingest, current, gone) = (ingest.clone(), current.clone(), gone.clone());
        writers.push(stoa_env::task::spawn(async move {
            let mut kept = Vec::new();
            let mut table = current.lock().clone();
            for turn in 0..60_i64 {
                // The version is looked up now and then, so most appends use one that is old.
                if turn % 5 == 0 {
                    table = current.lock().clone();
                }
                let was_gone = gone.lock().contains(&table.uuid());
                let id = writer * 1000 + turn;
                let appended = ingest.append(&table, rows([id]), Durability::Table).await;
                assert!(!(was_gone && appended.is_ok()), "acknowledged {id} after the drop");
                if appended.is_ok() {
                    kept.push((table.uuid(), id));
                }
            }
            kept
        }));
    }
    for turn in 0..30 {
        let warehouse = if turn % 2 == 0 { &home.warehouse } else { &other };
        let old = warehouse.table(&ident("t")).await.unwrap();
        match turn % 3 {
            0 => warehouse.rename_table(&ident("t"), &ident(&format!("old_{turn}"))).await.unwrap(),
            _ => {
                warehouse.drop_table(&ident("t"), true).await.unwrap();
                gone.lock().insert(old.uuid());
            }
        }
        *current.lock() =
            warehouse.create_table(&ident("t"), TableSpec::new(schema())).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut kept = Vec::new();
    for writer in writers {
        kept.extend(writer.await.unwrap());
    }
    assert!(!kept.is_empty());
    for name in home.warehouse.tables("public").await.unwrap() {
        let uuid = home.warehouse.table(&name).await.unwrap().uuid();
        let expected: BTreeSet<i64> =
            kept.iter().filter(|(of, _)| *of == uuid).map(|(_, id)| *id).collect();
        assert_eq!(ids(&ingest, &name.name).await, expected.into_iter().collect::<Vec<_>>());
    }
}
