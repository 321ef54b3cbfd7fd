//! Processes that are killed: by a signal while they write, and by themselves at each fail point.
//!
//! A child process writes cells through the log and loads others into files, and prints what was
//! acknowledged; all the while tables are flushed and compacted. It is killed, and the next child goes
//! on in the same place. In the end every cell that any of them acknowledged is there exactly once,
//! no part of a write is, and no timestamp was handed out twice.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Store, name};
use futures::TryStreamExt;
use stoa_cells::CellOptions;
use stoa_env::failpoint;
use stoa_hql::scan::ScanSpec;
use stoa_hql::{
    CellBatch, CellBatchBuilder, CellStore, FamilyDefinition, FamilyOptions, TableDefinitions,
    TableOptions, TableSchema,
};
use stoa_ingest::{FlushLimits, IngestOptions};

/// What a child is told: `DIRECTORY FIRST FAILPOINTS`, one per line.
const HELPER: &str = "STOA_TEST_HELPER";

/// Cells of a write.
const CELLS: u64 = 20;

/// Writes that one child may do, counted over all of its writers.
const WRITES_PER_CHILD: u64 = 100_000;

/// Writers through the log; a further one loads into files, and one compacts.
const WRITERS: u64 = 3;

/// Where a child kills itself, and at which hit.
const POINTS: [(&str, u32); 12] = [
    ("flush.sealed", 2),
    ("write.files_written", 1),
    ("write.files_written", 4),
    ("flush.before_commit", 2),
    ("commit.manifests_written", 3),
    ("commit.metadata_written", 2),
    ("commit.metadata_written", 5),
    ("commit.swapped", 1),
    ("commit.swapped", 6),
    ("flush.after_commit", 2),
    ("flush.dropped", 2),
    ("flush.released", 2),
];

/// Children that are killed from outside, after as many acknowledgements.
const KILLS: [usize; 6] = [1, 9, 30, 75, 150, 250];

fn options() -> IngestOptions {
    let often = FlushLimits { bytes: 1 << 20, rows: 400, age: Duration::from_millis(20) };
    IngestOptions { flush: often, ..common::by_hand() }
}

fn schema() -> TableSchema {
    let families = vec![FamilyDefinition { name: "f".into(), options: FamilyOptions::default() }];
    let definitions = TableDefinitions { families, ..TableDefinitions::default() };
    TableSchema::create(&definitions, TableOptions::default()).unwrap()
}

/// The cells of one write, each in a row of its own.
fn cells(store: &Store, write: u64) -> CellBatch {
    let first = store.cells.timestamps().reserve(CELLS as u32);
    let mut builder = CellBatchBuilder::new();
    for nth in 0..CELLS {
        // Neighbours lie far apart in the order of rows.
        let row = format!("{nth:02}-{write}");
        let timestamp = first + nth as i64;
        builder
            .push_insert(row.as_bytes(), 1, b"", timestamp, write.to_string().as_bytes())
            .unwrap();
    }
    builder.finish().with_new_timestamps()
}

/// Not a test but the child: it writes until it dies, or is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods)]
async fn helper() {
    let Ok(orders) = std::env::var(HELPER) else { return };
    let orders: Vec<&str> = orders.lines().collect();
    let (directory, first): (_, u64) = (Path::new(orders[0]), orders[1].parse().unwrap());
    failpoint::arm_process(orders.get(2).copied().unwrap_or_default()).unwrap();
    let store = common::open(directory, options(), CellOptions::default()).await;
    let mut tasks = Vec::new();
    for writer in 0..=WRITERS {
        let store = store.clone();
        tasks.push(stoa_env::task::spawn(async move {
            for write in (writer..WRITES_PER_CHILD).step_by(WRITERS as usize + 1) {
                let cells = cells(&store, first + write);
                if writer < WRITERS {
                    store.cells.mutate(&name("t"), cells).await.unwrap();
                } else {
                    let mut load = store.cells.bulk_load(&name("t"), false).await.unwrap();
                    load.write(cells).await.unwrap();
                    load.finish().await.unwrap();
                }
                println!("\nkept {}", first + write);
            }
        }));
    }
    tasks.push(stoa_env::task::spawn(async move {
        loop {
            store.merge().await;
        }
    }));
    for task in tasks {
        task.await.unwrap();
    }
}

/// Runs a child until it dies, or until it has acknowledged `kill_after` writes, and notes which.
fn run(directory: &Path, first: u64, points: &str, kill_after: usize, kept: &mut BTreeSet<u64>) {
    let orders = format!("{}\n{first}\n{points}", directory.to_str().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["helper", "--exact", "--nocapture"])
        .env(HELPER, orders)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut count = 0;
    // What it had printed before it was killed counts as well.
    for line in output.lines().map_while(Result::ok) {
        let Some(write) = line.strip_prefix("kept ") else { continue };
        kept.insert(write.parse().unwrap());
        count += 1;
        if count == kill_after {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success(), "the child ended by itself");
    // At a fail point it may die before anything is acknowledged.
    assert!(count > 0 || points.contains('@'), "nothing was acknowledged before the kill");
}

async fn check(directory: &Path, children: u64, kept: &BTreeSet<u64>) {
    let store = common::open(directory, common::by_hand(), CellOptions::default()).await;
    let found = store.cells.scan(&name("t"), ScanSpec::default()).await.unwrap();
    let found: Vec<CellBatch> = found.try_collect().await.unwrap();
    let mut timestamps = BTreeSet::new();
    let mut writes: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for cell in found.iter().flat_map(|batch| batch.iter()) {
        assert!(timestamps.insert(cell.timestamp), "{} comes twice", cell.timestamp);
        let write = std::str::from_utf8(cell.value).unwrap().parse().unwrap();
        assert!(writes.entry(write).or_default().insert(cell.row.to_vec()), "{write} comes twice");
    }
    assert!(timestamps.iter().all(|timestamp| *timestamp <= store.cells.timestamps().last()));
    for write in kept {
        assert!(writes.contains_key(write), "the acknowledged write {write} is gone");
    }
    for (write, cells) in &writes {
        assert_eq!(cells.len() as u64, CELLS, "a part of write {write} is there");
    }
    // Of what was not acknowledged: one write per writer that died.
    let others = writes.keys().filter(|write| !kept.contains(write)).count() as u64;
    assert!(others <= children * (WRITERS + 1), "{others} writes that nobody was told of");
    for table in store.tables().await {
        assert_eq!(table.check().await.unwrap().problems, []);
    }
    store.ingest.close(true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_lose_nothing_and_repeat_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = common::open(home.path(), common::by_hand(), CellOptions::default()).await;
    store.cells.create_table(&name("t"), schema()).await.unwrap();
    store.ingest.close(false).await.unwrap();
    drop(store);
    let mut kept = BTreeSet::new();
    let mut children = 0;
    for (point, nth) in POINTS {
        let points = format!("{point}=abort@{nth}");
        run(home.path(), children * WRITES_PER_CHILD, &points, 0, &mut kept);
        children += 1;
    }
    check(home.path(), children, &kept).await;
    for acknowledged in KILLS {
        run(home.path(), children * WRITES_PER_CHILD, "", acknowledged, &mut kept);
        children += 1;
    }
    check(home.path(), children, &kept).await;
    assert!(kept.len() > 500, "{}", kept.len());
}
